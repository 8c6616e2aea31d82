package agenttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

func answersAreStreamed(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Thinking: "I think so.", Text: "Grüße from 東京 <&>."})
	a := b.ask(t.Context())
	if a.err != nil || a.text != "Grüße from 東京 <&>." || a.thinking != "I think so." || a.chunks < 6 || a.finish.Stop != agent.StopEnd {
		t.Errorf("%d chunks: %q, %q, %+v, %v", a.chunks, a.thinking, a.text, a.finish, a.err)
	}
	if signed := len(a.opaque) == 1 && a.opaque[0].Signature == "scripted"; signed != d.Caps.Signs {
		t.Errorf("opaque %+v", a.opaque)
	}
	q := b.Requests()[0]
	if !q.Stream || q.Model != "scripted-1" || len(q.Tools) != 1 || q.Tools[0] != "look" || !strings.Contains(string(q.Body), "Be brief.") {
		t.Errorf("the provider got %s", q.Body)
	}
}

func callsAreTold(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Text: "Let me look.", Calls: []gatewaytest.Call{{Name: "look", Args: map[string]any{"path": "/tmp/ä b", "n": 3}}}})
	a := b.ask(t.Context())
	var args map[string]any
	if err := json.Unmarshal([]byte(a.arguments[firstOf(a.names)]), &args); err != nil || a.err != nil || len(a.names) != 1 {
		t.Fatalf("%+v: %v, %v", a, err, a.err)
	}
	if args["path"] != "/tmp/ä b" || args["n"] != 3.0 || a.names[firstOf(a.names)] != "look" || a.ids[firstOf(a.ids)] == "" {
		t.Errorf("%+v", a)
	}
}

func firstOf(m map[int]string) int {
	first := -1
	for i := range m {
		if first < 0 || i < first {
			first = i
		}
	}
	return first
}

func manyCallsStayApart(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	var calls []gatewaytest.Call
	for i := range 12 {
		calls = append(calls, gatewaytest.Call{Name: "look", Args: map[string]any{"path": fmt.Sprintf("/file/%d", i)}})
	}
	b.Play(gatewaytest.Script{Calls: calls})
	a := b.ask(t.Context())
	seen := map[string]bool{}
	for _, args := range a.arguments {
		if !json.Valid([]byte(args)) {
			t.Errorf("arguments %q", args)
		}
		seen[args] = true
	}
	if a.err != nil || len(a.names) != 12 || len(seen) != 12 {
		t.Errorf("%d calls, %d different: %v", len(a.names), len(seen), a.err)
	}
}

// spoken is a transcript with all that there can be in one, of this provider and of others.
func spoken(by string) []agent.Message {
	call := func(id string) agent.Part {
		return agent.Part{Kind: agent.PartCall, Call: &agent.Call{ID: id, Name: "look", Arguments: json.RawMessage(`{"path":"/"}`)}}
	}
	result := func(id string, status agent.Status) agent.Part {
		return agent.Part{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: id, Status: status, Text: "bin etc"}}
	}
	text := func(s string) agent.Part { return agent.Part{Kind: agent.PartText, Text: s} }
	return agent.View(agent.Repair([]agent.Message{
		agent.NewText(agent.User, "Look."),
		{ID: "a", Role: agent.Assistant, Parts: []agent.Part{
			{Kind: agent.PartThinking, Text: "Mine.", Opaque: &agent.Opaque{By: by, Signature: "scripted"}},
			{Kind: agent.PartThinking, Text: "Another's.", Opaque: &agent.Opaque{By: "another", Signature: "theirs"}},
			{Kind: agent.PartThinking, Text: "Unsigned."}, text("I look."), call("call_1"), call("call_2"),
		}},
		{ID: "b", Role: agent.User, Parts: []agent.Part{result("call_1", agent.OK), result("call_2", agent.Denied), text("And hurry.")}},
		{ID: "c", Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartThinking, Text: "Only a thought."}}},
		agent.NewText(agent.User, "Well?"),
		{ID: "d", Role: agent.Assistant, Parts: []agent.Part{call("call_3")}},
	}), false)
}

func aTranscriptIsAccepted(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{For: gatewaytest.AfterResult, Text: "Done."})
	a := b.ask(t.Context(), spoken(string(d.Kind))...)
	if a.err != nil || a.text != "Done." {
		t.Fatalf("%q, %v", a.text, a.err)
	}
	body := string(b.Requests()[0].Body)
	for _, want := range []string{"I look.", "bin etc", "And hurry.", "interrupted"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in %s", want, body)
		}
	}
	if strings.Contains(body, "Another's.") || strings.Contains(body, "theirs") {
		t.Errorf("it got another provider's thinking: %s", body)
	}
}

func usageIsTold(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Usage: &gateway.Tokens{Input: 100, Output: 30, CacheRead: 50}}, gatewaytest.Script{NoUsage: true})
	u := b.ask(t.Context()).finish.Usage
	if u.Context() != 150 || u.Output != 30 || d.Caps.CachesTokens && u.CacheRead != 50 {
		t.Errorf("usage %+v", u)
	}
	if a := b.ask(t.Context()); a.err != nil || a.finish.Usage.Context() != 0 {
		t.Errorf("without: %+v, %v", a.finish, a.err)
	}
}

func picturesAreSent(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	png := agent.Image{MediaType: "image/png", Data: []byte("\x89PNG-one")}
	jpeg := agent.Image{MediaType: "image/jpeg", Data: []byte("\xff\xd8jpeg-two")}
	a := b.ask(t.Context(),
		agent.Message{ID: "a", Role: agent.User, Parts: []agent.Part{{Kind: agent.PartText, Text: "See."}, {Kind: agent.PartImage, Image: &png}}},
		agent.Message{ID: "b", Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartCall, Call: &agent.Call{ID: "c1", Name: "look", Arguments: json.RawMessage(`{}`)}}}},
		agent.Message{ID: "c", Role: agent.User, Parts: []agent.Part{{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: "c1", Status: agent.OK, Images: []agent.Image{jpeg}}}}},
	)
	body := string(b.Requests()[0].Body)
	if a.err != nil || !strings.Contains(body, "iVBORy1vbmU") && !strings.Contains(body, "iVBOR") || !strings.Contains(body, "/9hqcGVnLXR3bw==") {
		t.Errorf("%v: %s", a.err, body)
	}
}

func brokenArgumentsComeAsTheyAre(t *testing.T, d Driver) {
	if d.Caps.WholeCalls {
		return // broken JSON there breaks the line, which another test sees
	}
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Calls: []gatewaytest.Call{{Name: "look", Args: `{"path": "/tmp", oops`}}})
	if a := b.ask(t.Context()); a.err != nil || a.arguments[firstOf(a.names)] != `{"path": "/tmp", oops` {
		t.Errorf("%+v, %v", a.arguments, a.err)
	}
}

func cancelEndsIt(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	gate := make(chan struct{})
	b.Play(gatewaytest.Script{Text: "one two three", Gate: gate})
	ctx, cancel := cancelling(t)
	a := &answer{}
	var err error
	_, err = b.model.Stream(ctx, agent.Request{Messages: []agent.Message{agent.NewText(agent.User, "Hi.")}}, func(c agent.Chunk) error {
		cancel(errStopped)
		return a.take(c)
	})
	if err != errStopped {
		t.Errorf("it ended with %v", err)
	}
	b.AwaitLeft(1)
	close(gate)
}

func emitCanEndIt(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Endless: true})
	_, err := b.model.Stream(t.Context(), agent.Request{Messages: []agent.Message{agent.NewText(agent.User, "Hi.")}}, func(agent.Chunk) error { return errStopped })
	if err != errStopped {
		t.Errorf("it ended with %v", err)
	}
	b.AwaitLeft(1)
}

func silenceBeforeAndWithinEnds(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{FirstByte: 50 * time.Millisecond, Silence: long})
	b.Play(gatewaytest.Script{Hang: true})
	wantCode(t, b.ask(t.Context()).err, agent.NoAnswer)
	b = d.bench(t, transport.Timeouts{FirstByte: long, Silence: 50 * time.Millisecond})
	b.Play(gatewaytest.Script{Text: "one two three", Gate: make(chan struct{})})
	a := b.ask(t.Context())
	wantCode(t, a.err, agent.Silent)
	if a.text != "one " {
		t.Errorf("kept %q", a.text)
	}
}
