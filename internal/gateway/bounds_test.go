package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

const streamed = `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`

// open starts a stream, and reads its first line.
func (c *client) open(ctx context.Context, header ...string) (*http.Response, *bufio.Reader) {
	c.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(c.request("POST /v1/messages", streamed, header...).WithContext(ctx))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = res.Body.Close() }) // it was read as far as the test wants
	from := bufio.NewReader(res.Body)
	if line, err := from.ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: ") {
		c.t.Fatalf("%d %q, %v", res.StatusCode, line, err)
	}
	return res, from
}

func TestStream_EachDeltaPassesAtOnce(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.Anthropic)
	gate := make(chan struct{})
	p.Play(gatewaytest.Script{Text: "one two three", Gate: gate})
	_, from := serveOne(t, p, gateway.Anthropic).open(t.Context())
	for line := ""; !strings.Contains(line, "one"); { // the provider waits after it
		var err error
		if line, err = from.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	if rest, err := io.ReadAll(from); err != nil || !strings.Contains(string(rest), "message_stop") {
		t.Errorf("%s, %v", rest, err)
	}
}

func TestStream_AClientThatLeavesEndsTheProvidersRequest(t *testing.T) {
	for name, script := range map[string]gatewaytest.Script{"in the stream": {Endless: true, Delay: time.Millisecond}, "before the first byte": {Hang: true}} {
		p := gatewaytest.NewProvider(t, gateway.Anthropic)
		p.Play(script)
		g := serveOne(t, p, gateway.Anthropic)
		ctx, leave := context.WithCancel(t.Context())
		if script.Hang {
			left := make(chan struct{})
			go func() {
				defer close(left)
				if res, err := http.DefaultTransport.RoundTrip(g.request("POST /v1/messages", streamed).WithContext(ctx)); err == nil {
					_ = res.Body.Close()
					t.Errorf("%s: an answer came: %d", name, res.StatusCode)
				}
			}()
			p.Await(1)
			leave()
			<-left
		} else {
			g.open(ctx)
			leave()
		}
		p.AwaitLeft(1)
		if call := g.recorded(1); call.Status != 499 || call.Provider != "anthropic" {
			t.Errorf("%s: recorded %+v", name, call)
		}
	}
}

// TestStream_OneThatIsCutBeforeItsUsageIsToldIsCounted has a client that leaves each stream before its end, so as to meet no budget.
func TestStream_OneThatIsCutBeforeItsUsageIsToldIsCounted(t *testing.T) {
	ask := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("text", 1000) + `"}]}`
	for name, script := range map[string]gatewaytest.Script{"in the stream": {Endless: true, Delay: time.Millisecond}, "before the first byte": {Hang: true}} {
		p := gatewaytest.NewProvider(t, gateway.OpenAI)
		p.Play(script)
		g := serveOne(t, p, gateway.OpenAI)
		ctx, leave := context.WithCancel(t.Context())
		r := g.request("POST /v1/chat/completions", ask).WithContext(ctx)
		left := make(chan struct{})
		go func() {
			defer close(left)
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				return // it has left
			}
			from := bufio.NewReader(res.Body)
			for range 20 {
				if _, err := from.ReadString('\n'); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			leave()
			_ = res.Body.Close() // it is cut
		}()
		if p.Await(1); script.Hang {
			leave()
		}
		<-left
		leave()
		call := g.recorded(1)
		if got := call.Tokens; call.Status != 499 || got.Input < 1000 || got.Input > 1100 || script.Endless && got.Output < 5 {
			t.Errorf("%s: recorded %+v", name, call)
		}
	}
}

func TestBounds_RequestsOfASandboxAtOnce(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.Anthropic)
	p.Play(gatewaytest.Script{Endless: true, Delay: time.Hour, Repeat: gateway.MaxAtOnce})
	var held atomic.Int64
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(p.URL(), gateway.Anthropic)}, Keys: map[string]string{"anthropic": p.Key()},
		Hold: func(sandbox string) func() {
			if sandbox == "" {
				t.Error("a hold of no sandbox")
			}
			held.Add(1)
			return func() { held.Add(-1) }
		}})
	ctx, leave := context.WithCancel(t.Context())
	for range gateway.MaxAtOnce {
		g.open(ctx, "Test-Sandbox", "busy")
	}
	if n := held.Load(); n != gateway.MaxAtOnce {
		t.Errorf("%d holds", n)
	}
	res, answer := g.do("POST /v1/messages", streamed, "Test-Sandbox", "busy")
	if message := told(t, gateway.Anthropic, answer); res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" || !strings.Contains(message, "at once") {
		t.Errorf("one more: %d %s", res.StatusCode, answer)
	}
	if res, answer := g.do("POST /v1/messages", streamed, "Test-Sandbox", "other"); res.StatusCode != 200 {
		t.Errorf("another sandbox: %d %s", res.StatusCode, answer)
	}
	leave()
	g.recorded(gateway.MaxAtOnce + 1)
	if res, answer := g.do("POST /v1/messages", streamed, "Test-Sandbox", "busy"); res.StatusCode != 200 {
		t.Errorf("afterwards: %d %s", res.StatusCode, answer)
	}
	g.recorded(gateway.MaxAtOnce + 2)
	if n := held.Load(); n != 0 {
		t.Errorf("%d holds are left", n)
	}
}

func TestBounds_ManyStreamsAtOnceAreWhole(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.Anthropic)
	const text = "Many streams at once, and each of them whole."
	p.Play(gatewaytest.Script{Text: text, Delay: time.Millisecond, Repeat: gateway.MaxAtOnce})
	g := serveOne(t, p, gateway.Anthropic)
	var streams sync.WaitGroup
	for range gateway.MaxAtOnce {
		streams.Go(func() {
			res, err := http.DefaultTransport.RoundTrip(g.request("POST /v1/messages", streamed))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			answer, err := io.ReadAll(res.Body)
			if n := strings.Count(string(answer), "text_delta"); err != nil || n < len(strings.Fields(text)) || !strings.HasSuffix(string(answer), "\n\n") || !strings.Contains(string(answer), "message_stop") {
				t.Errorf("%d deltas, %v: %s", n, err, answer)
			}
		})
	}
	streams.Wait()
	g.recorded(gateway.MaxAtOnce)
	for _, call := range g.s.Recorded() {
		if call.Status != 200 || call.Tokens.Output != 5 {
			t.Errorf("recorded %+v", call)
		}
	}
}

func TestStream_ALineWithoutEndPasses(t *testing.T) {
	const size = 5 << 20
	url, _ := echo(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"x\":\"%s\",\"type\":\"message_stop\",\"usage\":{\"input_tokens\":7}}\n\n", strings.Repeat("y", size)) // the client looks at it
	})
	for _, kind := range []gateway.Kind{gateway.Anthropic, gateway.OpenAI} { // whose streams are filtered
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, kind)}, Keys: map[string]string{string(kind): secretKey}})
		at := map[gateway.Kind]string{gateway.Anthropic: "POST /v1/messages", gateway.OpenAI: "POST /v1/chat/completions"}[kind]
		_, answer := g.do(at, streamed)
		if call := g.recorded(1); strings.Count(answer, "y") < size || !strings.HasSuffix(answer, "}}\n\n") || call.Tokens.Input != 7 || call.Status != 200 {
			t.Errorf("%s: %d bytes, recorded %+v", kind, len(answer), call)
		}
	}
}

func TestWhole_ALargeAnswerPasses(t *testing.T) {
	body := `{"x":"` + strings.Repeat("y", 3<<20) + `","usage":{"input_tokens":7}}`
	url, _ := echo(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body) // the client looks at it
	})
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, gateway.Anthropic)}, Settings: gateway.Settings{LogContent: true}})
	_, answer := g.do("POST /v1/messages", `{"model":"m"}`)
	if call := g.recorded(1); answer != body || call.Tokens.Input != 7 || len(call.Answer) != gateway.MaxContent {
		t.Errorf("%d bytes, recorded %d, %+v", len(answer), len(call.Answer), call.Tokens)
	}
}

func TestStored_ResponsesPassToTheirProvider(t *testing.T) {
	const kept = `{"id":"resp_1","object":"response","status":"completed","background":%t,"usage":{"input_tokens":4,"output_tokens":2}}`
	none, _ := echo(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
	})
	url, seen := echo(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, kept, strings.Contains(r.URL.Path, "later")) // the client looks at it
	})
	a, b := provider(none, gateway.OpenAI), provider(url+"/v1", gateway.OpenAI)
	a.Name = "a"
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{a, b}, Keys: map[string]string{"openai": secretKey}})
	for i, c := range []struct {
		at     string
		tokens int64
	}{{"GET /v1/responses/resp_1", 0}, {"GET /v1/responses/resp_later", 4}, {"DELETE /v1/responses/resp_1", 0}, {"POST /v1/responses/resp_1/cancel", 0}, {"GET /v1/responses/resp_1/input_items?limit=2", 0}} {
		res, answer := g.do(c.at, "")
		method, path, _ := strings.Cut(c.at, " ")
		r := <-seen
		if call := g.recorded(i + 1); res.StatusCode != 200 || r.Method != method || r.URL.RequestURI() != path || call.Tokens.Input != c.tokens || call.Protocol != "responses" {
			t.Errorf("%s: %d %s, the provider got %s %s, recorded %+v", c.at, res.StatusCode, answer, r.Method, r.URL, call)
		}
	}
}

func TestBounds_LargeBodiesWaitForEachOther(t *testing.T) {
	largeBodies(t, 2, func(int) string { return "busy" })
}

// TestBounds_LargeBodiesOfManySandboxesWaitToo has more sandboxes than the memory would be enough for.
func TestBounds_LargeBodiesOfManySandboxesWaitToo(t *testing.T) {
	largeBodies(t, gateway.MaxLargeOfAll, func(n int) string { return fmt.Sprint("box-", n) })
}

// largeBodies sends three times as many as may be at the provider at once.
func largeBodies(t *testing.T, most int, from func(n int) string) {
	t.Helper()
	var now, top atomic.Int64
	arrived, gate := make(chan struct{}, 8), make(chan struct{})
	url, _ := echo(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for old := top.Load(); n > old && !top.CompareAndSwap(old, n); old = top.Load() {
		}
		arrived <- struct{}{}
		<-gate
		now.Add(-1)
		ok(w, r)
	})
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(url, gateway.Anthropic)}})
	var asking sync.WaitGroup
	body := `{"model":"m","x":"` + strings.Repeat("y", 2<<20) + `"}`
	for n := range 3 * most {
		asking.Go(func() {
			res, err := http.DefaultTransport.RoundTrip(g.request("POST /v1/messages", body, "Test-Sandbox", from(n)))
			if err != nil {
				t.Error(err)
				return
			}
			if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
	for range 3 * most {
		<-arrived
		gate <- struct{}{}
	}
	asking.Wait()
	if n := top.Load(); n > int64(most) {
		t.Errorf("%d were at the provider at once", n)
	}
}
