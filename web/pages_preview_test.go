package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/exec"
	"sandboxd/internal/idle"
	"sandboxd/internal/metrics"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/visibility"
	"sandboxd/internal/wire"
)

// furnish puts sandboxes of every state on the stage.
func (s *stage) furnish() {
	ago := func(d time.Duration) time.Time { return stageTime.Add(-d) }
	for i, b := range []sandbox.Sandbox{
		{Name: "silver-heron", Label: "Edge experiments", State: sandbox.Stopped, Spec: sandbox.Spec{Image: "debian:trixie-slim"}, Changed: ago(76 * time.Hour)},
		{Name: "old-forest", State: sandbox.Asleep, Spec: sandbox.Spec{Template: "base"}, Changed: ago(2 * time.Hour)},
		{Name: "tall-birch", Label: "Nightly import", State: sandbox.Failed, Spec: sandbox.Spec{Template: "data-analysis"}, Changed: ago(42 * time.Minute),
			Problem: "Building the image of template data-analysis failed at step 4 of 11: apt-get could not find the package python3-statsmodel."},
		{Name: "brave-otter", Label: "ML Experiments", State: sandbox.Running, Spec: sandbox.Spec{Template: "python-ml"}, Changed: ago(26 * time.Hour)},
		{Name: "checkout-api", Label: "Checkout API, branch retry-payments", State: sandbox.Running, Spec: sandbox.Spec{Template: "node-api"}, Changed: ago(3 * time.Hour)},
		{Name: "quick-lynx", State: sandbox.Running, Spec: sandbox.Spec{Template: "base"}, Changed: ago(12 * time.Minute)},
		{Name: "still-lake", Label: "Docs preview", State: sandbox.Frozen, Spec: sandbox.Spec{Template: "node-api"}, Changed: ago(48 * time.Minute)},
		{Name: "late-owl", State: sandbox.Sleeping, Spec: sandbox.Spec{Template: "base"}, Changed: ago(3 * time.Second)},
		{Name: "warm-comet", State: sandbox.Stopping, Spec: sandbox.Spec{Template: "base"}, Changed: ago(4 * time.Second)},
		{Name: "new-meadow", Label: "Quarterly numbers", State: sandbox.Creating, Spec: sandbox.Spec{Template: "data-analysis"}, Changed: ago(20 * time.Second)},
	} {
		owner := [...]string{"root", "ada", "bob"}[i%3]
		made := s.put(owner, b.Name, func(to *sandbox.Sandbox) {
			b.ID, b.Owner, b.Spec.Limits = to.ID, to.Owner, to.Spec.Limits
			b.Created = ago(time.Duration(90-i*11) * time.Hour)
			if b.Created.After(b.Changed) {
				b.Created = b.Changed
			}
			*to = b
		})
		if b.State == sandbox.Creating {
			s.images.builds(pace.Pace{Total: pace.Length{Time: 200 * time.Second, Measured: 190 * time.Second}, Done: 55 * time.Second, Step: 90 * time.Second, Since: b.Changed})
			s.boxes.progress[made.ID] = sandbox.Progress{Phase: sandbox.PhaseImage, Detail: "Unpacking python3-pandas (2.2.3+dfsg-9) ..."}
		}
	}
	s.keepBusy()
	s.keepServices()
	s.keepFigures()
	s.images.log = buildLines()
	for i, n := range []auth.NewToken{{Name: "laptop"}, {Name: "ci", Sandbox: "checkout-api", SandboxID: "1", TTL: 30 * 24 * time.Hour}} {
		if _, _, err := s.accounts.CreateToken(s.t.Context(), s.users["root"].ID, n); err != nil {
			s.t.Fatal(i, err)
		}
	}
}

// keepDisk puts a storage pool on the furnished stage, and a limit that is nearly reached.
func (s *stage) keepDisk() {
	s.keepPool()
	limit := int64(20 * gib)
	box, err := s.boxes.Resize(s.t.Context(), s.ref("brave-otter"), sandbox.LimitsChange{Disk: &limit})
	if err != nil {
		s.t.Fatal(err)
	}
	s.metrics.sizes = map[string]metrics.Sized{box.ID: {Size: metrics.Size{Home: 18.5 * gib, Layer: 120 << 20}, Time: stageTime.Add(-20 * time.Minute)}}
}

// keepBusy says what keeps the furnished sandboxes awake, and when they rest.
func (s *stage) keepBusy() {
	at := func(d time.Duration) time.Time { return stageTime.Add(d) }
	s.idle.put("brave-otter", idle.Outlook{Because: []idle.Reason{
		{Kind: idle.Terminal, Detail: "main", Since: at(-40 * time.Minute)},
		{Kind: idle.Held, Detail: "nightly training run", Since: at(-20 * time.Minute), Until: at(100 * time.Minute)},
		{Kind: idle.Exec, Detail: "python train.py --epochs 40 --checkpoint-every 5", Since: at(-2 * time.Minute)},
		{Kind: idle.Work, Detail: "1.9 cores", Since: at(-90 * time.Second)},
	}})
	s.idle.put("checkout-api", idle.Outlook{FreezesAt: at(12*time.Minute + 20*time.Second), StopsAt: at(3*time.Hour + 57*time.Minute)})
	s.idle.put("still-lake", idle.Outlook{StopsAt: at(3*time.Hour + 10*time.Minute)})
	box, err := s.boxes.Sandbox(s.t.Context(), "brave-otter")
	if err != nil {
		s.t.Fatal(err)
	}
	s.holds.list = []sandbox.Hold{
		{ID: "00000000000000aa", SandboxID: box.ID, Owner: s.users["ada"].ID, Reason: "nightly training run", Created: at(-20 * time.Minute), Expires: at(100 * time.Minute)},
		{ID: "00000000000000bb", SandboxID: box.ID, Owner: "nobody-any-more", Reason: "export of the results", Created: at(-5 * time.Minute), Expires: at(25 * time.Minute)},
	}
}

// keepServices declares services in the furnished sandboxes, and says how they stand and what listens.
func (s *stage) keepServices() {
	at := func(d time.Duration) time.Time { return s.server.cfg.Now().Add(d) }
	declared := []catalog.Service{
		{Name: "web", Command: exec.Shell("npm run dev -- --host 127.0.0.1"), Port: 3000, Cwd: "/home/agent/app", Env: map[string]string{"NODE_ENV": "development", "API": "http://127.0.0.1:8000"}, Autostart: true,
			Health: &catalog.Health{Path: "/healthz"}},
		{Name: "worker", Command: []string{"python3", "-m", "worker", "--queue", "high priority"}, Autostart: true},
		{Name: "docs", Command: exec.Shell("mkdocs serve"), Port: 8001},
	}
	for _, name := range []string{"brave-otter", "old-forest", "silver-heron"} {
		if _, err := s.boxes.change(s.t.Context(), s.ref(name), func(b *sandbox.Sandbox) {
			b.Overrides.Services, b.Overrides.HasServices = declared, true
			b.Changed = b.Changed.Add(-time.Second) // as it was
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.rooms.runs("web", func(st *wire.ServiceStatus) {
		st.Since, st.Health, st.Port = at(-20*time.Minute), wire.HealthHealthy, 3000
	})
	s.rooms.runs("worker", func(st *wire.ServiceStatus) {
		st.State, st.PID, st.ExitCode, st.Restarts, st.Since, st.Retry = wire.ServiceWaiting, 0, 1, 4, at(-2*time.Second), at(8*time.Second)
	})
	s.rooms.runs("docs", func(st *wire.ServiceStatus) { st.State, st.PID, st.ExitCode = wire.ServiceStopped, 0, 143 })
	s.rooms.listen(wire.PortOpen{Port: 3000, Address: "127.0.0.1", Process: "node"}, wire.PortOpen{Port: 5432, Address: "0.0.0.0", Process: "postgres"},
		wire.PortOpen{Port: 8888, Address: "127.0.0.1", Process: "jupyter-lab"})
	box, err := s.boxes.Sandbox(s.t.Context(), "brave-otter")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.ports.Set(s.t.Context(), box, 5432, sandbox.Public); err != nil {
		s.t.Fatal(err)
	}
	share := visibility.NewShare{Port: 3000, By: s.users["root"].ID, Label: "Grace, until the review", TTL: 7 * 24 * time.Hour}
	if _, _, err := s.ports.Share(s.t.Context(), box, share); err != nil {
		s.t.Fatal(err)
	}
}

func buildLines() []string {
	lines := []string{"Step 4/11 : RUN apt-get update && apt-get install -y python3-pandas python3-seaborn"}
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("Get:%d http://mirror.example/debian trixie/main amd64 python3-lib%d all 2.%d-1 [%d kB]", i+1, i, i, 40+i*7))
	}
	return append(lines, "Unpacking python3-pandas (2.2.3+dfsg-9) ...")
}

// pagesOfRoot are all pages that an admin can open on a furnished stage.
func pagesOfRoot(s *stage) []string {
	return []string{
		"/", "/?state=failed", "/?q=nothing-like-this", "/new", "/templates", "/templates/base", "/templates/rust-edge",
		"/sandboxes/brave-otter", "/sandboxes/silver-heron", "/sandboxes/tall-birch", "/sandboxes/new-meadow",
		"/sandboxes/warm-comet", "/sandboxes/old-forest", "/sandboxes/still-lake", "/sandboxes/late-owl",
		"/sandboxes/checkout-api", "/sandboxes/quick-lynx", "/sandboxes/brave-otter/rest", "/sandboxes/old-forest/rest", "/sandboxes/brave-otter?port=5000",
		"/sandboxes/brave-otter/services", "/sandboxes/old-forest/services", "/sandboxes/silver-heron/services", "/sandboxes/quick-lynx/services",
		"/sandboxes/brave-otter/services/new", "/sandboxes/brave-otter/services/web/edit", "/sandboxes/brave-otter/services/web/delete",
		"/sandboxes/brave-otter/ports/3000", "/sandboxes/brave-otter/ports/9999",
		"/sandboxes/brave-otter/rename", "/sandboxes/brave-otter/size", "/sandboxes/brave-otter/delete",
		"/host", "/host?sort=owner",
		"/settings", "/settings/tokens", "/settings/users", "/settings/users/" + s.users["bob"].ID + "/delete",
	}
}

func TestPages_KeepTheStrictContentPolicy(t *testing.T) {
	s := newStage(t)
	s.furnish()
	s.keepDisk()
	pages := map[string]view{"/login": s.get("", "/login"), "/setup": s.get("", "/setup?code=x"), "/404": s.get("root", "/nowhere")}
	for _, path := range pagesOfRoot(s) {
		pages[path] = s.get("root", path).is(http.StatusOK)
	}
	for path, page := range pages {
		policy := page.Header().Get("Content-Security-Policy")
		if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "script-src") && strings.Contains(policy, "unsafe-inline") {
			t.Errorf("%s: policy %q", path, policy)
		}
		workspace := strings.HasPrefix(path, "/sandboxes/") && strings.Count(path, "/") == 2
		if strings.Contains(policy, "unsafe-inline") != workspace {
			t.Errorf("%s: inline styles are for the workspace alone: %q", path, policy)
		}
		for n := range page.doc.Descendants() {
			if fault := inlined(n); fault != "" {
				t.Errorf("%s: %s", path, fault)
			}
		}
	}
}

// inlined says what about an element the content policy would refuse.
func inlined(n *html.Node) string {
	if n.Type != html.ElementNode {
		return ""
	}
	if n.Data == "style" || n.Data == "script" && attr(n, "src") == "" {
		return "inline " + n.Data
	}
	for _, a := range n.Attr {
		if a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on") {
			return fmt.Sprintf("<%s %s=%q>", n.Data, a.Key, a.Val)
		}
		if (a.Key == "src" || a.Key == "href") && strings.HasPrefix(a.Val, "http") && n.Data != "a" {
			return fmt.Sprintf("<%s> loads %s", n.Data, a.Val)
		}
	}
	return ""
}

// TestPreview_ServesEveryPage draws every page. With SANDBOXD_PREVIEW=127.0.0.1:8088 it then serves them, signed in
// as root, until it is interrupted: to look at pages while working on them.
func TestPreview_ServesEveryPage(t *testing.T) {
	s := newStage(t)
	address := os.Getenv("SANDBOXD_PREVIEW")
	if address != "" { // the pages' scripts go by the clock
		stageTime = time.Now()
		s.server.cfg.Now = time.Now
	}
	s.furnish()
	s.keepDisk()
	for _, path := range pagesOfRoot(s) {
		if page := s.get("root", path).is(http.StatusOK); page.find("main") == nil {
			t.Errorf("%s has no main part", path)
		}
	}
	if address == "" {
		return
	}
	dead := s.put("root", "gone-by", nil)
	s.boxes.drop(dead)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.signedIn(), ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go s.bustle(ctx)
	t.Log("preview:", server.Serve(l))
}

// signedIn serves the stage to anybody as root; ?as=NAME changes that, and ?as=- is nobody.
func (s *stage) signedIn() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := "root"
		if as := r.URL.Query().Get("as"); as != "" {
			user = as
		}
		if secret := s.sessions[user]; secret != "" {
			r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: secret})
		}
		if theme := r.URL.Query().Get("theme"); theme != "" {
			r.AddCookie(&http.Cookie{Name: themeCookie, Value: theme})
		}
		s.server.ServeHTTP(w, r)
	})
}

// bustle lets a create come along for ever, and a port open and close, for the preview.
func (s *stage) bustle(ctx context.Context) {
	tick := time.NewTicker(400 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		box, err := s.boxes.store.ByName(ctx, "new-meadow")
		if err != nil {
			return
		}
		if open := []wire.PortOpen{{Port: 3000, Process: "node"}, {Port: 8080, Process: "python3"}}; i%30 == 5 {
			s.rooms.listen(open[:1+i/30%2]...)
		}
		line := fmt.Sprintf("Get:%d http://mirror.example/debian trixie/main amd64 python3-thing all", i)
		done := time.Duration(i%100) * 2 * time.Second
		now := pace.Pace{Began: box.Created, Total: pace.Length{Time: 200 * time.Second, Measured: 190 * time.Second}, Done: done, Step: 2 * time.Second, Since: time.Now()}
		s.images.builds(now)
		s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage, Detail: line})
		s.images.bus.Publish(catalog.ImageEvent{Template: "data-analysis", Line: line,
			Status: catalog.ImageStatus{State: catalog.ImageBuilding, Step: i%11 + 1, Steps: 11, Progress: float64(i%100) / 100, Pace: now}})
	}
}
