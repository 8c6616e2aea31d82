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

// A browser comes to a sandbox's host without a session there. The host gives it a nonce in a cookie and sends it to
// the dashboard with the nonce's hash (challenge). The dashboard, which knows the person, issues a one-time code for
// person, host and hash, and sends it back (Handover.URL). The host sees that cookie and code belong together, and
// turns the code into a cookie of its own (comeBack). So a code is of no use to whoever sees it pass by.

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

// Handover is the dashboard's side of leading a person to a sandbox's host.
type Handover struct {
	Hosts     hostname.Hosts
	Sandboxes Finder
	Access    *access.Control
	Codes     Codes
}

// URL gives the address to redirect to, for the query parameters "to" and "nonce" of /handover, when who (signed in
// with session) may use the sandbox. Invalid when the parameters are not of our making, NotFound when there is no such
// sandbox for this person, Gone when they might have used it and it was deleted.
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

// destination takes only what challenge makes: an address at one of the sandboxes' hosts.
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

// safePath gives to when it is a path (with query) at this very host, outside our own paths; else "/".
func safePath(to string) string {
	if len(to) > maxReturnPath || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, "\\") {
		return "/"
	}
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" || ownPath(u.Path) {
		return "/"
	}
	if to = u.RequestURI(); strings.HasPrefix(to, "//") { // an escaped slash, written anew as the host of another address
		return "/"
	}
	return to
}

// signIn is how a person comes to have a session at a sandbox's host.
type signIn struct {
	responder
	proxy *Proxy
}

// challenge answers a visitor whom nobody knows: a navigation goes to the dashboard and back, all else is told how to
// be known. The answer is the same whether there is such a sandbox or not, unless it has a password of its own.
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

// start leads a person to "/" by way of the dashboard, also at a terminal that would ask for its own password there. Whoever
// has a session here goes on at once.
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

// handoverURL gives the address at the dashboard that leads a person who signs in there back to where they are.
func (s *signIn) handoverURL() string {
	to := s.hosts.Origin(s.target) + safePath(s.r.URL.RequestURI())
	query := url.Values{"to": {to}, "nonce": {hashOf(s.nonce())}}
	return s.hosts.DashboardURL() + handoverPath + "?" + query.Encode()
}

// nonce gives the one that the browser has, so that several tabs may be on their way at once, or a fresh one.
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

// finish turns a code into this host's cookie and goes on to where the visitor wanted to go.
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
	c, err := s.r.Cookie(cookieName(s.hosts, nonceCookie))
	if err != nil || !isHash(c.Value) || code == "" || len(code) > maxCode {
		return "", "", fault.New(fault.Unauthenticated, "The sign-in link and this browser do not belong together.")
	}
	return s.proxy.cfg.Accounts.RedeemCode(ctx, code, s.hosts.Host(s.target), hashOf(c.Value))
}

func (a *responder) redirect(to string) {
	h := a.w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address that we come from has a code in it
	a.w.WriteHeader(http.StatusSeeOther)
}

// hashOf gives what the dashboard is told of a nonce.
func hashOf(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isHash reports whether s has the form of a hash, which is that of a nonce too.
func isHash(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == nonceBytes && len(s) == hashLength
}
