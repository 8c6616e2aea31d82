package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/chat/loop"
	"sandboxd/internal/fault"
	"sandboxd/internal/tools"
	"sandboxd/internal/tools/risk"
)

const patience = time.Minute

// world is a conversation with the loop, a scripted model and a few tools.
type world struct {
	t     *testing.T
	model *scripted.Model
	s     *chat.Service
	id    string
	mu    sync.Mutex
	ran   []string
	taken int
}

// Take implements chat.Checkpoints.
func (w *world) Take(context.Context, string, string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken++
	return fmt.Sprintf("snap-%d", w.taken), nil
}

// Restore implements chat.Checkpoints.
func (w *world) Restore(context.Context, string, string) (string, error) { return "", nil }

func (w *world) tool(name string, changes bool, level risk.Level) tools.Tool {
	return tools.Tool{
		Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`), Changes: changes,
		Preview: func(args json.RawMessage) tools.Preview {
			return tools.Preview{Title: "Do " + name, Code: string(args), Risk: risk.Judgement{Level: level}}
		},
		Run: func(_ context.Context, _ json.RawMessage, out io.Writer) (tools.Result, error) {
			w.mu.Lock()
			w.ran = append(w.ran, name)
			w.mu.Unlock()
			fmt.Fprintf(out, "live output of %s\n", name)
			code := 3
			return tools.Result{Text: "result of " + name, Data: tools.Data{Exit: &code, Files: []tools.Change{{Path: "/a", Diff: "+b", Added: 1}}}}, nil
		},
	}
}

func (w *world) table(_ context.Context, _ chat.Conversation, ask loop.Ask) ([]tools.Tool, error) {
	question := tools.Tool{Name: "ask_person", Schema: json.RawMessage(`{"type":"object"}`), Run: func(ctx context.Context, _ json.RawMessage, _ io.Writer) (tools.Result, error) {
		a, err := ask(ctx, tools.Question{Text: "Tea or coffee?", Choices: []string{"tea", "coffee"}})
		return tools.Result{Text: "They want " + a.Choice + a.Text}, err
	}}
	return []tools.Tool{w.tool("look", false, risk.Harmless), w.tool("change", true, risk.Changing), w.tool("destroy", true, risk.Risky), question}, nil
}

func newWorld(t *testing.T, mode chat.Mode, steps ...scripted.Step) *world {
	w := &world{t: t, model: scripted.New(steps...)}
	w.start(mode, loop.Config{
		Model: func(context.Context, chat.Conversation) (loop.Model, error) {
			return loop.Model{Model: w.model, Window: 1000_000, Price: func(u agent.Usage) (int64, bool) { return u.Total(), true }}, nil
		},
		Tools: w.table,
	})
	return w
}

func (w *world) start(mode chat.Mode, c loop.Config) {
	driver := loop.New(c)
	w.s = chat.New(chat.Config{Store: chattest.NewStore(), Checkpoints: w, Log: slog.New(slog.DiscardHandler),
		Drivers: func(string) (chat.Driver, error) { return driver, nil }})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.s.Run(ctx) }) // nil always
	w.t.Cleanup(func() { cancel(); running.Wait() })
	made, err := w.s.Create(w.t.Context(), chat.Conversation{Sandbox: "box", Owner: "ada", Agent: "sandboxd", Mode: mode})
	if err != nil {
		w.t.Fatal(err)
	}
	w.id = made.ID
}

func (w *world) send(text string) {
	w.t.Helper()
	if _, err := w.s.Send(w.t.Context(), w.id, chat.Queued{User: "ada", Text: text}); err != nil {
		w.t.Fatal(err)
	}
}

// until waits until the conversation is as is says, and gives it.
func (w *world) until(what string, is func(v chat.View) bool) chat.View {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var v chat.View
	seen := errors.New("seen")
	err := w.s.Follow(ctx, w.id, 0, func(chat.Change) error {
		var err error
		if v, err = w.s.View(ctx, w.id, chat.ItemQuery{}); err == nil && is(v) {
			return seen
		}
		return err
	})
	if err != seen {
		w.t.Fatalf("%s: %v\n%s", what, err, shown(v))
	}
	return v
}

func (w *world) ends(state chat.State) chat.View {
	w.t.Helper()
	return w.until(string(state), func(v chat.View) bool {
		return v.Conversation.State == state && v.Conversation.Turn > 0 && len(v.Queue) == 0
	})
}

func shown(v chat.View) string {
	var b strings.Builder
	for _, it := range v.Items {
		switch it.Kind {
		case chat.Record:
			continue
		case chat.CallItem:
			var c chat.Call
			_ = json.Unmarshal(it.Data, &c) // it is shown empty then
			fmt.Fprintf(&b, "call %s %s %q > %q\n", c.Tool, c.Status, c.Result, it.Output)
		case chat.Question:
			var a chat.Ask
			_ = json.Unmarshal(it.Data, &a) // it is shown empty then
			fmt.Fprintf(&b, "question %s: %s = %s\n", a.Title, a.Text, a.Answer)
		default:
			fmt.Fprintf(&b, "%s %s\n", it.Kind, it.Text)
		}
	}
	return b.String()
}

func TestTurn_RunsToolsAndShowsThem(t *testing.T) {
	w := newWorld(t, chat.AskRisky,
		scripted.Step{Thinking: "Hm", Text: "I look first.", Calls: []scripted.Call{scripted.Use("look", map[string]int{"a": 1})}},
		scripted.Step{Calls: []scripted.Call{scripted.Use("change", map[string]int{"b": 2})}},
		scripted.Step{Text: "Done.", Usage: agent.Usage{Input: 10, Output: 5, CacheRead: 3}})
	w.send("go")
	v := w.ends(chat.Idle)
	want := "message go\nthinking Hm\ntext I look first.\ncall look ok \"result of look\" > \"live output of look\\n\"\n" +
		"call change ok \"result of change\" > \"live output of change\\n\"\ncheckpoint \ntext Done.\n"
	if got := shown(v); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if u := v.Conversation.Used; u.Input < 10 || u.Output < 5 || u.Cached != 3 || u.Cost == 0 || u.Unpriced || u.Window != 1000_000 {
		t.Errorf("used %+v", u)
	}
	w.send("more")
	w.until("the second turn", func(v chat.View) bool { return v.Conversation.Turn == 2 && v.Conversation.State == chat.Idle })
	requests := w.model.Requests()
	last := requests[len(requests)-1].Messages
	if len(last) != 7 || last[0].Parts[0].Text != "go" || last[6].Parts[len(last[6].Parts)-1].Text != "more" {
		t.Errorf("the model was told %d messages: %+v", len(last), last)
	}
}

func TestPermit_AsksAsTheModeSays(t *testing.T) {
	for _, c := range []struct {
		mode chat.Mode
		tool string
		asks bool
	}{
		{chat.AskChanges, "look", false}, {chat.AskChanges, "change", true}, {chat.AskChanges, "destroy", true},
		{chat.AskRisky, "change", false}, {chat.AskRisky, "destroy", true}, {chat.Auto, "destroy", false},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newWorld(t, c.mode, scripted.Step{Calls: []scripted.Call{scripted.Use(c.tool, struct{}{})}}, scripted.Step{Text: "End."})
			w.send("go")
			v := w.until("it asks or ends", func(v chat.View) bool { return v.Conversation.State != chat.Working && v.Conversation.Turn == 1 })
			if asks := v.Conversation.State == chat.Asking; asks != c.asks {
				t.Errorf("asks: %v\n%s", asks, shown(v))
			}
		})
	}
}

// answers answers the open question, and gives it.
func (w *world) answers(v chat.View, answer string) (a chat.Ask) {
	w.t.Helper()
	for _, it := range v.Items {
		if it.Kind == chat.Question && it.Open {
			if err := json.Unmarshal(it.Data, &a); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if err := w.s.Answer(w.t.Context(), w.id, a.ID, answer, "ada"); err != nil {
		w.t.Fatal(err)
	}
	return a
}

func TestPermit_ARefusalIsToldToTheModel(t *testing.T) {
	w := newWorld(t, chat.AskChanges, scripted.Step{Calls: []scripted.Call{scripted.Use("destroy", map[string]string{"what": "all"})}}, scripted.Step{Text: "Then not."})
	w.send("go")
	a := w.answers(w.ends(chat.Asking), "refuse")
	if a.Text != `{"what":"all"}` || a.Title != "Do destroy" {
		t.Errorf("it asks %+v", a)
	}
	got := shown(w.ends(chat.Idle))
	if !strings.Contains(got, "call destroy denied") || !strings.HasSuffix(got, "text Then not.\n") || len(w.ran) > 0 || w.taken > 0 {
		t.Errorf("ran %v, %d checkpoints\n%s", w.ran, w.taken, got)
	}
}

func TestTools_AskThePerson(t *testing.T) {
	for answer, want := range map[string]string{"tea": "They want tea", "water, please": "They want water, please"} {
		w := newWorld(t, chat.Auto, scripted.Step{Calls: []scripted.Call{scripted.Use("ask_person", struct{}{})}}, scripted.Step{Text: "Here."})
		w.send("serve")
		w.answers(w.ends(chat.Asking), answer)
		if got := shown(w.ends(chat.Idle)); !strings.Contains(got, want) {
			t.Errorf("got\n%s", got)
		}
	}
}

func TestFailure_OfTheProviderCanBeResumed(t *testing.T) {
	w := newWorld(t, chat.Auto,
		scripted.Step{Text: "Half of", Err: agent.Failure(agent.Broken, nil, "The answer ended in its middle.")},
		scripted.Step{Text: "the rest."})
	w.send("go")
	v := w.ends(chat.Failed)
	if v.Conversation.Problem != "The answer ended in its middle." {
		t.Errorf("it says %q", v.Conversation.Problem)
	}
	if err := w.s.Resume(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if got := shown(w.ends(chat.Idle)); got != "message go\ntext Half of\ntext the rest.\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestDemo_ShowsThePaneWithoutAProvider(t *testing.T) {
	w := &world{t: t}
	w.start(chat.Auto, loop.Config{Model: func(context.Context, chat.Conversation) (loop.Model, error) { return loop.Demo(), nil },
		Tools: func(context.Context, chat.Conversation, loop.Ask) ([]tools.Tool, error) {
			return []tools.Tool{w.tool("run_command", true, risk.Changing), w.tool("write_file", true, risk.Changing)}, nil
		}})
	w.send("Show me")
	got := shown(w.ends(chat.Idle))
	if strings.Count(got, "call run_command ok") != 2 || strings.Count(got, "call write_file ok") != 1 || !strings.Contains(got, "That is all.") {
		t.Errorf("got\n%s", got)
	}
	w.send("And now?")
	v := w.until("the second turn", func(v chat.View) bool { return v.Conversation.Turn == 2 && v.Conversation.State == chat.Idle })
	if got := shown(v); !strings.Contains(got, "I am only a demonstration") {
		t.Errorf("got\n%s", got)
	}
}

func TestLimit_IsSaidAndCanBeResumed(t *testing.T) {
	w := &world{t: t, model: scripted.New(scripted.Step{Calls: []scripted.Call{scripted.Use("look", struct{}{})}}, scripted.Step{Text: "Rest."})}
	w.start(chat.Auto, loop.Config{Tools: w.table, Limits: agent.Limits{Steps: 1},
		Model: func(context.Context, chat.Conversation) (loop.Model, error) { return loop.Model{Model: w.model}, nil }})
	w.send("go")
	if v := w.ends(chat.Failed); !strings.Contains(v.Conversation.Problem, "limit of steps") || !strings.Contains(v.Conversation.Problem, "--turn-steps") || !v.Conversation.Used.Unpriced {
		t.Errorf("it says %q", v.Conversation.Problem)
	}
	if err := w.s.Resume(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if got := shown(w.ends(chat.Idle)); !strings.HasSuffix(got, "text Rest.\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestModel_ThatThereIsNoneIsSaid(t *testing.T) {
	w := &world{t: t}
	w.start(chat.Auto, loop.Config{Model: func(context.Context, chat.Conversation) (loop.Model, error) {
		return loop.Model{}, fault.New(fault.NotFound, "Add a provider under Settings, Models.")
	}})
	w.send("go")
	if v := w.ends(chat.Failed); v.Conversation.Problem != "Add a provider under Settings, Models." {
		t.Errorf("it says %q", v.Conversation.Problem)
	}
}
