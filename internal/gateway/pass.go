package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/publicaddr"
)

const (
	connectLimit = 10 * time.Second
	silence      = 10 * time.Minute // of a provider, before its first byte (models think that long) and between two
	lastWrite    = 5 * time.Second  // for a client that reads nothing, once its provider was given up
	lookAgain    = 3 * time.Second  // whether a caller whose request is under way may still ask
	idleConns    = 64               // of one provider; about what one busy sandbox needs
	idleLimit    = 90 * time.Second
	maxHeader    = 64 << 10 // of an answer
)

var errSilent = errors.New("the provider sent nothing for too long")

// newTransport makes a transport that follows no redirect and decodes nothing. control is a net.Dialer's.
func newTransport(control func(network, address string, _ syscall.RawConn) error) *http.Transport {
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: connectLimit, Control: control}).DialContext, TLSHandshakeTimeout: connectLimit,
		ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleLimit, MaxResponseHeaderBytes: maxHeader,
	}
}

// newUsersTransport makes the transport to users' own providers, whose addresses users choose. Unless private ones are allowed it reaches
// public addresses alone, and takes no proxy: that would connect in our place, and ask nobody where to.
func newUsersTransport(private bool) *http.Transport {
	if private {
		return newTransport(nil)
	}
	t := newTransport(publicaddr.Refuse)
	t.Proxy = nil
	return t
}

// pass asks one provider after the other until one answers.
func (x *exchange) pass(found []candidate) error {
	for i, c := range found {
		err := x.try(c, i+1 < len(found))
		if p := (*problem)(nil); i+1 < len(found) && errors.As(err, &p) && p.again && x.out == nil && x.r.Context().Err() == nil {
			continue
		}
		return err
	}
	return errors.New("no provider to ask") // find gives one at least
}

// try asks a provider, and passes its answer on unless the next one is to be asked.
func (x *exchange) try(c candidate, more bool) error {
	x.call.Provider, x.call.Model, x.call.Problem = c.Name, c.model, ""
	if c.problem != nil {
		return &problem{status: http.StatusServiceUnavailable, message: fault.Message(c.problem), final: true, again: true, err: c.problem}
	}
	if c.isInside() && x.r.Header.Get(insideMark) != "" {
		return c.roundAgain()
	}
	if len(c.Models) > 0 && !x.body.asksFor(c.lists) {
		return refuse(http.StatusBadRequest, "The model provider %q is asked for the models that it lists alone, and the fields \"models\" or \"fallbacks\" of the request name others. Leave them out.", c.Name)
	}
	ctx, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	giveUp := func(why error) {
		cancel(why)
		_ = x.control.SetWriteDeadline(time.Now().Add(lastWrite)) // a connection without deadlines ends with its sandbox
	}
	quiet := time.AfterFunc(silence, func() { giveUp(errSilent) })
	allowed := x.watch(ctx, giveUp)
	defer func() {
		quiet.Stop()
		if allowed(); ctx.Err() != nil && x.r.Context().Err() == nil {
			_ = x.control.SetWriteDeadline(time.Time{}) // as above
		}
	}()
	res, err := x.ask(ctx, c)
	if err != nil {
		if x.isCut(err) {
			x.count(c, &meter{}, true)
		}
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	if more && x.passesOver(res.StatusCode) {
		p := refuse(res.StatusCode, "The model provider %q answered with the status %d.", c.Name, res.StatusCode)
		p.again = true
		return p
	}
	form, err := x.judge(res, c)
	if err != nil {
		return err
	}
	return x.relay(ctx, res, c, form, quiet)
}

// watch calls giveUp when the caller may not ask any more: a token was revoked, or a sandbox deleted, while it waits. It looks until ctx ends
// or the function that it gives is called, which waits for it.
func (x *exchange) watch(ctx context.Context, giveUp func(error)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(lookAgain)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if p := x.turnedAway(ctx); p != nil {
				giveUp(p)
				return
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}

// turnedAway says why the caller may not ask any more, or gives nil, also when that cannot be told.
func (x *exchange) turnedAway(ctx context.Context) *problem {
	now, err := x.plane.identify(x.r.WithContext(ctx))
	if err == nil && (now.User != x.caller.User || now.Sandbox != x.caller.Sandbox) {
		err = fault.New(fault.Forbidden, "The request is not of the same user any more. Send it again.")
	}
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.Forbidden, fault.NotFound, fault.Gone:
		p := problemOf(err)
		p.final = true
		return p
	}
	return nil
}

// passesOver reports whether the next provider is asked after an answer of this status.
func (x *exchange) passesOver(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError ||
		status == http.StatusNotFound && x.call.Asked == "" // what another one keeps
}

// ask sends the request to a provider.
func (x *exchange) ask(ctx context.Context, c candidate) (*http.Response, error) {
	var content io.Reader = http.NoBody
	if x.body.raw != nil {
		model := c.model
		if x.route.dialect == Gemini {
			model = "models/" + model
		}
		content = bytes.NewReader(x.body.withModel(model, x.addsUsage()))
	}
	at := c.endpoint(x.route.at(c.model))
	if query := queryFor(x.r.URL.RawQuery); query != "" {
		at += "?" + query
	}
	r, err := http.NewRequestWithContext(ctx, x.r.Method, at, content)
	if err != nil {
		return nil, err
	}
	r.Header = c.headersFor(x.r.Header)
	c.mark(r.Header)
	switch {
	case c.isInside():
		return x.plane.wayInside(ctx, c.Provider).RoundTrip(r)
	case c.Owner != "":
		return x.plane.users.RoundTrip(r)
	}
	return x.plane.server.RoundTrip(r)
}

// addsUsage reports whether the provider is asked for usage that the client has not asked for, and must not see.
func (x *exchange) addsUsage() bool {
	return (x.route.protocol == chat || x.route.protocol == completions) && x.body.stream && !x.body.usage
}

// unreachable is the problem with a provider that gave no answer. Its address is not told.
func (c candidate) unreachable(ctx context.Context, err error) *problem {
	var p *problem
	if errors.As(context.Cause(ctx), &p) {
		return p
	}
	p = refuse(http.StatusBadGateway, "")
	p.again, p.err = true, err
	if c.isInside() && !errors.Is(context.Cause(ctx), errSilent) {
		return c.missedInside(err)
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		p.status = http.StatusGatewayTimeout
		p.message = "The model provider " + quoted(c.Name) + " sent nothing for " + fmt.Sprint(int(silence.Minutes())) + " minutes and was given up."
		return p
	}
	p.message = "The model provider " + quoted(c.Name) + " cannot be reached: " + cause(err) + ". " + c.mend("check")
	return p
}

// cause says in words why a connection failed.
func cause(err error) string {
	var dns *net.DNSError
	var slow net.Error
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, publicaddr.ErrPrivate):
		return "it has a private or local address, which users' own providers may not have unless an admin starts sandboxd with --model-private-addresses"
	case errors.As(err, &dns):
		return "its name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing accepts connections at its address"
	case errors.As(err, &cert):
		return "its certificate is not valid"
	case errors.As(err, &record):
		return "its address is of http, not of https"
	case errors.As(err, &slow) && slow.Timeout():
		return "it did not answer within " + connectLimit.String()
	}
	return "the connection broke before it answered"
}

// mend says who can check or change a provider, and where.
func (c configured) mend(what string) string {
	if c.Owner == "" {
		return "An admin can " + what + " it in the dashboard under Settings → Models."
	}
	return strings.ToUpper(what[:1]) + what[1:] + " it in the dashboard under Settings → Models."
}

// keyRefused is the problem with a provider that does not accept its key. It is not the client's: that one has none, and must not ask for one.
func (c configured) keyRefused(status int) *problem {
	if c.key == "" {
		return refuse(http.StatusForbidden, "The model provider %q wants a key (status %d), and none is configured. %s", c.Name, status, c.mend("set"))
	}
	return refuse(http.StatusForbidden, "The model provider %q refused its key (status %d). Check the key. %s", c.Name, status, c.mend("replace"))
}

// censored gives a text for people without the keys of providers.
func (x *exchange) censored(text string) string {
	for _, p := range x.t.providers {
		if p.key != "" {
			text = strings.ReplaceAll(text, p.key, mask)
		}
	}
	return text
}
