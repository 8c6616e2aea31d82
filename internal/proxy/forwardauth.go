package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// ForwardAuth answers Traefik's question whether a request may go to its sandbox directly: as that request would be
// answered by the proxy, up to the door. Whoever may pass is counted, finds the sandbox awake, and gets what opens its
// gateway (200 with headers for Traefik's authResponseHeaders); everybody else gets the proxy's own answer, which Traefik
// passes on. It must be reached by Traefik alone, since it believes what the question says.
//
// What Traefik must not ask, because the answer is a page of ours or has to stay under our eyes, is misdirected: terminals,
// paths below /.sandboxd, and hosts that are no sandbox's.
func (p *Proxy) ForwardAuth() http.Handler { return http.HandlerFunc(p.forwardAuth) }

func (p *Proxy) forwardAuth(w http.ResponseWriter, question *http.Request) {
	r, err := asked(question)
	if err != nil || question.Method != http.MethodGet {
		http.Error(w, "This is for Traefik.", http.StatusBadRequest)
		return
	}
	target, err := p.cfg.Hosts.Parse(r.Host)
	v := visit{Proxy: p, w: w, r: r, target: target, begun: time.Now(), direct: true}
	switch {
	case err != nil, target.Kind != hostname.Port, ownPath(r.URL.Path):
		http.Error(w, "This host is not served here.", http.StatusMisdirectedRequest)
	case v.strange():
		v.show(methodRefused("Sandboxes do not take this method."))
	default:
		v.pass()
	}
}

// asked gives the request that Traefik asks about, without its body.
func asked(question *http.Request) (*http.Request, error) {
	h := question.Header
	uri, err := url.ParseRequestURI(h.Get("X-Forwarded-Uri"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The question has no address.")
	}
	r := question.WithContext(question.Context())
	r.Method, r.Host = h.Get("X-Forwarded-Method"), h.Get("X-Forwarded-Host")
	r.URL, r.RequestURI = uri, h.Get("X-Forwarded-Uri")
	r.Header = h.Clone()
	// Traefik is the last hop, so what it says is where it was asked from, as for a request that comes here by itself.
	chain := strings.Join(h.Values("X-Forwarded-For"), ",")
	last := strings.LastIndexByte(chain, ',')
	r.RemoteAddr = strings.TrimSpace(chain[last+1:])
	r.Header.Set("X-Forwarded-For", chain[:max(last, 0)])
	return r, nil
}

// pass lets a request through that may enter its sandbox.
func (v visit) pass() {
	v, sb, ok := v.admit()
	if !ok {
		return
	}
	if v.observes() {
		if sb.State != sandbox.Running {
			v.show(v.unseen(sb))
			return
		}
		v.letThrough(sb, idle.Use{Unattended: true})
		return
	}
	use := v.use()
	if !v.mayWake(use, sb) {
		v.leave(sb.State)
		return
	}
	v.cfg.Tracker.Touch(v.target.Name, use) // before the look at the state: whoever puts it to rest asks afterwards
	now, err := v.handle.Current(v.r.Context())
	if err == nil && now.State == sandbox.Running && v.answers(now) {
		v.letThrough(now, use)
		return
	}
	v.wake(sb, use)
}

// answers reports whether the sandbox's gateway takes passes, and it is known that the service answers, or that there is
// none.
func (v visit) answers(sb sandbox.Sandbox) bool {
	return v.opens(sb) && (!v.fresh(sb, false) || v.ready.since(sb.ID, v.target.Port, sb.Changed))
}

// opens reports whether a pass of ours opens the sandbox's gateway. Right after a start of sandboxd its guest still has the
// key of the one before.
func (v visit) opens(sb sandbox.Sandbox) bool { return v.cfg.Keys != nil && v.cfg.Keys.Knows(sb.ID) }

// wake lets a request through once its sandbox is awake and the service that it asks for answers.
func (v visit) wake(sb sandbox.Sandbox, use idle.Use) {
	ctx, cancel := context.WithDeadline(v.r.Context(), v.deadline())
	defer cancel()
	session, err := v.knock(ctx, sb, v.handle.Open, use)
	if err == nil {
		defer session.Release()
		sb = session.Sandbox()
		err = v.awaitService(ctx, session)
	}
	if err != nil {
		v.shut(ctx, sb, err)
		return
	}
	v.ready.note(sb.ID, v.target.Port, time.Now())
	v.letThrough(sb, use)
}

// letThrough answers with what opens the gateway, and with the headers that may reach the sandbox.
func (v visit) letThrough(sb sandbox.Sandbox, use idle.Use) {
	var pass string
	if v.opens(sb) {
		newPass := wire.NewPass
		if v.who.outside() {
			newPass = wire.NewOutsiderPass
		}
		pass = newPass(v.cfg.Keys.GatewayKey(sb.ID), v.r.Host, time.Now().Add(wire.PassLife))
	}
	if pass == "" {
		v.refuse(fault.New(fault.Unavailable, "There is no direct way to %s now.", v.target.Name))
		return
	}
	h := v.w.Header()
	for _, name := range []string{"Cookie", "Authorization", "X-Api-Key"} {
		if values := v.r.Header.Values(name); len(values) > 0 {
			h[name] = values
		}
	}
	scrubRequest(h)
	h.Set(wire.PassHeader, pass)
	h.Set("X-Forwarded-Host", v.outsideHost())
	h.Set("X-Forwarded-Proto", v.cfg.Hosts.Scheme)
	if client := v.client().String(); client != v.r.RemoteAddr { // Traefik adds where it was asked from by itself
		h.Set("X-Forwarded-For", client)
	}
	// Events are counted by the gateway as they flow: as unattended, since nobody else sees them.
	if use.Unattended && v.r.Header.Get("Accept") != "text/event-stream" {
		h.Set(wire.UnattendedHeader, "1")
	}
	v.w.WriteHeader(http.StatusOK)
}
