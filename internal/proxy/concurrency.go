package proxy

import (
	"context"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Limits on concurrent requests of outsiders to one port, streams and WebSockets included. They keep some of a port's maxPerPort
// connections free for those who may use the sandbox. A request over the limit waits for a while, because over HTTP/2 a browser
// sends hundreds of small requests at once for a page of many modules: as many as a connection may.
const (
	outsidersPerPort   = 128
	outsidersPerClient = 16
	outsiderQueue      = 256              // waiting requests, by port and by client
	outsiderPatience   = 10 * time.Second // how long each waits
)

// outsiderPause is how long an outsider may send nothing of a body, or read nothing of an answer, before their request ends. Time
// spent waiting for the sandbox does not count.
const outsiderPause = time.Minute

// errStalled says that an outsider did not send the rest of a request's body.
var errStalled = fault.New(fault.Timeout, "The rest of the request did not come.")

// limitOutsiders takes a place in the port for an outsider's request; others need none. Limited when the client has too many
// requests there, Unavailable when all outsiders together have. The caller must call leave.
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
