package proxy

import (
	"net/http"
	"strings"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// inbound is a request until its sandbox is open for it.
type inbound struct {
	responder
	proxy  *Proxy
	handle access.Handle // of what the caller may use, once authorize has found out
}

func (i *inbound) signIn() *signIn { return &signIn{i.responder, i.proxy} }

// serveOwn answers below hostname.OwnPath, which is ours on every sandbox's host.
func (i *inbound) serveOwn() {
	asset := strings.TrimPrefix(i.r.URL.Path, hostname.OwnPath)
	switch {
	case i.r.URL.Path == hostname.SharePath:
		(&shareLink{i.responder, i.proxy}).serve()
	case i.r.Method != http.MethodGet && i.r.Method != http.MethodHead:
		i.show(methodRefused("This address does", i.r.Method))
	case i.r.URL.Path == returnPath:
		i.signIn().finish()
	case i.r.URL.Path == hostname.SignInPath:
		i.signIn().start()
	case i.r.URL.Path == scriptPath:
		i.serveScript()
	case i.r.URL.Path == waitPath:
		i.serveWait()
	case strings.HasPrefix(asset, "/static/"):
		r := i.r.Clone(i.r.Context())
		r.URL.Path, r.URL.RawPath = asset, ""
		i.proxy.cfg.Assets.Files.ServeHTTP(i.w, r)
	default:
		i.show(notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "Not found",
			Text: "There is nothing at this address."})
	}
}

// serve takes the request to its sandbox if the caller may use it. It returns when the request, or the stream that it became,
// has ended.
func (i *inbound) serve() {
	sb, ok := i.authorize()
	if !ok {
		return
	}
	if i.observes() {
		i.w.Header().Set(stateHeader, string(sb.State))
	}
	if n, closed := i.closedNotice(sb); closed {
		i.show(n)
		return
	}
	leave, err := i.limitOutsiders(sb)
	if err != nil {
		i.refuse(err)
		return
	}
	defer leave()
	session, use, ok := i.open(sb)
	if !ok {
		return
	}
	p := &proxied{responder: i.responder, proxy: i.proxy, handle: i.handle, use: use, session: session,
		woken: sb.State != sandbox.Running, since: time.Now()}
	defer p.release()
	if p.woken { // a program may have given up the connections that were open when it was frozen
		i.proxy.pools.of(sb.ID, session.Guest).close()
	}
	to := upstream{host: portHost(i.target.Port), path: i.r.URL.Path, rawPath: i.r.URL.RawPath}
	switch i.target.Kind {
	case hostname.Terminal:
		p.serveTerminal()
	case hostname.IDE:
		to.host = ideHost
		p.forward(to)
	default:
		p.forward(to)
	}
}

// authorize identifies the caller and checks that they may use the sandbox or the port. Otherwise it answers, and ok is false.
func (i *inbound) authorize() (sb sandbox.Sandbox, ok bool) {
	ctx, resolved := i.proxy.cfg.Step(i.r.Context(), "resolve")
	c, err := i.proxy.judge(ctx, *i.request, i.proxy.credentials)
	resolved(err)
	i.who, i.handle, i.target = c.who, c.handle, c.target
	sb = i.handle.Sandbox()
	switch {
	case c.movedTo.Kind == hostname.Service:
		i.redirectHost(c.movedTo)
	case fault.Is(err, fault.Unauthenticated) && i.staleWorker(c.at):
		i.refuseWorker("This service worker belongs to a sandbox that is gone.")
	case fault.Is(err, fault.Unauthenticated):
		i.signIn().challenge(err, c.password)
	case err != nil:
		i.refuse(err)
	default:
		return sb, !i.signIn().clearsStale(sb)
	}
	return sb, false
}
