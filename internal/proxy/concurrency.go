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
	outsidersPerPort   = 128
	outsidersPerClient = 16
	outsiderQueue      = 256              // that wait, for a port and of a client
	outsiderPatience   = 10 * time.Second // how long they do
)

// outsiderPause is how long an outsider may send nothing of a body, or take nothing of an answer, before they are let go. What
// the sandbox keeps them waiting for does not count.
const outsiderPause = time.Minute

// errStalled tells that an outsider has not sent the rest of a request's body.
var errStalled = fault.New(fault.Timeout, "The rest of the request did not come.")

// limitOutsiders takes room among the outsiders in a port, for visitors who are some. Limited when the same client has too many
// requests there, Unavailable when all of them together have. The caller must call leave.
func (i *inbound) limitOutsiders(sb sandbox.Sandbox) (leave func(), err error) {
	if !i.who.outside() {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(i.r.Context(), outsiderPatience)
	defer cancel()
	port := sb.ID + " " + strconv.Itoa(i.target.Port)
	leaveClient, err := i.proxy.outsiders.Acquire(ctx, port+" "+i.network(), outsidersPerClient, outsiderQueue)
	if err != nil {
		return nil, fault.New(fault.Limited, "Too many requests come from your address at once. Close some of the pages that are open here.")
	}
	leavePort, err := i.proxy.outsiders.Acquire(ctx, port, outsidersPerPort, outsiderQueue)
	if err != nil {
		leaveClient()
		return nil, fault.New(fault.Unavailable, "Too many people are here at once. Try again in a moment.")
	}
	return func() { leavePort(); leaveClient() }, nil
}
