package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// scrubRequest takes out of a request to a sandbox whatever is meant for sandboxd or pretends to come from it.
func scrubRequest(h http.Header) {
	dropOurCookies(h)
	for name, values := range h {
		if forwardingHeader(name) || carriesOurToken(name, values) {
			delete(h, name)
		}
	}
}

// forwardingHeader knows the headers by which a proxy tells its backend who and where. Underscores count as hyphens:
// CGI-like servers cannot tell them apart.
func forwardingHeader(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	switch name {
	case "forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "remote-user", "x-remote-user":
		return true
	}
	return strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "x-sandboxd-") ||
		strings.HasPrefix(name, "sandboxd-") || strings.HasPrefix(name, "x-auth-request-")
}

// carriesOurToken looks at the two headers in which we take tokens. A program's own keys pass.
func carriesOurToken(name string, values []string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if name != "authorization" && name != "x-api-key" {
		return false
	}
	for _, value := range values {
		if strings.Contains(strings.ToLower(value), tokenPrefix) {
			return true
		}
	}
	return false
}

// scrubResponse takes out of a sandbox's response what would reach beyond its own host.
func scrubResponse(h http.Header) {
	dropTossedCookies(h)
	h.Del("Clear-Site-Data") // "cookies" clears those of all sibling hosts, the dashboard's too
	h.Del("Alt-Svc")         // would lead browsers past us
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "sandboxd-") {
			delete(h, name)
		}
	}
}

// scrubTrailer takes out of a response's trailers what scrubResponse takes out of its head, and all cookies: no server
// has a reason to set one there.
func scrubTrailer(h http.Header) {
	h.Del("Set-Cookie")
	scrubResponse(h)
}

// trailed is the body of a response whose trailers, known only at its end, are scrubbed before anybody can see them.
type trailed struct {
	io.ReadCloser
	res *http.Response
}

func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		scrubTrailer(b.res.Trailer)
	}
	return n, err
}

// Close scrubs too: closing may read what is left.
func (b *trailed) Close() error {
	err := b.ReadCloser.Close()
	scrubTrailer(b.res.Trailer)
	return err
}

// rewrite makes the request that the sandbox gets.
func (v visit) rewrite(pr *httputil.ProxyRequest, p passage) {
	scrubRequest(pr.Out.Header)
	pr.Out.URL = &url.URL{Scheme: "http", Host: p.upstream, Path: p.path, RawPath: p.rawPath,
		RawQuery: v.r.URL.RawQuery, ForceQuery: v.r.URL.ForceQuery}
	outside := v.outsideHost()
	pr.Out.Host = outside
	pr.Out.Header.Set("X-Forwarded-Host", outside)
	pr.Out.Header.Set("X-Forwarded-Proto", v.cfg.Hosts.Scheme)
	if ip, _, err := net.SplitHostPort(v.r.RemoteAddr); err == nil {
		pr.Out.Header.Set("X-Forwarded-For", ip)
	}
}

// outsideHost is the Host as browsers send it.
func (v visit) outsideHost() string {
	return strings.TrimPrefix(v.cfg.Hosts.Origin(v.target), v.cfg.Hosts.Scheme+"://")
}
