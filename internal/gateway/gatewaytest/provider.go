package gatewaytest

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/gateway"
)

// Limits of what a Provider keeps and waits for.
const (
	maxRequests = 2000 // the newest are kept
	maxRecorded = 1 << 20
	maxWait     = time.Minute // a test that waits longer has failed
)

// Provider is a server of models on loopback that answers from a script, in the protocols of the kinds that it was made for. It refuses
// what their vendors refuse: a wrong key, a missing field, a tool call without its result. Safe for concurrent use.
type Provider struct {
	t      testing.TB
	server *httptest.Server
	key    string
	done   chan struct{} // closed when the test ends

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, when requests or left change
	requests []Request
	left     int
	served   int // answers so far; makes their ids unique
	script   []Script
	models   []string
	strict   bool // models other than those are refused
	keyless  bool
}

// Request is what a client has sent.
type Request struct {
	Time   time.Time
	Method string
	Path   string // with its query
	Header http.Header
	Body   []byte // at most 1 MiB
	Model  string
	Stream bool
	Tools  []string // names of the tools that the model may use
	Result bool     // it brings the result of a tool, which the model has not answered yet
	Listed bool     // it asks for a list or a count, not for an answer
}

// NewProvider starts a provider that speaks the protocols of kinds; none means all. It ends with the test.
func NewProvider(t testing.TB, kinds ...gateway.Kind) *Provider {
	t.Helper()
	p := &Provider{t: t, key: "key-" + rand.Text(), done: make(chan struct{}), changed: make(chan struct{}), models: []string{"scripted-1", "scripted-2"}}
	if len(kinds) == 0 {
		kinds = []gateway.Kind{gateway.Anthropic, gateway.OpenAI, gateway.Ollama, gateway.Gemini}
	}
	p.server = httptest.NewServer(p.routes(kinds))
	t.Cleanup(func() {
		close(p.done) // those that hang return, which Close waits for
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// URL is the address of the server, without a path.
func (p *Provider) URL() string { return p.server.URL }

// BaseURL is what a gateway.Provider of a kind has as its BaseURL.
func (p *Provider) BaseURL(kind gateway.Kind) string {
	if kind == gateway.OpenAI {
		return p.server.URL + "/v1"
	}
	return p.server.URL
}

// Key is the key that each request must have.
func (p *Provider) Key() string { return p.key }

// Keyless lets requests without a key in, as local servers do.
func (p *Provider) Keyless() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keyless = true
}

// Offer replaces the models that it lists, "scripted-1" and "scripted-2", and makes it refuse others; before, it takes any.
func (p *Provider) Offer(models ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.models, p.strict = slices.Clone(models), true
}

// Play adds scripts to those that wait. Each is played once, in order.
func (p *Provider) Play(scripts ...Script) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = append(p.script, scripts...)
}

// Waiting is the number of scripts that nothing has played yet.
func (p *Provider) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.script)
}

// Requests gives the newest requests, the oldest first, also those that were refused.
func (p *Provider) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Await waits until n requests have come, and gives them. The test fails when they do not come.
func (p *Provider) Await(n int) []Request {
	p.t.Helper()
	p.await(func() bool { return len(p.requests) >= n })
	return p.Requests()
}

// AwaitLeft waits until n clients have left before their answer was complete. The test fails when they do not.
func (p *Provider) AwaitLeft(n int) {
	p.t.Helper()
	p.await(func() bool { return p.left >= n })
}

// await waits until ready, which is called under the lock, is true.
func (p *Provider) await(ready func() bool) {
	p.t.Helper()
	limit := time.NewTimer(maxWait)
	defer limit.Stop()
	for {
		p.mu.Lock()
		ok, changed := ready(), p.changed
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			p.t.Fatalf("after %v the provider has seen only %d requests", maxWait, len(p.Requests()))
		}
	}
}

// change changes what await looks at.
func (p *Provider) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// exchange is one request and what is needed to answer it.
type exchange struct {
	p     *Provider
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	speak protocol
	ask   ask
	seen  Request
}

// handle gives a handler that reads and records a request of a protocol, checks its key, and has do answer it.
func (p *Provider) handle(speak protocol, listed bool, do func(*exchange)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, gateway.MaxBody))
		if err != nil {
			reply(w, http.StatusRequestEntityTooLarge, speak.fault(http.StatusRequestEntityTooLarge, "the body is too large"))
			return
		}
		x := &exchange{p: p, w: w, r: r, body: body, speak: speak}
		if len(body) > 0 || !listed {
			x.ask = speak.read(r, body)
		}
		x.seen = x.record(listed)
		p.mu.Lock()
		keyless := p.keyless
		p.mu.Unlock()
		if key := speak.key(r); key != p.key && (key != "" || !keyless) {
			reply(w, http.StatusUnauthorized, speak.fault(http.StatusUnauthorized, "the key is not valid"))
			return
		}
		if listed {
			if s, ok := p.next(x.seen); ok && x.faulty(s) {
				return
			}
		}
		do(x)
	}
}

// record keeps the request for the test.
func (x *exchange) record(listed bool) Request {
	names := make([]string, len(x.ask.tools))
	for i, t := range x.ask.tools {
		names[i] = t.name
	}
	seen := Request{
		Time: time.Now(), Method: x.r.Method, Path: x.r.URL.RequestURI(), Header: x.r.Header.Clone(), Body: bytes.Clone(x.body[:min(len(x.body), maxRecorded)]),
		Model: x.ask.model, Stream: x.ask.stream, Tools: names, Result: x.ask.result, Listed: listed,
	}
	x.p.change(func() {
		x.p.requests = append(x.p.requests, seen)
		if over := len(x.p.requests) - maxRequests; over > 0 {
			x.p.requests = slices.Delete(x.p.requests, 0, over)
		}
	})
	return seen
}

// offered gives the models, and whether a model is served.
func (p *Provider) offered(model string) ([]string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.models), !p.strict || slices.Contains(p.models, model)
}
