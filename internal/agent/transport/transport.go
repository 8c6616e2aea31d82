// Package transport carries one request of a driver to its provider: it bounds times and sizes, checks what kind of answer comes, and
// turns failures of HTTP into agent.ModelErrors. The SDKs' own retries, timeouts and errors are not used, so that all drivers behave alike.
//
// It does not know the protocols, and adds no key: the round tripper that it is given does.
//
// Invariant: no answer takes more memory or time than the bounds here, no matter what the provider sends.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/text"
)

// Timeouts bound how long nothing may come.
type Timeouts struct {
	FirstByte time.Duration // of the answer's body; 0 means ten minutes: local models load for minutes, and large ones think
	Silence   time.Duration // between two reads; 0 means five minutes
}

// Sizes of an answer.
const (
	MaxBody = 256 << 20 // bytes; it is not kept
	MaxLine = 4 << 20   // bytes without a line feed: all protocols are of lines, and the SDKs keep a line in memory
	maxFail = 64 << 10  // bytes of an error's body
)

var (
	errFirstByte = errors.New("no byte of an answer came in time")
	errSilence   = errors.New("the answer stopped coming")
)

// Call carries one request. It is not reused.
type Call struct {
	base  http.RoundTripper // must honour the context of a request also while its body is read
	types []string          // media types of the answer
	times Timeouts
	own   string // as Endpoint has it

	mu     sync.Mutex
	failed error // what went wrong; SDKs may lose it
}

// New makes a Call whose answer has one of those media types.
func New(base http.RoundTripper, times Timeouts, types ...string) *Call {
	if base == nil {
		base = http.DefaultTransport
	}
	times.FirstByte = cmp.Or(times.FirstByte, 10*time.Minute)
	times.Silence = cmp.Or(times.Silence, 5*time.Minute)
	return &Call{base: base, types: types, times: times}
}

// Client gives a client for an SDK that sends the request over the Call. It follows no redirects.
func (c *Call) Client() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip sends the request. Its errors are *agent.ModelErrors, or the cause of the request's context.
func (c *Call) RoundTrip(q *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(q.Context())
	watch := newWatch(c.times, cancel)
	answer, err := c.base.RoundTrip(q.WithContext(ctx))
	if err != nil {
		err = c.fail(c.lost(ctx, q.Context(), err, agent.Unreachable, "The provider cannot be reached."))
		watch.end()
		return nil, err
	}
	body := &body{call: c, ReadCloser: answer.Body, ctx: ctx, asked: q.Context(), watch: watch}
	if err := c.check(answer, body); err != nil {
		_ = body.Close() // the answer is refused; only the reason counts
		return nil, c.fail(err)
	}
	answer.Body = body
	return answer, nil
}

// check refuses an answer that is an error, or not of the protocol.
func (c *Call) check(answer *http.Response, body io.Reader) error {
	if answer.StatusCode >= http.StatusBadRequest {
		said, _ := io.ReadAll(io.LimitReader(body, maxFail)) // the status says enough when the rest is lost
		refused := refusal(answer.StatusCode, said, retryAfter(answer.Header), c.own != "" && answer.Header.Get(c.own) != "")
		refused.Final = answer.Header.Get("X-Should-Retry") == "false"
		return refused
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return agent.Failure(agent.BadProtocol, nil, fmt.Sprintf("The provider redirects (%d). Check its address.", answer.StatusCode)).With(answer.StatusCode, 0)
	}
	kind := answer.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(kind)
	if kind == "" || err == nil && slices.Contains(c.types, media) {
		return nil
	}
	return agent.Failure(agent.BadProtocol, err, fmt.Sprintf("The provider answered with %s instead of %s. Check its address and its kind.",
		text.Excerpt(kind, 80), c.types[0])).With(answer.StatusCode, 0)
}

// lost says why no more comes: the caller has left, a deadline is over, or else.
func (c *Call) lost(ctx, asked context.Context, err error, otherwise agent.Code, message string) error {
	cause := context.Cause(ctx)
	switch {
	case asked.Err() != nil:
		return context.Cause(asked)
	case errors.Is(cause, errFirstByte):
		return agent.Failure(agent.NoAnswer, cause, fmt.Sprintf("The provider has not begun to answer within %v.", c.times.FirstByte))
	case errors.Is(cause, errSilence):
		return agent.Failure(agent.Silent, cause, fmt.Sprintf("The provider stopped in the middle of its answer and sent nothing for %v.", c.times.Silence))
	}
	var known *agent.ModelError
	if errors.As(err, &known) {
		return known
	}
	return agent.Failure(otherwise, err, message)
}

// fail keeps the first failure.
func (c *Call) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	return err
}

// Outcome gives what Model.Stream returns: err is the SDK's, complete says that the provider ended its answer.
func (c *Call) Outcome(ctx context.Context, err error, complete bool) error {
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	var known *agent.ModelError
	switch {
	case err == nil && complete:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return failed
	case errors.As(err, &known):
		return known
	case err == nil:
		return agent.Failure(agent.Broken, nil, broken)
	}
	return agent.Failure(agent.BadProtocol, err, "The provider sent something that is not of its protocol. Check its address and its kind.")
}

const broken = "The answer of the provider ended in its middle."

// Endpoint is where a driver's model is.
type Endpoint struct {
	BaseURL  string            // the paths of the protocol are below it
	Model    string            // as the provider, or the gateway, names it
	HTTP     http.RoundTripper // adds the key; honours a request's context also while the answer is read; nil means http.DefaultTransport
	Own      string            // a header of errors that are whole sentences of sandboxd's own; "" when there are none
	Timeouts Timeouts
}

// Call makes a Call to the endpoint.
func (e Endpoint) Call(types ...string) *Call {
	c := New(e.HTTP, e.Timeouts, types...)
	c.own = e.Own
	return c
}
