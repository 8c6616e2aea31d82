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
	trusted []netip.Prefix // proxies that are believed who they ask for
	target  hostname.Target
	who     caller // nobody until authorize has found out
	begun   time.Time
}

// unsupported reports whether the method is for a proxy and not for a server.
func (q *request) unsupported() bool {
	return q.r.Method == http.MethodConnect || q.r.Method == http.MethodTrace || q.r.URL.Path == "*"
}

// client is where the request comes from.
func (q *request) client() netip.Addr {
	return hostname.Client(q.r.RemoteAddr, q.r.Header["X-Forwarded-For"], q.trusted)
}

// network names the network that attempts are counted by: one customer usually has an IPv4 address, or a /64 of IPv6.
func (q *request) network() string {
	addr := q.client()
	if !addr.Is6() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// checkOrigin refuses what a page of another origin makes a browser send with our cookie. Sandboxes are neighbours on
// sibling hosts: SameSite does not keep them apart. Navigation is let through (its answer is shown, not read); all
// else needs the very same origin, so other pages, also those of another port of the same sandbox, can neither read
// nor write. Whoever shows a token, or a terminal's password without any mark of a browser, is a program, which has no
// origin to upgrade from. A CORS preflight carries no cookie and is Unauthenticated already; programs and pages that have to
// cross origins use a token, or their own server's proxy.
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

// byBrowser reports whether the request bears the marks that browsers set and pages cannot.
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

// fromHere reports whether the sandbox's own page, the person or a program made the request. Without Sec-Fetch-Site it
// is an older browser, plain HTTP beyond localhost, or no browser: there a foreign page betrays itself by Origin.
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

// isUpgrade reports whether the request wants to leave HTTP: for a WebSocket, or for anything else.
func isUpgrade(r *http.Request) bool { return len(r.Header.Values("Upgrade")) > 0 }

// isNavigation reports whether a person's browser wants to show the answer as a page.
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
