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
	cfg         Config
	credentials *credentialCache
	attempts    attempts
	wakes       wakeLimiter
	outsiders   semaphore.Keyed // outsiders in a port, and of each client
	pools       *pools
	reverse     *httputil.ReverseProxy
}

// New makes a proxy. It does no I/O.
func New(cfg Config) *Proxy {
	if cfg.Assets.Files == nil {
		cfg.Assets.Files = http.NotFoundHandler()
	}
	p := &Proxy{cfg: cfg, credentials: newCredentialCache(cfg.Accounts), pools: newPools()}
	p.reverse = newReverse(cfg.Log)
	return p
}

// askLimit bounds each question before a request reaches its sandbox: who somebody is and which sandbox it is.
const askLimit = 10 * time.Second

// ServeHTTP answers one request to a sandbox's host.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, err := p.cfg.Hosts.Parse(r.Host)
	q := &request{r: r, hosts: p.cfg.Hosts, trusted: p.cfg.Trusted, target: target, begun: time.Now()}
	i := &inbound{responder: responder{q, w, p.cfg.Sandboxes, p.cfg.Log}, proxy: p}
	if err != nil || target.Kind == hostname.Dashboard {
		i.misdirected()
		return
	}
	switch {
	case q.unsupported():
		i.show(methodRefused("Sandboxes do not take this method."))
	case target.Kind == hostname.Terminal && fetchesWorker(r):
		i.refuseWorker("There are no service workers at a terminal's address.")
	case ownPath(r.URL.Path):
		i.serveOwn()
	default:
		i.serve()
	}
}

// ownPath judges the path as a server that cleans paths would read it.
func ownPath(p string) bool {
	clean := path.Clean("/" + p)
	return clean == hostname.OwnPath || strings.HasPrefix(clean, hostname.OwnPath+"/")
}
