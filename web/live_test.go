package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/catalog"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
)

// feed is a channel of a page's live connection, as its script reads it.
type feed struct {
	t      *testing.T
	events chan channelEvent
	ended  chan struct{} // closed with the connection
}

// pageSocket is a page's live connection.
type pageSocket struct {
	*stage
	conn  *websocket.Conn
	ended chan struct{}
	err   error // why, once it has ended

	mu    sync.Mutex
	feeds map[int]*feed
}

// page connects as a page of user's does.
func (s *stage) page(user string) *pageSocket {
	s.t.Helper()
	server := httptest.NewServer(s.server)
	head := http.Header{"Cookie": {s.server.sessionCookie() + "=" + s.sessions[user]}, "Origin": {"http://localhost:8080"}}
	conn, _, err := websocket.DefaultDialer.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/live", head)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &pageSocket{stage: s, conn: conn, ended: make(chan struct{}), feeds: map[int]*feed{}}
	s.t.Cleanup(func() { conn.Close(); <-p.ended; server.Close() })
	go p.read()
	return p
}

func (p *pageSocket) read() {
	defer close(p.ended)
	for {
		var e channelEvent
		if p.err = p.conn.ReadJSON(&e); p.err != nil {
			return
		}
		p.mu.Lock()
		f := p.feeds[e.ID]
		p.mu.Unlock()
		if f != nil {
			f.events <- e
		}
	}
}

// opens opens a channel for a topic.
func (p *pageSocket) opens(id int, topic string) *feed {
	p.t.Helper()
	f := &feed{t: p.t, events: make(chan channelEvent, 100), ended: p.ended}
	p.mu.Lock()
	p.feeds[id] = f
	p.mu.Unlock()
	p.asks(channelAsk{ID: id, Topic: topic})
	return f
}

func (p *pageSocket) asks(ask channelAsk) {
	p.t.Helper()
	if err := p.conn.WriteJSON(ask); err != nil {
		p.t.Fatal(err)
	}
}

// follow opens a page of user's that follows one topic, and takes the first event.
func (s *stage) follow(user, topic string) (f *feed, first string) {
	s.t.Helper()
	f = s.page(user).opens(1, topic)
	return f, f.next()
}

// refused follows a topic that cannot be followed, and gives why.
func (s *stage) refused(user, topic string) problem {
	s.t.Helper()
	e := s.page(user).opens(1, topic).event()
	var p problem
	if err := json.Unmarshal([]byte(e.Data), &p); err != nil || e.Kind != "ended" {
		s.t.Fatalf("%s: got %+v: %v", topic, e, err)
	}
	return p
}

// event waits for an event.
func (f *feed) event() channelEvent {
	f.t.Helper()
	select {
	case e := <-f.events:
		return e
	case <-time.After(time.Minute):
		f.t.Fatal("the channel is silent")
		return channelEvent{}
	}
}

// next waits for parts of the page.
func (f *feed) next() string {
	f.t.Helper()
	e := f.event()
	if e.Kind != "parts" {
		f.t.Fatalf("got %+v", e)
	}
	return e.Data
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

// topicOf is the topic that a page would follow.
func (s *stage) topicOf(user, page string) string {
	live := s.get(user, page).is(http.StatusOK).need("#live")
	topic, seen := attr(live, "data-topic"), attr(live, "data-seen")
	switch {
	case seen == "":
		return topic
	case strings.Contains(topic, "?"):
		return topic + "&" + seen
	}
	return topic + "?" + seen
}

func TestLiveList_BringsNothingThatThePageHas(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	_, first := s.follow("ada", s.topicOf("ada", "/"))
	if got := strings.Join(targets(first), ", "); got != "alarm outerHTML, alert-count outerHTML" {
		t.Errorf("begins with %s", got)
	}
}

func TestLiveList_BringsWhatChangedBeforeItBegan(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	url := s.topicOf("ada", "/")
	s.put("ada", "late", nil)
	_, first := s.follow("ada", url)
	if !has(first, "list-body outerHTML") || !has(first, "chips outerHTML") || !strings.Contains(first, `data-name="late"`) {
		t.Errorf("begins with %v", targets(first))
	}
}

func TestLiveList_FollowsOneSandboxThroughItsLife(t *testing.T) {
	s := newStage(t)
	s.put("ada", "first", nil)
	f, _ := s.follow("ada", s.topicOf("ada", "/"))

	box, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "second", Owner: s.users["ada"].ID, Template: "base"})
	if err != nil {
		t.Fatal(err)
	}
	row := "sandbox-" + box.ID
	if e := f.next(); !has(e, "rows afterbegin") || !has(e, "chips outerHTML") || !strings.Contains(e, `id="`+row+`"`) {
		t.Fatalf("a new one: %v", targets(e))
	}
	s.images.builds(pace.Pace{Total: pace.Length{Time: time.Minute, Measured: time.Minute}, Done: 20 * time.Second, Step: 10 * time.Second, Since: stageTime})
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage})
	if e := f.next(); !has(e, "state-"+box.ID+" outerHTML") || has(e, row+" outerHTML") || !strings.Contains(e, "about 45 s left") {
		t.Fatalf("progress: %v", targets(e))
	}
	if _, err := s.boxes.change(t.Context(), s.ref("second"), func(b *sandbox.Sandbox) { b.State = sandbox.Running }); err != nil {
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
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
	if _, _, err := s.boxes.Create(t.Context(), sandbox.Request{Name: "secret", Owner: s.users["bob"].ID, Template: "base"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Mine"); err != nil {
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
	f, _ := s.follow("ada", s.topicOf("ada", "/?state=running"))
	if _, err := s.boxes.Stop(t.Context(), s.ref("mine")); err != nil {
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
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
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

func TestLiveList_TellsOfImagesWhereItHasCards(t *testing.T) {
	s := newStage(t)
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: catalog.ImageStatus{State: catalog.ImageMissing, Expected: pace.Length{Time: time.Minute}}})
	if e := f.next(); !has(e, "card-image-base outerHTML") || !strings.Contains(e, "about 1 min (estimate)") {
		t.Errorf("an image: %s", e)
	}
}

func TestLiveList_SendsBurstsTogether(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State = sandbox.Creating })
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
	for i := range 40 {
		s.images.builds(pace.Pace{Total: pace.Length{Time: time.Minute}, Done: time.Duration(i+1) * time.Second})
		s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage})
	}
	events := 1
	for e := f.next(); !strings.Contains(e, `data-done="40.000"`); e = f.next() {
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
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
	if err := s.accounts.Logout(t.Context(), s.sessions["ada"]); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.ended:
	case <-time.After(time.Minute):
		t.Fatal("the connection outlives the session")
	}
}

func TestLiveList_TellsWhenTheEngineIsAway(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.engine.fail(errUnseen)
	f, first := s.follow("ada", s.topicOf("ada", "/"))
	if !strings.Contains(first, "engine does not answer") {
		f.until("engine does not answer")
	}
}

func TestLiveWorkspace_TurnsIntoTerminalsWhenItRuns(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State, b.Spec.Template = sandbox.Creating, "node-api" })
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage})
	f, first := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
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
	if _, err := s.boxes.change(t.Context(), s.ref("mine"), func(b *sandbox.Sandbox) { b.State = sandbox.Running }); err != nil {
		t.Fatal(err)
	}
	if e := f.next(); !has(e, "pane-terminal outerHTML") || !strings.Contains(e, "<sandbox-terminals") || !has(e, "ws-links outerHTML") {
		t.Errorf("running: %v", targets(e))
	}
}

func TestLiveWorkspace_BringsTheStepAndTheLogThatCameBeforeItBegan(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", func(b *sandbox.Sandbox) { b.State, b.Spec.Template = sandbox.Creating, "node-api" })
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage, Detail: "Step 1/4 : ARG BASE_IMAGE"})
	topic := s.topicOf("ada", "/sandboxes/mine")
	s.images.mu.Lock()
	s.images.log = []string{"Step 1/4 : ARG BASE_IMAGE", "Step 4/4 : RUN sleep 60"}
	s.images.mu.Unlock()
	s.boxes.report(box, sandbox.Progress{Phase: sandbox.PhaseImage, Detail: "Step 4/4 : RUN sleep 60"})
	_, first := s.follow("ada", topic)
	if !has(first, "work-steps outerHTML") || !has(first, "work-log innerHTML") || strings.Count(first, "Step 4/4 : RUN sleep 60") < 2 {
		t.Errorf("begins with %s", first)
	}
}

func TestLiveWorkspace_SaysWhyItFailedAndWhenItIsGone(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	if _, err := s.boxes.change(t.Context(), s.ref("mine"), func(b *sandbox.Sandbox) {
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
	gallery, first := s.follow("root", "/templates")
	if !has(first, "book-base outerHTML") || strings.Contains(first, "book-rust-edge") {
		t.Fatalf("begins with %v", targets(first))
	}
	page, first := s.follow("root", "/templates/base")
	if !has(first, "template-image outerHTML") || !has(first, "build-log outerHTML") {
		t.Fatalf("begins with %v", targets(first))
	}
	building := catalog.ImageStatus{State: catalog.ImageBuilding, Step: 2, Steps: 9, Progress: 0.2, Pace: pace.Pace{Began: stageTime, Total: pace.Length{Time: 10 * time.Minute}, Done: 2 * time.Minute, Step: time.Minute, Since: stageTime}}
	s.images.mu.Lock()
	s.images.log = []string{"one"}
	s.images.mu.Unlock()
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: building, Line: "one"})
	if e := gallery.next(); !has(e, "book-base outerHTML") || !strings.Contains(e, "about 8 min left (estimate)") {
		t.Errorf("gallery: %s", e)
	}
	if e := page.next(); !has(e, "build-log outerHTML") || !strings.Contains(e, `value="0.200"`) {
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

// The editor of a template's files, the page of a broken template, and a gallery that was drawn before a template was made show less.
func TestLiveTemplates_OnlyWhatThePageShows(t *testing.T) {
	s := newStage(t)
	only := func(first string, wanted ...string) {
		t.Helper()
		for _, part := range targets(first) {
			if id, _, _ := strings.Cut(part, " "); strings.HasPrefix(id, "template-") || strings.HasPrefix(id, "book-") || id == "build-log" {
				if !slices.Contains(wanted, id) {
					t.Errorf("the page has no %s: %v", id, targets(first))
				}
			}
		}
	}
	editor, first := s.follow("root", s.topicOf("root", "/templates/base/edit"))
	only(first, "template-image", "build-log")
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: catalog.ImageStatus{State: catalog.ImageBuilding}, Line: "one"})
	if e := editor.next(); !has(e, "template-image outerHTML") {
		t.Errorf("a build begins: %v", targets(e))
	}
	_, first = s.follow("root", "/templates/rust-edge")
	only(first, "template-older", "template-upkeep")
	gallery, _ := s.follow("root", "/templates")
	s.images.bus.Publish(catalog.ImageEvent{Template: "fresh", Status: catalog.ImageStatus{State: catalog.ImageBuilding}})
	s.images.bus.Publish(catalog.ImageEvent{Template: "base", Status: catalog.ImageStatus{State: catalog.ImageBuilding}})
	only(gallery.next(), "book-base")
}
