package proxy

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// request is one request to a sandbox's host. Its methods read what it says and change nothing.
type request struct {
	r       *http.Request
	hosts   hostname.Hosts
	trusted []netip.Prefix // see Config
	target  hostname.Target
	who     caller // unknown before authorize
	begun   time.Time
}

// unsupported reports whether the method is for a proxy and not for a server.
func (q *request) unsupported() bool {
	return q.r.Method == http.MethodConnect || q.r.Method == http.MethodTrace || q.r.URL.Path == "*"
}

// client is the address that the request comes from.
func (q *request) client() netip.Addr {
	return hostname.Client(q.r.RemoteAddr, q.r.Header["X-Forwarded-For"], q.trusted)
}

// network is what attempts are counted by: one customer usually has an IPv4 address, or a /64 of IPv6.
func (q *request) network() string {
	addr := q.client()
	if !addr.Is6() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// checkOrigin refuses what a page of another origin makes a browser send with our cookie. SameSite does not help: sandboxes are
// on sibling hosts. Navigation passes, because its answer is shown and not read. All else needs the very same origin, so that
// other pages, even of another port of the same sandbox, can neither read nor write. A caller with a token, or with a terminal's
// password and without any mark of a browser, is a program, and needs no Origin to upgrade. A CORS preflight carries no cookie
// and is Unauthenticated already; programs and pages that have to cross origins use a token, or their own server's proxy.
func (q *request) checkOrigin(who caller) error {
	switch {
	case isUpgrade(q.r):
		if q.sameOrigin() || !q.hasOrigin() && (who.byHeader() || who.byBasic && !q.byBrowser()) {
			return nil
		}
	case who.byHeader(), q.fromHere(), q.navigates():
		return nil
	}
	return fault.New(fault.Forbidden, "This request came from another website and was refused.")
}

func (q *request) hasOrigin() bool { return len(q.r.Header.Values("Origin")) > 0 }

// byBrowser reports whether the request has a header that browsers set and pages cannot.
func (q *request) byBrowser() bool {
	for name := range q.r.Header {
		if strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return q.hasOrigin()
}

func (q *request) sameOrigin() bool {
	origins := q.r.Header.Values("Origin")
	return len(origins) == 1 && origins[0] == q.hosts.Origin(q.target)
}

// fromHere reports whether the sandbox's own page, the person or a program made the request. An older browser, any browser on
// plain HTTP beyond localhost, and a program send no Sec-Fetch-Site: there a foreign page is recognised by its Origin.
func (q *request) fromHere() bool {
	site := q.r.Header.Get("Sec-Fetch-Site")
	if site == "" {
		return q.sameOrigin() || !q.hasOrigin()
	}
	return site == "same-origin" || site == "none"
}

func (q *request) navigates() bool {
	return (q.r.Method == http.MethodGet || q.r.Method == http.MethodHead) && q.r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// isUpgrade reports whether the request asks for another protocol, WebSocket or any other.
func isUpgrade(r *http.Request) bool { return len(r.Header.Values("Upgrade")) > 0 }

// isNavigation reports whether a browser will show the answer as a page.
func isNavigation(r *http.Request) bool {
	if r.Method != http.MethodGet || isUpgrade(r) {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return acceptsHTML(r)
}

// acceptsHTML reports whether the answer may be a page.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/html")
}
