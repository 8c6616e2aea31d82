package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"sandboxd/internal/access"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
	"sandboxd/views"
)

// putJSON sends JSON as a page's script does.
func (s *stage) putJSON(user, path, body string) view {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPut, "http://localhost:8080"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://localhost:8080")
	r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions[user]})
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	return view{w, s.t, &html.Node{}}
}

// places says where the panes of a page are: "files side, editor 600 empty, terminal 400 first front".
func places(page view) string {
	var all []string
	for _, n := range page.all(".pane-slot") {
		place := attr(n, "data-pane")
		if share := number(n, "w-%d"); share > 0 {
			place += fmt.Sprintf(" %d", share)
		}
		for _, flag := range []string{"side", "empty", "off", "first", "max", "front"} {
			if hasAttr(n, "data-"+flag) {
				place += " " + flag
			}
		}
		all = append(all, place)
	}
	return strings.Join(all, ", ")
}

// number adds up the binary digits in an element's classes.
func number(n *html.Node, digit string) (sum int) {
	for class := range strings.FieldsSeq(attr(n, "class")) {
		var bit int
		if _, err := fmt.Sscanf(class, digit, &bit); err == nil {
			sum += bit
		}
	}
	return sum
}

func TestPanes_AreDrawnAsThePersonLeftThem(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	const usual = "files side, editor 600 empty, terminal 400 first front, chat 450 off"
	for _, c := range []struct{ put, want string }{
		{"", usual},
		{`{"shapes":{"wide":{"panes":{"editor":{"share":321},"terminal":{"share":679}}}},"last":"wide","front":"files"}`, "files side front, editor 321 empty, terminal 679 first, chat 450 off"},
		{`{"shapes":{"wide":{"panes":{"editor":{"share":321}}}},"last":"medium"}`, usual},
		{`{"shapes":{"wide":{"panes":{"files":{"hidden":true}}}},"last":"wide"}`, "files side off, editor 600 empty, terminal 400 first front, chat 450 off"},
		{`{"shapes":{"wide":{"panes":{"terminal":{"hidden":true}}}},"last":"wide"}`, "files side, editor 600 empty, terminal 400 off front, chat 450 off"},
		{`{"whole":"terminal"}`, "files side, editor 600 empty, terminal 400 first max front, chat 450 off"},
		{`{"whole":"files"}`, usual},
		{`{"front":"chat","shapes":{"wide":{"panes":{"chat":{"share":300}}}},"last":"wide"}`, "files side, editor 600 empty, terminal 400 first, chat 300 front"},
		{`{"front":"notes","shapes":{"wide":{"panes":{"notes":{"share":300}}}},"last":"wide"}`, usual},
	} {
		if c.put != "" {
			s.putJSON("ada", "/preferences/workspace", c.put).is(http.StatusNoContent)
		}
		if got := places(s.get("ada", "/sandboxes/mine")); got != c.want {
			t.Errorf("after %s: %s, want %s", c.put, got, c.want)
		}
	}
	const kept = `{"shapes":{"medium":{"flow":"beside","side":321}},"last":"medium","copy_on_select":false}`
	s.putJSON("ada", "/preferences/workspace", kept).is(http.StatusNoContent)
	panes := s.get("ada", "/sandboxes/mine").need(".panes")
	if got := attr(panes, "data-preferences"); got != kept {
		t.Errorf("the script gets %s", got)
	}
	if class := attr(panes, "class"); !strings.HasPrefix(class, "panes beside sided ") || number(panes, "s-%d") != 321 {
		t.Errorf("the panes have the classes %s", class)
	}
	if got := places(s.get("root", "/sandboxes/mine")); got != usual {
		t.Errorf("another user has %s", got)
	}
}

// TestPanes_ForgetTheLayoutOfAnEarlierVersion: the page's script sends back what it was given, which must be accepted.
func TestPanes_ForgetTheLayoutOfAnEarlierVersion(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	if err := s.workspace.SetPreference(t.Context(), s.users["ada"].ID, "workspace", `{"panes":{"files":{"share":450}},"front":"files"}`); err != nil {
		t.Fatal(err)
	}
	given := attr(s.get("ada", "/sandboxes/mine").need(".panes"), "data-preferences")
	if given != `{"front":"files"}` {
		t.Errorf("the script gets %s", given)
	}
	s.putJSON("ada", "/preferences/workspace", given).is(http.StatusNoContent)
}

func TestPanes_KeepNothingButALayout(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`"pane-%d":{"share":1}`, i)
	}
	for body, status := range map[string]int{
		`{"shapes":{"wide":{"panes":{"Files":{"share":1}}}}}`:             http.StatusBadRequest,
		`{"shapes":{"wide":{"panes":{"files":{"share":1001}}}}}`:          http.StatusBadRequest,
		`{"shapes":{"wide":{"panes":{"files":{"share":-1}}}}}`:            http.StatusBadRequest,
		`{"shapes":{"wide":{"panes":{"files":{"x":"red"}}}}}`:             http.StatusBadRequest,
		`{"shapes":{"wide":{"flow":"around"}}}`:                           http.StatusBadRequest,
		`{"shapes":{"wide":{"side":1024}}}`:                               http.StatusBadRequest,
		`{"shapes":{"<b>":{"side":300}}}`:                                 http.StatusBadRequest,
		`{"last":"<script>"}`:                                             http.StatusBadRequest,
		`{"whole":"<script>"}`:                                            http.StatusBadRequest,
		`{"sizes":{"tree":10001}}`:                                        http.StatusBadRequest,
		`{"other":1}`:                                                     http.StatusBadRequest,
		`[]`:                                                              http.StatusBadRequest,
		`{"shapes":{"wide":{"panes":{` + strings.Join(many, ",") + `}}}}`: http.StatusRequestEntityTooLarge,
		`{"front":"` + strings.Repeat("x", 1<<20) + `"}`:                  http.StatusRequestEntityTooLarge,
	} {
		s.putJSON("ada", "/preferences/workspace", body).is(status)
	}
	s.ask("", http.MethodPut, "/preferences/workspace", nil).is(http.StatusUnauthorized)
	if got, err := s.workspace.Preference(t.Context(), s.users["ada"].ID, "workspace"); got != "" || err != nil {
		t.Errorf("kept %q, %v", got, err)
	}
	for _, broken := range []string{"{", `{"shapes":{"wide":{"side":-5}}}`, `"x"`} {
		if err := s.workspace.SetPreference(t.Context(), s.users["ada"].ID, "workspace", broken); err != nil {
			t.Fatal(err)
		}
		page := s.get("ada", "/sandboxes/mine").is(http.StatusOK)
		if got := places(page) + attr(page.need(".panes"), "data-preferences"); got != "files side, editor 600 empty, terminal 400 first front, chat 450 off{}" {
			t.Errorf("with %s: %s", broken, got)
		}
	}
}

func TestPanes_OneMoreJoinsByOneEntry(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	if page := s.get("ada", "/sandboxes/mine"); len(page.all("button.pane-toggle")) != 4 || len(page.all(".splitter")) != 4 {
		t.Fatalf("there is something for a pane that there is not: %s", places(page))
	}
	s.server.panes = append(s.server.panes, paneEntry{id: "notes", title: "Notes", icon: "book", share: 300,
		show: func(_ *workspaceHandlers, _ context.Context, h access.Handle, _ sandbox.Progress) views.Pane {
			return views.Pane{Kind: "work", Work: views.Work{Title: "Notes of " + h.Name()}}
		}})
	s.putJSON("ada", "/preferences/workspace", `{"shapes":{"wide":{"panes":{"terminal":{"hidden":true}}}},"last":"wide","front":"notes"}`).is(http.StatusNoContent)
	page := s.get("ada", "/sandboxes/mine").is(http.StatusOK)
	if got := places(page); got != "files side, editor 600 empty, terminal 400 off, chat 450 off, notes 300 first front" {
		t.Errorf("places %s", got)
	}
	if textOf(in(page.need("#pane-notes"), "h2")) != "Notes of mine" || attr(page.need("#pane-notes"), "aria-label") != "Notes" {
		t.Errorf("shows %s", textOf(page.need("#pane-notes")))
	}
	if len(page.all("button.pane-toggle")) != 5 || len(page.all(".splitter")) != 5 {
		t.Errorf("%d tabs, %d splitters", len(page.all("button.pane-toggle")), len(page.all(".splitter")))
	}
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	box.State = sandbox.Asleep
	s.boxes.report(box, sandbox.Progress{})
	if e := f.until(`"#pane-notes"`); !strings.Contains(e, "Notes of mine") {
		t.Errorf("the stream brings %s", e)
	}
}

func TestPanes_FilesLeaveTheWordsToOneMessage(t *testing.T) {
	s := newStage(t)
	s.furnish()
	for name, kind := range map[string]string{
		"brave-otter": "files", "silver-heron": "stopped", "old-forest": "asleep", "still-lake": "frozen", "late-owl": "sleeping",
		"tall-birch": "failed", "new-meadow": "waits", "warm-comet": "waits",
	} {
		pane := s.get("root", "/sandboxes/"+name).is(http.StatusOK).need("#pane-files")
		if got := attr(pane, "data-kind"); got != kind || kind != "files" && textOf(pane) != "" {
			t.Errorf("%s: %s: %s", name, got, textOf(pane))
		}
	}
	files := s.get("root", "/sandboxes/brave-otter").need("sandbox-files")
	if attr(files, "data-base") != "/sandboxes/brave-otter/files" || attr(files, "data-home") != wire.HomePath {
		t.Errorf("files %v", files.Attr)
	}
}

func TestTerminalText_IsForItsPeopleWhileItRuns(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.put("ada", "idle", func(b *sandbox.Sandbox) { b.State = sandbox.Frozen })
	got := s.get("ada", "/sandboxes/mine/terminals/main/text").is(http.StatusOK)
	if got.Body.String() != greeting || got.Header().Get("Content-Type") != "text/plain; charset=utf-8" || got.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q, %v", got.Body, got.Header())
	}
	s.terminals.tabs = []wire.Terminal{{Name: "main", Full: true}}
	if full := s.get("ada", "/sandboxes/mine/terminals/main/text?part=unless-full").is(http.StatusOK); full.Body.Len() != 0 || full.Header().Get("X-Terminal-Full") != "1" {
		t.Errorf("with a pager: %q, %v", full.Body, full.Header())
	}
	s.get("ada", "/sandboxes/mine/terminals/2/text").is(http.StatusNotFound)
	s.get("bob", "/sandboxes/mine/terminals/main/text").is(http.StatusNotFound)
	asked := s.terminals.asked
	s.get("ada", "/sandboxes/idle/terminals/main/text").is(http.StatusConflict)
	if s.terminals.asked != asked {
		t.Error("a sandbox that rests was asked")
	}
}

func TestTabNames_AreForAllWhoSeeTheSandbox(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.terminals.tabs = []wire.Terminal{{Name: "main"}, {Name: "2"}}
	s.putJSON("ada", "/sandboxes/mine/terminals/main/name", `{"name":" Server ‹x› "}`).is(http.StatusNoContent)
	s.putJSON("root", "/sandboxes/mine/terminals/2/name", `{"name":"tests"}`).is(http.StatusNoContent)
	if got := attr(s.get("root", "/sandboxes/mine").need("sandbox-terminals"), "data-labels"); got != `{"2":"tests","main":"Server ‹x›"}` {
		t.Errorf("names %s", got)
	}
	var got struct{ Labels map[string]string }
	answer{s.get("ada", "/sandboxes/mine/terminals").ResponseRecorder, t}.into(&got)
	if got.Labels["2"] != "tests" {
		t.Errorf("names %v", got.Labels)
	}
	for path, body := range map[string]string{
		"main": `{"name":"two\nlines"}`, "m.a": `{"name":"x"}`, "2": `{"name":"` + strings.Repeat("x", 41) + `"}`, "3": `{"name":"a\u202eb"}`, "4": `{"name":1}`,
	} {
		if w := s.putJSON("ada", "/sandboxes/mine/terminals/"+path+"/name", body); w.Code != http.StatusBadRequest && w.Code != http.StatusNotFound {
			t.Errorf("%s is %d", body, w.Code)
		}
	}
	s.putJSON("bob", "/sandboxes/mine/terminals/main/name", `{"name":"x"}`).is(http.StatusNotFound)
	s.post("ada", "/sandboxes/mine/terminals/2/close", nil).leads("/sandboxes/mine")
	s.putJSON("ada", "/sandboxes/mine/terminals/main/name", `{"name":""}`).is(http.StatusNoContent)
	if names, err := s.workspace.TabNames(t.Context(), box.ID); len(names) != 0 || err != nil {
		t.Errorf("left %v, %v", names, err)
	}
	for i := range maxTabNames {
		s.putJSON("ada", fmt.Sprintf("/sandboxes/mine/terminals/t%d/name", i), `{"name":"x"}`).is(http.StatusNoContent)
	}
	s.putJSON("ada", "/sandboxes/mine/terminals/more/name", `{"name":"x"}`).is(http.StatusConflict)
	s.putJSON("ada", "/sandboxes/mine/terminals/t1/name", `{"name":"y"}`).is(http.StatusNoContent)
}
