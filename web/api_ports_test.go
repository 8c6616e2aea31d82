package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// portsOf lists a sandbox's ports as a user sees them.
func (w *world) portsOf(user, name string) map[int]openPortShape {
	w.t.Helper()
	var l openPortsShape
	w.call(user, "GET", "/api/v1/sandboxes/"+name+"/ports", "").is(http.StatusOK).into(&l)
	if !slices.IsSortedFunc(l.Ports, func(a, b openPortShape) int { return a.Port - b.Port }) {
		w.t.Errorf("not in order: %+v", l.Ports)
	}
	out := map[int]openPortShape{}
	for _, p := range l.Ports {
		out[p.Port] = p
	}
	return out
}

func TestPorts_MergeWhatListensWhatIsDeclaredAndWhatIsOpen(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	if _, err := w.manager.ChangeServices(t.Context(), w.ref("lab"), func([]catalog.Service) ([]catalog.Service, error) {
		return []catalog.Service{{Name: "api", Command: []string{"x"}, Port: 8000}, {Name: "worker", Command: []string{"x"}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	w.rooms.ports = []wire.PortOpen{{Port: 5173, Process: "node"}, {Port: 8000, Process: "python3"}}
	w.call("ada", "PUT", lab+"/ports/9000", `{"visibility":"public"}`).is(http.StatusOK)
	w.call("root", "POST", lab+"/ports/8000/shares", `{"ttl":"48h","label":"for Grace"}`).is(http.StatusCreated)
	got := w.call("ada", "GET", lab+"/ports", "").is(http.StatusOK)
	golden(t, "ports", got.Body.Bytes())
	all := w.portsOf("ada", "lab")
	if p := all[8000]; !listens(p) || p.Service != "api" || p.ServiceURL != "http://api--lab.localhost:8080/" || p.Visibility != sandbox.Shared ||
		len(p.Shares) != 1 || p.Shares[0].By != "root" || p.Shares[0].Expires.Sub(p.Shares[0].Created) != 48*time.Hour {
		t.Errorf("%+v", p)
	}
	if p := all[5173]; !listens(p) || p.Process != "node" || p.Visibility != sandbox.Private || p.URL != "http://5173-lab.localhost:8080/" {
		t.Errorf("%+v", p)
	}
	w.rooms.asleep = true
	if all = w.portsOf("ada", "lab"); listens(all[8000]) || all[9000].Visibility != sandbox.Public || all[5173].Port != 0 {
		t.Errorf("asleep: %+v", all)
	}
	if did := w.rooms.asked(); len(did) != 0 || !w.rooms.asleep {
		t.Errorf("listing has woken it: %v", did)
	}
}

func TestPorts_VisibilityIsSetAndTakenBack(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	golden(t, "port", w.call("ada", "PUT", lab+"/ports/3001", `{"visibility":"shared"}`).is(http.StatusOK).Body.Bytes())
	w.call("ada", "POST", lab+"/ports/3001/shares", `{}`).is(http.StatusCreated)
	var p openPortShape
	w.call("ada", "PUT", lab+"/ports/3001", `{"visibility":"private"}`).is(http.StatusOK).into(&p)
	if p.Port != 3001 || p.Visibility != sandbox.Private || len(p.Shares) != 0 {
		t.Errorf("%+v", p)
	}
	if all := w.portsOf("ada", "lab"); all[3001].Port != 0 {
		t.Errorf("still listed: %+v", all)
	}
}

func TestShares_TheLinkIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	got := w.call("ada", "POST", lab+"/ports/3000/shares", `{"ttl":3600,"label":"for Grace"}`).is(http.StatusCreated)
	golden(t, "share", got.Body.Bytes())
	var s newShareReply
	got.into(&s)
	u, err := url.Parse(s.URL)
	if err != nil || u.Host != "3000-lab.localhost:8080" || u.Path != "/.sandboxd/share" || u.RawQuery != "" || u.Fragment != s.Secret || len(s.Secret) != 43 ||
		s.Expires.Sub(s.Created) != time.Hour || got.Header().Get("Location") != lab+"/ports/3000/shares/"+s.ID {
		t.Errorf("%+v at %q", s, got.Header().Get("Location"))
	}
	if body := w.call("ada", "GET", lab+"/ports", "").Body.String(); strings.Contains(body, s.Secret) || !strings.Contains(body, s.ID) {
		t.Errorf("listed: %s", body)
	}
	if strings.Contains(w.log.String(), s.Secret) {
		t.Error("the log has the secret")
	}
	w.call("ada", "DELETE", lab+"/ports/3001/shares/"+s.ID, "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "DELETE", lab+"/ports/3000/shares/"+s.ID, "").is(http.StatusNoContent)
	w.call("ada", "DELETE", lab+"/ports/3000/shares/"+s.ID, "").problem(http.StatusNotFound, "not_found", "")
	if p := w.portsOf("ada", "lab")[3000]; len(p.Shares) != 0 || p.Visibility != sandbox.Shared {
		t.Errorf("left %+v", p)
	}
}

func TestShares_LastADayUnlessTold(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	var s newShareReply
	w.call("ada", "POST", lab+"/ports/3000/shares", `{}`).is(http.StatusCreated).into(&s)
	if s.Expires.Sub(s.Created) != 24*time.Hour || s.Label != "" || s.By != "ada" {
		t.Errorf("%+v", s)
	}
}

func TestPorts_BadRequestsNameTheField(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ method, path, body, field string }{
		{"PUT", "/ports/3000", `{"visibility":"open"}`, "visibility"}, {"PUT", "/ports/3000", `{}`, "visibility"},
		{"PUT", "/ports/0", `{"visibility":"public"}`, "port"}, {"PUT", "/ports/65536", `{"visibility":"public"}`, "port"},
		{"PUT", "/ports/-1", `{"visibility":"public"}`, "port"}, {"PUT", "/ports/web", `{"visibility":"public"}`, "port"},
		{"PUT", "/ports/65536", `{"visibility":"public"}`, "port"}, {"PUT", "/ports/1", `{"visibility":"public","shares":[]}`, "shares"},
		{"POST", "/ports/3000/shares", `{"ttl":"1s"}`, "ttl"}, {"POST", "/ports/3000/shares", `{"ttl":"soon"}`, "ttl"},
		{"POST", "/ports/3000/shares", `{"ttl":"400d"}`, "ttl"}, {"POST", "/ports/3000/shares", `{"ttl":-5}`, "ttl"},
		{"POST", "/ports/3000/shares", `{"label":"` + strings.Repeat("x", 61) + `"}`, "label"}, {"POST", "/ports/3000/shares", `{"secret":"mine"}`, "secret"},
	} {
		w.call("ada", c.method, lab+c.path, c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
	if all := w.portsOf("ada", "lab"); all[3000].Visibility == sandbox.Public || all[1].Port != 0 {
		t.Errorf("%+v", all)
	}
}

func TestPorts_OfAnothersSandboxAreNotThere(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	var s newShareReply
	w.call("ada", "POST", lab+"/ports/3000/shares", `{}`).is(http.StatusCreated).into(&s)
	for _, user := range []string{"bob", ""} {
		status, code := http.StatusNotFound, "not_found"
		if user == "" {
			status, code = http.StatusUnauthorized, "unauthenticated"
		}
		w.call(user, "GET", lab+"/ports", "").problem(status, code, "")
		w.call(user, "PUT", lab+"/ports/3000", `{"visibility":"public"}`).problem(status, code, "")
		w.call(user, "POST", lab+"/ports/3000/shares", `{}`).problem(status, code, "")
		w.call(user, "DELETE", lab+"/ports/3000/shares/"+s.ID, "").problem(status, code, "")
	}
	if p := w.portsOf("ada", "lab")[3000]; p.Visibility != sandbox.Shared || len(p.Shares) != 1 {
		t.Errorf("%+v", p)
	}
}

func TestPorts_GoWithTheirSandbox(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "PUT", lab+"/ports/9000", `{"visibility":"public"}`).is(http.StatusOK)
	w.call("ada", "DELETE", lab+"?wait=gone", "")
	w.box("ada", "lab")
	if p, there := w.portsOf("ada", "lab")[9000]; there {
		t.Errorf("a new sandbox inherits %+v", p)
	}
}

func TestPorts_AreToldAlsoWhileTheGuestDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "PUT", lab+"/ports/9000", `{"visibility":"public"}`).is(http.StatusOK)
	w.rooms.fails = fault.New(fault.Unavailable, "The program inside does not answer.")
	if p := w.portsOf("ada", "lab")[9000]; p.Visibility != sandbox.Public || p.Listening != nil {
		t.Errorf("%+v", p)
	}
	var l openPortsShape
	if w.call("ada", "GET", lab+"/ports", "").is(http.StatusOK).into(&l); l.Known {
		t.Errorf("it claims to know what listens: %+v", l)
	}
}

func listens(p openPortShape) bool { return p.Listening != nil && *p.Listening }
