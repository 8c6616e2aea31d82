package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
	"sandboxd/internal/fault"
)

// recorder keeps events, and checks that Fold makes of them what Run returns.
type recorder struct {
	mu     sync.Mutex
	events []agent.Event
}

func (r *recorder) sink(e agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) kinds() string {
	var all []string
	for _, e := range r.events {
		if n := len(all); n > 0 && all[n-1] == string(e.Kind) {
			continue
		}
		all = append(all, string(e.Kind))
	}
	return strings.Join(all, " ")
}

// text is what all events of a kind say.
func (r *recorder) text(kind agent.EventKind) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		if e.Kind == kind {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// play runs a turn and checks what is true of every one.
func play(t *testing.T, ctx context.Context, turn agent.Turn) (agent.Result, *recorder) {
	t.Helper()
	if turn.Messages == nil {
		turn.Messages = []agent.Message{agent.NewText(agent.User, "Hello.")}
	}
	rec := &recorder{}
	turn.Sink = rec.sink
	result := agent.Run(ctx, turn)
	all := append(append([]agent.Message(nil), turn.Messages...), result.Messages...)
	if diff := cmp.Diff(wire(t, agent.Repair(all)), wire(t, all)); diff != "" {
		t.Errorf("the transcript needs repair: %s", diff)
	}
	if diff := cmp.Diff(wire(t, all), wire(t, agent.Fold(turn.Messages, rec.events...))); diff != "" {
		t.Errorf("the events do not make the transcript: %s", diff)
	}
	valid(t, agent.View(all, false))
	return result, rec
}

// wire gives messages as they are stored.
func wire(t testing.TB, messages []agent.Message) string {
	t.Helper()
	data, err := json.MarshalIndent(messages, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tool makes one that does f.
func tool(name string, changes bool, f func(ctx context.Context, args map[string]any, out io.Writer) (agent.Output, error)) agent.Tool {
	return agent.Tool{
		Name: name, Description: "Does " + name + ".", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`), Changes: changes,
		Run: func(ctx context.Context, raw json.RawMessage, out io.Writer) (agent.Output, error) {
			var args map[string]any
			if err := json.Unmarshal(raw, &args); err != nil {
				return agent.Output{}, err
			}
			return f(ctx, args, out)
		},
	}
}

// echo gives its arguments back.
func echo(name string, changes bool) agent.Tool {
	return tool(name, changes, func(_ context.Context, args map[string]any, out io.Writer) (agent.Output, error) {
		fmt.Fprintf(out, "live %v", args["x"])
		return agent.Output{Text: fmt.Sprintf("%s: %v", name, args["x"])}, nil
	})
}

func use(name, x string) scripted.Call { return scripted.Use(name, map[string]string{"x": x}) }

// results gives the results in messages.
func results(messages []agent.Message) []*agent.ToolResult {
	var all []*agent.ToolResult
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Kind == agent.PartResult {
				all = append(all, p.Result)
			}
		}
	}
	return all
}

func wantEnding(t *testing.T, r agent.Result, want agent.Ending) {
	t.Helper()
	if r.Ending != want {
		t.Fatalf("the turn ended %q (%v), want %q", r.Ending, r.Err, want)
	}
}

func TestRun_StreamsRunsToolsAndGivesTheirResultsBack(t *testing.T) {
	model := scripted.New(
		scripted.Step{Thinking: "I look.", Text: "Let me see.", Calls: []scripted.Call{use("look", "a")}, Usage: agent.Usage{Input: 100, Output: 20}},
		scripted.Step{Text: "It is fine.", Usage: agent.Usage{Input: 150, Output: 10, CacheRead: 50}},
	)
	result, rec := play(t, t.Context(), agent.Turn{
		Model: model, System: "Be brief.", Tools: []agent.Tool{echo("look", false)},
		Price: func(u agent.Usage) (int64, bool) { return u.Total(), true },
	})
	wantEnding(t, result, agent.Done)
	if want := "step thinking text call call_arguments usage call_done message tool tool_output tool_done message step text usage message"; rec.kinds() != want {
		// The usage of a step may be told before or after its calls are complete.
		if rec.kinds() != strings.Replace(want, "usage call_done message tool", "call_done usage message tool", 1) {
			t.Errorf("events: %s", rec.kinds())
		}
	}
	if result.Steps != 2 || result.Usage.Total() != 330 || result.Cost != 330 || !result.Priced {
		t.Errorf("steps %d, usage %+v, cost %d", result.Steps, result.Usage, result.Cost)
	}
	last := model.Requests()[1]
	if n := len(last.Messages); n != 3 || last.Messages[2].Parts[0].Result.Text != "look: a" || last.System != "Be brief." || last.Tools[0].Name != "look" {
		t.Errorf("the model was asked %s", wire(t, last.Messages))
	}
	if rec.text(agent.ToolOutput) != "live a" || rec.text(agent.ThinkingDelta) != "I look." || rec.text(agent.CallDelta) != `{"x":"a"}` {
		t.Errorf("streamed: %+v", rec.events)
	}
}

func TestRun_ReadsTogetherAndChangesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		slow := func(name string, changes bool) agent.Tool {
			return tool(name, changes, func(_ context.Context, args map[string]any, _ io.Writer) (agent.Output, error) {
				mu.Lock()
				log = append(log, fmt.Sprint("+", args["x"]))
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				log = append(log, fmt.Sprint("-", args["x"]))
				mu.Unlock()
				return agent.Output{Text: fmt.Sprint(args["x"])}, nil
			})
		}
		start := time.Now()
		result, _ := play(t, t.Context(), agent.Turn{
			Model: scripted.New(scripted.Step{Calls: []scripted.Call{use("read", "1"), use("read", "2"), use("write", "3"), use("write", "4"), use("read", "5")}}),
			Tools: []agent.Tool{slow("read", false), slow("write", true)},
		})
		wantEnding(t, result, agent.Done)
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := strings.Join(log[4:], ""); got != "+3-3+4-4+5-5" {
			t.Errorf("order: %v", log)
		}
		var order string
		for _, r := range results(result.Messages) {
			order += r.Text
		}
		if order != "12345" {
			t.Errorf("results: %s", order)
		}
	})
}

func TestRun_AsksBeforeEachCallAndTellsOfRefusals(t *testing.T) {
	var asked []string
	permit := func(_ context.Context, call agent.Call, tool agent.Tool) (agent.Decision, error) {
		asked = append(asked, call.Name+string(call.Arguments))
		return agent.Decision{Allow: !tool.Changes, Reason: "Not this file."}, nil
	}
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("look", "1"), use("write", "2")}}, scripted.Step{Text: "I see."})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Permit: permit, Tools: []agent.Tool{echo("look", false), echo("write", true)}})
	wantEnding(t, result, agent.Done)
	if got := strings.Join(asked, " "); got != `look{"x":"1"} write{"x":"2"}` {
		t.Errorf("asked %s", got)
	}
	denied := results(result.Messages)[1]
	if denied.Status != agent.Denied || !strings.Contains(denied.Text, "They say: Not this file.") {
		t.Errorf("result %+v", denied)
	}
}

func TestRun_ARefusalCanEndTheTurn(t *testing.T) {
	permit := func(context.Context, agent.Call, agent.Tool) (agent.Decision, error) {
		return agent.Decision{End: true}, nil
	}
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("write", "1"), use("write", "2")}})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Permit: permit, Tools: []agent.Tool{echo("write", true)}})
	wantEnding(t, result, agent.Refused)
	if r := results(result.Messages); r[0].Status != agent.Denied || r[1].Status != agent.Stopped {
		t.Errorf("results %+v %+v", r[0], r[1])
	}
}

func TestRun_APermissionThatFailsFailsTheTurn(t *testing.T) {
	permit := func(context.Context, agent.Call, agent.Tool) (agent.Decision, error) {
		return agent.Decision{}, io.ErrClosedPipe
	}
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("write", "1")}})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Permit: permit, Tools: []agent.Tool{echo("write", true)}})
	wantEnding(t, result, agent.Failed)
	if !errors.Is(result.Err, io.ErrClosedPipe) {
		t.Errorf("error %v", result.Err)
	}
}

func TestRun_CancelKeepsWhatWasStreamed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gate := make(chan struct{})
	model := scripted.New(scripted.Step{Text: "Once upon a", Calls: []scripted.Call{use("write", "1")}, Gate: gate})
	turn := agent.Turn{Model: model, Tools: []agent.Tool{echo("write", true)}, Messages: []agent.Message{agent.NewText(agent.User, "Tell.")}}
	turn.Sink = func(e agent.Event) {
		if e.Kind == agent.CallDelta {
			cancel()
		}
	}
	result := agent.Run(ctx, turn)
	wantEnding(t, result, agent.Cancelled)
	if got := result.Messages[0].Parts[0].Text; got != "Once upon a" {
		t.Errorf("kept %q", got)
	}
	if r := results(result.Messages); len(r) != 1 || r[0].Status != agent.Stopped {
		t.Errorf("results %+v", r)
	}
}

func TestRun_CancelEndsToolsAndKeepsTheirOutput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := tool("wait", true, func(ctx context.Context, _ map[string]any, out io.Writer) (agent.Output, error) {
		fmt.Fprint(out, "half done")
		cancel()
		<-ctx.Done()
		return agent.Output{}, ctx.Err()
	})
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("wait", "1"), use("wait", "2")}})
	result, _ := play(t, ctx, agent.Turn{Model: model, Tools: []agent.Tool{wait}})
	wantEnding(t, result, agent.Cancelled)
	r := results(result.Messages)
	if r[0].Status != agent.Stopped || !strings.HasPrefix(r[0].Text, "half done") || r[1].Status != agent.Stopped {
		t.Errorf("results %+v %+v", r[0], r[1])
	}
}

func TestRun_APartialAnswerIsContinued(t *testing.T) {
	model := scripted.New(scripted.Step{Text: "Half an"}, scripted.Step{Text: "answer."})
	first, _ := play(t, t.Context(), agent.Turn{Model: model, Limits: agent.Limits{Steps: 1}})
	again, _ := play(t, t.Context(), agent.Turn{Model: model, Messages: append([]agent.Message{agent.NewText(agent.User, "Hi.")}, first.Messages...)})
	wantEnding(t, again, agent.Done)
	if m := again.Messages[0]; !m.Auto || m.Role != agent.User || !strings.Contains(m.Parts[0].Text, "Continue") {
		t.Errorf("the loop said %+v", m)
	}
}

func TestRun_AToolsErrorAndPanicBecomeResults(t *testing.T) {
	var reported []error
	tools := []agent.Tool{
		tool("fail", false, func(context.Context, map[string]any, io.Writer) (agent.Output, error) {
			return agent.Output{}, fault.New(fault.Conflict, "The sandbox is stopped.")
		}),
		tool("secret", false, func(context.Context, map[string]any, io.Writer) (agent.Output, error) {
			return agent.Output{}, errors.New("open /internal/path")
		}),
		tool("panic", false, func(context.Context, map[string]any, io.Writer) (agent.Output, error) { panic("oh no") }),
	}
	var mu sync.Mutex
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("fail", "1"), use("secret", "2"), use("panic", "3")}})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: tools, Report: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, err)
	}})
	wantEnding(t, result, agent.Done)
	r := results(result.Messages)
	if r[0].Text != "The sandbox is stopped." || r[0].Status != agent.Error {
		t.Errorf("result %+v", r[0])
	}
	if strings.Contains(r[1].Text, "internal/path") || strings.Contains(r[2].Text, "oh no") || len(reported) != 3 {
		t.Errorf("results %+v %+v, reported %v", r[1], r[2], reported)
	}
}

func TestRun_PicturesInResultsAreBounded(t *testing.T) {
	png := picture(t, 2, 2)
	shots := tool("shots", false, func(context.Context, map[string]any, io.Writer) (agent.Output, error) {
		images := []agent.Image{{MediaType: "text/html", Data: []byte("x")}, {MediaType: "image/png", Data: make([]byte, 6<<20)}}
		for range 12 {
			images = append(images, png)
		}
		return agent.Output{Images: images}, nil
	})
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("shots", "1")}})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{shots}, NoImages: true})
	r := results(result.Messages)[0]
	if len(r.Images) != 8 || strings.Count(r.Text, "left out") != 6 {
		t.Errorf("%d pictures, %s", len(r.Images), r.Text)
	}
	if sent := model.Requests()[1].Messages[2].Parts[0].Result; len(sent.Images) != 0 || !strings.Contains(sent.Text, "you cannot see pictures") {
		t.Errorf("a model without eyes got %+v", sent)
	}
}
