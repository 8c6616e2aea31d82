package proxy

import (
	"context"
	"strconv"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// How many requests of outsiders are in one port at once, streams and WebSockets included, so that nobody who was merely let
// in by a link, or by no more than the address, keeps those out who may use the sandbox: of a port's maxPerPort connections
// some are always left for them. Whoever comes when there is no room waits for a while, because a browser asks for hundreds
// of small things at once over HTTP/2 when a page is loaded that is made of many modules: as many as a connection may.
const (
	audiencePerPort   = 128
	audiencePerClient = 16
	audienceQueue     = 256              // that wait, for a port and of a client
	audiencePatience  = 10 * time.Second // how long they do
)

// outsiderPause is how long an outsider may send nothing of a body, or take nothing of an answer, before they are let go. What
// the sandbox keeps them waiting for does not count.
const outsiderPause = time.Minute

// errStalled tells that an outsider has not sent the rest of a request's body.
var errStalled = fault.New(fault.Timeout, "The rest of the request did not come.")

// audience bounds how many outsiders are in a port at once. The zero value is ready for use.
type audience struct {
	mu     sync.Mutex
	places map[string]*place
}

// place is where a bounded number of requests has room.
type place struct {
	room  chan struct{}
	users int // in it and before it; guarded by audience.mu
}

// enter takes room in the place that key names, of most, and waits for it until ctx ends. The caller must call leave when ok.
func (c *audience) enter(ctx context.Context, key string, most int) (leave func(), ok bool) {
	p := c.approach(key, most)
	if p == nil {
		return nil, false
	}
	select {
	case p.room <- struct{}{}:
		return func() { <-p.room; c.depart(key, p) }, true
	case <-ctx.Done():
		c.depart(key, p)
		return nil, false
	}
}

// approach gives the place that key names, nil when too many wait there.
func (c *audience) approach(key string, most int) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.places[key]
	if p == nil {
		p = &place{room: make(chan struct{}, most)}
		if c.places == nil {
			c.places = map[string]*place{}
		}
		c.places[key] = p
	}
	if p.users >= most+audienceQueue {
		return nil
	}
	p.users++
	return p
}

// depart forgets a place that nobody is at any more.
func (c *audience) depart(key string, p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(c.places, key)
	}
}

// squeeze takes room among the outsiders in a port, for visitors who are some. Limited when the same client has too many
// requests there, Unavailable when all of them together have. The caller must call leave.
func (v visit) squeeze(sb sandbox.Sandbox) (leave func(), err error) {
	if !v.who.outside() {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), audiencePatience)
	defer cancel()
	port := sb.ID + " " + strconv.Itoa(v.target.Port)
	leaveClient, ok := v.audience.enter(ctx, port+" "+v.from(), audiencePerClient)
	if !ok {
		return nil, fault.New(fault.Limited, "Too many requests come from your address at once. Close some of the pages that are open here.")
	}
	leavePort, ok := v.audience.enter(ctx, port, audiencePerPort)
	if !ok {
		leaveClient()
		return nil, fault.New(fault.Unavailable, "Too many people are here at once. Try again in a moment.")
	}
	return func() { leavePort(); leaveClient() }, nil
}
