package hostname

import (
	"net/http"
	"strings"
)

// maxDepth is how many parts of a path a cookie's path is looked for in.
const maxDepth = 8

// ForgetCookie makes a browser forget the cookies of a name that it sends to host with a request for path, whichever
// host in the domain has set them. Of those for a path of more than maxDepth parts it may keep some.
func ForgetCookie(h http.Header, name, host, path string) {
	domains, paths := []string{""}, []string{"/"}
	for domain := host; strings.Contains(domain, "."); _, domain, _ = strings.Cut(domain, ".") {
		domains = append(domains, domain)
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	for n := range min(len(parts), maxDepth) {
		to := "/" + strings.Join(parts[:n+1], "/")
		paths = append(paths, to, to+"/")
	}
	for _, d := range domains {
		for _, p := range paths {
			h.Add("Set-Cookie", (&http.Cookie{Name: name, Domain: d, Path: p, MaxAge: -1}).String())
		}
	}
}
