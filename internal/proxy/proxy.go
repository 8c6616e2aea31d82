// Package proxy serves the hosts of sandboxes: a sandbox's terminal, its VS Code, and any port in it, by number or by the name
// of the service declared there.
//
// An authorized request wakes the sandbox and is then forwarded unchanged; its body is not read before. Meanwhile a person sees
// a page that continues by itself, and every other request is held. A stream, an upload or a WebSocket counts as use by the bytes
// that flow through it. What a forgotten page sends by itself wakes nothing.
//
// It does not serve the dashboard, does not decide who owns what (auth and sandbox do) or when a sandbox rests (idle does), and
// changes no sandbox, except that opening one wakes it.
//
// Invariant: no request reaches or wakes a sandbox before its caller is authorized. Anyone may use a public port, and anyone with
// a share its port; neither gives access to another port, the terminal or VS Code. Credentials of ours (cookies, tokens, identity
// headers) never reach a sandbox, and no sandbox can set a cookie beyond its own host. A byte reaches a frozen sandbox only after
// the thaw, unless it is unattended.
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
	"sandboxd/internal/ratelimit"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
)

// Sandboxes describes sandboxes. Implemented by sandbox.Manager.
type Sandboxes interface {
	Finder
	// Progress gives how far the start of a sandbox has come, by id.
	Progress(id string) sandbox.Progress
	// Starts reports whether a start of it is under way or in line.
	Starts(id string) bool
	// OffersIDE reports whether VS Code is on.
	OffersIDE(s sandbox.Sandbox) bool
}

// Finder finds a sandbox by name, from memory, or gives NotFound. Implemented by sandbox.Manager.
type Finder interface {
	Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error)
	// Services gives the declared services.
	Services(s sandbox.Sandbox) []catalog.Service
}

// Ports says which ports are open to outsiders. It answers from memory. Implemented by visibility.Ports.
type Ports interface {
	// Public reports whether anyone may use a port.
	Public(sandboxID string, port int) bool
	// Redeem gives the share that a link's secret opens, and the pass that replaces the secret from then on.
	Redeem(sandboxID string, port int, secret string) (share sandbox.Share, pass string, ok bool)
	// Admits gives the share of a pass, while it is valid.
	Admits(sandboxID string, port int, pass string) (sandbox.Share, bool)
}

// Accounts gives the owner of a credential; an unknown, expired or revoked one is Unauthenticated. Implemented by auth.Service.
type Accounts interface {
	// Authenticate checks an API token.
	Authenticate(ctx context.Context, token string) (auth.Principal, error)
	// HostSession checks a secret of RedeemCode, at the host that it is for.
	HostSession(ctx context.Context, secret, host string) (auth.Principal, error)
	// RedeemCode turns a one-time code into a session for one host.
	RedeemCode(ctx context.Context, code, host string, nonces ...string) (secret, sandboxID string, err error)
	// User finds one by id, or gives NotFound.
	User(ctx context.Context, id string) (auth.User, error)
}

// Tracker follows the use of sandboxes, by ID. Implemented by idle.Tracker.
type Tracker interface {
	// Heartbeat notes a request of key, and reports whether they come at equal pauses.
	Heartbeat(id, key string) bool
	// Counts reports whether an unattended use would count now.
	Counts(id string) bool
}

// Assets are the files of our terminal page. A sandbox's host serves them below
// /.sandboxd/static/ to anyone.
type Assets struct {
	Files   http.Handler // serves paths below /static/, as static.Assets does; nil for none
	Scripts []string     // ES modules that the page loads: paths such as /static/solo-5Q7XK2.js
	Styles  []string     // style sheets that the page loads
	Icon    string       // the page's icon, "" for none
}

// Config is what a Proxy needs. Nothing in it may be nil unless its comment says so.
type Config struct {
	Hosts     hostname.Hosts
	Sandboxes Sandboxes
	Accounts  Accounts
	Ports     Ports
	Access    *access.Control
	Tracker   Tracker
	Trusted   []netip.Prefix // proxies whose X-Forwarded-For is believed
	Assets    Assets
	Log       *slog.Logger
	// Step is told when a step of a request begins ("resolve", "wake" or "open", "proxy"), with the request's context, and through done how it
	// ended; done may be called more than once, and only the first call counts. The step goes on under the context that it gives.
	// Both calls must not block. nil for none.
	Step func(ctx context.Context, name string) (within context.Context, done func(error))
}

// Proxy serves the hosts of sandboxes. Safe for concurrent use. It bounds no request as a whole, because streams may last: the
// server before it bounds the time and size of a request's head.
type Proxy struct {
	cfg         Config
	credentials *credentialCache
	attempts    ratelimit.Keyed // wrong passwords, by network and sandbox
	wakes       *wakeLimiter
	outsiders   semaphore.Keyed // requests of outsiders, by port and by client
	pools       *pools
	reverse     *httputil.ReverseProxy
}

// New makes a proxy. It does no I/O.
func New(cfg Config) *Proxy {
	if cfg.Assets.Files == nil {
		cfg.Assets.Files = http.NotFoundHandler()
	}
	if cfg.Step == nil {
		cfg.Step = func(ctx context.Context, _ string) (context.Context, func(error)) { return ctx, noStep }
	}
	p := &Proxy{cfg: cfg, credentials: newCredentialCache(cfg.Accounts), pools: newPools(),
		attempts: ratelimit.Keyed{Burst: attemptsBurst, Every: attemptsEvery}, wakes: newWakeLimiter()}
	p.reverse = newReverse(cfg.Log)
	return p
}

func noStep(error) {}

// askLimit bounds each lookup before a request reaches its sandbox: of the caller and of the sandbox.
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
		i.show(methodRefused("Sandboxes do", r.Method))
	case target.Kind == hostname.Terminal && fetchesWorker(r):
		i.refuseWorker("There are no service workers at a terminal's address.")
	case ownPath(r.URL.Path):
		i.serveOwn()
	default:
		i.serve()
	}
}

// ownPath reports whether a path is ours, read as by a server that cleans paths.
func ownPath(p string) bool {
	clean := path.Clean("/" + p)
	return clean == hostname.OwnPath || strings.HasPrefix(clean, hostname.OwnPath+"/")
}
