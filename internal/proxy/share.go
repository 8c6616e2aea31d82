package proxy

import (
	"context"
	_ "embed" // the page
	"html/template"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// A link to a shared port has its secret in the fragment, which browsers do not send: it is in no log, Referer or history. A page of
// ours reads it, removes it from the address, and posts it; the answer sets a cookie for this host, valid as long as the share. None
// of this needs the sandbox, which may be asleep.
//
// The page is on the port's own origin, where the cookie must be set. A service worker of the port's program, installed earlier,
// can therefore read the page's address; the secret opens nothing but that same port.

var (
	//go:embed assets/share.html
	shareHTML string
	//go:embed assets/share.js
	shareJS string

	sharePage = template.Must(template.New("share").Parse(shareHTML))
	shareHash = hashSource(shareJS)
)

const (
	maxSecret  = 256 // bytes posted; a secret has 43
	shareLimit = 10 * time.Second
)

// shareLink answers at the address of links to a shared port.
type shareLink struct {
	responder
	proxy *Proxy
}

// serve answers GET with the page, and POST with the cookie.
func (l *shareLink) serve() {
	switch l.r.Method {
	case http.MethodGet, http.MethodHead:
		l.servePage()
	case http.MethodPost:
		l.post()
	default:
		l.show(methodRefused("This address does", l.r.Method))
	}
}

// servePage answers with the page, the same for every host and link.
func (l *shareLink) servePage() {
	l.w.Header().Set("Referrer-Policy", "no-referrer")
	l.w.Header().Set("Cross-Origin-Opener-Policy", "same-origin") // no other page keeps a handle to this window
	l.page(http.StatusOK, sharePage, struct {
		Style  template.CSS
		Script template.JS
	}{noticeStyle, template.JS(shareJS)}, // our own files
		"style-src "+styleHash+"; script-src "+shareHash+"; connect-src 'self'; frame-ancestors 'none'")
}

// post exchanges the secret of a link for this host's cookie. The answer to an invalid link does not reveal whether the sandbox
// exists.
func (l *shareLink) post() {
	if !l.fromHere() {
		l.refuse(fault.New(fault.Forbidden, "This request came from another website and was refused."))
		return
	}
	ctx, cancel := context.WithTimeout(l.r.Context(), shareLimit)
	defer cancel()
	_ = http.NewResponseController(l.w).SetReadDeadline(time.Now().Add(shareLimit)) // no body takes longer
	secret, err := io.ReadAll(http.MaxBytesReader(l.w, l.r.Body, maxSecret))
	if err != nil {
		l.show(notice{Status: http.StatusBadRequest, Code: fault.Invalid.String(), Title: "Not a link", Text: "This is not the secret of a link."})
		return
	}
	c := &shareClaim{shareLink: l, secret: string(secret)}
	switch _, err = l.proxy.cfg.Access.Resolve(ctx, l.target.Name, c); {
	case fault.Is(err, fault.NotFound):
		l.show(l.opensNothing(string(secret)))
	case err != nil:
		l.refuse(err)
	default:
		l.setCookie(shareCookie, shownPass{c.pass, c.share.Expires}.String(), int((time.Until(c.share.Expires) + afterEnd).Seconds()))
		l.w.Header().Set("Cache-Control", "no-store")
		l.w.WriteHeader(http.StatusNoContent)
	}
}

// opensNothing answers a secret that opens nothing. A browser that came by that very link before is told how it ended; of any
// other nothing is known.
func (l *shareLink) opensNothing(secret string) notice {
	_, pass, _ := l.proxy.cfg.Ports.Redeem("", 0, secret)
	for _, had := range l.shownPasses() {
		if pass != "" && had.pass == pass {
			return linkEnded(http.StatusNotFound, had.expires)
		}
	}
	return notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "This link does not work",
		Text: "It has expired, was revoked, or is not complete. Ask the person who sent it for a new one."}
}

// shareClaim is the secret of a link to a port.
type shareClaim struct {
	*shareLink
	secret string
	share  sandbox.Share
	pass   string
}

// Admits implements access.Claim.
func (c *shareClaim) Admits(ctx context.Context, sb sandbox.Sandbox) (err error) {
	ok := c.target.Kind == hostname.Port
	if ok {
		c.share, c.pass, ok = c.proxy.cfg.Ports.Redeem(sb.ID, c.target.Port, c.secret)
	}
	if ok {
		ok, err = answersFor(ctx, c.proxy.credentials, c.share.Owner, sb)
	}
	if err == nil && !ok {
		err = access.NotFound(sb.Name)
	}
	return err
}

// Missing implements access.Claim.
func (*shareClaim) Missing(_ context.Context, name string, _ *sandbox.Tombstone) error {
	return access.NotFound(name)
}

// showsShare reports whether the request has a share's secret or cookie. It is asked after access was denied, so they are invalid.
func (q *request) showsShare() bool {
	return q.target.Kind == hostname.Port && (q.r.Header.Get(hostname.ShareHeader) != "" || len(q.cookies(shareCookie)) > 0)
}

// shareEnded answers a request with an invalid share. What it says comes from the request alone: it does not reveal whether the
// sandbox exists.
func (s *signIn) shareEnded() {
	n := notice{Status: http.StatusUnauthorized, Code: "share_ended", Title: "This link no longer works",
		Text: "It has expired or was revoked. Ask the person who sent it for a new one."}
	for _, had := range s.shownPasses() {
		if !had.expires.IsZero() {
			n = linkEnded(n.Status, had.expires)
			break
		}
	}
	if isNavigation(s.r) {
		n.Links = []link{{"Sign in", s.handoverURL()}}
	}
	s.show(n)
}

// linkEnded says how a link ended that was good until expires, unless it was revoked.
func linkEnded(status int, expires time.Time) notice {
	n := notice{Status: status, Code: "share_expired", Title: "This link has expired", Text: "Ask the person who sent it for a new one."}
	if time.Now().Before(expires) {
		n.Code, n.Title = "share_revoked", "This link was revoked"
	}
	return n
}

// shownPass is the value of a link's cookie: its pass, and when the link expires. The time serves for nothing but to tell the
// person, later, how the link ended.
type shownPass struct {
	pass    string
	expires time.Time // zero if the cookie does not say
}

// afterEnd is how long a browser keeps the cookie of a link that has expired, so that it is told so and not to sign in.
const afterEnd = 30 * 24 * time.Hour

func (p shownPass) String() string { return p.pass + "." + strconv.FormatInt(p.expires.Unix(), 10) }

// shownPasses reads the cookies of links.
func (q *request) shownPasses() []shownPass {
	var all []shownPass
	for i, cookie := range q.cookies(shareCookie) { // a neighbour may have set one of the name, see session
		if i >= auth.MaxShown {
			break
		}
		pass, until, _ := strings.Cut(cookie.Value, ".")
		p := shownPass{pass: pass}
		if seconds, err := strconv.ParseInt(until, 10, 64); err == nil {
			p.expires = time.Unix(seconds, 0)
		}
		all = append(all, p)
	}
	return all
}
