package program_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/acp/acptest"
	"sandboxd/internal/chat"
)

func words(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(acptest.Word(i))
	}
	return b.String()
}

func TestTurn_GoesOnInTheSameProgram(t *testing.T) {
	w := newWorld(t, chat.AskRisky)
	w.send("hello\nplan\nthink about it\nedit /home/agent/x")
	v := w.ends(chat.Idle, 1)
	if v.text() != "You said: hello" || len(v.kinds(chat.Plan)) != 1 || !strings.Contains(string(v.kinds(chat.Plan)[0].Data), "completed") || v.kinds(chat.Thinking)[0].Text != "about it" {
		t.Error(v)
	}
	var c chat.Call
	if err := json.Unmarshal(v.kinds(chat.CallItem)[0].Data, &c); err != nil || len(c.Diffs) != 1 || c.Diffs[0].Added != 1 || c.Status != "ok" {
		t.Errorf("%+v %v", c, err)
	}
	if u := v.c.Used; u.Input != 10 || u.Output != 5 || len(v.c.Settings.Commands) != 1 || v.c.Settings.Commands[0].Name != "review" {
		t.Errorf("%+v %+v", u, v.c.Settings)
	}
	w.restart()
	w.send("again")
	if v := w.ends(chat.Idle, 2); !strings.HasSuffix(v.text(), "You said: again") || w.box.running() != 1 || len(v.kinds(chat.Notice)) > 0 {
		t.Error(v)
	}
}

// TestTurn_LosesNoByteOver10Restarts restarts sandboxd ten times while 30,000 words come, which are read in odd pieces.
func TestTurn_LosesNoByteOver10Restarts(t *testing.T) {
	const n = 30_000
	w := newWorld(t, chat.Auto)
	w.box.limit = 777
	w.send(fmt.Sprintf("count %d", n))
	want := words(n)
	for i := range 10 {
		w.sees("more", func(v *view) bool { return len(v.text()) > (i+1)*len(want)/12 })
		w.restart()
	}
	v := w.ends(chat.Idle, 1)
	if got := v.text(); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if n := len(v.kinds(chat.Text)); n != 1 {
		t.Errorf("the text is in %d pieces", n)
	}
}

func TestPermission_IsAskedOnceOverARestart(t *testing.T) {
	w := newWorld(t, chat.AskChanges)
	w.send("run rm -rf build")
	a := w.asks()
	if a.Text != "rm -rf build" || len(a.Choices) != 2 || a.Choices[0].Style != "allow" || len(a.Reasons) == 0 {
		t.Errorf("%+v", a)
	}
	<-w.box.left // alone, while a person is asked
	w.restart()
	w.restart()
	again := w.asks()
	if again.ID != a.ID {
		t.Errorf("asked again as %s, was %s", again.ID, a.ID)
	}
	w.answers(a, "Allow")
	v := w.ends(chat.Idle, 1)
	if v.text() != "(selectedonce completed) " || len(v.kinds(chat.Question)) != 1 || len(w.box.runs) != 1 {
		t.Error(v, w.box.runs)
	}
	call := v.kinds(chat.CallItem)
	if len(call) != 1 || call[0].Output != "ran rm -rf build\n" || !strings.Contains(string(call[0].Data), `"title":"Run"`) {
		t.Errorf("%+v", call)
	}
	w.send("run rm -rf all")
	w.answers(w.asks(), "Refuse")
	if v := w.ends(chat.Idle, 2); !strings.HasSuffix(v.text(), "(selectedno failed) ") || len(w.box.runs) != 1 || !strings.Contains(v.String(), `"status":"denied"`) {
		t.Error(v)
	}
}

func TestPermission_FollowsTheMode(t *testing.T) {
	for _, c := range []struct {
		mode chat.Mode
		line string
		asks bool
	}{
		{chat.AskChanges, "ls", true}, {chat.AskRisky, "ls", false}, {chat.AskRisky, "rm -rf /", true}, {chat.AskRisky, "curl x | sh", true}, {chat.Auto, "rm -rf /", false},
	} {
		w := newWorld(t, c.mode)
		w.send("run " + c.line)
		if c.asks {
			w.answers(w.asks(), "Allow")
		}
		if v := w.ends(chat.Idle, 1); len(v.kinds(chat.Question)) > 0 != c.asks || v.text() != "(selectedonce completed) " {
			t.Errorf("%s %s: %s", c.mode, c.line, v)
		}
	}
}

// TestPermission_ForAlwaysIsNotOfferedWhereAllIsAsked has an agent offer to ask no more, which would undo the mode.
func TestPermission_ForAlwaysIsNotOfferedWhereAllIsAsked(t *testing.T) {
	const only = `raw {"id":"p1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c","kind":"delete"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"a","name":"Always","kind":"allow_always"}]}}`
	for _, c := range []struct {
		mode         chat.Mode
		says, styles string
	}{
		{chat.AskChanges, "run rm -rf x", "allow refuse"}, {chat.AskRisky, "run rm -rf x", "always allow refuse"},
		{chat.AskChanges, only, "refuse always"}, // it could not be allowed otherwise
	} {
		w := newWorld(t, c.mode)
		w.send(c.says + "\nhang")
		var styles []string
		for _, choice := range w.asks().Choices {
			styles = append(styles, choice.Style)
		}
		if got := strings.Join(styles, " "); got != c.styles {
			t.Errorf("%s %s: %s, want %s", c.mode, c.says, got, c.styles)
		}
		if err := w.s.Cancel(t.Context(), w.id); err != nil {
			t.Fatal(err)
		}
		w.ends(chat.Idle, 1)
	}
}

func TestForm_IsAskedFieldByField(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("form")
	for i, said := range []string{"Ada", "Large", "Yes", "many", "7"} {
		a := w.asks()
		w.answers(a, said)
		if i == 1 {
			w.restart()
		}
	}
	want := `filled {"action":"accept","content":{"count":7,"name":"Ada","size":"l","tests":true}}`
	if v := w.ends(chat.Idle, 1); v.text() != want {
		t.Error(v)
	}
	w.send("form")
	w.answers(w.asks(), "Don't answer")
	if v := w.ends(chat.Idle, 2); !strings.HasSuffix(v.text(), `{"action":"decline"}`) {
		t.Error(v)
	}
}

func TestCancel_IsObeyedOrEnds(t *testing.T) {
	w := newWorld(t, chat.AskChanges)
	for i, action := range []string{"hang", "deaf", "run x"} {
		w.send("start\n" + action)
		w.sees("it works", func(v *view) bool { return strings.Count(v.text(), "start") == i+1 })
		if action == "run x" {
			w.asks()
		}
		if err := w.s.Cancel(t.Context(), w.id); err != nil {
			t.Fatal(err)
		}
		v := w.ends(chat.Idle, int64(i+1))
		if n := len(v.kinds(chat.Notice)); n < i+1 {
			t.Error(v)
		}
		if action == "deaf" && w.box.running() != 0 {
			t.Error("the deaf program runs on")
		}
	}
	w.send("still there?")
	if v := w.ends(chat.Idle, 4); !strings.HasSuffix(v.text(), "You said: still there?") {
		t.Error(v)
	}
}

func TestLost_IsLoadedOrTold(t *testing.T) {
	for _, loads := range []bool{true, false} {
		w := newWorld(t, chat.AskChanges)
		w.box.loads = loads
		w.send("first")
		w.ends(chat.Idle, 1)
		w.box.stops()
		w.send("second")
		v := w.ends(chat.Idle, 2)
		if honest := strings.Contains(v.String(), "does not remember"); honest == loads || strings.Contains(v.text(), "replayed") || strings.Contains(v.text(), "Person: first") == loads {
			t.Errorf("loads %t: %s", loads, v)
		}
		w.send("start\nhang")
		w.sees("it works", func(v *view) bool { return strings.Contains(v.text(), "start") })
		w.box.stops() // in the middle
		v = w.sees("it is told", func(v *view) bool {
			return v.c.State == chat.Idle || strings.Contains(v.String(), "It is started again")
		})
		if !strings.Contains(v.String(), "The sandbox was stopped") {
			t.Error(v)
		}
		if err := w.s.Cancel(t.Context(), w.id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUndone_IsForgotten(t *testing.T) {
	w := newWorld(t, chat.Auto)
	for i, s := range []string{"first", "second"} {
		w.send(s)
		w.ends(chat.Idle, int64(i+1))
	}
	if err := w.s.Undo(t.Context(), w.id, 2); err != nil {
		t.Fatal(err)
	}
	w.send("third")
	v := w.ends(chat.Idle, 3)
	after := v.text()[strings.Index(v.text(), "second"):]
	if !strings.Contains(after, "Person: first") || strings.Contains(after, "Person: second") {
		t.Error(v)
	}
	b, err := w.s.Branch(t.Context(), w.id, 3)
	if err != nil {
		t.Fatal(err)
	}
	w.id = b.ID
	w.send("elsewhere")
	if v := w.ends(chat.Idle, 2); !strings.Contains(v.text(), "Person: first") || w.box.running() != 2 {
		t.Error(v)
	}
	if err := w.s.Delete(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if err := w.d.Left(t.Context(), b); err != nil || w.box.running() != 1 {
		t.Errorf("%d programs, %v", w.box.running(), err)
	}
}

func TestSettings_AreSetBeforeTheNextTurn(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("mode")
	v := w.ends(chat.Idle, 1)
	if len(v.c.Settings.Options) != 1 || v.c.Settings.Options[0].Value != "code" || v.text() != "mode code" {
		t.Fatalf("%+v %s", v.c.Settings, v)
	}
	var refused error
	if _, err := w.s.Change(t.Context(), w.id, func(c *chat.Conversation) {
		refused = c.Settings.Choose("mode", "none")
		if err := c.Settings.Choose("mode", "plan"); err != nil {
			t.Error(err)
		}
	}); err != nil || refused == nil {
		t.Fatal(err, refused)
	}
	w.send("mode")
	v = w.ends(chat.Idle, 2)
	if o := v.c.Settings.Options[0]; o.Value != "plan" || o.Wanted != "" || !strings.HasSuffix(v.text(), "mode plan") {
		t.Errorf("%+v %s", o, v)
	}
}
