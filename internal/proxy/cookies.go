package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// hostPrefix makes browsers refuse the cookie from any other host. It needs HTTPS.
const hostPrefix = "__Host-"

func (p *Proxy) secure() bool { return p.cfg.Hosts.Scheme == "https" }

func (p *Proxy) cookieName(name string) string {
	if p.secure() {
		return hostPrefix + name
	}
	return name
}

// hostCookie names the cookie of a session at one sandbox host.
func (p *Proxy) hostCookie() string { return p.cookieName(ourCookies + "_host") }

// nonceCookie names the cookie that ties a hand-over to the browser that began it.
func (p *Proxy) nonceCookie() string { return p.cookieName(ourCookies + "_nonce") }

// setCookie sets a cookie of ours for this host alone. maxAge is in seconds: 0 lasts as long as the browser, below 0
// removes it.
func (v visit) setCookie(name, value string, maxAge int) {
	http.SetCookie(v.w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		Secure: v.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// dropOurCookies takes our cookies out of a request, and leaves the others byte for byte.
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
