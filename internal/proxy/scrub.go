package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// Headers that would reach beyond a sandbox's own host are removed from requests to it and from its answers. Names are read as
// leniently as any server or browser might, so that no spelling passes.

// ourCookies begins the names of all cookies of sandboxd, the dashboard's included.
const ourCookies = "sandboxd"

// ourCookie reports whether a cookie's name is one of sandboxd's.
func ourCookie(name string) bool {
	name = strings.ToLower(textproto.TrimString(name))
	name = strings.TrimPrefix(name, "__host-")
	name = strings.TrimPrefix(name, "__secure-")
	return strings.HasPrefix(name, ourCookies)
}

// isForwarding reports whether a proxy uses the header to describe a request to its backend. Underscores count as hyphens:
// CGI-like servers cannot tell them apart.
func isForwarding(name string) bool {
	if !beginsWith(name, "frstx") {
		return false // most headers
	}
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	switch name {
	case "forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "remote-user", "x-remote-user":
		return true
	}
	return strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "x-sandboxd-") ||
		strings.HasPrefix(name, "sandboxd-") || strings.HasPrefix(name, "x-auth-request-")
}

// beginsWith reports whether a header's name begins with one of these lower-case letters, in either case.
func beginsWith(name, letters string) bool {
	return name != "" && strings.IndexByte(letters, name[0]|0x20) >= 0
}

// scrubResponse removes from an answer's head what would reach beyond the sandbox's own host.
func scrubResponse(h http.Header) {
	dropTossedCookies(h)
	delete(h, "Clear-Site-Data") // "cookies" clears those of all sibling hosts, the dashboard's too
	delete(h, "Alt-Svc")         // would make browsers bypass us
	for name := range h {
		if !beginsWith(name, "sx") {
			continue
		}
		if own := strings.ToLower(name); strings.HasPrefix(own, "sandboxd-") || strings.HasPrefix(own, "x-sandboxd-") {
			delete(h, name)
		}
	}
}

// scrubTrailer removes from an answer's trailers what scrubResponse removes from its head, and all cookies: no server has a reason
// to set one there.
func scrubTrailer(h http.Header) {
	delete(h, "Set-Cookie")
	scrubResponse(h)
}

// dropTossedCookies removes from a response every cookie that is not for its own host alone or has one of our names.
func dropTossedCookies(h http.Header) {
	var kept []string
	for _, line := range h["Set-Cookie"] {
		if ownCookie(line) {
			kept = append(kept, line)
		}
	}
	delete(h, "Set-Cookie")
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
	if !found || textproto.TrimString(name) == "" || ourCookie(name) {
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
