// Package proxy serves the hosts of sandboxes: a sandbox's terminal, and any port in it.
//
// It does not serve the dashboard, holds no rule about who owns what (auth and sandbox do) and changes no sandbox:
// opening a door may wake one, and that is the door's decision.
//
// Invariant: nothing reaches a sandbox before its visitor is known and may use it, and nothing by which a visitor is
// known (our cookies, tokens, identity headers) ever reaches it. Nothing that comes out of a sandbox can set a cookie
// beyond its own host.
package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// Sandboxes finds a sandbox by name, or gives NotFound. Implemented by sandbox.Manager.
type Sandboxes interface {
	Sandbox(ctx context.Context, name string) (sandbox.Sandbox, error)
}

// Accounts tells who shows a credential; an unknown, expired or revoked one is Unauthenticated. Implemented by
// auth.Service.
type Accounts interface {
	// Authenticate knows API tokens.
	Authenticate(ctx context.Context, token string) (auth.Principal, error)
	// HostSession knows the secrets of RedeemCode, at the host that they are for.
	HostSession(ctx context.Context, secret, host string) (auth.Principal, error)
	// RedeemCode turns a one-time code into a session for one host.
	RedeemCode(ctx context.Context, code, host, nonce string) (secret string, err error)
}

// Doors opens sandboxes: door.Doors behind FromDoors.
type Doors interface {
	// Open registers a use and gives the live link. NotFound, Conflict (not to be woken), Unavailable, Timeout.
	Open(ctx context.Context, name, use string) (Entry, error)
}

// Entry is one use of one sandbox, until Release.
type Entry struct {
	Sandbox sandbox.Sandbox
	Session Session
	TTYD    bool // a real ttyd answers on the terminals, with a page of its own
	Release func()
}

// Session is the live link to a sandbox. Equal sessions are the same link. What is dialled is a byte stream to an HTTP
// server that is not to be trusted.
type Session interface {
	// DialPort connects to a port in the sandbox; NotFound when nothing listens there.
	DialPort(ctx context.Context, port int) (net.Conn, error)
	// DialTerminal connects to the HTTP server of a terminal tab: ttyd's, or the guest's own.
	DialTerminal(ctx context.Context, tab string) (net.Conn, error)
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
	Doors     Doors
	Assets    Assets
	Log       *slog.Logger
}

// Proxy answers for the hosts of sandboxes. Safe for concurrent use. It sets no bounds on a request as a whole, because
// streams may last: the server before it bounds the head of a request (time and size).
type Proxy struct {
	cfg   Config
	pools *pools
}

// New makes a proxy. It does no I/O.
func New(cfg Config) *Proxy {
	if cfg.Assets.Files == nil {
		cfg.Assets.Files = http.NotFoundHandler()
	}
	return &Proxy{cfg: cfg, pools: newPools()}
}

// Limits of the steps before a request reaches its sandbox.
const (
	askLimit  = 10 * time.Second // asking who somebody is and which sandbox it is
	openLimit = 30 * time.Second // opening the door
)

// visit is one request to a sandbox's host.
type visit struct {
	*Proxy
	w      http.ResponseWriter
	r      *http.Request
	target hostname.Target
}

// ServeHTTP answers one request to a sandbox's host.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, err := p.cfg.Hosts.Parse(r.Host)
	v := visit{Proxy: p, w: w, r: r, target: target}
	switch {
	case err != nil || target.Kind == hostname.Dashboard:
		v.misdirected()
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.URL.Path == "*":
		v.show(notice{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "Not possible",
			Text: "Sandboxes do not take this method."})
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

// ownPrefix begins the paths that never reach a sandbox.
const ownPrefix = "/.sandboxd"

// ownPath judges the path as a server that cleans paths would read it.
func ownPath(p string) bool {
	clean := path.Clean("/" + p)
	return clean == ownPrefix || strings.HasPrefix(clean, ownPrefix+"/")
}

func (v visit) own() {
	asset := strings.TrimPrefix(v.r.URL.Path, ownPrefix)
	switch {
	case v.r.Method != http.MethodGet && v.r.Method != http.MethodHead:
		v.show(notice{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "Not possible",
			Text: "This address does not take that method."})
	case v.r.URL.Path == returnPath:
		v.comeBack()
	case v.r.URL.Path == scriptPath:
		v.serveScript()
	case strings.HasPrefix(asset, "/static/"):
		r := v.r.Clone(v.r.Context())
		r.URL.Path, r.URL.RawPath = asset, ""
		v.cfg.Assets.Files.ServeHTTP(v.w, r)
	default:
		v.show(notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "Not found",
			Text: "There is nothing at this address."})
	}
}

// enter leads a visitor who may use the sandbox to it.
func (v visit) enter() {
	ctx, cancel := context.WithTimeout(v.r.Context(), askLimit)
	defer cancel()
	who, err := v.identify(ctx)
	if fault.Is(err, fault.Unauthenticated) {
		v.challenge(err)
		return
	}
	if err == nil {
		err = v.checkOrigin(who)
	}
	if err != nil {
		v.refuse(err)
		return
	}
	sb, err := v.permitted(ctx, who)
	if err != nil {
		v.refuse(err)
		return
	}
	if n, closed := v.closedNotice(sb); closed {
		v.show(n)
		return
	}
	v.open(who)
}

// permitted finds the sandbox if the visitor may use it. One that is not theirs looks like one that is not there.
func (v visit) permitted(ctx context.Context, who visitor) (sandbox.Sandbox, error) {
	sb, err := v.cfg.Sandboxes.Sandbox(ctx, v.target.Name)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	if !who.May(sb.Owner, sb.Name) {
		return sandbox.Sandbox{}, fault.New(fault.NotFound, "There is no sandbox at this address, or it is not yours.")
	}
	return sb, nil
}

// open goes through the door and stays until the request, or the stream that became of it, has ended.
func (v visit) open(who visitor) {
	ctx, cancel := context.WithTimeout(v.r.Context(), openLimit)
	defer cancel()
	entry, err := v.cfg.Doors.Open(ctx, v.target.Name, "web")
	if err != nil {
		v.refuse(err)
		return
	}
	defer entry.Release()
	if v.target.Kind == hostname.Terminal {
		v.serveTerminal(who, entry)
		return
	}
	v.forward(who, passage{entry: entry, upstream: portHost(v.target.Port), path: v.r.URL.Path, rawPath: v.r.URL.RawPath})
}
