package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/gateway/gatewaytest"
)

// look is the suite's tool, as a turn has it.
var look = agent.Tool{
	Name: Look.Name, Description: Look.Description, Schema: Look.Schema,
	Run: func(_ context.Context, args json.RawMessage, _ io.Writer) (agent.Output, error) {
		return agent.Output{Text: fmt.Sprintf("seen %s", args)}, nil
	},
}

// turn runs a turn with the suite's tool.
func (b *bench) turn(t *testing.T, messages ...agent.Message) agent.Result {
	t.Helper()
	if len(messages) == 0 {
		messages = []agent.Message{agent.NewText(agent.User, "Hello.")}
	}
	return agent.Run(t.Context(), agent.Turn{Model: b.model, System: "Be brief.", Messages: messages, Tools: []agent.Tool{look}})
}

func wantEnding(t *testing.T, r agent.Result, want agent.Ending) {
	t.Helper()
	if r.Ending != want {
		t.Fatalf("the turn ended %q (%v), want %q", r.Ending, r.Err, want)
	}
}

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

func lastText(r agent.Result) string {
	last := r.Messages[len(r.Messages)-1]
	return last.Parts[len(last.Parts)-1].Text
}

func aTurnWorks(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	call := gatewaytest.Call{Name: "look", Args: map[string]any{"path": "/"}}
	b.Play(gatewaytest.Script{Thinking: "Hm.", Text: "I look.", Calls: []gatewaytest.Call{call, call}}, gatewaytest.Script{For: gatewaytest.AfterResult, Calls: []gatewaytest.Call{call}},
		gatewaytest.Script{For: gatewaytest.AfterResult, Text: "All done."})
	r := b.turn(t)
	wantEnding(t, r, agent.Done)
	if got := results(r.Messages); len(got) != 3 || got[0].Text != `seen {"path":"/"}` || lastText(r) != "All done." || r.Steps != 3 {
		t.Errorf("%d steps, results %+v", r.Steps, got)
	}
	if d.Caps.Signs && !strings.Contains(string(b.Requests()[2].Body), `"signature":"scripted"`) {
		t.Error("the thinking was not given back")
	}
}

func aTurnEndsAnEndlessAnswer(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Endless: true})
	r := agent.Run(t.Context(), agent.Turn{Model: b.model, Messages: []agent.Message{agent.NewText(agent.User, "Hello.")}, Limits: agent.Limits{Tokens: 10_000}})
	wantEnding(t, r, agent.TokenLimit)
	if n := len(lastText(r)); n > 41_000 || n < 20_000 {
		t.Errorf("kept %d bytes", n)
	}
	b.AwaitLeft(1)
}

func aTurnRefusesAHugeArgument(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Calls: []gatewaytest.Call{{Name: "look"}}, HugeArgument: true}, gatewaytest.Script{Text: "I will be brief."})
	r := b.turn(t)
	wantEnding(t, r, agent.Done)
	data, err := json.Marshal(r.Messages)
	if err != nil || len(data) > 10_000 {
		t.Errorf("the transcript has %d bytes: %v", len(data), err)
	}
	if said := string(b.Requests()[1].Body); len(said) > 10_000 || !strings.Contains(said, "smaller") {
		t.Errorf("the model was told %.2000s", said)
	}
}

func aTurnThatIsCutCanBeContinued(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Text: "one two three four", CutAfter: 2}, gatewaytest.Script{Text: "three four"})
	messages := []agent.Message{agent.NewText(agent.User, "Count.")}
	r := b.turn(t, messages...)
	wantEnding(t, r, agent.Failed)
	wantCode(t, r.Err, agent.Broken)
	if lastText(r) != "one two " {
		t.Errorf("kept %q", lastText(r))
	}
	r = b.turn(t, append(messages, r.Messages...)...)
	wantEnding(t, r, agent.Done)
	if body := string(b.Requests()[1].Body); !strings.Contains(body, "one two") || !strings.Contains(body, "Continue") {
		t.Errorf("the model was asked %s", body)
	}
}

func aTurnShortensWhatIsTooLong(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	tooLong := gatewaytest.Script{Status: 400, Body: `{"error":{"message":"prompt is too long: 90000 tokens > 50000 maximum"}}`}
	b.Play(tooLong, gatewaytest.Script{Text: "They talked about the letter x."}, gatewaytest.Script{Text: "Fine."})
	var messages []agent.Message
	for range 20 {
		messages = append(messages, agent.NewText(agent.User, strings.Repeat("x ", 2000)), agent.NewText(agent.Assistant, strings.Repeat("y ", 2000)))
	}
	r := b.turn(t, append(messages, agent.NewText(agent.User, "And now?"))...)
	wantEnding(t, r, agent.Done)
	last := string(b.Requests()[2].Body)
	if !strings.Contains(last, "They talked about the letter x.") || len(last) > len(b.Requests()[0].Body)/2 {
		t.Errorf("%d bytes after %d", len(last), len(b.Requests()[0].Body))
	}
}

func cutCallsAreNotMade(t *testing.T, d Driver) {
	if d.Caps.WholeCalls {
		return // there is no part of a call
	}
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Calls: []gatewaytest.Call{{Name: "look", Args: map[string]any{"path": strings.Repeat("/tmp", 20)}}}, CutAfter: 2})
	r := b.turn(t)
	wantEnding(t, r, agent.Failed)
	if got := results(r.Messages); len(got) != 1 || got[0].Status != agent.Stopped {
		t.Errorf("results %+v", got)
	}
}

func unknownToolsAreAnswered(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Calls: []gatewaytest.Call{{Name: "rm -rf /"}, {Name: "look", Args: map[string]any{"path": "/"}}}}, gatewaytest.Script{For: gatewaytest.AfterResult, Text: "Sorry."})
	r := b.turn(t)
	wantEnding(t, r, agent.Done)
	if got := results(r.Messages); len(got) != 2 || got[0].Status != agent.Error || !strings.Contains(got[0].Text, "the tools are: look") || got[1].Status != agent.OK {
		t.Errorf("results %+v", got)
	}
}
