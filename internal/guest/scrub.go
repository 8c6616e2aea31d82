package guest

import (
	"net/http"
	"net/textproto"
	"strings"
)

// ourCookies begins the names of all cookies of sandboxd.
const ourCookies = "sandboxd"

// scrubRequest takes out of a request whatever is about the way that it came. Underscores count as hyphens: CGI-like
// servers cannot tell them apart.
func scrubRequest(h http.Header) {
	for name := range h {
		plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		switch plain {
		case "forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "remote-user", "x-remote-user":
			delete(h, name)
			continue
		}
		for _, prefix := range []string{"x-forwarded-", "x-sandboxd-", "sandboxd-", "x-auth-request-"} {
			if strings.HasPrefix(plain, prefix) {
				delete(h, name)
			}
		}
	}
}

// scrubResponse takes out of a program's answer what would reach beyond its own host. The sandbox's root can do without
// us, by taking our place; this keeps everybody else in it to their host, as sandboxd's own proxy does.
func scrubResponse(h http.Header) {
	if cookies, ok := h["Set-Cookie"]; ok {
		var kept []string
		for _, line := range cookies {
			if ownCookie(line) {
				kept = append(kept, line)
			}
		}
		h.Del("Set-Cookie")
		if len(kept) > 0 {
			h["Set-Cookie"] = kept
		}
	}
	h.Del("Clear-Site-Data") // "cookies" clears those of all sibling hosts, the dashboard's too
	h.Del("Alt-Svc")         // would lead browsers past Traefik
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "sandboxd-") {
			delete(h, name)
		}
	}
}

// scrubTrailer takes out of an answer's trailers what scrubResponse takes out of its head, and all cookies.
func scrubTrailer(h http.Header) {
	h.Del("Set-Cookie")
	scrubResponse(h)
}

// ownCookie reports whether a Set-Cookie line stays within its host and does not bear our name.
func ownCookie(line string) bool {
	if strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0 {
		return false
	}
	pair, attributes, _ := strings.Cut(line, ";")
	name, _, found := strings.Cut(pair, "=")
	name = strings.ToLower(textproto.TrimString(name))
	name = strings.TrimPrefix(strings.TrimPrefix(name, "__host-"), "__secure-")
	if !found || name == "" || strings.HasPrefix(name, ourCookies) {
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

// scrubbed is where an answer goes, informational ones included.
type scrubbed struct{ http.ResponseWriter }

// WriteHeader scrubs what is sent with it.
func (s *scrubbed) WriteHeader(status int) {
	scrubResponse(s.Header())
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush.
func (s *scrubbed) Unwrap() http.ResponseWriter { return s.ResponseWriter }
