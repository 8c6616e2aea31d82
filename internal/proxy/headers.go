package proxy

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"sandboxd/internal/hostname"
)

// scrubRequest removes the headers that are for sandboxd, or pretend to come from it, from a request to a sandbox.
func scrubRequest(h http.Header) {
	dropOurCookies(h)
	for name, values := range h {
		if isForwarding(name) || carriesOurToken(name, values) {
			delete(h, name)
		}
	}
}

// carriesOurToken looks at the two headers that may carry our tokens. A program's own keys pass.
func carriesOurToken(name string, values []string) bool {
	if !beginsWith(name, "ax") {
		return false
	}
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

// rewrite makes the request that the sandbox gets.
func (p *proxied) rewrite(pr *httputil.ProxyRequest) {
	h := pr.Out.Header
	scrubRequest(h)
	if p.target.Kind == hostname.Terminal {
		if _, ok := passwordOf(p.session.Sandbox()); ok {
			dropPassword(h)
		}
	}
	if p.target.Port == 0 {
		h.Del("Sec-Websocket-Extensions") // compressed, input and heartbeats could not be recognised
	}
	pr.Out.URL = &url.URL{Scheme: "http", Host: p.to.host, Path: p.to.path, RawPath: p.to.rawPath,
		RawQuery: p.r.URL.RawQuery, ForceQuery: p.r.URL.ForceQuery}
	outside := p.outsideHost()
	pr.Out.Host = outside
	h.Set("X-Forwarded-Host", outside)
	h.Set("X-Forwarded-Proto", p.hosts.Scheme)
	if client := p.client(); client.IsValid() {
		h.Set("X-Forwarded-For", client.String())
	}
}

// outsideHost is the Host as browsers send it.
func (q *request) outsideHost() string {
	return q.hosts.Authority(q.target)
}
