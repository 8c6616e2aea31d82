package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// Bounds of the connections into one sandbox. What serves at their other end is not to be trusted.
const (
	dialLimit      = 10 * time.Second
	headerLimit    = 10 * time.Minute // a long poll may take its time; a hung program may not take for ever
	idleConnection = 30 * time.Second
	idlePool       = 5 * time.Minute
	sweepEvery     = time.Minute
	maxIdle        = 64 // each takes a stream of the link
	maxIdlePerPort = 16
	maxPerPort     = 200 // streams and WebSockets included
	maxHeader      = 256 << 10
	bufferSize     = 32 << 10
)

// pools keeps the connections of each sandbox's present link.
type pools struct {
	mu    sync.Mutex
	byID  map[string]*pool
	swept time.Time
}

type pool struct {
	session   Session
	transport *http.Transport
	used      time.Time
}

func newPools() *pools { return &pools{byID: map[string]*pool{}} }

// of gives the transport of a sandbox's link. A new link gets a new one; the old one's connections died with it.
func (p *pools) of(id string, s Session) *http.Transport {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.swept) > sweepEvery {
		p.sweep(now)
	}
	have := p.byID[id]
	if have == nil || have.session != s {
		have.close()
		have = &pool{session: s, transport: newTransport(s)}
		p.byID[id] = have
	}
	have.used = now
	return have.transport
}

// sweep forgets those that nobody has used for long. Requests under way go on.
func (p *pools) sweep(now time.Time) {
	p.swept = now
	for id, have := range p.byID {
		if now.Sub(have.used) > idlePool {
			have.close()
			delete(p.byID, id)
		}
	}
}

func (p *pool) close() {
	if p != nil {
		p.transport.CloseIdleConnections()
	}
}

func newTransport(s Session) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dial(ctx, s, address)
		},
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerPort,
		MaxConnsPerHost:        maxPerPort,
		IdleConnTimeout:        idleConnection,
		ResponseHeaderTimeout:  headerLimit,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         bufferSize,
		WriteBufferSize:        bufferSize,
		DisableCompression:     true, // what the sandbox says goes out as it is
	}
}

// Hosts of upstream URLs, which name what to dial.
const (
	portPrefix = "port-"
	tabPrefix  = "tab-"
)

func portHost(port int) string  { return portPrefix + strconv.Itoa(port) }
func tabHost(tab string) string { return tabPrefix + tab }

// dialError tells that there is no connection, as against a connection that went wrong.
type dialError struct{ err error }

func (e *dialError) Error() string { return "dial: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func dial(ctx context.Context, s Session, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("split %q: %w", address, err)
	}
	conn, err := dialHost(ctx, s, host)
	if err != nil {
		return nil, &dialError{err}
	}
	return whole{conn}, nil
}

func dialHost(ctx context.Context, s Session, host string) (net.Conn, error) {
	if tab, ok := strings.CutPrefix(host, tabPrefix); ok {
		return s.DialTerminal(ctx, tab)
	}
	port, err := strconv.Atoi(strings.TrimPrefix(host, portPrefix))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "There is no such port.")
	}
	return s.DialPort(ctx, port)
}

// whole hides CloseWrite: when a visitor's end of a WebSocket is gone, the tunnel is torn down at once, and not when
// the sandbox feels like it.
type whole struct{ net.Conn }
