package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/chat"
	"sandboxd/internal/sandbox"
)

const labTalks = "/api/v1/sandboxes/lab/conversations"

// talk has ada begin a conversation in her sandbox lab, and gives its path.
func (w *world) talk() (path, id string) {
	w.t.Helper()
	w.box("ada", "lab")
	var c conversationShape
	got := w.call("ada", "POST", labTalks, `{"mode":"ask"}`).is(http.StatusCreated)
	got.into(&c)
	if at := got.Header().Get("Location"); at != labTalks+"/"+c.ID || c.Agent != chat.OwnAgent || c.State != "idle" {
		w.t.Fatalf("at %q: %+v", at, c)
	}
	return labTalks + "/" + c.ID, c.ID
}

// becomes waits until a conversation is in a state after a turn.
func (w *world) becomes(id string, state chat.State, turn int64) {
	w.t.Helper()
	seen := errors.New("seen")
	err := w.server.cfg.Chat.Follow(w.t.Context(), id, 0, func(c chat.Change) error {
		if c.Conversation != nil && c.Conversation.State == state && c.Conversation.Turn == turn {
			return seen
		}
		return nil
	})
	if err != seen {
		w.t.Fatal(err)
	}
}

// numbered are the numbers of changes, which depend on how many were stored as one.
var numbered = regexp.MustCompile(`"rev":\d+`)

func (w *world) goldenTalk(name string, got []byte) {
	w.t.Helper()
	got = numbered.ReplaceAll(got, []byte(`"rev":7`))
	golden(w.t, name, bytes.ReplaceAll(got, []byte(w.ids["ada"]), []byte("ada")))
}

func TestChat_AMessageIsAnsweredAndShown(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	sent := w.call("ada", "POST", path+"/messages", `{"id":"m1","text":"hello","files":[{"name":"a.txt","type":"text/plain","path":"/home/agent/a.txt"}]}`).is(http.StatusAccepted)
	w.goldenTalk("chat_message", sent.Body.Bytes())
	w.call("ada", "POST", path+"/messages", `{"id":"m1","text":"hello"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
	got := w.call("ada", "GET", path, "").is(http.StatusOK)
	if bytes.Contains(got.Body.Bytes(), []byte("not shown")) || bytes.Contains(got.Body.Bytes(), []byte(`"record"`)) {
		t.Errorf("a record is shown: %s", got.Body)
	}
	w.goldenTalk("chat", got.Body.Bytes())
	w.goldenTalk("chats", w.call("ada", "GET", labTalks, "").is(http.StatusOK).Body.Bytes())
	var last chatViewShape
	if w.call("ada", "GET", path+"?limit=1", "").is(http.StatusOK).into(&last); len(last.Items) != 1 || last.Items[0].Kind != "text" {
		t.Errorf("the last one is %+v", last.Items)
	}
	if w.call("ada", "GET", path+"?before=2&limit=5", "").is(http.StatusOK).into(&last); len(last.Items) != 1 || last.Items[0].Kind != "message" {
		t.Errorf("before the second is %+v", last.Items)
	}
	var c conversationShape
	if w.call("ada", "PATCH", path, `{"title":"Another","mode":"auto","model":"best"}`).is(http.StatusOK).into(&c); c.Title != "Another" || c.Mode != "auto" || c.Model != "best" {
		t.Errorf("changed to %+v", c)
	}
	w.call("ada", "DELETE", path, "").is(http.StatusNoContent)
	w.call("ada", "GET", path, "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "DELETE", path, "").is(http.StatusNotFound)
}

func TestChat_QuestionsQueueAndTheEndOfATurn(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	say := func(text string) {
		t.Helper()
		w.call("ada", "POST", path+"/messages", `{"id":"`+text+`","text":"`+text+`"}`).is(http.StatusAccepted)
	}
	w.call("ada", "POST", path+"/resume", "").problem(http.StatusConflict, "conflict", "")
	say("ask")
	w.becomes(id, chat.Asking, 1)
	for _, later := range []string{"two", "three", "four"} {
		say(later)
	}
	w.goldenTalk("chat_asking", w.call("ada", "GET", path, "").is(http.StatusOK).Body.Bytes())
	w.call("ada", "PUT", path+"/queue", `{"ids":["four","two"]}`).is(http.StatusNoContent)
	w.call("ada", "POST", path+"/turns/1/undo", "").problem(http.StatusConflict, "conflict", "")
	w.call("ada", "POST", path+"/approvals/q1", `{"answer":"perhaps"}`).problem(http.StatusBadRequest, "invalid", "answer")
	w.call("ada", "POST", path+"/approvals/other", `{"answer":"yes"}`).problem(http.StatusConflict, "conflict", "")
	w.call("ada", "POST", path+"/queue/none/now", "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "POST", path+"/approvals/q1", `{"answer":"yes"}`).is(http.StatusNoContent)
	w.becomes(id, chat.Idle, 3)
	var v chatViewShape
	w.call("ada", "GET", path, "").is(http.StatusOK).into(&v)
	var said []string
	for _, it := range v.Items {
		said = append(said, it.Text)
	}
	if got := strings.Join(said, "|"); got != "ask||yesYou said ask|four|You said four|two|You said two" && got != "ask||yes|You said ask|four|You said four|two|You said two" {
		t.Errorf("said was %s", got)
	}
	say("ask")
	w.becomes(id, chat.Asking, 4)
	w.call("ada", "POST", path+"/cancel", "").is(http.StatusNoContent)
	w.becomes(id, chat.Idle, 4)
	w.call("ada", "POST", path+"/cancel", "").is(http.StatusNoContent)
	w.call("ada", "POST", path+"/approvals/q1", `{"answer":"yes"}`).problem(http.StatusConflict, "conflict", "")
}

func TestChat_BranchEditUndoRedo(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	w.call("ada", "POST", path+"/messages", `{"text":"change"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
	var c conversationShape
	if w.call("ada", "POST", path+"/branch", `{"item":1}`).is(http.StatusCreated).into(&c); c.From != id || c.Items != 1 {
		t.Errorf("a branch is %+v", c)
	}
	if w.call("ada", "POST", path+"/edit", `{"item":1,"text":"hello"}`).is(http.StatusCreated).into(&c); c.From != id || c.Title != "hello" {
		t.Errorf("an edited one is %+v", c)
	}
	w.becomes(c.ID, chat.Idle, 1)
	w.call("ada", "POST", path+"/branch", `{"item":99}`).problem(http.StatusBadRequest, "invalid", "item")
	w.call("ada", "POST", path+"/edit", `{"item":2,"text":"x"}`).problem(http.StatusBadRequest, "invalid", "item")
	w.call("ada", "POST", path+"/turns/1/undo", "").is(http.StatusNoContent)
	var v chatViewShape
	if w.call("ada", "GET", path, "").into(&v); len(v.Items) == 0 || !v.Items[0].Undone {
		t.Errorf("undone are %+v", v.Items)
	}
	w.call("ada", "POST", path+"/resume", "").problem(http.StatusConflict, "conflict", "") // the agent knows nothing of that turn
	w.call("ada", "POST", path+"/turns/1/undo", "").problem(http.StatusConflict, "conflict", "")
	w.call("ada", "POST", path+"/turns/1/redo", "").is(http.StatusNoContent)
	w.call("ada", "POST", path+"/turns/1/redo", "").problem(http.StatusConflict, "conflict", "")
	w.call("ada", "POST", path+"/turns/x/undo", "").problem(http.StatusNotFound, "not_found", "")
}

// chatRoutes are all routes of one conversation, after its path.
var chatRoutes = []struct{ method, path, body string }{
	{"GET", "", ""}, {"PATCH", "", `{"title":"x"}`}, {"DELETE", "", ""}, {"GET", "/events", ""}, {"POST", "/messages", `{"text":"x"}`}, {"PUT", "/queue", `{"ids":[]}`},
	{"POST", "/queue/m/now", ""}, {"POST", "/approvals/q1", `{"answer":"yes"}`}, {"POST", "/cancel", ""}, {"POST", "/resume", ""}, {"POST", "/branch", `{"item":0}`},
	{"POST", "/edit", `{"item":1}`}, {"POST", "/turns/1/undo", ""}, {"POST", "/turns/1/redo", ""},
}

func TestChat_IsOfItsSandboxAndItsOwnerAlone(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	w.tokens["other"] = w.limitedTo("ada", "den")
	w.tokens["here"] = w.token("ada", auth.NewToken{Name: "here", Sandbox: "lab"})
	for _, r := range chatRoutes {
		w.call("bob", r.method, path+r.path, r.body).is(http.StatusNotFound)
		w.call("ada", r.method, "/api/v1/sandboxes/den/conversations/"+id+r.path, r.body).is(http.StatusNotFound)
		if got := w.call("other", r.method, path+r.path, r.body).Code; got != http.StatusNotFound && got != http.StatusForbidden {
			t.Errorf("%s %s with a token of another sandbox: %d", r.method, r.path, got)
		}
		w.call("ada", r.method, labTalks+"/0123456789abcdef"+r.path, r.body).is(http.StatusNotFound)
	}
	w.call("bob", "GET", labTalks, "").is(http.StatusNotFound)
	w.call("bob", "POST", labTalks, `{}`).is(http.StatusNotFound)
	w.call("here", "POST", path+"/messages", `{"text":"hello"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
}

func TestChat_BadInputIsSaidByItsField(t *testing.T) {
	w := newWorld(t)
	path, _ := w.talk()
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", labTalks, `{"mode":"wild"}`, "mode"},
		{"POST", labTalks, `{"model":"` + strings.Repeat("m", 201) + `"}`, "model"},
		{"POST", labTalks, `{"title":"` + strings.Repeat("t", 201) + `"}`, "title"},
		{"PATCH", path, `{"mode":""}`, "mode"},
		{"POST", path + "/messages", `{"text":"  "}`, "text"},
		{"POST", path + "/messages", `{"text":"` + strings.Repeat("x", chat.MaxMessage+1) + `"}`, "text"},
		{"POST", path + "/messages", `{"text":"x","id":"` + strings.Repeat("i", 65) + `"}`, "id"},
		{"POST", path + "/messages", `{"text":"x","files":[{"name":"","type":"","path":"/a"}]}`, "files"},
		{"POST", path + "/messages", `{"text":"x","files":[{"name":"a","type":""}]}`, "files"},
		{"GET", path + "?limit=x", "", "limit"},
		{"GET", path + "?before=-1", "", "before"},
	} {
		w.call("ada", c.method, c.path, c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
	w.call("ada", "POST", labTalks, `{"agent":"hal"}`).problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "POST", labTalks, `{"owner":"bob"}`).is(http.StatusBadRequest)
	w.call("ada", "POST", path+"/messages", `{"text":"`+strings.Repeat("x", maxBody)+`"}`).is(http.StatusRequestEntityTooLarge)
}

func TestChat_EventsContinueAfterTheLastOne(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	w.call("ada", "POST", path+"/messages", `{"text":"ask"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Asking, 1)
	rev := int64(0)
	text := map[int64]string{}
	follow := func(until string) {
		t.Helper()
		ctx, cut := context.WithCancel(t.Context())
		defer cut()
		got := w.open(ctx, "ada", "GET", path+"/events?after="+strconv.FormatInt(rev, 10), "", "text/event-stream")
		if ct := got.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
			t.Fatalf("%d %s", got.StatusCode, ct)
		}
		var c chatChangeShape
		for c.Conversation == nil || c.Conversation.State != until {
			kind, data := nextOf(t, got.Body)
			c = chatChangeShape{}
			if err := json.Unmarshal([]byte(data), &c); err != nil || kind != "change" {
				t.Fatalf("%s %s: %v", kind, data, err)
			}
			if rev > 0 && c.Rev != rev+1 && c.Conversation == nil {
				t.Errorf("change %d follows %d", c.Rev, rev)
			}
			if strings.Contains(data, "not shown") {
				t.Errorf("a record is told of: %s", data)
			}
			rev = c.Rev
			for _, it := range c.Items {
				text[it.N] = it.Text
			}
			for _, a := range c.Appends {
				text[a.N] += a.Text
			}
		}
	}
	follow("asking")
	w.call("ada", "POST", path+"/approvals/q1", `{"answer":"yes"}`).is(http.StatusNoContent)
	follow("idle")
	all := ""
	for n := range int64(20) {
		all += text[n]
	}
	if all != "askyesYou said ask" {
		t.Errorf("said was %q", all)
	}
}

// nextOf reads one event from a stream, byte by byte so that nothing of the next one is taken.
func nextOf(t *testing.T, from interface{ Read([]byte) (int, error) }) (kind, data string) {
	t.Helper()
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := from.Read(one); err != nil {
			t.Fatal(err)
		}
		if one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if k, ok := strings.CutPrefix(string(line), "event: "); ok {
			kind = k
		}
		if d, ok := strings.CutPrefix(string(line), "data: "); ok {
			data += d
		}
		if len(line) == 0 && data != "" {
			return kind, data
		}
		line = line[:0]
	}
}

func TestChat_ToReadWakesNothingAndTheActivityHasNoMessages(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	w.call("ada", "POST", path+"/messages", `{"text":"my secret plan"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
	w.call("ada", "POST", path+"/messages", `{"text":"ask"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Asking, 2)
	w.call("ada", "POST", path+"/approvals/q1", `{"answer":"yes"}`).is(http.StatusNoContent)
	w.becomes(id, chat.Idle, 2)
	w.call("ada", "PATCH", path, `{"mode":"auto"}`).is(http.StatusOK)
	w.call("ada", "POST", "/api/v1/sandboxes/lab/sleep", "").is(http.StatusAccepted)
	if s, err := w.manager.Wait(t.Context(), w.ref("lab")); err != nil || s.State != sandbox.Asleep {
		t.Fatalf("it is %s: %v", s.State, err)
	}
	w.call("ada", "GET", path, "").is(http.StatusOK)
	w.call("ada", "GET", labTalks, "").is(http.StatusOK)
	got := w.open(t.Context(), "ada", "GET", path+"/events", "", "text/event-stream")
	nextOf(t, got.Body)
	if s, err := w.manager.Sandbox(t.Context(), "lab"); err != nil || s.State != sandbox.Asleep {
		t.Errorf("it is %s: %v", s.State, err)
	}
	said := ""
	w.until("the activity has it", func() bool {
		said = w.call("root", "GET", "/api/v1/activity", "").is(http.StatusOK).Body.String()
		return strings.Contains(said, "conversation.change") && strings.Contains(said, "conversation.send")
	})
	if strings.Contains(said, "secret plan") || strings.Contains(said, `"yes"`) {
		t.Errorf("the activity has %s", said)
	}
}

func TestChat_ThePanesRoutesRefuseOtherSites(t *testing.T) {
	s := newStage(t)
	s.put("ada", "lab", nil)
	begin := func(key, value string) answer {
		t.Helper()
		r := httptest.NewRequest("POST", "http://localhost:8080/sandboxes/lab/conversations", strings.NewReader(`{}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(key, value)
		r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["ada"]})
		got := httptest.NewRecorder()
		s.server.ServeHTTP(got, r)
		return answer{got, t}
	}
	for _, h := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://lab.localhost:8080"}, {"Origin", "null"}} {
		begin(h[0], h[1]).is(http.StatusForbidden)
	}
	begin("Origin", "http://localhost:8080").is(http.StatusCreated)
	for _, site := range []string{"same-site", "cross-site"} {
		s.get("ada", "/sandboxes/lab/conversations", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image").is(http.StatusForbidden)
	}
}
