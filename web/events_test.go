package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
)

// stream reads server-sent events.
type stream struct {
	t    *testing.T
	scan *bufio.Scanner
}

func (w *world) listen(user string, headers ...string) *stream {
	w.t.Helper()
	s := w.serve()
	r, err := http.NewRequestWithContext(w.t.Context(), "GET", s.URL+"/api/v1/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", w.tokens[user])
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := s.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { got.Body.Close() })
	if got.StatusCode != 200 || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") {
		w.t.Fatalf("got %v", got)
	}
	return &stream{t: w.t, scan: bufio.NewScanner(got.Body)}
}

// next gives the next event that is no comment; its data is held against schema. "" is the end.
func (s *stream) next() (kind, data string) {
	s.t.Helper()
	for s.scan.Scan() {
		line := s.scan.Text()
		if k, ok := strings.CutPrefix(line, "event: "); ok {
			kind = k
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			data += d
		}
		if line == "" && kind != "" {
			s.check(kind, data)
			return kind, data
		}
	}
	return "", ""
}

func (s *stream) check(kind, data string) {
	s.t.Helper()
	schema := map[string]string{
		"snapshot": "Snapshot", "sandbox": "SandboxEvent", "deleted": "DeletedEvent", "template": "TemplateEvent", "behind": "Behind",
	}[kind]
	checkSchema(s.t, schema, []byte(data))
}

// snapshot reads the first event and gives the names in it.
func (s *stream) snapshot() (names []string) {
	s.t.Helper()
	kind, data := s.next()
	var first snapshotShape
	if err := json.Unmarshal([]byte(data), &first); kind != "snapshot" || err != nil {
		s.t.Fatalf("got %q %q: %v", kind, data, err)
	}
	for _, b := range first.Sandboxes {
		names = append(names, b.Name)
	}
	return names
}

// until reads events and gives their kinds and sandboxes in short, up to the first that is end.
func (s *stream) until(end string) (heard []string) {
	s.t.Helper()
	for {
		kind, data := s.next()
		if kind == "" {
			s.t.Fatalf("the stream ended after %q", heard)
		}
		var e struct {
			Name    string
			Sandbox struct{ Name, State string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			s.t.Fatal(err)
		}
		short := strings.TrimSpace(fmt.Sprintf("%s %s%s %s", kind, e.Name, e.Sandbox.Name, e.Sandbox.State))
		heard = append(heard, short)
		if short == end {
			return heard
		}
	}
}

func TestEvents_SnapshotThenChangesOfOnesOwn(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "one")
	w.box("bob", "two")
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "limited", Sandbox: "one"})
	ada, root, limited := w.listen("ada", "Last-Event-ID", "17"), w.listen("root"), w.listen("limited")
	for s, want := range map[*stream][]string{ada: {"one"}, root: {"two", "one"}, limited: {"one"}} {
		if d := cmp.Diff(want, s.snapshot()); d != "" {
			t.Error(d)
		}
	}
	w.call("bob", "DELETE", "/api/v1/sandboxes/two?wait=gone", "").is(204)
	w.box("ada", "three")
	w.call("ada", "DELETE", "/api/v1/sandboxes/three?wait=gone", "").is(204)
	w.call("ada", "DELETE", "/api/v1/sandboxes/one?wait=gone", "").is(204)
	const last = "deleted one"
	for _, s := range []*stream{ada, limited} {
		for _, e := range s.until(last) {
			if strings.Contains(e, "two") || s == limited && strings.Contains(e, "three") {
				t.Errorf("told %q", e)
			}
		}
	}
	all := strings.Join(root.until(last), "|")
	for _, want := range []string{"deleted two", "sandbox three creating", "sandbox three running", "deleted three"} {
		if !strings.Contains(all, want) {
			t.Errorf("root was not told %q: %s", want, all)
		}
	}
}

func TestEvents_TellHowImagesStandOnce(t *testing.T) {
	w := newWorld(t)
	s := w.listen("bob")
	s.snapshot()
	building := catalog.ImageStatus{State: catalog.ImageBuilding, Step: 1, Steps: 2, Progress: 0.5}
	w.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: building, Line: "one"})
	w.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: building, Line: "two"})
	w.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: catalog.ImageStatus{State: catalog.ImageBuilt, Progress: 1}})
	for _, want := range []string{"building", "built"} {
		if kind, data := s.next(); kind != "template" || !strings.Contains(data, `"`+want+`"`) {
			t.Errorf("got %s %s, want %s", kind, data, want)
		}
	}
}

func TestEvents_SlowReaderIsTold(t *testing.T) {
	w := newWorld(t)
	changes := w.manager.Subscribe()
	defer changes.Close()
	from := w.server.live.listen()
	defer from.close()
	for from.boxes.Dropped() == false { // nobody reads
		w.box("bob", "x")
		w.call("bob", "DELETE", "/api/v1/sandboxes/x?wait=gone", "").is(204)
	}
	f, body := recordedFlow()
	who := auth.Principal{User: auth.User{ID: "nobody", Role: auth.Member}}
	if err := w.server.live.tellChanges(t.Context(), f, who, from); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(body(), "event: behind\ndata: {") {
		t.Errorf("got %q", body())
	}
}

func TestEvents_EndWithTheTokenAndBeatMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.server.beat, w.server.check = 5*time.Millisecond, 5*time.Millisecond
	s := w.listen("bob")
	s.snapshot()
	for !strings.HasPrefix(s.scan.Text(), ":") {
		if !s.scan.Scan() {
			t.Fatal("no sign of life")
		}
	}
	if err := w.accounts.SetDisabled(t.Context(), w.ids["bob"], true); err != nil {
		t.Fatal(err)
	}
	if kind, data := s.next(); kind != "" {
		t.Errorf("got %s %s after the end", kind, data)
	}
}

// crowd opens event streams as user until one is refused, and gives how many are open.
func (w *world) crowd(user string) int {
	w.t.Helper()
	for n := range 2 * maxOpen {
		switch got := w.open(w.t.Context(), user, "GET", "/api/v1/events", "", ""); got.StatusCode {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			if got.Header.Get("Retry-After") == "" {
				w.t.Error("no Retry-After")
			}
			return n
		default:
			w.t.Fatalf("status %d", got.StatusCode)
		}
	}
	w.t.Fatal("there is no end")
	return 0
}

func TestEvents_TokenForOneSandboxTakesNothingOfItsOwnersShare(t *testing.T) {
	w := newFilesWorld(t)
	for _, name := range []string{"one", "two"} {
		w.tokens[name] = w.token("ada", auth.NewToken{Name: name, Sandbox: "lab"})
		if n := w.crowd(name); n != maxLimited {
			t.Errorf("%d streams of the token %s", n, name)
		}
	}
	if n := w.crowd("ada"); n != maxOpen {
		t.Errorf("%d streams of the owner", n)
	}
	for _, user := range []string{"one", "ada"} { // who may do all else
		w.call(user, "POST", "/api/v1/sandboxes/lab/exec", `{"command":["true"]}`).is(200)
		w.call(user, "GET", labFiles+"?path=src", "").is(200)
	}
	if n := w.crowd("bob"); n != maxOpen {
		t.Errorf("%d streams of another user", n)
	}
}

func TestEvents_ProgressIsTold(t *testing.T) {
	w := newWorld(t)
	f, body := recordedFlow()
	e := sandbox.Event{
		Sandbox:  sandbox.Sandbox{Name: "lab", Owner: w.ids["ada"], State: sandbox.Creating},
		Progress: sandbox.Progress{Phase: sandbox.PhaseImage, Fraction: 0.25, Detail: "Step 1/4"},
	}
	if err := w.server.live.tellChange(t.Context(), f, newOwners(w.server.cfg.Accounts), e); err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(strings.TrimSpace(body()), "data: ")
	checkSchema(t, "SandboxEvent", []byte(data))
	golden(t, "event_sandbox", []byte(data))
}
