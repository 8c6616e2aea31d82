package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// A woken sandbox runs before its services listen. While it is fresh, a refused connection is tried again if a declared service
// should listen there. Any other refusing port has no listener.

const (
	freshFor     = time.Minute            // after the start or the thaw
	shortPause   = 20 * time.Millisecond  // between two dials at first; later an eighth of the time waited
	longPause    = 250 * time.Millisecond // and this at most
	servicesLast = time.Second            // how long the state of the services is remembered
	justDeclared = 2 * time.Second        // a service declared so recently may not have been started yet
	hangUps      = 2                      // connections that may close without an answer before the request fails
	hangUpPause  = 100 * time.Millisecond
	interimMost  = 100 // interim answers to a request
)

// errLate says that the service did not answer before the request's deadline.
var errLate = errors.New("the service is not ready yet")

// fresh reports whether the sandbox started so recently that its services may not listen yet.
func fresh(sb sandbox.Sandbox, woken bool) bool {
	return woken || time.Since(sb.Changed) < freshFor
}

// sandboxTransport sends the reverse proxy's requests to their sandboxes.
type sandboxTransport struct{}

// RoundTrip implements http.RoundTripper.
func (sandboxTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := proxiedOf(r.Context())
	sb := p.session.Sandbox()
	pool := p.proxy.pools.of(sb.ID, p.session.Guest)
	if p.target.Port == 0 || !fresh(sb, p.woken) {
		return pool.transport.RoundTrip(r)
	}
	return p.retry(r, pool)
}

// retry sends the request until the service answers, is known not to exist, or the request's deadline passes. Before there is a
// connection, nothing of the request's body is read.
func (p *proxied) retry(r *http.Request, conns *pool) (*http.Response, error) {
	if r.Body != nil {
		open := *r
		open.Body = keptOpen{r.Body}
		r = &open
	}
	res, err := conns.transport.RoundTrip(r)
	if err == nil {
		return res, nil
	}
	ctx, cancel := context.WithDeadlineCause(r.Context(), p.deadline(), errLate)
	defer cancel()
	gate := conns.gate(p.target.Port)
	leave := func() {}
	for hungUp := 0; ; res, err = conns.transport.RoundTrip(r) {
		leave()
		switch {
		case err == nil:
			return res, nil
		case isRefused(err):
			gate.refused()
			if !gate.expects(ctx) && ctx.Err() == nil {
				return nil, err
			}
			leave, err = gate.again(ctx)
		case isHangUp(err) && hungUp < hangUps && r.Body == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			hungUp++
			leave, err = func() {}, pause(ctx, hangUpPause)
		}
		if err != nil {
			return nil, err
		}
	}
}

// isRefused reports whether nothing listens at the dialled address.
func isRefused(err error) bool {
	var refused *dialError
	return errors.As(err, &refused) && fault.Is(err, fault.NotFound)
}

// isHangUp reports whether a program accepted the connection and closed it without an answer.
func isHangUp(err error) bool {
	var refused *dialError
	return !errors.As(err, &refused) && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET))
}

// keptOpen is a body that a failed try does not close. The server closes it.
type keptOpen struct{ io.Reader }

// Close implements io.Closer.
func (keptOpen) Close() error { return nil }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the service: %w", context.Cause(ctx))
	}
}

// gate is where requests wait for one port of a fresh sandbox. One of them dials; when it connects, all others follow at once.
type gate struct {
	session access.Guest
	port    int
	turn    chan struct{} // held by the request that dials

	mu       sync.Mutex
	opened   chan struct{} // closed when a dial succeeded
	since    time.Time     // the first refusal
	asked    time.Time     // when expected was determined
	expected bool
}

func newGate(s access.Guest, port int) *gate {
	return &gate{session: s, port: port, turn: make(chan struct{}, 1), opened: make(chan struct{})}
}

// pass notes that a dial succeeded.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// refused notes that a dial was refused.
func (g *gate) refused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened: // the service listened before, and has ended
		g.opened, g.since = make(chan struct{}), time.Now()
	default:
	}
	if g.since.IsZero() {
		g.since = time.Now()
	}
}

// next gives the channel that closes when the gate opens, and how long to wait before the next dial.
func (g *gate) next() (opened <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, min(max(time.Since(g.since)/8, shortPause), longPause)
}

// again returns when it is time to try again: in turn after a pause, or at once when another dial succeeded. The caller must call
// leave after its try. The error is errLate or ctx's.
func (g *gate) again(ctx context.Context) (leave func(), err error) {
	opened, wait := g.next()
	select {
	case <-opened:
		return func() {}, nil
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the service: %w", context.Cause(ctx))
	}
	if err := pause(ctx, wait); err != nil {
		<-g.turn
		return nil, err
	}
	return func() { <-g.turn }, nil
}

// expects reports whether a declared service should listen at the port.
func (g *gate) expects(ctx context.Context) bool {
	now := time.Now()
	g.mu.Lock()
	expected, known := g.expected, now.Sub(g.asked) < servicesLast
	g.mu.Unlock()
	if known {
		return expected
	}
	services, err := g.session.Services(ctx)
	if err != nil {
		return false
	}
	expected = false
	for _, s := range services {
		young := s.State == wire.ServiceStopped && now.Sub(s.Since) < justDeclared
		expected = expected || s.Port == g.port && (young || s.State == wire.ServiceRunning || s.State == wire.ServiceWaiting)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked, g.expected = now, expected
	return expected
}

// await returns when the port's service answers, or none is declared. Only a declared service is dialled: some programs accept one
// connection in their life.
func (g *gate) await(ctx context.Context) error {
	for g.expects(ctx) {
		conn, err := g.session.DialPort(ctx, g.port)
		if err == nil {
			g.pass()
			return conn.Close()
		}
		if !fault.Is(err, fault.NotFound) {
			return err
		}
		g.refused()
		leave, err := g.again(ctx)
		if err != nil {
			return err
		}
		leave()
	}
	return nil
}
