package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/catalog"
	"sandboxd/internal/exec"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// declare gives a sandbox on the stage services of its own.
func (s *stage) declare(name string, list ...catalog.Service) {
	s.t.Helper()
	if _, err := s.boxes.change(s.t.Context(), s.ref(name), func(b *sandbox.Sandbox) { b.Overrides.Services, b.Overrides.HasServices = list, true }); err != nil {
		s.t.Fatal(err)
	}
}

// declared gives the services of a sandbox.
func (s *stage) declared(name string) []catalog.Service {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return box.Overrides.Services
}

func TestServices_SayHowTheyStand(t *testing.T) {
	s := newStage(t)
	s.furnish()
	s.server.cfg.Now = func() time.Time { return stageTime }
	items := map[string]string{}
	page := s.get("root", "/sandboxes/brave-otter/services").is(http.StatusOK)
	for _, n := range page.all("li.service") {
		items[attr(n, "data-service")] = textOf(n)
	}
	for service, want := range map[string][]string{
		"web":    {"3000", "web--brave-otter.localhost:8080", "Running for 20 min", "Healthy", "npm run dev -- --host 127.0.0.1", "in /home/agent/app", "Stop"},
		"worker": {"Waiting to restart in 8 s", "restarted 4 times", "exit code 1", "--queue 'high priority'"},
		"docs":   {"Stopped", "exit code 143", "does not start by itself", "Start"},
	} {
		for _, words := range want {
			if !strings.Contains(items[service], words) {
				t.Errorf("%s: no %q in %q", service, words, items[service])
			}
		}
	}
	if asleep := textOf(s.get("root", "/sandboxes/old-forest/services").need("#services")); !strings.Contains(asleep, "Asleep") || !strings.Contains(asleep, "Starting a service wakes it") {
		t.Errorf("asleep: %s", asleep)
	}
	for _, b := range s.get("root", "/sandboxes/silver-heron/services").all("button.low") {
		if textOf(b) == "Start" && !hasAttr(b, "disabled") {
			t.Error("a service of a stopped sandbox can be started")
		}
	}
	if did := s.rooms.asked(); len(did) != 0 {
		t.Errorf("looking did %v", did)
	}
}

func TestServices_AreStartedAndStoppedWithoutScripts(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"true"}})
	for _, verb := range []string{"start", "restart", "stop"} {
		s.post("ada", "/sandboxes/mine/services/web/"+verb, nil).leads("/sandboxes/mine/services")
		s.post("bob", "/sandboxes/mine/services/web/"+verb, nil).is(http.StatusNotFound)
	}
	if got := strings.Join(s.rooms.asked(), ", "); got != "start web, restart web, stop web" {
		t.Errorf("did %s", got)
	}
	again := s.post("ada", "/sandboxes/mine/services/none/start", nil).is(http.StatusNotFound)
	if !strings.Contains(textOf(again.need("main")), "no service called") {
		t.Errorf("says %s", textOf(again.need("main")))
	}
}

func serviceForm(change func(url.Values)) url.Values {
	f := fields("name", "web", "command", "npm start", "port", "3000", "cwd", "/srv/app", "env", "A=b\r\nC=d=e\r\n", "autostart", "on",
		"health", "on", "health_path", "/healthz", "health_interval", "5s")
	if change != nil {
		change(f)
	}
	return f
}

func TestServices_AreAddedEditedAndDeleted(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.get("ada", "/sandboxes/mine/services/new").is(http.StatusOK)
	s.post("ada", "/sandboxes/mine/services", serviceForm(nil)).leads("/sandboxes/mine/services")
	list := s.declared("mine")
	if len(list) != 1 || list[0].Port != 3000 || list[0].Env["C"] != "d=e" || !list[0].Autostart || list[0].Cwd != "/srv/app" ||
		!slices.Equal(list[0].Command, exec.Shell("npm start")) || *list[0].Health != (catalog.Health{Path: "/healthz", Interval: 5 * time.Second}) {
		t.Fatalf("declared %+v", list)
	}
	edit := s.get("ada", "/sandboxes/mine/services/web/edit").is(http.StatusOK)
	if textOf(edit.need("#service-command")) != "npm start" || attr(edit.need("#service-health-interval"), "value") != "5s" {
		t.Errorf("form %s", textOf(edit.need("main")))
	}
	s.post("ada", "/sandboxes/mine/services/web", serviceForm(func(f url.Values) {
		f.Set("name", "site")
		f.Del("health")
		f.Del("autostart")
		f.Set("etag", attr(edit.byAttr("input", "name", "etag"), "value"))
	})).leads("/sandboxes/mine/services")
	if list = s.declared("mine"); len(list) != 1 || list[0].Name != "site" || list[0].Health != nil || list[0].Autostart {
		t.Errorf("changed to %+v", list)
	}
	if ask := textOf(s.get("ada", "/sandboxes/mine/services/site/delete").is(http.StatusOK).need("main")); !strings.Contains(ask, "site--mine.localhost:8080") {
		t.Errorf("asks %s", ask)
	}
	s.post("ada", "/sandboxes/mine/services/site/delete", nil).leads("/sandboxes/mine/services")
	if list = s.declared("mine"); len(list) != 0 {
		t.Errorf("left %+v", list)
	}
	s.post("ada", "/sandboxes/mine/services-reset", nil).leads("/sandboxes/mine/services")
	if box, _ := s.boxes.Sandbox(t.Context(), "mine"); box.Overrides.HasServices {
		t.Error("the template's services are not back")
	}
}

func TestServices_AFormThatIsRefusedLosesNothing(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "taken", Command: []string{"true"}, Port: 8000})
	for name, c := range map[string]struct{ field, value, fault, says string }{
		"name": {"name", "No Name", "#service-name-fault", "is not a valid name"}, "twice": {"name", "taken", "#service-name-fault", "two services"},
		"command": {"command", " ", "#service-command-fault", "Enter a command"}, "port": {"port", "70000", "#service-port-fault", "does not exist"},
		"word": {"port", "http", "#service-port-fault", "number"}, "same port": {"port", "8000", "#service-port-fault", "same port"},
		"folder": {"cwd", "srv", "#service-cwd-fault", "absolute"}, "env": {"env", "A=b\nnothing", "#service-env-fault", "Line 2"},
		"env name": {"env", "SANDBOXD_X=1", "#service-env-fault", "sandboxd"}, "health": {"health_path", "healthz", "#service-health-path-fault", "path of health"},
		"interval": {"health_interval", "often", "#service-health-interval-fault", "length of time"},
	} {
		page := s.post("ada", "/sandboxes/mine/services", serviceForm(func(f url.Values) { f.Set(c.field, c.value) })).is(http.StatusBadRequest)
		if got := textOf(page.need(c.fault)); !strings.Contains(got, c.says) {
			t.Errorf("%s: says %q", name, got)
		}
		if c.field != "env" && !strings.Contains(textOf(page.need("#service-env")), "C=d=e") || c.field != "cwd" && attr(page.need("#service-cwd"), "value") != "/srv/app" {
			t.Errorf("%s: what was entered is lost: %s", name, textOf(page.need("main")))
		}
	}
	if list := s.declared("mine"); len(list) != 1 || list[0].Name != "taken" {
		t.Errorf("declared %+v", list)
	}
}

func TestServices_AFormShowsAllThatIsWrongAndBeginsWithTheFirst(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "taken", Command: []string{"true"}, Port: 8000})
	page := s.post("ada", "/sandboxes/mine/services", serviceForm(func(f url.Values) {
		f.Set("port", "8000")
		f.Set("command", "")
		f.Set("cwd", "srv")
		f.Set("env", "nothing")
		f.Set("health_path", "healthz")
		f.Set("health_interval", "often")
	})).is(http.StatusBadRequest)
	for id, says := range map[string]string{
		"port": "The services taken and web have the same port 8000.", "command": "Enter a command.", "env": "Line 1 has no “=”: write NAME=value.",
		"cwd": "cwd must be", "health-path": "The path of health must", "health-interval": `"often" is not a length of time`,
	} {
		if got := textOf(page.need("#service-" + id + "-fault")); !strings.HasPrefix(got, says) {
			t.Errorf("%s: says %q", id, got)
		}
	}
	if page.find("#service-name-fault") != nil || hasAttr(page.need("#service-name"), "autofocus") || !hasAttr(page.need("#service-port"), "autofocus") {
		t.Error("it does not begin with the port")
	}
	page = s.post("ada", "/sandboxes/mine/services", serviceForm(func(f url.Values) { f.Set("port", "x") })).is(http.StatusBadRequest)
	if page.find("#service-health-path-fault") != nil {
		t.Error("a port that cannot be read is said to be missing")
	}
	page = s.post("ada", "/sandboxes/mine/services", serviceForm(func(f url.Values) { f.Set("command", "") })).is(http.StatusBadRequest)
	if !hasAttr(page.need("#service-command"), "autofocus") {
		t.Error("it does not begin with the command")
	}
}

// withServices are the stage's templates, each with a service.
type withServices struct{ stageTemplates }

func (w withServices) Template(name string) (catalog.Template, error) {
	t, err := w.stageTemplates.Template(name)
	t.Services = []catalog.Service{{Name: "web", Command: []string{"true"}}}
	return t, err
}

func TestServices_OfferTheTemplatesWhereThatChangesThem(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	foot := func() string {
		return textOf(s.get("ada", "/sandboxes/mine/services").is(http.StatusOK).need("#services"))
	}
	if strings.Contains(foot(), "of its own") {
		t.Errorf("says %s", foot())
	}
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"true"}})
	if !strings.Contains(foot(), "Remove all services (the template has none)…") {
		t.Errorf("says %s", foot())
	}
	s.post("ada", "/sandboxes/mine/services/web/delete", nil).leads("/sandboxes/mine/services")
	if strings.Contains(foot(), "of its own") {
		t.Errorf("with none it says %s", foot())
	}
	s.server.cfg.Templates = withServices{}
	if !strings.Contains(foot(), "Take the template's again…") {
		t.Errorf("says %s", foot())
	}
}

func TestServices_OfTwoEditsNoneIsLost(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"serve", "a b"}, Port: 3000})
	seen := attr(s.get("ada", "/sandboxes/mine/services/web/edit").byAttr("input", "name", "etag"), "value")
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"serve", "a b"}, Port: 3000}, catalog.Service{Name: "other", Command: []string{"true"}})
	change := fields("name", "web", "command", "serve 'a b'", "port", "3001", "etag", seen)
	again := s.post("ada", "/sandboxes/mine/services/web", change).is(http.StatusConflict)
	if !strings.Contains(textOf(again.need("main")), "The services have been changed meanwhile") || attr(again.need("#service-port"), "value") != "3001" {
		t.Fatalf("says %s", textOf(again.need("main")))
	}
	change.Set("etag", attr(again.byAttr("input", "name", "etag"), "value"))
	s.post("ada", "/sandboxes/mine/services/web", change).leads("/sandboxes/mine/services")
	list := s.declared("mine")
	if len(list) != 2 || list[0].Port != 3001 || list[1].Name != "other" {
		t.Errorf("declared %+v", list)
	}
	if !slices.Equal(list[0].Command, []string{"serve", "a b"}) {
		t.Errorf("a command that was left alone became %q", list[0].Command)
	}
}

// byAttr gives the first element of a tag whose attribute has a value, or an empty one.
func (v view) byAttr(tag, name, value string) *html.Node {
	for _, n := range v.all(tag) {
		if attr(n, name) == value {
			return n
		}
	}
	return &html.Node{}
}

func TestServices_PageFollowsWhatHappens(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"true"}, Port: 3000})
	f, first := s.follow("ada", s.topicOf("ada", "/sandboxes/mine/services"))
	if !has(first, "services outerHTML") {
		t.Errorf("begins with %v", targets(first))
	}
	s.rooms.runs("web", nil)
	if e := f.until("Running"); !strings.Contains(e, `data-service="web"`) {
		t.Errorf("brings %s", e)
	}
	s.rooms.listen(wire.PortOpen{Port: 4321, Process: "node"})
	if e := f.until("4321"); !strings.Contains(e, "listening") {
		t.Errorf("brings %s", e)
	}
	s.boxes.drop(box)
	e := f.until("Deleted")
	for _, target := range []string{"services outerHTML", "services-add delete", "ports delete"} {
		if !has(e, target) {
			t.Errorf("a deleted one's page keeps %s: %s", target, e)
		}
	}
	if strings.Contains(e, "<form") || strings.Contains(e, "data-service") {
		t.Errorf("a deleted one's page still offers %s", e)
	}
}

// TestServices_TimeAloneDrawsNothingAnew: what is drawn anew while a person presses a button takes the button away.
func TestServices_TimeAloneDrawsNothingAnew(t *testing.T) {
	s := newStage(t)
	s.furnish()
	box, err := s.boxes.Sandbox(t.Context(), "brave-otter")
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.server.cfg.Services.List(t.Context(), s.handle(box.Name))
	if err != nil {
		t.Fatal(err)
	}
	l := &liveServices{interior: interior{s.server, s.handle(box.Name)}, box: box, list: list}
	var out parts
	for i, want := range []int{2, 0, 1} {
		s.server.cfg.Now = func() time.Time { return stageTime.Add(time.Duration(i) * time.Second) }
		if i == 2 {
			l.list.Services[0].PID++
		}
		if err := l.tell(t.Context(), false, &out); err != nil || len(out.list) != want {
			t.Errorf("after %d s it draws %d parts, %v", i, len(out.list), err)
		}
		out.list = nil
	}
}
