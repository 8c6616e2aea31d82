package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Dial connects to a provider in a sandbox, which it wakes and keeps awake until the connection is closed. ctx is for connecting only. The
// provider's owner has to be the sandbox's, unless the provider is the server's. Kinds: Gone (the sandbox is deleted, or another user's),
// Forbidden (its owner is disabled), Conflict (it is stopped, or has failed), NotFound (nothing listens at the port), Limited (too many
// calls at once), Timeout, Unavailable.
type Dial func(ctx context.Context, p Provider) (net.Conn, error)

// wakeLimit is how long a sandbox may take to be awake, with its server listening.
const wakeLimit = time.Minute

// insideMark is a header of requests to providers in sandboxes. A request that has it comes back from one, and is not passed to one again.
// A server there that drops it meets the bounds of its sandbox at last (maxAtOnce).
const insideMark = "Sandboxd-From-Gateway"

func (p Provider) isInside() bool { return p.Inside != (Inside{}) }

// base is the address that paths are below. Servers see a name of loopback as their Host: Ollama refuses others.
func (p Provider) base() string {
	if p.isInside() {
		return "http://127.0.0.1:" + strconv.Itoa(p.Inside.Port)
	}
	return p.BaseURL
}

// mark marks a request to a provider in a sandbox.
func (p Provider) mark(h http.Header) {
	if p.isInside() {
		h.Set(insideMark, "1")
	}
}

// wayInside makes the way to a provider in a sandbox. Each request has a connection of its own, so that the sandbox is kept awake for just as
// long as the request takes. ctx is the request's: net/http has a connection made to its end also when its request is over.
func (s *Service) wayInside(ctx context.Context, p Provider) *http.Transport {
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if s.c.Dial == nil {
				return nil, fault.New(fault.Gone, "Here are no sandboxes.")
			}
			ctx, cancel := context.WithTimeout(ctx, wakeLimit)
			defer cancel()
			return s.c.Dial(ctx, p)
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
}

// checkPlace checks where a provider is: at an address or in a sandbox. base is the address as it is to be kept.
func checkPlace(p Provider) (base string, err error) {
	switch {
	case !p.isInside():
		return checkURL(p.BaseURL)
	case p.BaseURL != "":
		return "", fault.Field("base_url", "A provider has an address, or a sandbox and a port, not both.")
	case p.Inside.Sandbox == "":
		return "", fault.Field("sandbox", "Choose the sandbox in which the server of models runs.")
	case p.Inside.Port < 1 || p.Inside.Port > 65535:
		return "", fault.Field("port", "A port is a number between 1 and 65535.")
	case p.Inside.Port == wire.ModelsPort:
		return "", fault.Field("port", "At port %d sandboxd itself answers. Enter the port of your server; Ollama's is 11434.", wire.ModelsPort)
	case p.Kind != Ollama && p.Kind != OpenAI:
		return "", fault.Field("kind", "A server in a sandbox is of the kind %s or %s.", Ollama, OpenAI)
	}
	return "", nil
}

// missedInside is the problem with a provider in a sandbox that gave no answer. The sandbox is not named: it may be another user's.
func (c configured) missedInside(err error) *problem {
	p := refuse(http.StatusBadGateway, "The model provider %s is a server in a sandbox, ", quoted(c.Name))
	p.again, p.err, p.final = true, err, true
	switch kind := fault.KindOf(err); {
	case kind == fault.Gone:
		p.message += "which has been deleted. " + c.mend("change")
	case kind == fault.Conflict:
		p.message += "which is stopped or has failed. Its owner can start it."
	case kind == fault.Forbidden:
		p.message += "whose owner is disabled. " + c.mend("change")
	case kind == fault.NotFound:
		p.message += "where nothing listens on port " + strconv.Itoa(c.Inside.Port) + ". Start the server there, or change the port."
	case kind == fault.Timeout || errors.Is(err, context.DeadlineExceeded):
		p.status, p.final = http.StatusGatewayTimeout, false
		p.message += "which was not ready within " + wakeLimit.String() + ". Try again."
	case kind == fault.Limited:
		p.status, p.final, p.wait = http.StatusTooManyRequests, false, time.Second
		p.message += "which answers as many calls as it may at once. Wait and try again."
	case kind == fault.Unavailable:
		p.status, p.final = http.StatusServiceUnavailable, false
		p.message += "which cannot be reached now. Try again later."
	default:
		p.final = false
		p.message += "which broke the connection before it answered. Try again; if this lasts, look at the server's log there."
	}
	return p
}

// roundAgain refuses a request that a provider in a sandbox has sent back to the gateway.
func (c configured) roundAgain() *problem {
	p := refuse(http.StatusLoopDetected, "The request comes from a model provider in a sandbox, and would be passed to the provider %s, which is in one too. "+
		"That would never end: have that server answer by itself, or ask a provider that is in no sandbox.", quoted(c.Name))
	p.final, p.again = true, true
	return p
}

// kind is the problem as an error of a check.
func (p *problem) kind() fault.Kind {
	if p.status == http.StatusGatewayTimeout {
		return fault.Timeout
	}
	return fault.Unavailable
}
