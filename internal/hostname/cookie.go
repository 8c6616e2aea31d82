package hostname

import (
	"net/http"
	"strings"
)

// Bounds on the paths that a cookie is forgotten for.
const (
	maxDepth  = 8   // parts
	maxPrefix = 256 // bytes
)

// ForgetCookie makes a browser forget the cookies of a name that it sends to host with a request for path, whichever
// host in the domain has set them. Of those for a path beyond the bounds it may keep some. A name that begins with "__Host-" needs
// none of this: only host itself can set such a cookie, and one of them.
func ForgetCookie(h http.Header, name, host, path string) {
	if strings.HasPrefix(name, "__Host-") {
		return
	}
	domains, paths := []string{""}, []string{"/"}
	for domain := host; strings.Contains(domain, "."); _, domain, _ = strings.Cut(domain, ".") {
		domains = append(domains, domain)
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for n := range min(len(parts), maxDepth) {
		to := "/" + strings.Join(parts[:n+1], "/")
		if len(to) > maxPrefix {
			break
		}
		paths = append(paths, to, to+"/")
	}
	for _, d := range domains {
		for _, p := range paths {
			h.Add("Set-Cookie", (&http.Cookie{Name: name, Domain: d, Path: p, MaxAge: -1}).String())
		}
	}
}
