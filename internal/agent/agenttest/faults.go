package agenttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway/gatewaytest"
)

var errStopped = errors.New("stopped by the test")

func cancelling(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

func refusalsAreClassified(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	for _, c := range []struct {
		status int
		body   string
		code   agent.Code
		kind   fault.Kind
	}{
		{401, "", agent.Unauthorized, fault.Forbidden},
		{403, "", agent.Unauthorized, fault.Forbidden},
		{404, "", agent.NotThere, fault.NotFound},
		{400, "", agent.Rejected, fault.Invalid},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, agent.Overflow, fault.TooLarge},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, agent.Overflow, fault.TooLarge},
		{413, "", agent.Overflow, fault.TooLarge},
		{429, "", agent.RateLimited, fault.Limited},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, agent.Rejected, fault.Invalid},
		{500, "", agent.Overloaded, fault.Unavailable},
		{502, `<html>Bad gateway</html>`, agent.Overloaded, fault.Unavailable},
		{529, "", agent.Overloaded, fault.Unavailable},
	} {
		b.Play(gatewaytest.Script{Status: c.status, Body: c.body})
		m := wantCode(t, b.ask(t.Context()).err, c.code)
		if m.Status != c.status || fault.KindOf(m) != c.kind {
			t.Errorf("%d: status %d, kind %v", c.status, m.Status, fault.KindOf(m))
		}
		if strings.Contains(fault.Message(m), "<html>") || !strings.Contains(fault.Message(m), fmt.Sprint(c.status)) {
			t.Errorf("%d: a person reads %q", c.status, fault.Message(m))
		}
	}
}

func retryAfterIsRead(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Status: 429, RetryAfter: 7 * time.Second}, gatewaytest.Script{Status: 503, Header: http.Header{"Retry-After": {"inf"}}})
	m := wantCode(t, b.ask(t.Context()).err, agent.RateLimited)
	if m.Wait != 7*time.Second || fault.RetryAfter(m) != 7*time.Second {
		t.Errorf("wait %v", m.Wait)
	}
	if m = wantCode(t, b.ask(t.Context()).err, agent.Overloaded); m.Wait > 24*time.Hour {
		t.Errorf("wait %v", m.Wait)
	}
}

func finalIsKept(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Status: 429, Header: http.Header{"X-Should-Retry": {"false"}}})
	if m := wantCode(t, b.ask(t.Context()).err, agent.RateLimited); !m.Final {
		t.Error("it may be tried again")
	}
}

func itDoesNotRetry(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Status: 500}, gatewaytest.Script{Status: 429}, gatewaytest.Script{CutAfter: 1})
	for range 3 {
		if a := b.ask(t.Context()); a.err == nil {
			t.Error("no error")
		}
	}
	if n := len(b.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

func aHalfStreamIsBroken(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Text: "one two three four", CutAfter: 2})
	a := b.ask(t.Context())
	wantCode(t, a.err, agent.Broken)
	if a.text != "one two " {
		t.Errorf("kept %q", a.text)
	}
}

func anErrorMidwayIsClassified(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Text: "one two three", CutAfter: 1, Status: 529})
	a := b.ask(t.Context())
	m := wantCode(t, a.err, agent.Overloaded)
	if a.text != "one " || !strings.Contains(fault.Message(m), "the script says so") {
		t.Errorf("%q, %v", a.text, fault.Message(m))
	}
}

func brokenJSONIsTold(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Text: "one two three", BrokenJSON: true})
	wantCode(t, b.ask(t.Context()).err, agent.BadProtocol)
}

func anotherContentTypeIsTold(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{WrongType: true})
	m := wantCode(t, b.ask(t.Context()).err, agent.BadProtocol)
	if said := fault.Message(m); !strings.Contains(said, "text/html") || strings.Contains(said, "Sign in") {
		t.Errorf("a person reads %q", said)
	}
}

func aRedirectIsNotFollowed(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}})
	wantCode(t, b.ask(t.Context()).err, agent.BadProtocol)
}

func noServerIsUnreachable(t *testing.T, d Driver) {
	model := d.Open(transport.Endpoint{BaseURL: "http://127.0.0.1:1", Model: "m"})
	_, err := model.Stream(t.Context(), agent.Request{Messages: []agent.Message{agent.NewText(agent.User, "Hi.")}}, func(agent.Chunk) error { return nil })
	wantCode(t, err, agent.Unreachable)
}

func theirWordsAreShownSafelyAndShort(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Status: 400, Body: `{"error":{"message":"\u001b[31mred\u202e ` + strings.Repeat("long ", 20_000) + `"}}`})
	if said := fault.Message(wantCode(t, b.ask(t.Context()).err, agent.Rejected)); len(said) > 600 || strings.ContainsAny(said, "\x1b\u202e") {
		t.Errorf("%d bytes: %.100q", len(said), said)
	}
}

// aHugeArgumentIsBounded measures what stays in memory, too: a driver passes arguments on, and keeps none.
func aHugeArgumentIsBounded(t *testing.T, d Driver) {
	b := d.bench(t, transport.Timeouts{})
	b.Play(gatewaytest.Script{Calls: []gatewaytest.Call{{Name: "look"}}, HugeArgument: true})
	size, largest := 0, 0
	_, err := b.model.Stream(t.Context(), agent.Request{Messages: []agent.Message{agent.NewText(agent.User, "Hi.")}}, func(c agent.Chunk) error {
		size += len(c.Text)
		largest = max(largest, len(c.Text))
		return nil
	})
	if d.Caps.WholeCalls {
		wantCode(t, err, agent.TooLarge)
		return
	}
	if err != nil || size < 10<<20 || largest > transport.MaxLine {
		t.Errorf("%d bytes, at most %d at once, %v", size, largest, err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB in use after it", m.HeapAlloc>>20)
}
