package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// hostPrefix makes browsers refuse the cookie from any other host. It needs HTTPS.
const hostPrefix = "__Host-"

// ourCookies begins the names of all cookies of sandboxd, the dashboard's included.
const ourCookies = "sandboxd"

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

// isOurs judges a cookie's name as leniently as any server might read it.
func isOurs(name string) bool {
	name = strings.ToLower(textproto.TrimString(name))
	name = strings.TrimPrefix(name, "__host-")
	name = strings.TrimPrefix(name, "__secure-")
	return strings.HasPrefix(name, ourCookies)
}

// dropOurCookies takes our cookies out of a request, and leaves the others byte for byte.
func dropOurCookies(h http.Header) {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(pair, "=")
			if pair = textproto.TrimString(pair); pair != "" && !isOurs(name) {
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

// dropTossedCookies takes out of a response every cookie that is not for its own host alone or that bears our name.
func dropTossedCookies(h http.Header) {
	var kept []string
	for _, line := range h.Values("Set-Cookie") {
		if ownCookie(line) {
			kept = append(kept, line)
		}
	}
	h.Del("Set-Cookie")
	if len(kept) > 0 {
		h["Set-Cookie"] = kept
	}
}

// ownCookie reports whether a Set-Cookie line stays within its host. A cookie without a name is refused, since its
// value comes back as if it were a name, and so are control characters, at which browsers may cut.
func ownCookie(line string) bool {
	if strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
		return false
	}
	pair, attributes, _ := strings.Cut(line, ";")
	name, _, found := strings.Cut(pair, "=")
	if !found || textproto.TrimString(name) == "" || isOurs(name) {
		return false
	}
	for attribute := range strings.SplitSeq(attributes, ";") {
		key, _, _ := strings.Cut(attribute, "=")
		if strings.EqualFold(textproto.TrimString(key), "Domain") {
			return false
		}
	}
	return true
}
