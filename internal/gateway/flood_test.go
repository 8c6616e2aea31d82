package gateway_test

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// flood has one sandbox ask the same again and again over many connections, and gives how often each status came and how long it took.
func flood(t *testing.T, g *client, at, body string, calls int) (by map[int]int, took time.Duration) {
	t.Helper()
	const conns = 64
	way := &http.Transport{MaxIdleConnsPerHost: conns}
	defer way.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(calls))
	var mu sync.Mutex
	var calling sync.WaitGroup
	by = map[int]int{}
	begun := time.Now()
	for range conns {
		calling.Go(func() {
			for left.Add(-1) >= 0 {
				res, err := way.RoundTrip(g.request(at, body, "Test-Sandbox", "busy"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				by[res.StatusCode]++
				mu.Unlock()
				_ = res.Body.Close() // only the status counts
			}
		})
	}
	calling.Wait()
	return by, time.Since(begun)
}

// TestFlood_MeetsItsBudgetAndNoOtherSandboxNotices has a sandbox call as fast as it can, which is far more than 10,000 times a minute.
func TestFlood_MeetsItsBudgetAndNoOtherSandboxNotices(t *testing.T) {
	const budget, calls, others = 50, 2500, 40
	p := gatewaytest.NewProvider(t, gateway.Anthropic)
	g := serve(t, gateway.Setup{
		Providers: []gateway.Provider{provider(p.BaseURL(gateway.Anthropic), gateway.Anthropic)}, Keys: map[string]string{"anthropic": p.Key()},
		Budgets: []gateway.Budget{{Scope: gateway.PerSandbox, Subject: "busy", Period: gateway.Day, Requests: budget}},
	})
	const ask = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	var by map[int]int
	var lasted time.Duration
	var flooding sync.WaitGroup
	flooding.Go(func() { by, lasted = flood(t, g, "POST /v1/messages", ask, calls) })
	var took []time.Duration
	for range others {
		begun := time.Now()
		if res, answer := g.do("POST /v1/messages", ask, "Test-Sandbox", "other"); res.StatusCode != http.StatusOK {
			t.Errorf("another sandbox: %d %s", res.StatusCode, answer)
		}
		took = append(took, time.Since(begun))
	}
	flooding.Wait()
	slices.Sort(took)
	t.Logf("%d calls in %s: %v; another sandbox's answers after %s in the middle, %s at most", calls, lasted, by, took[others/2], took[others-1])
	if by[http.StatusOK] != budget || by[http.StatusPaymentRequired] == 0 || by[http.StatusTooManyRequests] == 0 {
		t.Errorf("statuses: %v", by)
	}
	if n := len(p.Requests()); n != budget+others {
		t.Errorf("the provider was asked %d times, want %d", n, budget+others)
	}
	if took[others/2] > 2*time.Second {
		t.Errorf("half of another sandbox's answers took more than %s", took[others/2])
	}
	if rate := float64(calls) * float64(time.Minute) / float64(lasted); rate < 10_000 {
		t.Logf("this machine was slow: %.0f calls a minute", rate)
	}
}

// TestFlood_OfWhatAsksNoModelIsTakenSlowlyToo asks for what needs no provider, and is not in the log.
func TestFlood_OfWhatAsksNoModelIsTakenSlowlyToo(t *testing.T) {
	for _, at := range []string{"GET /", "GET /v1/models", "POST /nothing"} {
		g := serve(t, gateway.Setup{})
		by, _ := flood(t, g, at, "", 3*gateway.MaxBurst)
		if by[http.StatusTooManyRequests] == 0 {
			t.Errorf("%s: %v", at, by)
		}
		if res, answer := g.do(at, "", "Test-Sandbox", "other"); res.StatusCode == http.StatusTooManyRequests {
			t.Errorf("%s of another sandbox: %s", at, answer)
		}
		if calls := g.s.Recorded(); len(calls) > 0 {
			t.Errorf("%s: %d calls are recorded", at, len(calls))
		}
	}
}
