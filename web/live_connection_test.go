package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

func TestLive_OneConnectionCarriesAllThatAPageFollows(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.declare("mine", catalog.Service{Name: "web", Command: []string{"true"}})
	s.server.open.most = 1 // a second one would be refused
	p := s.page("ada")
	parts := p.opens(1, s.topicOf("ada", "/sandboxes/mine"))
	folders := p.opens(2, "/sandboxes/mine/files?path=src")
	services := p.opens(3, "/sandboxes/mine/services")
	parts.next()
	if e := folders.event(); e.Kind != "changed" || e.Data != `{"path":"src"}` {
		t.Errorf("folders: %+v", e)
	}
	if first := services.next(); !has(first, "services outerHTML") {
		t.Errorf("services begin with %v", targets(first))
	}
	s.files.changes <- "src"
	if e := folders.event(); e.Kind != "changed" {
		t.Errorf("folders: %+v", e)
	}
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Mine"); err != nil {
		t.Fatal(err)
	}
	parts.until("Mine")
	if s.server.open.users.Len() != 1 {
		t.Error("the page counts as no stream")
	}
}

func TestLive_NothingStaysOpenOfAPageThatIsLeft(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.server.open.most = 1
	p := s.page("ada")
	p.opens(1, "/sandboxes/mine").next()
	p.opens(2, "/sandboxes/mine/files?path=src").event()
	if s.server.open.users.Len() != 1 {
		t.Fatal("the page counts as no stream")
	}
	p.conn.Close()
	until(t, "nothing is open", func() bool { return s.server.open.users.Len() == 0 })
	until(t, "nobody watches", func() bool { return s.files.watched() == 0 })
}

func TestLive_AClosedChannelEndsAlone(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	p := s.page("ada")
	p.opens(1, "/sandboxes/mine/files?path=src").event()
	list := p.opens(2, "/sandboxes")
	list.next()
	p.asks(channelAsk{ID: 1})
	p.asks(channelAsk{ID: 7}) // which is not open
	until(t, "nobody watches", func() bool { return s.files.watched() == 0 })
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Mine"); err != nil {
		t.Fatal(err)
	}
	list.until("Mine")
	p.opens(1, "/templates").next()
}

func TestLive_ChannelsAreBoundedAndCheckedEach(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	p := s.page("ada")
	ends := func(f *feed, status int) {
		t.Helper()
		e := f.event()
		var told problem
		if err := json.Unmarshal([]byte(e.Data), &told); err != nil || e.Kind != "ended" || told.Status != status {
			t.Errorf("got %+v", e)
		}
	}
	for _, topic := range []string{"/nothing", "/sandboxes/", "/sandboxes/mine/", "/sandboxes//services", "/live", "/api/v1/events"} {
		ends(p.opens(100, topic), http.StatusNotFound)
	}
	for _, topic := range []string{"sandboxes", "%zz", "/sandboxes/mine/files?path=../x", "/sandboxes/mine/files"} {
		ends(p.opens(100, topic), http.StatusBadRequest)
	}
	for id := range maxChannels {
		p.opens(id, "/sandboxes").next()
	}
	ends(p.opens(200, "/sandboxes"), http.StatusTooManyRequests)
	ends(p.opens(3, "/sandboxes"), http.StatusConflict)
	p.asks(channelAsk{ID: 5})
	until(t, "there is room again", func() bool { return p.opens(201, "/templates").event().Kind == "parts" })
}

func TestLive_AnswersOnlyPagesOfOursThatAreSignedIn(t *testing.T) {
	s := newStage(t)
	s.server.open.most = 0 // who is refused has not taken a place before
	server := httptest.NewServer(s.server)
	defer server.Close()
	session := "; " + (&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["ada"]}).String()
	for name, c := range map[string]struct {
		origin, cookie, site string
		status               int
	}{
		"nobody":           {"http://localhost:8080", "", "", http.StatusUnauthorized},
		"a sandbox's page": {"http://mine.localhost:8080", session, "", http.StatusForbidden},
		"another's":        {"https://evil.example", session, "", http.StatusForbidden},
		"one that says so": {"http://localhost:8080", session, "same-site", http.StatusForbidden},
		"none":             {"", session, "", http.StatusForbidden},
		"null":             {"null", session, "", http.StatusForbidden},
	} {
		head := http.Header{"Cookie": {"a=b" + c.cookie}}
		for key, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				head.Set(key, value)
			}
		}
		conn, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/live", head)
		if err == nil {
			conn.Close()
		}
		if res == nil || res.StatusCode != c.status {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	if got := s.get("", "/live").is(http.StatusUnauthorized); got.Header().Get("Content-Type") != problemType {
		t.Errorf("without an upgrade: %v", got.Header())
	}
	s.get("ada", "/live").is(http.StatusUpgradeRequired)
}

func TestLive_AnswersAPing(t *testing.T) {
	p := newStage(t).page("ada")
	f := &feed{t: t, events: make(chan channelEvent, 1), ended: p.ended}
	p.mu.Lock()
	p.feeds[0] = f
	p.mu.Unlock()
	p.asks(channelAsk{})
	if e := f.event(); e.Kind != "alive" {
		t.Errorf("got %+v", e)
	}
}

// TestLiveWorkspace_OfADeletedSandboxIsNotTheNextOfItsName: a page may come back long after it was left.
func TestLiveWorkspace_OfADeletedSandboxIsNotTheNextOfItsName(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	topic := s.topicOf("ada", "/sandboxes/mine")
	s.boxes.drop(box)
	wantDeleted := func() {
		t.Helper()
		_, first := s.follow("ada", topic)
		if !strings.Contains(first, "This sandbox was deleted") || strings.Contains(first, "<sandbox-terminals") {
			t.Errorf("begins with %s", first)
		}
	}
	wantDeleted()
	s.put("bob", "mine", nil)
	if p := s.refused("ada", topic); p.Status != http.StatusNotFound {
		t.Errorf("told %+v", p)
	}
	s.boxes.drop(mustBox(t, s, "mine"))
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.ID = "another" })
	wantDeleted()
}

func mustBox(t *testing.T, s *stage, name string) sandbox.Sandbox {
	t.Helper()
	box, err := s.boxes.Sandbox(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// panicking is a page that has a fault.
type panicking struct{ nothingBeside }

func (panicking) begin(context.Context, *parts) error      { panic("a fault") }
func (panicking) take(news) bool                           { return false }
func (panicking) tell(context.Context, bool, *parts) error { return nil }

func TestLive_AFaultEndsItsChannelOnly(t *testing.T) {
	s := newStage(t)
	open := s.server.live.live(func(context.Context, *request) (livePage, error) { return panicking{}, nil })
	r := &request{http: httptest.NewRequest("GET", "/live", nil)}
	err := pumpTopic(t.Context(), r, open, nil)
	if err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Errorf("got %v", err)
	}
}

// TestLive_TellsAStrangerNothing who knows the name of a sandbox, and its id too.
func TestLive_TellsAStrangerNothing(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	for _, topic := range []string{"/sandboxes/mine?sandbox_id=" + box.ID, "/sandboxes/mine?sandbox_id=x", "/sandboxes/none?sandbox_id=" + box.ID, "/sandboxes/none?sandbox_id=x"} {
		if p := s.refused("bob", topic); p.Status != http.StatusNotFound {
			t.Errorf("%s: told %+v", topic, p)
		}
	}
}

// TestLiveWorkspace_ADeletedSandboxIsSilent whatever happens to what has its name or its id.
func TestLiveWorkspace_ADeletedSandboxIsSilent(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.boxes.drop(box)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.ID = "another" })
	p := s.page("ada")
	gone := p.opens(1, "/sandboxes/mine?sandbox_id="+box.ID)
	list := p.opens(2, "/sandboxes")
	gone.next()
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Secret"); err != nil {
		t.Fatal(err)
	}
	s.used("mine", by(idle.Terminal, "main"))
	list.until("kept awake by terminal")
	select {
	case e := <-gone.events:
		t.Errorf("told %+v", e)
	default:
	}
}

func TestLive_EndsWhenItsPersonMayDoLess(t *testing.T) {
	s := newStage(t)
	s.server.check = 20 * time.Millisecond
	s.put("ada", "mine", nil)
	p := s.page("root")
	p.opens(1, "/sandboxes/mine").next()
	if _, err := s.accounts.CreateUser(t.Context(), auth.NewUser{Name: "boss", Role: auth.Admin, Password: testPassword}); err != nil {
		t.Fatal(err)
	}
	if err := s.accounts.SetRole(t.Context(), s.users["root"].ID, auth.Member); err != nil {
		t.Fatal(err)
	}
	s.ends(p, websocket.CloseGoingAway)
	if got := s.refused("root", "/sandboxes/mine"); got.Status != http.StatusNotFound {
		t.Errorf("told %+v", got)
	}
}

// ends waits for the end of a page's connection.
func (s *stage) ends(p *pageSocket, code int) {
	s.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		s.t.Fatal("the connection continues")
	}
	if !websocket.IsCloseError(p.err, code) {
		s.t.Errorf("ended with %v", p.err)
	}
}

func TestLive_IsForThePersonThatThePageWasDrawnFor(t *testing.T) {
	s := newStage(t)
	if got := attr(s.get("ada", "/").need("body"), "data-person"); got != "ada" {
		t.Errorf("the page is for %q", got)
	}
	server := httptest.NewServer(s.server)
	defer server.Close()
	head := http.Header{"Origin": {server.URL}, "Cookie": {(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["bob"]}).String()}}
	_, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/live?person=ada", head)
	if err == nil || res.StatusCode != http.StatusConflict {
		t.Errorf("got %v, %v", res, err)
	}
	s.get("bob", "/live?person=ada").is(http.StatusConflict)
}

func TestLive_LongAddressesAndManyChannelsOfOneUserAreRefused(t *testing.T) {
	s := newStage(t)
	if p := s.refused("ada", "/sandboxes?q="+strings.Repeat("+", maxTopic)); p.Status != http.StatusBadRequest {
		t.Errorf("told %+v", p)
	}
	s.server.follows.most = 1
	s.page("ada").opens(1, "/sandboxes").next()
	if p := s.refused("ada", "/sandboxes"); p.Status != http.StatusTooManyRequests {
		t.Errorf("told %+v", p)
	}
	s.page("bob").opens(1, "/sandboxes").next()
}
