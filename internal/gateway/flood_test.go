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

// TestFlood_MeetsItsBudgetAndNoOtherSandboxNotices has a sandbox call 10,000 times in a minute: it gets what its budget has, and another
// sandbox is answered about as fast as without that.
func TestFlood_MeetsItsBudgetAndNoOtherSandboxNotices(t *testing.T) {
	const budget, calls, within, quiet = 50, 10_000, time.Minute, 100
	p := gatewaytest.NewProvider(t, gateway.Anthropic)
	g := serve(t, gateway.Setup{
		Providers: []gateway.Provider{provider(p.BaseURL(gateway.Anthropic), gateway.Anthropic)}, Keys: map[string]string{"anthropic": p.Key()},
		Budgets: []gateway.Budget{{Scope: gateway.PerSandbox, Subject: "busy", Period: gateway.Day, Requests: budget}},
	})
	alone := g.paced(flooded, quiet, nil)
	var by map[int]int
	var lasted time.Duration
	over := make(chan struct{})
	go func() {
		defer close(over)
		by, lasted = flood(t, g, "POST /v1/messages", flooded, calls)
	}()
	took := g.paced(flooded, 0, over)
	<-over
	unloaded, loaded := percentile(alone, 95), percentile(took, 95)
	t.Logf("%d calls in %s: %v; another sandbox's p95 is %s of %d calls, without them %s", calls, lasted, by, loaded, len(took), unloaded)
	if n := by[http.StatusOK] + by[http.StatusPaymentRequired] + by[http.StatusTooManyRequests]; n != calls || lasted > within {
		t.Errorf("%d of %d calls were answered as they should in %s: %v", n, calls, lasted, by)
	}
	if by[http.StatusOK] != budget || by[http.StatusPaymentRequired] == 0 || by[http.StatusTooManyRequests] == 0 {
		t.Errorf("statuses: %v", by)
	}
	if n, want := len(p.Requests()), budget+len(alone)+len(took); n != want {
		t.Errorf("the provider was asked %d times, want %d", n, want)
	}
	if most := 5*unloaded + 50*time.Millisecond; len(took) < quiet || loaded > most {
		t.Errorf("another sandbox's p95 is %s of %d calls, at most %s", loaded, len(took), most)
	}
}

// flooded is what both ask.
const flooded = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`

// paced has another sandbox call n times, or until over is closed, less often than its own bound allows. It gives how long each call took.
func (c *client) paced(body string, n int, over <-chan struct{}) (took []time.Duration) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n == 0 || len(took) < n {
		select {
		case <-over:
			return took
		case <-tick.C:
		}
		begun := time.Now()
		if res, answer := c.do("POST /v1/messages", body, "Test-Sandbox", "other"); res.StatusCode != http.StatusOK {
			c.t.Errorf("another sandbox: %d %s", res.StatusCode, answer)
		}
		took = append(took, time.Since(begun))
	}
	return took
}

func percentile(d []time.Duration, p int) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)*p/100, len(d)-1)]
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
