package proxy

import (
	"context"
	"strconv"
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

// squeeze takes room among the outsiders in a port, for visitors who are some. Limited when the same client has too many
// requests there, Unavailable when all of them together have. The caller must call leave.
func (v visit) squeeze(sb sandbox.Sandbox) (leave func(), err error) {
	if !v.who.outside() {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), audiencePatience)
	defer cancel()
	port := sb.ID + " " + strconv.Itoa(v.target.Port)
	leaveClient, err := v.audience.Acquire(ctx, port+" "+v.from(), audiencePerClient, audienceQueue)
	if err != nil {
		return nil, fault.New(fault.Limited, "Too many requests come from your address at once. Close some of the pages that are open here.")
	}
	leavePort, err := v.audience.Acquire(ctx, port, audiencePerPort, audienceQueue)
	if err != nil {
		leaveClient()
		return nil, fault.New(fault.Unavailable, "Too many people are here at once. Try again in a moment.")
	}
	return func() { leavePort(); leaveClient() }, nil
}
