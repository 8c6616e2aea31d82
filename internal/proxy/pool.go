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

	"sandboxd/internal/access"
)

// Bounds on the connections into one sandbox. The program at the other end is not trusted.
const (
	dialLimit      = 10 * time.Second
	ideLimit       = 60 * time.Second // VS Code may have to be started
	headerLimit    = 10 * time.Minute // long enough for a long poll, but not for ever
	idleConnection = 30 * time.Second
	idlePool       = 5 * time.Minute
	sweepEvery     = time.Minute
	maxIdle        = 192 // each takes a stream of the link, of 512
	maxIdlePerPort = 128 // more than a load of 64 connections needs at its peaks
	maxPerPort     = 200 // streams and WebSockets included
	maxHeader      = 256 << 10
	bufferSize     = 32 << 10 // of a body on its way
	connBuffer     = 8 << 10  // of a connection, in each direction
)

// pools keeps the connections of each sandbox's present link.
type pools struct {
	mu    sync.Mutex
	byID  map[string]*pool
	swept time.Time
}

type pool struct {
	session   access.Guest
	transport *http.Transport
	used      time.Time // guarded by pools.mu

	mu    sync.Mutex
	gates map[int]*gate // by port
}

func newPools() *pools { return &pools{byID: map[string]*pool{}} }

// of gives the pool of a sandbox's link. A new link gets a new pool: the old connections died with the old link.
func (p *pools) of(id string, s access.Guest) *pool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.swept) > sweepEvery {
		p.sweep(now)
	}
	have := p.byID[id]
	if have == nil || have.session != s {
		have.close()
		have = newPool(s)
		p.byID[id] = have
	}
	have.used = now
	return have
}

// sweep drops pools that were unused for long. Requests under way continue.
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

// gate gives the gate at which requests wait for a port.
func (p *pool) gate(port int) *gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gates[port]
	if g == nil {
		g = newGate(p.session, port)
		p.gates[port] = g
	}
	return g
}

// dial connects, and opens the port's gate if that succeeds.
func (p *pool) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, port, err := dial(ctx, p.session, address)
	if err == nil {
		p.mu.Lock()
		g := p.gates[port]
		p.mu.Unlock()
		if g != nil {
			g.pass()
		}
	}
	return conn, err
}

func newPool(s access.Guest) *pool {
	p := &pool{session: s, gates: map[int]*gate{}}
	p.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return p.dial(ctx, address)
		},
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerPort,
		MaxConnsPerHost:        maxPerPort,
		IdleConnTimeout:        idleConnection,
		ResponseHeaderTimeout:  headerLimit,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         connBuffer,
		WriteBufferSize:        connBuffer,
		DisableCompression:     true, // answers pass unchanged
	}
	return p
}

// Hosts of upstream URLs, which name what to dial.
const (
	portPrefix = "port-"
	tabPrefix  = "tab-"
	ideHost    = "ide"
)

func portHost(port int) string  { return portPrefix + strconv.Itoa(port) }
func tabHost(tab string) string { return tabPrefix + tab }

// dialError says that no connection was made, in contrast to one that failed later.
type dialError struct{ err error }

func (e *dialError) Error() string { return "dial: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dial connects to the host of an upstream URL. port is 0 for a terminal and VS Code.
func dial(ctx context.Context, s access.Guest, address string) (conn net.Conn, port int, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, fmt.Errorf("split %q: %w", address, err)
	}
	limit := dialLimit
	if host == ideHost {
		limit = ideLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if host == ideHost {
		conn, err = s.DialIDE(ctx)
	} else if tab, ok := strings.CutPrefix(host, tabPrefix); ok {
		conn, err = s.DialTerminal(ctx, tab)
	} else if port, err = strconv.Atoi(strings.TrimPrefix(host, portPrefix)); err == nil {
		conn, err = s.DialPort(ctx, port)
	}
	if err != nil {
		return nil, port, &dialError{err}
	}
	return whole{conn}, port, nil
}

// whole hides CloseWrite: when a client closes its end of a WebSocket, the tunnel ends at once and not when the sandbox closes it.
type whole struct{ net.Conn }
