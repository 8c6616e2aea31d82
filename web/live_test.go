package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
)

// feed is a page's stream as a browser reads it.
type feed struct {
	t      *testing.T
	events chan string // the data of each
	ended  chan struct{}
}

// follow opens a stream as user, and takes the first event, which every stream begins with.
func (s *stage) follow(user, path string) (f *feed, first string) {
	s.t.Helper()
	server := httptest.NewServer(s.server)
	ctx, cancel := context.WithCancel(context.Background())
	f = &feed{t: s.t, events: make(chan string, 100), ended: make(chan struct{})}
	s.t.Cleanup(func() { cancel(); <-f.ended; server.Close() })
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions[user]})
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		close(f.ended)
		s.t.Fatal(err)
	}
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(got, "text/event-stream") {
		s.t.Fatalf("%s: %d %s", path, answer.StatusCode, got)
	}
	go f.read(answer)
	return f, f.next()
}

func (f *feed) read(answer *http.Response) {
	defer close(f.ended)
	defer answer.Body.Close()
	var data []string
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		}
		if lines.Text() == "" && data != nil {
			f.events <- strings.Join(data, "\n")
			data = nil
		}
	}
}

// next waits for an event.
func (f *feed) next() string {
	f.t.Helper()
	select {
	case e := <-f.events:
		return e
	case <-time.After(5 * time.Second):
		f.t.Fatal("the stream is silent")
		return ""
	}
}

// until gathers events until one holds words.
func (f *feed) until(words string) string {
	f.t.Helper()
	all := ""
	for !strings.Contains(all, words) {
		all += f.next()
	}
	return all
}

// targets are the ids of the elements that an event changes, with how.
func targets(event string) []string {
	var found []string
	for part := range strings.SplitSeq(event, `<hx-partial hx-target="#`) {
		if id, rest, ok := strings.Cut(part, `" hx-swap="`); ok && !strings.Contains(id, "<") {
			how, _, _ := strings.Cut(rest, `"`)
			found = append(found, id+" "+how)
		}
	}
	return found
}

func has(event, target string) bool {
	for _, t := range targets(event) {
		if t == target {
			return true
		}
	}
	return false
}

// liveURL is the stream that a page would open.
func (s *stage) liveURL(user, page string) string {
	return attr(s.get(user, page).is(http.StatusOK).need("#live"), "sse-connect")
}

func TestLiveList_BringsNothingThatThePageHas(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	_, first := s.follow("ada", s.liveURL("ada", "/"))
	if got := strings.Join(targets(first), ", "); got != "alarm outerHTML" {
		t.Errorf("begins with %s", got)
	}
}

func TestLiveList_BringsWhatChangedBeforeItBegan(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	url := s.liveURL("ada", "/")
	s.put("ada", "late", nil)
	_, first := s.follow("ada", url)
	if !has(first, "list-body outerHTML") || !has(first, "chips outerHTML") || !strings.Contains(first, `data-name="late"`) {
		t.Errorf("begins with %v", targets(first))
	}
}

func TestLiveList_FollowsOneSandboxThroughItsLife(t *testing.T) {
	s := newStage(t)
	s.put("ada", "first", nil)
	f, _ := s.follow("ada", s.liveURL("ada", "/"))

	box, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "second", Owner: s.users["ada"].ID, Template: "base"})
	if err != nil {
		t.Fatal(err)
	}
	row := "sandbox-" + box.ID
	if e := f.next(); !has(e, "rows afterbegin") || !has(e, "chips outerHTML") || !strings.Contains(e, `id="`+row+`"`) {
		t.Fatalf("a new one: %v", targets(e))
	}
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage, Fraction: 0.5})
	if e := f.next(); !has(e, "state-"+box.ID+" outerHTML") || has(e, row+" outerHTML") || !strings.Contains(e, "50 %") {
		t.Fatalf("progress: %v", targets(e))
	}
	if _, err := s.boxes.change(t.Context(), "second", func(b *sandbox.Sandbox) { b.State = sandbox.Running }); err != nil {
		t.Fatal(err)
	}
	if e := f.next(); !has(e, row+" outerHTML") || !has(e, "chips outerHTML") || !strings.Contains(e, "Running") {
		t.Fatalf("running: %v", targets(e))
	}
	box, _ = s.boxes.Sandbox(t.Context(), "second")
	s.boxes.drop(box)
	if e := f.next(); !has(e, row+" delete") || !has(e, "chips outerHTML") {
		t.Fatalf("gone: %v", targets(e))
	}
}

func TestLiveList_KeepsOthersSandboxesToThemselves(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.liveURL("ada", "/"))
	if _, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "secret", Owner: s.users["bob"].ID, Template: "base"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.boxes.Rename(t.Context(), "mine", "Mine"); err != nil {
		t.Fatal(err)
	}
	if e := f.until("Mine"); strings.Contains(e, "secret") {
		t.Error("bob's sandbox is told to ada")
	}
}

func TestLiveList_MindsTheFilter(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.put("ada", "other", nil)
	f, _ := s.follow("ada", s.liveURL("ada", "/?state=running"))
	if _, err := s.boxes.Stop(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	if e := f.next(); !has(e, "sandbox-"+box.ID+" delete") {
		t.Errorf("what does not fit any more: %v", targets(e))
	}
	if _, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "new", Owner: s.users["ada"].ID, Template: "base"}); err != nil {
		t.Fatal(err)
	}
	if e := f.next(); has(e, "rows afterbegin") || !has(e, "chips outerHTML") {
		t.Errorf("what does not fit: %v", targets(e))
	}
}

func TestLiveList_FirstAndLastTurnTheWholeList(t *testing.T) {
	s := newStage(t)
	f, _ := s.follow("ada", s.liveURL("ada", "/"))
	box, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "first", Owner: s.users["ada"].ID, Template: "base"})
	if err != nil {
		t.Fatal(err)
	}
	if e := f.next(); !has(e, "list-body outerHTML") || !strings.Contains(e, `data-name="first"`) {
		t.Errorf("the first: %v", targets(e))
	}
	s.boxes.drop(box)
	if e := f.next(); !has(e, "list-body outerHTML") || !strings.Contains(e, "Create your first sandbox") {
		t.Errorf("the last: %v", targets(e))
	}
}

func TestLiveList_SendsBurstsTogether(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Creating })
	f, _ := s.follow("ada", s.liveURL("ada", "/"))
	for i := range 40 {
		s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage, Fraction: float64(i+1) / 40})
	}
	events := 1
	for e := f.next(); !strings.Contains(e, "100 %"); e = f.next() {
		events++
	}
	if events > 10 {
		t.Errorf("%d events for a burst of 40", events)
	}
}

func TestLiveList_EndsWithTheSession(t *testing.T) {
	s := newStage(t)
	s.server.check = 20 * time.Millisecond
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.liveURL("ada", "/"))
	if err := s.accounts.Logout(t.Context(), s.sessions["ada"]); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the stream outlives the session")
	}
}

func TestLiveList_TellsWhenTheEngineIsAway(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.engine.fail(errUnseen)
	f, first := s.follow("ada", s.liveURL("ada", "/"))
	if !strings.Contains(first, "engine does not answer") {
		f.until("engine does not answer")
	}
}

func TestLiveWorkspace_TurnsIntoTerminalsWhenItRuns(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State, b.Spec.Template = sandbox.Creating, "node-api" })
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage})
	f, first := s.follow("ada", s.liveURL("ada", "/sandboxes/mine"))
	if has(first, "pane-terminal outerHTML") {
		t.Fatalf("begins with %v", targets(first))
	}
	s.images.bus.Publish(catalog.ImageEvent{Template: "node-api", Line: "Step <1>"})
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Line: "of another"})
	if e := f.until("work-log"); !strings.Contains(e, "Step &lt;1&gt;\n") || strings.Contains(e, "another") {
		t.Errorf("log: %s", e)
	}
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseReady, Detail: "waiting"})
	if e := f.next(); !has(e, "work-steps outerHTML") || !strings.Contains(e, `class="phase now" aria-current="step"`) {
		t.Errorf("progress: %s", e)
	}
	if _, err := s.boxes.change(t.Context(), "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Running }); err != nil {
		t.Fatal(err)
	}
	if e := f.next(); !has(e, "pane-terminal outerHTML") || !strings.Contains(e, "<sandbox-terminals") || !has(e, "ws-doors outerHTML") {
		t.Errorf("running: %v", targets(e))
	}
}

func TestLiveWorkspace_SaysWhyItFailedAndWhenItIsGone(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.liveURL("ada", "/sandboxes/mine"))
	if _, err := s.boxes.change(t.Context(), "mine", func(b *sandbox.Sandbox) {
		b.State, b.Problem = sandbox.Failed, "It ran out of memory."
	}); err != nil {
		t.Fatal(err)
	}
	if e := f.next(); !strings.Contains(e, "It ran out of memory.") || !strings.Contains(e, "Retry") {
		t.Errorf("failed: %s", e)
	}
	box, _ := s.boxes.Sandbox(t.Context(), "mine")
	s.boxes.drop(box)
	if e := f.next(); !strings.Contains(e, "This sandbox was deleted") || !has(e, "ws-acts innerHTML") {
		t.Errorf("gone: %s", e)
	}
}

func TestLiveTemplates_FollowABuild(t *testing.T) {
	s := newStage(t)
	gallery, first := s.follow("root", "/live/templates")
	if !has(first, "book-base outerHTML") || strings.Contains(first, "book-rust-edge") {
		t.Fatalf("begins with %v", targets(first))
	}
	page, first := s.follow("root", "/live/templates/base")
	if !has(first, "template-image outerHTML") || !has(first, "build-log outerHTML") {
		t.Fatalf("begins with %v", targets(first))
	}
	building := catalog.ImageStatus{State: catalog.ImageBuilding, Step: 2, Steps: 9, Progress: 0.2}
	s.images.mu.Lock()
	s.images.log = []string{"one"}
	s.images.mu.Unlock()
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: building, Line: "one"})
	if e := gallery.next(); !has(e, "book-base outerHTML") || !strings.Contains(e, "step 2 of 9") {
		t.Errorf("gallery: %s", e)
	}
	if e := page.next(); !has(e, "build-log outerHTML") || !strings.Contains(e, `value="20"`) {
		t.Errorf("a build begins: %s", e)
	}
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: building, Line: "two"})
	if e := page.next(); !has(e, "build-log beforeend") || !strings.Contains(e, "two\n") {
		t.Errorf("a line: %s", e)
	}
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: catalog.ImageStatus{State: catalog.ImageFailed, Problem: "No such package."}})
	if e := page.next(); !strings.Contains(e, "No such package.") || !strings.Contains(e, "Rebuild") {
		t.Errorf("failed: %s", e)
	}
}
