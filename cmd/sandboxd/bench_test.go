//go:build bench

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/auth"
	"sandboxd/internal/benchtest"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/terminal"
)

// How much is measured. Each case has a warm-up that does not count, and takes turns with its base, so that what else
// the machine does falls on both.
const (
	benchCreates = 30
	benchAtOnce  = 10
	benchExecs   = 300
	benchPages   = 100
	benchRows    = 1000
	benchImage   = "base"
)

// benches measures the cases of one run.
type benches struct {
	t      *testing.T
	path   string   // of the file that they are written to; "" for none
	failed []string // groups of which some case could not be measured
}

// record judges a case by its goal, and adds it. A miss is logged and recorded, and fails nothing: the machine may be to blame.
func (b *benches) record(c benchtest.Case) {
	b.t.Helper()
	if b.path != "" {
		benchtest.Record(b.t, b.path, c)
		return
	}
	benchtest.Judge(b.t, c)
}

func (b *benches) add(name, goal string, ours, base []time.Duration) {
	c := benchtest.Times(name, goal, ours)
	if len(base) > 0 {
		c.Base, c.Base9 = benchtest.Percentile(base, 50), benchtest.Percentile(base, 95)
		c.Ratio = c.P50 / c.Base
	}
	b.record(c)
	b.t.Logf("%-44s p50 %8.2f ms  p95 %8.2f ms  base p50 %8.2f ms  ratio %.2f  (%s)", name, c.P50, c.P95, c.Base, c.Ratio, goal)
}

// each adds a case of which every single one has a limit. A miss is recorded, and fails nothing: the machine may be to blame.
func (b *benches) each(name string, limit time.Duration, took []time.Duration) {
	c := benchtest.Times(name, fmt.Sprintf("each ≤ %v", limit), took)
	c.Worst = benchtest.Percentile(took, 100)
	slow := 0
	for _, d := range took {
		if d > limit {
			slow++
		}
	}
	if slow > 0 {
		c.Missed = fmt.Sprintf("%d of %d took longer than %v, the slowest %.0f ms", slow, len(took), limit, c.Worst)
		b.t.Logf("GOAL MISSED: %s: %s", name, c.Missed)
	}
	b.record(c)
	b.t.Logf("%-44s p50 %8.2f ms  p95 %8.2f ms  slowest %8.2f ms  (%s)", name, c.P50, c.P95, c.Worst, c.Goal)
}

func (b *benches) size(name, goal string, mib float64) { b.sizeIn("MiB", name, goal, mib) }

func (b *benches) sizeIn(unit, name, goal string, n float64) {
	b.record(benchtest.Amount(name, goal, unit, n))
	b.t.Logf("%-44s %.1f %s  (%s)", name, n, unit, goal)
}

// TestBench measures everything that docs/benchmarks.md claims and writes bench.json as it goes. A case, or a group of them, that
// cannot be measured fails by itself; the others are measured all the same.
func TestBench(t *testing.T) {
	b := &benches{t: t, path: benchtest.Deep}
	s := newServer(t)
	s.cli("template", "build", benchImage)
	raw, err := openRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	image := benchImageRef(s)
	for _, group := range []struct {
		name    string
		measure func()
	}{
		{"creates", func() { b.creates(s, raw, image) }},
		{"execs", func() { b.execs(s, raw, image) }},
		{"terminals", b.terminals},
		{"page", b.page},
		{"files", func() { b.files(raw) }},
		{"filesPage", b.filesPage},
		{"workspacePage", b.workspacePage},
		{"navigations", b.navigations},
		{"rests", func() { b.rests(raw) }},
		{"claims", func() { b.claims(raw) }},
		{"ide", b.ide},
		{"routes", b.routes},
		{"sweeps", b.sweeps},
		{"metrics", b.metrics},
		{"logs", b.logs},
		{"chats", b.chats},
		{"binary", b.binary},
		{"keeps", b.keeps},
	} {
		b.group(s, group.name, group.measure)
	}
}

// benchImageRef is the image that sandboxes of the benchmark's template run, for the raw containers.
func benchImageRef(s *server) string {
	s.t.Helper()
	s.create(map[string]any{"template": benchImage, "name": "look"})
	ref := engine(s.t, "ps", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "label=sandboxd.name=look", "--format", "{{.Image}}")
	s.call("DELETE", "/sandboxes/look?wait=gone", nil, nil)
	return ref
}

// creates measures create → ready, one at a time and ten at once, beside raw create + start of the same image: on the
// engine's own network, as the goal says, and on the sandboxes' one, which the engine takes longer to set up.
func (b *benches) creates(s *server, raw *rawEngine, image string) {
	s.create(map[string]any{"template": benchImage, "name": "anchor"}) // so that the network is there for all
	ours := func(n int) (func() error, func() error) {
		name := "bench" + strconv.Itoa(n)
		return func() error {
				return s.ask("POST", "/sandboxes?wait=ready", map[string]any{"template": benchImage, "name": name})
			},
			func() error { return s.ask("DELETE", "/sandboxes/"+name+"?wait=gone", nil) }
	}
	base := func(network string) func(int) (func() error, func() error) {
		return func(int) (func() error, func() error) {
			var c *rawContainer
			return func() (err error) { c, err = raw.CreateStart(b.t.Context(), image, network); return err },
				func() error { return c.Remove(b.t.Context()) }
		}
	}
	for _, width := range []int{1, benchAtOnce} {
		b.group(s, fmt.Sprintf("creates c=%d", width), func() {
			var a, z, y []time.Duration
			for round := range benchCreates/width + 1 {
				one, two, three := b.together(width, ours), b.together(width, base("")), b.together(width, base("sandboxd-"+s.instance()))
				if round > 0 {
					a, z, y = append(a, one...), append(z, two...), append(y, three...)
				}
			}
			b.add(fmt.Sprintf("create to ready, image cached, c=%d", width), "p50 ≤ 1.25 × raw create + start", a, z)
			b.add(fmt.Sprintf("the same, beside raw on a bridge of its own, c=%d", width), "", a, y)
		})
	}
	s.call("DELETE", "/sandboxes/anchor?wait=gone", nil, nil)
}

// together runs width pairs of work and clean-up at once and times the work.
func (b *benches) together(width int, pair func(n int) (work, clean func() error)) []time.Duration {
	b.t.Helper()
	took := make([]time.Duration, width)
	cleans := make([]func() error, width)
	var g errgroup.Group
	for n := range width {
		work, clean := pair(n)
		cleans[n] = clean
		g.Go(func() error {
			began := time.Now()
			err := work()
			took[n] = time.Since(began)
			return err
		})
	}
	err := g.Wait()
	for _, clean := range cleans {
		err = errors.Join(err, clean())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return took
}

// ask calls the API and takes anything but success for an error.
func (s *server) ask(method, path string, in any) error {
	status, body, err := s.try(method, path, in)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, body)
	}
	return err
}

// execs measures exec of true over the API, beside the engine's own exec, and the guest's memory.
func (b *benches) execs(s *server, raw *rawEngine, image string) {
	b.group(s, "exec", func() { b.exec(s, raw, image) })
	b.group(s, "guest", func() {
		s.create(map[string]any{"template": benchImage, "name": "idle"})
		b.size("guest, idle, resident", "≤ 8 MiB", guestMemory(b.t, s, "idle"))
		s.call("DELETE", "/sandboxes/idle?wait=gone", nil, nil)
	})
}

func (b *benches) exec(s *server, raw *rawEngine, image string) {
	s.create(map[string]any{"template": benchImage, "name": "exec"})
	c, err := raw.CreateStart(b.t.Context(), image, "")
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Remove(context.Background())
	var ours, base []time.Duration
	for n := range benchExecs {
		began := time.Now()
		if err := s.ask("POST", "/sandboxes/exec/exec", map[string]any{"command": []string{"true"}}); err != nil {
			b.t.Fatal(err)
		}
		ours = append(ours, time.Since(began))
		if n%10 == 0 {
			began = time.Now()
			if err := c.Exec(b.t.Context(), "true"); err != nil {
				b.t.Fatal(err)
			}
			base = append(base, time.Since(began))
		}
	}
	b.add("exec true, c=1", "p50 ≤ 0.1 × raw exec and ≤ 5 ms", ours[10:], base)
	s.call("DELETE", "/sandboxes/exec?wait=gone", nil, nil)
}

// guestMemory is the resident size of a sandbox's guest, in MiB, as the host's kernel tells it.
func guestMemory(t *testing.T, s *server, name string) float64 {
	t.Helper()
	for line := range strings.Lines(engine(t, "top", "sandboxd-"+s.instance()+"-"+sandboxID(t, s, name), "-eo", "pid,rss,args")) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && fields[2] == "/.sandboxd/guest" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("there is no guest")
	return 0
}

func sandboxID(t *testing.T, s *server, name string) string {
	t.Helper()
	return engine(t, "ps", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "label=sandboxd.name="+name, "--format", `{{.Label "sandboxd.id"}}`)
}

// terminals measures viewers of a terminal, beside ttyd dialled directly.
func (b *benches) terminals() { b.within(b.terminal) }

func (b *benches) terminal(a *app) sandbox.Ref {
	t := b.t
	made := b.made(a)
	control := access.New(a.manager, access.FromHub(a.links), access.Tracked(a.tracker))
	h, err := control.Resolve(t.Context(), "bench", access.By(auth.Principal{User: auth.User{Role: auth.Admin}}))
	if err != nil {
		t.Fatal(err)
	}
	linked, direct := flood(t, a, h)
	f, err := terminal.Bench{
		Terminals: terminal.New(a.manager, a.log), Sandbox: h,
		Rounds: 100, Repeats: 5, Linked: linked, Direct: direct, Bytes: terminal.FloodBytes,
	}.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.add("terminal: attach to first screen", "p50 ≤ 60 ms", f.FirstScreen, nil)
	b.add("terminal: key to echo", "p50 ≤ 5 ms", f.Echo, nil)
	b.add("terminal: 50 MB of output, every byte checked", "≥ 0.9 × ttyd's own throughput", []time.Duration{f.Bridged}, []time.Duration{f.Direct})
	t.Logf("terminal throughput: %.2f × ttyd directly", f.Ratio())
	return made.Ref()
}

// floodGuest is a guest whose only terminal is the tab "flood".
type floodGuest struct{ access.Guest }

func (f floodGuest) DialTerminal(ctx context.Context, _ string) (net.Conn, error) {
	return f.Guest.DialTerminal(ctx, "flood")
}

// flood makes one terminal of the sandbox write output that can be checked, with no tmux between it and ttyd, and gives
// the two ways to that ttyd: through the link, and to its socket through the host's view of the sandbox's files.
func flood(t *testing.T, a *app, h access.Handle) (linked access.Handle, direct func(context.Context) (net.Conn, error)) {
	t.Helper()
	instance, err := a.db.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := engine(t, "ps", "-q", "--filter", "label=sandboxd.name=bench", "--filter", "label=sandboxd.instance="+instance)
	script := fmt.Sprintf(`mv /usr/bin/tmux /usr/bin/tmux.real
cat > /usr/bin/tmux <<'END'
#!/bin/sh
case "$*" in *"-s flood") exec sh -c '%s';; esac
exec /usr/bin/tmux.real "$@"
END
chmod 755 /usr/bin/tmux`, terminal.FloodScript(terminal.FloodBytes))
	engine(t, "exec", id, "sh", "-c", script)
	s, err := h.Open(t.Context(), idle.Use{Kind: idle.Exec, Detail: "bench"})
	if err != nil {
		t.Fatal(err)
	}
	guest := floodGuest{s.Guest}
	conn, err := guest.DialTerminal(t.Context(), "") // starts it
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	socket := "/proc/" + engine(t, "inspect", "-f", "{{.State.Pid}}", id) + "/root/run/sandboxd/flood.sock"
	direct = func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) }
	return accesstest.New("flood", guest).Handle(t), direct
}

// page measures the sandboxes page with a thousand rows in the store, and sandboxd's memory with them.
func (b *benches) page() {
	t := b.t
	const password = "a-long-bench-password"
	t.Setenv(adminPasswordEnv, password)
	s := newServer(t, "--prebuild", "")
	s.stop()
	fill(t, s)
	s.start()
	s.settle()
	client := s.login("admin", password)
	b.group(s, "answers", func() { b.answers(s, client) })
	b.group(s, "memory", func() {
		b.size("sandboxd with 1,000 sandboxes, resident", "≤ 120 MiB", residentMiB(b.t, s.cmd.Process.Pid))
	})
	s.stop()
	empty(t, s)
	s.start()
}

func (b *benches) answers(s *server, client *http.Client) {
	var took []time.Duration
	for n := range benchPages + 10 {
		began := time.Now()
		resp, err := client.Get("http://" + s.addr + "/")
		if err != nil {
			b.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "row-0999") {
			b.t.Fatalf("the page answers %s, %d bytes, %v", resp.Status, len(text), err)
		}
		if n >= 10 {
			took = append(took, time.Since(began))
		}
	}
	b.add("sandboxes page, 1,000 sandboxes", "p95 ≤ 30 ms", took, nil)
}

// fill keeps a thousand sandboxes in the store that the engine does not have.
func fill(t *testing.T, s *server) {
	t.Helper()
	withRows(t, s, func(ctx context.Context, rows sandbox.Store) error {
		now := time.Now().UTC().Add(-time.Hour)
		for n := range benchRows {
			err := rows.Insert(ctx, sandbox.Sandbox{
				ID: sandbox.NewID(), Name: fmt.Sprintf("row-%04d", n), Label: "Experiment " + strconv.Itoa(n), State: sandbox.Failed,
				Problem: "It was made for the benchmark.", Created: now.Add(time.Duration(n) * time.Second), Changed: now,
				Spec: sandbox.Spec{Template: benchImage, Limits: sandbox.Limits{CPUs: 1, Memory: 1 << 30, Pids: 100}},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func empty(t *testing.T, s *server) {
	t.Helper()
	withRows(t, s, func(ctx context.Context, rows sandbox.Store) error {
		all, _, err := rows.List(ctx, sandbox.Filter{})
		for _, row := range all {
			err = errors.Join(err, rows.Delete(ctx, row.ID))
		}
		return err
	})
}

func withRows(t *testing.T, s *server, f func(context.Context, sandbox.Store) error) {
	t.Helper()
	db, err := openDatabase(t.Context(), &Config{Data: s.data})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(t.Context(), db.Sandboxes()), db.Close()); err != nil {
		t.Fatal(err)
	}
}
