package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// A sandbox that has just been woken runs before its services listen. For as long as it is fresh, a port that refuses is
// asked again if a declared service is to listen there; any other port that refuses is known to have nobody.

const (
	freshFor     = time.Minute            // after the start or the thaw
	shortPause   = 20 * time.Millisecond  // between two dials at first; then an eighth of the time that has passed
	longPause    = 250 * time.Millisecond // and never more than this
	servicesLast = time.Second            // how long it is believed how the services stand
	justDeclared = 2 * time.Second        // a service that was set up so lately is yet to be started
	hangUps      = 2                      // answers that may fail to come before a request is given up
	hangUpPause  = 100 * time.Millisecond
	interimMost  = 100 // interim answers to a request
)

// errLate says that the service did not answer before the request's patience was over.
var errLate = errors.New("the service is not ready yet")

// fresh reports whether the sandbox has come up so lately that its services may not be there yet.
func fresh(sb sandbox.Sandbox, woken bool) bool {
	return woken || time.Since(sb.Changed) < freshFor
}

// sandboxTransport is the reverse proxy's way into a sandbox.
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

// errInterim says that a program goes on saying that it is about to answer.
var errInterim = errors.New("too many interim answers")

// boundInterim gives a context with which no more than interimMost interim answers (1xx) are read, which otherwise may come without
// end. It must be there before the reverse proxy: of two hooks the error of the first one counts.
func boundInterim(ctx context.Context) context.Context {
	left := interimMost
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
		if left--; left < 0 {
			return errInterim
		}
		return nil
	}})
}

// retry asks until the service answers, is known not to be there, or the request's patience is over. Until there is a
// connection nothing of the request's body has been read.
func (p *proxied) retry(r *http.Request, conns *pool) (*http.Response, error) {
	ctx, cancel := context.WithDeadlineCause(r.Context(), p.deadline(), errLate)
	defer cancel()
	if r.Body != nil {
		open := *r
		open.Body = keptOpen{r.Body}
		r = &open
	}
	gate := conns.gate(p.target.Port)
	leave := func() {}
	for hungUp := 0; ; {
		res, err := conns.transport.RoundTrip(r)
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

// isRefused reports whether nothing listens where a connection was to go.
func isRefused(err error) bool {
	var refused *dialError
	return errors.As(err, &refused) && fault.Is(err, fault.NotFound)
}

// isHangUp reports whether a program took the connection and closed it without an answer.
func isHangUp(err error) bool {
	var refused *dialError
	return !errors.As(err, &refused) && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET))
}

// keptOpen is a body that a failed try does not close. Whoever made the request closes it.
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

// gate is where requests wait for one port of a fresh sandbox. One of them dials; when it gets through, all others follow
// at once.
type gate struct {
	session access.Guest
	port    int
	turn    chan struct{} // held by the one who dials

	mu       sync.Mutex
	opened   chan struct{} // closed when a dial got through
	since    time.Time     // the first refusal
	asked    time.Time     // when expected was found out
	expected bool
}

func newGate(s access.Guest, port int) *gate {
	return &gate{session: s, port: port, turn: make(chan struct{}, 1), opened: make(chan struct{})}
}

// pass says that a dial got through.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// refused says that a dial did not.
func (g *gate) refused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened: // it got through before, and closed again
		g.opened, g.since = make(chan struct{}), time.Now()
	default:
	}
	if g.since.IsZero() {
		g.since = time.Now()
	}
}

// next gives what opens the gate, and how long to wait before the next dial.
func (g *gate) next() (opened <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, min(max(time.Since(g.since)/8, shortPause), longPause)
}

// again returns when it is sensible to try again: in one's turn after a pause, or because somebody got through. The caller
// must call leave after its try. The error is errLate or ctx's.
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

// expects reports whether a declared service is to listen at the port.
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

// await returns when the port's service answers, or none is declared. Only a declared service is dialled: a program that
// takes one connection in its life must not lose it.
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
