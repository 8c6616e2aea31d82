package proxy

import (
	"net/http"
	"net/textproto"
	"strings"

	"sandboxd/internal/hostname"
)

// hostPrefix makes browsers refuse the cookie from any other host. It needs HTTPS.
const hostPrefix = "__Host-"

// The cookies that we set at a sandbox's host, before hostPrefix.
const (
	hostCookie    = ourCookies + "_host"  // a session at the host
	nonceCookie   = ourCookies + "_nonce" // ties a handover to the browser that began it
	shareCookie   = ourCookies + "_share" // stands for a share
	sandboxCookie = ourCookies + "_box"   // the sandbox at which the browser signed in at the host
)

// cookieName gives the full name of one of our cookies.
func cookieName(hosts hostname.Hosts, name string) string {
	if hosts.Scheme == "https" {
		return hostPrefix + name
	}
	return name
}

// cookies gives the values of one of our cookies. On plain HTTP a neighbour can set one of the same name, hence several.
func (q *request) cookies(name string) []*http.Cookie {
	return q.r.CookiesNamed(cookieName(q.hosts, name))
}

// setCookie sets a cookie of ours for this host alone. maxAge is in seconds: 0 lasts until the browser ends, below 0
// removes it.
func (a *responder) setCookie(name, value string, maxAge int) {
	http.SetCookie(a.w, &http.Cookie{
		Name: cookieName(a.hosts, name), Value: value, Path: "/", MaxAge: maxAge,
		Secure: a.hosts.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// dropOurCookies removes our cookies from a request, and leaves the others byte for byte.
func dropOurCookies(h http.Header) {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(pair, "=")
			if pair = textproto.TrimString(pair); pair != "" && !ourCookie(name) {
				kept = append(kept, pair)
			}
		}
	}
	if len(kept) == 0 {
		h.Del("Cookie")
		return
	}
	h.Set("Cookie", strings.Join(kept, "; "))
}
