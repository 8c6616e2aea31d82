package proxy

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"sandboxd/internal/hostname"
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
		if own := strings.ToLower(name); strings.HasPrefix(own, "sandboxd-") || strings.HasPrefix(own, "x-sandboxd-") {
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

// trailed is the body of a response: it tells what comes, and its trailers, known only at its end, are scrubbed before
// anybody can see them.
type trailed struct {
	io.ReadCloser
	res  *http.Response
	came func(n int)
}

// Read implements io.Reader.
func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.came(n)
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
func (s *stay) rewrite(pr *httputil.ProxyRequest) {
	h := pr.Out.Header
	scrubRequest(h)
	if s.target.Kind == hostname.Terminal {
		if _, ok := passwordOf(s.entry.Sandbox); ok {
			dropPassword(h)
		}
		h.Del("Sec-Websocket-Extensions") // compressed, it could not be told what is typed
	}
	pr.Out.URL = &url.URL{Scheme: "http", Host: s.way.upstream, Path: s.way.path, RawPath: s.way.rawPath,
		RawQuery: s.r.URL.RawQuery, ForceQuery: s.r.URL.ForceQuery}
	outside := s.outsideHost()
	pr.Out.Host = outside
	h.Set("X-Forwarded-Host", outside)
	h.Set("X-Forwarded-Proto", s.cfg.Hosts.Scheme)
	if client := s.client(); client.IsValid() {
		h.Set("X-Forwarded-For", client.String())
	}
}

// outsideHost is the Host as browsers send it.
func (v visit) outsideHost() string {
	return strings.TrimPrefix(v.cfg.Hosts.Origin(v.target), v.cfg.Hosts.Scheme+"://")
}
