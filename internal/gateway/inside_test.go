package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// inside is a provider behind a port of a sandbox.
func inside(kind gateway.Kind, models ...string) gateway.Provider {
	return gateway.Provider{ID: string(kind), Name: string(kind), Kind: kind, Models: models, Inside: gateway.Inside{Sandbox: "id-lab", Name: "lab", Port: 11434}}
}

// way leads to a server in the place of a sandbox, and counts the connections that are open.
type way struct {
	address      string
	dialled      atomic.Int64
	open         atomic.Int64
	sandbox, who string // of the last
}

func (w *way) dial(ctx context.Context, p gateway.Provider) (net.Conn, error) {
	w.sandbox, w.who = p.Inside.Sandbox, p.Owner
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.address)
	if err != nil {
		return nil, err
	}
	w.dialled.Add(1)
	w.open.Add(1)
	return &counted{Conn: conn, w: w}, nil
}

type counted struct {
	net.Conn
	w      *way
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.w.open.Add(-1)
	}
	return c.Conn.Close()
}

// settled waits until nothing is open.
func (w *way) settled(t *testing.T) {
	t.Helper()
	limit := time.After(time.Minute)
	for w.open.Load() != 0 {
		select {
		case <-time.After(time.Millisecond): // it is closed once the client has its answer
		case <-limit:
			t.Fatalf("%d connections are open", w.open.Load())
		}
	}
}

func TestInside_EachProtocolPassesAndUsesTheSandboxForJustItsCall(t *testing.T) {
	for _, c := range protocolCases {
		if c.kind != gateway.Ollama && c.kind != gateway.OpenAI {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			p := gatewaytest.NewProvider(t, c.kind)
			w := &way{address: strings.TrimPrefix(p.URL(), "http://")}
			g := serve(t, gateway.Setup{Providers: []gateway.Provider{inside(c.kind)}, Keys: map[string]string{string(c.kind): p.Key()}, Dial: w.dial})
			for range 2 {
				at, body := c.with("scripted-1")
				if res, answer := g.do(at, body, "Sandboxd-Other", "kept"); res.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", res.StatusCode, answer)
				}
				w.settled(t)
			}
			if n := w.dialled.Load(); n != 2 || w.sandbox != "id-lab" {
				t.Errorf("%d connections to %q", n, w.sandbox)
			}
			if got := p.Requests()[1].Header; got.Get("Sandboxd-From-Gateway") == "" || got.Get("Sandboxd-Other") != "kept" {
				t.Errorf("it got %v", got)
			}
			if call := g.recorded(2); call.Tokens.Total() == 0 || call.Provider != string(c.kind) {
				t.Errorf("recorded is %+v", call)
			}
		})
	}
}

func TestInside_AServerSeesAHostOfLoopback(t *testing.T) {
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Host + r.URL.Path
		ok(w, r)
	}))
	defer server.Close()
	w := &way{address: strings.TrimPrefix(server.URL, "http://")}
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{inside(gateway.OpenAI)}, Dial: w.dial})
	g.do("POST /v1/chat/completions", `{"model":"m","messages":[]}`)
	if got := <-seen; got != "127.0.0.1:11434/v1/chat/completions" {
		t.Errorf("asked was %s", got)
	}
}

func TestInside_ListingModelsReachesNothing(t *testing.T) {
	w := &way{}
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{inside(gateway.Ollama, "small")}, Dial: w.dial})
	for _, at := range []string{"GET /v1/models", "GET /v1/models/small", "GET /api/tags"} {
		if res, answer := g.do(at, ""); res.StatusCode != http.StatusOK || !strings.Contains(answer, "small") {
			t.Errorf("%s: %d %s", at, res.StatusCode, answer)
		}
	}
	if w.sandbox != "" {
		t.Error("the sandbox was asked")
	}
}

func TestInside_WhyItIsNotReachedIsSaidInTheClientsProtocol(t *testing.T) {
	for name, v := range map[string]struct {
		err    error
		status int
		says   string
		retry  string
	}{
		"deleted":       {fault.New(fault.Gone, "secret-lab was deleted."), 502, "which has been deleted", "false"},
		"stopped":       {fault.New(fault.Conflict, "secret-lab is stopped."), 502, "which is stopped or has failed. Its owner can start it.", "false"},
		"disabled":      {fault.New(fault.Forbidden, "no"), 502, "whose owner is disabled", "false"},
		"no server":     {fault.New(fault.NotFound, "nothing"), 502, "where nothing listens on port 11434", "false"},
		"slow":          {fault.New(fault.Timeout, "slow"), 504, "which was not ready within 1m0s", "true"},
		"late":          {fmt.Errorf("wait: %w", context.DeadlineExceeded), 504, "which was not ready within 1m0s", "true"},
		"no room":       {fault.New(fault.Unavailable, "full"), 503, "which cannot be reached now", "true"},
		"too many":      {fault.New(fault.Limited, "many"), 429, "as many calls as it may", "true"},
		"not of a kind": {errors.New("secret-lab broke"), 502, "broke the connection", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			dial := func(context.Context, gateway.Provider) (net.Conn, error) { return nil, v.err }
			own := inside(gateway.Ollama)
			own.Owner = "u1"
			g := serve(t, gateway.Setup{Providers: []gateway.Provider{own}, Dial: dial})
			res, answer := g.do("POST /api/chat", `{"model":"m","messages":[]}`)
			if res.StatusCode != v.status || !strings.HasPrefix(answer, `{"error":"The model provider`) || !strings.Contains(answer, v.says) || strings.Contains(answer, "secret") {
				t.Errorf("ollama: %d %s", res.StatusCode, answer)
			}
			res, answer = g.do("POST /v1/chat/completions", `{"model":"m","messages":[]}`)
			if res.StatusCode != v.status || !strings.Contains(answer, `"error":{"`) || !strings.Contains(answer, v.says) || res.Header.Get("X-Should-Retry") != v.retry {
				t.Errorf("openai: %d %s %v", res.StatusCode, answer, res.Header)
			}
			if call := g.recorded(2); call.Status != v.status {
				t.Errorf("recorded is %+v", call)
			}
			_, err := g.s.CheckProvider(t.Context(), "u1", "ollama")
			want := fault.Unavailable
			if v.status == http.StatusGatewayTimeout {
				want = fault.Timeout
			}
			wantFault(t, "check", err, want, v.says)
		})
	}
}

func TestInside_ASandboxThatNeverWakesIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(ctx context.Context, _ gateway.Provider) (net.Conn, error) {
			<-ctx.Done()
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, "late")
		}
		s := gateway.NewTestService(gateway.Setup{Providers: []gateway.Provider{inside(gateway.Ollama)}, Dial: dial})
		begun, w := time.Now(), httptest.NewRecorder()
		s.Handler(gateway.CallerInTest).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/chat", strings.NewReader(`{"model":"m","messages":[]}`)))
		if took := time.Since(begun); w.Code != http.StatusGatewayTimeout || took != time.Minute {
			t.Errorf("%d %s after %s", w.Code, w.Body, took)
		}
	})
}

func TestInside_TheNextOfAnAliasAnswers(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.OpenAI)
	dial := func(context.Context, gateway.Provider) (net.Conn, error) {
		return nil, fault.New(fault.Gone, "deleted")
	}
	other := provider(p.BaseURL(gateway.OpenAI), gateway.OpenAI)
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{inside(gateway.Ollama), other}, Keys: map[string]string{"openai": p.Key()}, Dial: dial,
		Aliases: []gateway.Alias{{Name: "fast", Targets: []gateway.Target{{Provider: "ollama", Model: "m"}, {Provider: "openai", Model: "scripted-1"}}}}})
	if res, answer := g.do("POST /v1/chat/completions", `{"model":"fast","messages":[{"role":"user","content":"hi"}]}`); res.StatusCode != http.StatusOK {
		t.Errorf("%d %s", res.StatusCode, answer)
	}
}

// TestInside_ARequestDoesNotGoRound has a server in a sandbox send each request back to the gateway, with and without its headers.
func TestInside_ARequestDoesNotGoRound(t *testing.T) {
	for _, headers := range []bool{true, false} {
		var gatewayURL string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			again, err := http.NewRequestWithContext(r.Context(), r.Method, gatewayURL+r.URL.Path, r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			if headers {
				again.Header = r.Header.Clone()
			}
			again.Header.Set("Test-Sandbox", "lab")
			res, err := http.DefaultTransport.RoundTrip(again)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer res.Body.Close()
			w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			w.WriteHeader(res.StatusCode)
			_, _ = io.Copy(w, res.Body) // a client that is gone needs no answer
		}))
		w := &way{address: strings.TrimPrefix(server.URL, "http://")}
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{inside(gateway.OpenAI)}, Dial: w.dial})
		gatewayURL = g.url
		res, answer := g.do("POST /v1/chat/completions", `{"model":"m","messages":[]}`, "Test-Sandbox", "lab")
		switch n := w.dialled.Load(); {
		case headers && (n != 1 || res.StatusCode != http.StatusLoopDetected || !strings.Contains(answer, "would never end")):
			t.Errorf("with headers: %d connections, %d %s", n, res.StatusCode, answer)
		case !headers && (n > gateway.MaxAtOnce || res.StatusCode < 400):
			t.Errorf("without headers: %d connections, %d %s", n, res.StatusCode, answer)
		}
		w.settled(t)
		server.Close()
	}
}

func TestSetProvider_InASandbox(t *testing.T) {
	c := newControl(t)
	lab := inside(gateway.Ollama)
	lab.Owner = "u1" // whose providers may have no private address
	got := c.provide(t, lab, key)
	if got.Inside != lab.Inside || got.BaseURL != "" || !got.HasKey {
		t.Errorf("kept is %+v", got)
	}
	c.reopen(t)
	if got := c.Providers("u1"); len(got) != 1 || got[0].Inside != lab.Inside {
		t.Errorf("then %+v", got)
	}
	for field, change := range map[string]func(*gateway.Provider){
		"sandbox":  func(p *gateway.Provider) { p.Inside.Sandbox = "" },
		"port":     func(p *gateway.Provider) { p.Inside.Port = 65536 },
		"kind":     func(p *gateway.Provider) { p.Kind = gateway.Anthropic },
		"base_url": func(p *gateway.Provider) { p.BaseURL = "http://127.0.0.1" },
		"key":      func(p *gateway.Provider) { p.Inside.Sandbox = "id-other" },
	} {
		p := lab
		change(&p)
		_, err := c.SetProvider(t.Context(), p, nil)
		wantField(t, field, err, field)
	}
	lab.Inside.Port = 7465
	_, err := c.SetProvider(t.Context(), lab, nil)
	wantField(t, "the gateway's own port", err, "port")
}

func TestInside_IsNotWaitedForOnceTheClientHasLeft(t *testing.T) {
	dials, ended := make(chan struct{}), make(chan time.Duration)
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{inside(gateway.OpenAI)}, Dial: func(ctx context.Context, _ gateway.Provider) (net.Conn, error) {
		close(dials)
		begun := time.Now()
		<-ctx.Done()
		ended <- time.Since(begun)
		return nil, ctx.Err()
	}})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-dials
		leave()
	}()
	r := g.request("POST /v1/chat/completions", `{"model":"m","messages":[]}`).WithContext(ctx)
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
		t.Error("there is an answer")
	}
	if took := <-ended; took > 30*time.Second {
		t.Errorf("the sandbox was waited for %s longer", took)
	}
}
