package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/trials"
)

const labTrials = "/api/v1/sandboxes/lab/trials"

// tried waits until a trial is in a state.
func tried(t *testing.T, s *Server, id string, state trials.State) trials.Trial {
	t.Helper()
	changes := s.cfg.Trials.Subscribe()
	defer changes.Close()
	for {
		tr, err := s.cfg.Trials.Trial(id)
		if err != nil {
			t.Fatal(err)
		}
		if tr.State == state {
			return tr
		}
		select {
		case <-changes.C:
		case <-t.Context().Done():
			t.Fatalf("it is %s", tr.State)
		}
	}
}

// try has ada try "go" in two clones of lab.
func (w *world) try() (path, id string) {
	w.t.Helper()
	var made trialShape
	got := w.call("ada", "POST", labTrials, `{"text": "go", "n": 2}`).is(http.StatusAccepted)
	got.into(&made)
	if at := got.Header().Get("Location"); at != labTrials+"/"+made.ID || made.Mode != "risky" || made.Agent != "sandboxd" {
		w.t.Fatalf("at %q: %+v", at, made)
	}
	tr := tried(w.t, w.server, made.ID, trials.Open)
	for _, c := range tr.Clones {
		w.becomes(c.Conversation, "idle", 1)
	}
	return labTrials + "/" + made.ID, made.ID
}

var idOf = regexp.MustCompile(`"(id|snapshot|conversation)":"[0-9a-f]{16}"`)

func TestTrials_AreBegunShownAndKept(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	path, id := w.try()
	got := w.call("ada", "GET", path, "").is(http.StatusOK)
	golden(t, "trial", idOf.ReplaceAll(got.Body.Bytes(), []byte(`"$1":"0123456789abcdef"`)))
	var list trialsShape
	w.call("root", "GET", labTrials, "").is(http.StatusOK).into(&list)
	if len(list.Trials) != 1 || list.Trials[0].Tries[1].LastWords != "You said go" {
		t.Errorf("an admin sees %+v", list)
	}
	w.call("ada", "POST", path+"/keep", `{"sandbox": "lab"}`).problem(http.StatusBadRequest, "invalid", "sandbox")
	w.call("ada", "POST", path+"/keep", `{"sandbox": "lab-try-2"}`).is(http.StatusAccepted)
	tr := tried(t, w.server, id, trials.Kept)
	w.call("ada", "DELETE", path, "").problem(http.StatusConflict, "conflict", "")
	if _, err := w.manager.Sandbox(t.Context(), "lab-try-2"); err != nil || tr.Problem != "" {
		t.Errorf("the one that is kept: %v, %+v", err, tr)
	}
	var now trialShape
	w.call("ada", "GET", path, "").is(http.StatusOK).into(&now)
	if now.Kept != "lab-try-2" || now.State != "kept" {
		t.Errorf("afterwards %+v", now)
	}
}

func TestTrials_AreCancelled(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	path, id := w.try()
	w.call("ada", "DELETE", path, "").is(http.StatusAccepted)
	tried(t, w.server, id, trials.Cancelled)
	if list, _, err := w.manager.List(t.Context(), sandbox.Filter{Owner: w.ids["ada"], State: sandbox.Running}); err != nil || len(list) != 1 {
		t.Errorf("%d sandboxes, %v", len(list), err)
	}
}

func TestTrials_AreForThoseWhoMayMakeSandboxes(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "one", Sandbox: "lab"})
	w.call("limited", "POST", labTrials, `{"text": "go", "n": 2}`).is(http.StatusForbidden)
	w.call("bob", "POST", labTrials, `{"text": "go", "n": 2}`).is(http.StatusNotFound)
	path, _ := w.try()
	w.call("limited", "GET", path, "").is(http.StatusForbidden)
	w.call("bob", "GET", path, "").is(http.StatusNotFound)
	w.box("ada", "other")
	w.call("ada", "GET", strings.Replace(path, "lab", "other", 1), "").is(http.StatusNotFound)
	// A trial by an admin is not for the sandbox's owner: the clones are the admin's.
	var made trialShape
	w.call("root", "POST", labTrials, `{"text": "secret", "n": 2}`).is(http.StatusAccepted).into(&made)
	tried(t, w.server, made.ID, trials.Open)
	w.call("ada", "GET", labTrials+"/"+made.ID, "").is(http.StatusNotFound)
	var list trialsShape
	w.call("ada", "GET", labTrials, "").is(http.StatusOK).into(&list)
	if len(list.Trials) != 1 || list.Trials[0].Text != "go" {
		t.Errorf("the owner sees %+v", list)
	}
}

func TestTrials_BadInputMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for body, field := range map[string]string{`{"text": "go"}`: "n", `{"text": "go", "n": 9}`: "n", `{"text": "", "n": 2}`: "text", `{"text": "go", "n": 2, "mode": "wild"}`: "mode"} {
		w.call("ada", "POST", labTrials, body).problem(http.StatusBadRequest, "invalid", field)
	}
	w.call("ada", "POST", labTrials, `{"text": "go", "n": 2, "agent": "none"}`).problem(http.StatusNotFound, "not_found", "")
	var list trialsShape
	w.call("ada", "GET", labTrials, "").is(http.StatusOK).into(&list)
	if len(list.Trials) != 0 {
		t.Errorf("there are %+v", list)
	}
}

// try has ada try text in two clones of lab, and gives the page.
func (s *stage) try(text string) (page string, tr trials.Trial) {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), "lab")
	if err == nil {
		tr, err = s.server.cfg.Trials.Begin(s.t.Context(), box, trials.Ask{Owner: box.Owner, Text: text, Count: 2})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return "/sandboxes/lab/tries/" + tr.ID, tried(s.t, s.server, tr.ID, trials.Open)
}

func TestTriesPage_ShowsThemSideBySideAndKeepsOne(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	path, tr := s.try("<b>go</b>\u202e")
	s.settled(tr)
	v := s.get("ada", path).is(http.StatusOK)
	text := textOf(v.need("main"))
	for _, want := range []string{"<b>go</b>", "Compare, and keep one", "lab-try-1", "lab-try-2", "You said <b>go</b>", "Done"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "\u202e") {
		t.Errorf("it turns the direction of text: %q", text)
	}
	if list := textOf(s.get("ada", "/").is(http.StatusOK).need("#list")); strings.Count(list, "try of lab") != 2 || strings.Count(list, "2 tries") != 1 {
		t.Errorf("the list says %q", list)
	}
	if name := textOf(s.get("ada", "/sandboxes/lab-try-1").is(http.StatusOK).need("#ws-name")); !strings.Contains(name, "try of lab") {
		t.Errorf("the workspace says %q", name)
	}
	s.get("bob", path).is(http.StatusNotFound)
	keep := path + "/keep"
	if q := textOf(s.get("ada", keep+"?try=lab-try-2").is(http.StatusOK).need("main")); !strings.Contains(q, "The other tries are deleted") {
		t.Errorf("it asks %q", q)
	}
	s.get("ada", keep+"?try=lab").is(http.StatusNotFound)
	s.post("ada", keep, url.Values{"sandbox": {"lab-try-2"}}).leads(path + "?sandbox_id=" + tr.Sandbox)
	if after := tried(t, s.server, tr.ID, trials.Kept); after.Problem != "" {
		t.Errorf("afterwards %+v", after)
	}
	text = textOf(s.get("ada", path).is(http.StatusOK).need("main"))
	if !strings.Contains(text, "Deleted") || !strings.Contains(text, "Kept") || strings.Contains(text, "Keep this one") {
		t.Errorf("afterwards it says %q", text)
	}
}

// settled waits until the agents of a trial have answered.
func (s *stage) settled(tr trials.Trial) {
	s.t.Helper()
	states := s.server.cfg.ChatStates.Subscribe()
	defer states.Close()
	for {
		tries, err := s.server.cfg.Trials.Look(s.t.Context(), tr)
		if err != nil {
			s.t.Fatal(err)
		}
		done := 0
		for _, try := range tries {
			if try.Words != "" && try.Conversation.State == "idle" {
				done++
			}
		}
		if done == len(tries) {
			return
		}
		<-states.C
	}
}

func TestTriesPage_IsLiveAndCancels(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	path, tr := s.try("ask")
	f, _ := s.follow("ada", s.topicOf("ada", path))
	if q := textOf(s.get("ada", path+"/cancel").is(http.StatusOK).need("main")); !strings.Contains(q, "All tries are deleted") {
		t.Errorf("it asks %q", q)
	}
	s.post("ada", path+"/cancel", nil).leads(path + "?sandbox_id=" + tr.Sandbox)
	tried(t, s.server, tr.ID, trials.Cancelled)
	f.until("Cancelled")
	_, err := s.boxes.Sandbox(t.Context(), "lab-try-1")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("a clone is left: %v", err)
	}
}

func TestTrials_TheScriptGetsTheSame(t *testing.T) {
	s := newSnapshotStage(t)
	s.put("ada", "lab", nil)
	_, tr := s.try("go")
	var one trialShape
	if err := json.Unmarshal(s.get("ada", "/sandboxes/lab/trials/"+tr.ID).is(http.StatusOK).Body.Bytes(), &one); err != nil || one.ID != tr.ID {
		t.Errorf("%+v, %v", one, err)
	}
}
