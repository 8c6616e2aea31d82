package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/idle"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/wire"
)

const (
	maxInside   = 128                    // calls of models that one sandbox answers at once: its link has 512 streams
	listenPause = 100 * time.Millisecond // between two looks whether a service listens
	justStarted = 2 * time.Second        // a service stopped so recently may not have been started yet
)

// insideModels leads the gateway to servers of models in sandboxes. Safe for concurrent use.
type insideModels struct {
	sandboxes sandboxOwners
	control   *access.Control
	calls     semaphore.Keyed
}

// Dial is a gateway.Dial.
func (m *insideModels) Dial(ctx context.Context, p gateway.Provider) (net.Conn, error) {
	h, err := m.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	leave, ok := m.calls.Try(h.ID(), maxInside)
	if !ok {
		return nil, fault.New(fault.Limited, "%s answers %d calls of models already.", h.Name(), maxInside)
	}
	session, err := h.Open(ctx, idle.Use{Kind: idle.Stream, Detail: "a model on port " + strconv.Itoa(p.Inside.Port)})
	if err != nil {
		leave()
		return nil, err
	}
	release := func() { session.Release(); leave() }
	conn, err := dialListening(ctx, session.Guest, p.Inside.Port)
	if err != nil {
		release()
		return nil, err
	}
	return &insideConn{Conn: conn, release: sync.OnceFunc(release)}, nil
}

// resolve gives the sandbox of a provider, by the rights of the sandbox's owner: the provider's own, unless the provider is the server's.
func (m *insideModels) resolve(ctx context.Context, p gateway.Provider) (access.Handle, error) {
	name, owner, err := m.sandboxes.OwnerOf(ctx, p.Inside.Sandbox)
	if err == nil && p.Owner != "" && p.Owner != owner {
		err = access.NotFound(name)
	}
	var h access.Handle
	if err == nil {
		h, err = m.control.Resolve(ctx, name, access.By(auth.Principal{User: auth.User{ID: owner}}))
	}
	if err == nil && h.ID() != p.Inside.Sandbox {
		err = access.NotFound(name)
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(err, fault.Gone, "The sandbox has been deleted.")
	}
	if err != nil {
		return h, fmt.Errorf("find the sandbox of provider %s: %w", p.Name, err)
	}
	return h, nil
}

// dialListening connects to a port. While a declared service should listen there it tries again, until ctx ends: the sandbox may just have
// been woken.
func dialListening(ctx context.Context, guest access.Guest, port int) (net.Conn, error) {
	for {
		conn, err := guest.DialPort(ctx, port)
		if !fault.Is(err, fault.NotFound) || !comesUp(ctx, guest, port) {
			return conn, err
		}
		select {
		case <-time.After(listenPause):
		case <-ctx.Done():
			return nil, fault.Wrap(err, fault.Timeout, "The service on port %d does not listen yet.", port)
		}
	}
}

// comesUp reports whether a declared service should listen at a port.
func comesUp(ctx context.Context, guest access.Guest, port int) bool {
	services, err := guest.Services(ctx)
	if err != nil {
		return false
	}
	for _, s := range services {
		young := s.State == wire.ServiceStopped && time.Since(s.Since) < justStarted
		if s.Port == port && (young || s.State == wire.ServiceRunning || s.State == wire.ServiceWaiting) {
			return true
		}
	}
	return false
}

// insideConn is a connection that uses its sandbox until it is closed.
type insideConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *insideConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
