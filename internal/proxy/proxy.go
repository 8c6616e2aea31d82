// Package proxy serves the hosts of sandboxes: a sandbox's terminal, its VS Code, and any port in it, by number or by the name
// of the service that is declared there.
//
// A request of somebody who may use the sandbox wakes it and then goes there as it came, its body unread until then. While
// it waits, a person sees a page that goes on by itself; everything else is held. What a request goes on to be (a stream,
// an upload, a WebSocket) counts as use by what flows through it, and what a forgotten page does by itself wakes nothing.
//
// It does not serve the dashboard, holds no rule about who owns what (auth and sandbox do), changes no sandbox (opening a
// door wakes one) and does not decide when one is put to rest (idle does).
//
// Invariant: nothing reaches a sandbox, and nothing wakes one, before its visitor is known and may use it. To a public port
// anybody may come, and to a shared one whoever shows a share of it, known by that alone; neither comes to another port, the
// terminal or VS Code by it. Nothing by which a visitor is known (our cookies, tokens, identity headers) ever reaches it. Nothing that comes out of a sandbox can set
// a cookie beyond its own host. A byte of a visitor's reaches a sandbox that stands still only after it has been thawed,
// unless nobody is behind that byte.
package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"path"
	"strings"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

// Sandboxes tells of sandboxes. Implemented by sandbox.Manager.
type Sandboxes interface {
	Finder
	// Progress tells how far a sandbox's way up has come, by id.
	Progress(id string) sandbox.Progress
	// OffersIDE says whether VS Code is switched on in one.
	OffersIDE(s sandbox.Sandbox) bool
}

// Finder finds a sandbox by name, from memory, or gives NotFound. Implemented by sandbox.Manager.
type Finder interface {
	Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error)
	// Services gives the services that are declared in one.
	Services(s sandbox.Sandbox) []catalog.Service
}

// Ports says what is open to whoever may not use the sandbox. It answers from memory. Implemented by visibility.Ports.
type Ports interface {
	// Public reports whether anybody may use a port.
	Public(sandboxID string, port int) bool
	// Redeem gives the share that the secret of a link opens, and the pass that stands for the link from then on.
	Redeem(sandboxID string, port int, secret string) (share sandbox.Share, pass string, ok bool)
	// Admits gives the share that such a pass stands for, while it is good.
	Admits(sandboxID string, port int, pass string) (sandbox.Share, bool)
}

// Accounts tells who shows a credential; an unknown, expired or revoked one is Unauthenticated. Implemented by
// auth.Service.
type Accounts interface {
	// Authenticate knows API tokens.
	Authenticate(ctx context.Context, token string) (auth.Principal, error)
	// HostSession knows the secrets of RedeemCode, at the host that they are for.
	HostSession(ctx context.Context, secret, host string) (auth.Principal, error)
	// RedeemCode turns a one-time code into a session for one host.
	RedeemCode(ctx context.Context, code, host, nonce string) (secret, sandboxID string, err error)
	// User finds one by id, or gives NotFound.
	User(ctx context.Context, id string) (auth.User, error)
}

// Tracker knows what uses the sandboxes, by ID. Implemented by idle.Tracker.
type Tracker interface {
	// Heartbeat notes that key asks, and says whether it does so at equal pauses.
	Heartbeat(id, key string) bool
	// Counts says whether an unattended use would count now.
	Counts(id string) bool
}

// Assets are the files of our terminal page, for sandboxes without ttyd. A sandbox's host serves them below
// /.sandboxd/static/ without asking who wants them.
type Assets struct {
	Files   http.Handler // serves paths below /static/, as static.Assets does; nil for none
	Scripts []string     // ES modules that the page loads: paths such as /static/solo-5Q7XK2.js
	Styles  []string     // style sheets that the page loads
}

// Config is what a Proxy is made of. Nothing in it may be nil unless its comment says so.
type Config struct {
	Hosts     hostname.Hosts
	Sandboxes Sandboxes
	Accounts  Accounts
	Ports     Ports
	Access    *access.Control
	Tracker   Tracker
	Trusted   []netip.Prefix // proxies that are believed who they ask for
	Assets    Assets
	Log       *slog.Logger
}

// Proxy answers for the hosts of sandboxes. Safe for concurrent use. It sets no bounds on a request as a whole, because
// streams may last: the server before it bounds the head of a request (time and size).
type Proxy struct {
	cfg       Config
	known     *known
	attempts  attempts
	strangers strangers
	audience  semaphore.Keyed // outsiders in a port, and of each client
	pools     *pools
	reverse   *httputil.ReverseProxy
}

// New makes a proxy. It does no I/O.
func New(cfg Config) *Proxy {
	if cfg.Assets.Files == nil {
		cfg.Assets.Files = http.NotFoundHandler()
	}
	p := &Proxy{cfg: cfg, known: newKnown(cfg.Accounts), pools: newPools()}
	p.reverse = newReverse(cfg.Log)
	return p
}

// askLimit bounds each question before a request reaches its sandbox: who somebody is and which sandbox it is.
const askLimit = 10 * time.Second

// visit is one request to a sandbox's host.
type visit struct {
	*Proxy
	w      http.ResponseWriter
	r      *http.Request
	target hostname.Target
	who    visitor       // nobody until they are recognised
	handle access.Handle // of what they may use, from then on
	begun  time.Time
}

// ServeHTTP answers one request to a sandbox's host.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, err := p.cfg.Hosts.Parse(r.Host)
	v := visit{Proxy: p, w: w, r: r, target: target, begun: time.Now()}
	if err != nil || target.Kind == hostname.Dashboard {
		v.misdirected()
		return
	}
	switch {
	case v.strange():
		v.show(methodRefused("Sandboxes do not take this method."))
	case v.target.Kind == hostname.Terminal && fetchesWorker(r):
		v.refuseWorker("There are no service workers at a terminal's address.")
	case ownPath(r.URL.Path):
		v.own()
	default:
		v.enter()
	}
}

// misdirected answers for a host that is no sandbox's. Under our own domain that is a mistyped name; any other host
// was led to us by somebody else's DNS and learns nothing.
func (v visit) misdirected() {
	host, _, _ := strings.Cut(strings.ToLower(v.r.Host), ":")
	if strings.HasSuffix(strings.TrimSuffix(host, "."), "."+v.cfg.Hosts.Domain) {
		v.show(v.unknown())
		return
	}
	http.Error(v.w, "This host is not served here.", http.StatusMisdirectedRequest)
}

// ownPath judges the path as a server that cleans paths would read it.
func ownPath(p string) bool {
	clean := path.Clean("/" + p)
	return clean == hostname.OwnPath || strings.HasPrefix(clean, hostname.OwnPath+"/")
}

func (v visit) own() {
	asset := strings.TrimPrefix(v.r.URL.Path, hostname.OwnPath)
	switch {
	case v.r.URL.Path == hostname.SharePath:
		v.share()
	case v.r.Method != http.MethodGet && v.r.Method != http.MethodHead:
		v.show(methodRefused("This address does not take that method."))
	case v.r.URL.Path == returnPath:
		v.comeBack()
	case v.r.URL.Path == hostname.SignInPath:
		v.signIn()
	case v.r.URL.Path == scriptPath:
		v.serveScript()
	case v.r.URL.Path == waitPath:
		v.wait()
	case strings.HasPrefix(asset, "/static/"):
		r := v.r.Clone(v.r.Context())
		r.URL.Path, r.URL.RawPath = asset, ""
		v.cfg.Assets.Files.ServeHTTP(v.w, r)
	default:
		v.show(notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "Not found",
			Text: "There is nothing at this address."})
	}
}

// strange reports whether the method is for a proxy and not for a server.
func (v visit) strange() bool {
	return v.r.Method == http.MethodConnect || v.r.Method == http.MethodTrace || v.r.URL.Path == "*"
}

// enter leads a visitor who may use the sandbox to it, and stays until the request, or the stream that became of it, has
// ended.
func (v visit) enter() {
	v, sb, ok := v.admit()
	if !ok {
		return
	}
	leave, err := v.squeeze(sb)
	if err != nil {
		v.refuse(err)
		return
	}
	defer leave()
	session, use, ok := v.open(sb)
	if !ok {
		return
	}
	s := &stay{visit: v, use: use, session: session, woken: sb.State != sandbox.Running, since: time.Now()}
	defer s.release()
	if s.woken { // a program may have given up the connections that were open when it was frozen
		v.pools.of(sb.ID, session.Guest).close()
	}
	way := passage{upstream: portHost(v.target.Port), path: v.r.URL.Path, rawPath: v.r.URL.RawPath}
	switch v.target.Kind {
	case hostname.Terminal:
		s.serveTerminal()
	case hostname.IDE:
		way.upstream = ideHost
		s.forward(way)
	default:
		s.forward(way)
	}
}

// admit lets in a visitor who may use a sandbox that can be entered. It answers whom it does not let in.
func (v visit) admit() (visit, sandbox.Sandbox, bool) {
	v, sb, ok := v.recognise()
	if !ok {
		return v, sb, false
	}
	if v.observes() {
		v.w.Header().Set(stateHeader, string(sb.State))
	}
	if n, closed := v.closedNotice(sb); closed {
		v.show(n)
		return v, sb, false
	}
	return v, sb, true
}

// recognise finds out who asks, and that they may use the sandbox or the port. It answers who may not.
func (v visit) recognise() (visit, sandbox.Sandbox, bool) {
	c, err := v.judge(v.r.Context(), v.known)
	v.who, v.handle, v.target = c.who, c.handle, c.target
	sb := v.handle.Sandbox()
	switch {
	case c.movedTo.Kind == hostname.Service:
		v.lead(c.movedTo)
	case fault.Is(err, fault.Unauthenticated) && v.staleWorker(c.at):
		v.refuseWorker("This service worker belongs to a sandbox that is gone.")
	case fault.Is(err, fault.Unauthenticated):
		v.challenge(err, c.password)
	case err != nil:
		v.refuse(err)
	default:
		return v, sb, !v.evicts(v.who, sb)
	}
	return v, sb, false
}

// client is where the request comes from.
func (v visit) client() netip.Addr {
	return hostname.Client(v.r.RemoteAddr, v.r.Header["X-Forwarded-For"], v.cfg.Trusted)
}

// from names the network that attempts are counted by: one customer usually has an IPv4 address, or a /64 of IPv6.
func (v visit) from() string {
	addr := v.client()
	if !addr.Is6() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}
