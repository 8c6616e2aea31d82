package proxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// A browser comes to a sandbox's host without a session there. The host sets a nonce in a cookie and redirects to the dashboard
// with the nonce's hash (challenge). The dashboard, where the person is signed in, issues a one-time code for person, host and
// hash, and redirects back (Handover.URL). The host checks that cookie and code belong together, and exchanges the code for a
// session cookie of its own (finish). So a stolen code is of no use without the cookie.

const (
	handoverPath  = "/handover"                // at the dashboard
	returnPath    = hostname.OwnPath + "/auth" // at the sandbox's host
	nonceSeconds  = 600                        // how long signing in may take
	nonceBytes    = 32                         // beyond guessing
	maxReturnPath = 4096                       // longer ones lead to "/" instead
	hashLength    = 43                         // of an unpadded base64 SHA-256
	maxCode       = 256                        // far above what auth issues
)

// Codes issues one-time codes. Implemented by auth.Service.
type Codes interface {
	IssueCode(ctx context.Context, sessionSecret string, at auth.Place, nonce string) (code string, err error)
}

// Handover is the dashboard's side of signing a person in at a sandbox's host.
type Handover struct {
	Hosts     hostname.Hosts
	Sandboxes Finder
	Access    *access.Control
	Codes     Codes
}

// URL gives the address to redirect to, for the query parameters "to" and "nonce" of /handover, if who (signed in with session)
// may use the sandbox. Invalid for parameters that we did not make, NotFound if there is no such sandbox for this person, Gone if
// there was one and it was deleted.
func (h Handover) URL(ctx context.Context, who auth.Principal, session, to, nonce string) (string, error) {
	target, rest, err := h.destination(to)
	if err != nil {
		return "", err
	}
	if !isHash(nonce) {
		return "", fault.Field("nonce", "This link is not complete. Open the sandbox's address again.")
	}
	sb, err := h.Access.Resolve(ctx, target.Name, access.By(who))
	if fault.Is(err, fault.NotFound) {
		for to, of := range renamed(ctx, h.Sandboxes, target) {
			if who.May(of.Owner, of.ID) {
				return h.Hosts.Origin(to) + rest, nil
			}
		}
	}
	if err != nil {
		return "", err
	}
	code, err := h.Codes.IssueCode(ctx, session, auth.Place{Host: h.Hosts.Host(target), SandboxID: sb.ID()}, nonce)
	if err != nil {
		return "", err
	}
	query := url.Values{"code": {code}, "to": {rest}}
	return h.Hosts.Origin(target) + returnPath + "?" + query.Encode(), nil
}

// destination accepts only what challenge makes: an address at a sandbox's host.
func (h Handover) destination(to string) (target hostname.Target, rest string, err error) {
	refused := fault.Field("to", "This link does not lead to a sandbox.")
	u, err := url.Parse(to)
	if err != nil || u.User != nil || u.Opaque != "" {
		return target, "", refused
	}
	target, err = h.Hosts.Parse(u.Host)
	if err != nil || target.Kind == hostname.Dashboard || u.Scheme+"://"+u.Host != h.Hosts.Origin(target) {
		return target, "", refused
	}
	return target, safePath(u.RequestURI()), nil
}

// safePath gives to if it is a path (with query) at this very host and none of our own; else "/".
func safePath(to string) string {
	if len(to) > maxReturnPath || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, "\\") {
		return "/"
	}
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" || ownPath(u.Path) {
		return "/"
	}
	if to = u.RequestURI(); strings.HasPrefix(to, "//") { // an escaped slash has become the host of another address
		return "/"
	}
	return to
}

// signIn gives a person a session at a sandbox's host.
type signIn struct {
	responder
	proxy *Proxy
}

// challenge answers a caller without valid credentials. A navigation is redirected to the dashboard and back; all else gets 401 with
// the ways to authenticate. The answer is the same without such a sandbox, unless that has a password of its own.
func (s *signIn) challenge(err error, password bool) {
	switch token := tokenOf(s.r.Header) != ""; {
	case !token && s.showsShare():
		s.shareEnded()
	case !token && password:
		s.askPassword(fault.Message(err))
	case token || !isNavigation(s.r):
		s.w.Header().Set("WWW-Authenticate", `Bearer realm="sandboxd"`)
		s.show(notice{Status: http.StatusUnauthorized, Code: fault.Unauthenticated.String(), Title: "Sign in needed",
			Text: fault.Message(err),
			Hint: "Open " + s.hosts.Origin(s.target) + "/ in a browser and sign in, or send an API token as " +
				"\"Authorization: Bearer sbx_…\" or \"X-API-Key: sbx_…\"."})
	default:
		s.redirect(s.handoverURL())
	}
}

// start signs a person in through the dashboard, even at a terminal that would ask for its own password, and redirects to "/". With
// a session here it redirects at once.
func (s *signIn) start() {
	ctx, cancel := context.WithTimeout(s.r.Context(), askLimit)
	defer cancel()
	switch _, err := s.proxy.judge(ctx, *s.request, s.proxy.credentials); {
	case err == nil:
		s.redirect(s.hosts.Origin(s.target) + "/")
	case fault.Is(err, fault.Unauthenticated):
		s.redirect(s.handoverURL())
	default:
		s.refuse(err)
	}
}

// handoverURL gives the address at the dashboard that signs a person in and returns them to the address they asked for.
func (s *signIn) handoverURL() string {
	to := s.hosts.Origin(s.target) + safePath(s.r.URL.RequestURI())
	query := url.Values{"to": {to}, "nonce": {hashOf(s.nonce())}}
	return s.hosts.DashboardURL() + handoverPath + "?" + query.Encode()
}

// nonce gives the browser's nonce, so that several tabs may sign in at once, or sets a fresh one.
func (s *signIn) nonce() string {
	if c, err := s.r.Cookie(cookieName(s.hosts, nonceCookie)); err == nil && isHash(c.Value) {
		return c.Value
	}
	var b [nonceBytes]byte
	rand.Read(b[:]) // never fails since Go 1.24
	nonce := base64.RawURLEncoding.EncodeToString(b[:])
	s.setCookie(nonceCookie, nonce, nonceSeconds)
	return nonce
}

// finish exchanges a code for this host's session cookie, and redirects to the address first asked for.
func (s *signIn) finish() {
	query := s.r.URL.Query()
	next := s.hosts.Origin(s.target) + safePath(query.Get("to"))
	ctx, cancel := context.WithTimeout(s.r.Context(), askLimit)
	defer cancel()
	secret, sandboxID, err := s.redeem(ctx, query.Get("code"))
	if err == nil {
		s.setCookie(hostCookie, secret, 0)
		s.setCookie(nonceCookie, "", -1)
		s.clearOthers(sandboxID)
		s.redirect(next)
		return
	}
	if _, known := s.session(ctx, s.proxy.cfg.Accounts, ""); known == nil { // another tab was quicker, or the person went back
		s.redirect(next)
		return
	}
	if !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.NotFound) {
		s.refuse(err)
		return
	}
	s.show(notice{Status: http.StatusUnauthorized, Code: fault.Unauthenticated.String(), Title: "Signing in did not work",
		Text:  "The link back to this sandbox has been used already, is too old, or was made for another browser.",
		Hint:  "Cookies must be allowed for this address.",
		Links: []link{{"Try again", next}, s.dashboard("Dashboard", "")}})
}

func (s *signIn) redeem(ctx context.Context, code string) (secret, sandboxID string, err error) {
	var nonces []string
	for _, c := range s.cookies(nonceCookie) {
		if isHash(c.Value) && len(nonces) < auth.MaxShown {
			nonces = append(nonces, hashOf(c.Value))
		}
	}
	if len(nonces) == 0 || code == "" || len(code) > maxCode {
		return "", "", fault.New(fault.Unauthenticated, "The sign-in link and this browser do not belong together.")
	}
	return s.proxy.cfg.Accounts.RedeemCode(ctx, code, s.hosts.Host(s.target), nonces...)
}

func (a *responder) redirect(to string) {
	h := a.w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // this address has a code in it
	a.w.WriteHeader(http.StatusSeeOther)
}

// hashOf is the hash of a nonce, which the dashboard gets instead of it.
func hashOf(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isHash reports whether s has the form of a hash, which is that of a nonce too.
func isHash(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == nonceBytes && len(s) == hashLength
}
