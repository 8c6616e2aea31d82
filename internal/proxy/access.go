package proxy

import (
	"context"
	"net/http"
	"strings"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// visitor is who asks, and by what.
type visitor struct {
	auth.Principal
	byToken bool // by an API token in a header, which no foreign page can make a browser send
	byBasic bool // by the sandbox's own user name and password, for its terminal alone
	outsider
}

// tokenPrefix begins every API token, so that ours can be told from those that a sandbox's program takes.
const tokenPrefix = "sbx_"

// byHeader reports whether the visitor is known by a header that no foreign page can make a browser send.
func (w visitor) byHeader() bool { return w.byToken || w.byLink }

// maxCandidates bounds how many cookies of our name are tried.
const maxCandidates = 8

// identify finds out from accounts who asks for sb, which is the zero one where there is none. Unauthenticated when nobody
// does.
func (v visit) identify(ctx context.Context, accounts Accounts, sb sandbox.Sandbox) (visitor, error) {
	if token := tokenOf(v.r.Header); token != "" {
		who, err := accounts.Authenticate(ctx, token)
		return visitor{Principal: who, byToken: true}, err
	}
	who, err := v.session(ctx, accounts, sb.ID)
	if fault.Is(err, fault.Unauthenticated) && v.target.Kind == hostname.Terminal {
		return v.byPassword(ctx, sb, err)
	}
	return visitor{Principal: who}, err
}

// session tries every cookie of our name: where the __Host- prefix is not to be had, a neighbour can set one of that
// name for us too, which must not lock anybody out. A session is good for the sandbox that it was opened for: that of a
// deleted one does not lead into the next of its name. "" is for any sandbox.
func (v visit) session(ctx context.Context, accounts Accounts, sandboxID string) (auth.Principal, error) {
	host := v.cfg.Hosts.Host(v.target)
	tried := 0
	for _, c := range v.r.CookiesNamed(v.hostCookie()) {
		if tried++; tried > maxCandidates {
			break
		}
		who, err := accounts.HostSession(ctx, c.Value, host)
		if err == nil && sandboxID != "" && who.SandboxID != sandboxID {
			continue
		}
		if err == nil || !fault.Is(err, fault.Unauthenticated) {
			return who, err
		}
	}
	return auth.Principal{}, fault.New(fault.Unauthenticated, "This sandbox is private.")
}

// tokenOf takes one of our API tokens out of the headers, or gives "".
func tokenOf(h http.Header) string {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(token, tokenPrefix) {
		return token
	}
	if key := h.Get("X-Api-Key"); strings.HasPrefix(key, tokenPrefix) {
		return key
	}
	return ""
}

// checkOrigin refuses what a page of another origin makes a browser send with our cookie. Sandboxes are neighbours on
// sibling hosts: SameSite does not keep them apart. Navigation is let through (its answer is shown, not read); all
// else needs the very same origin, so other pages, also those of another port of the same sandbox, can neither read
// nor write. Whoever shows a token, or a terminal's password without any mark of a browser, is a program, which has no
// origin to upgrade from. A CORS preflight carries no cookie and is Unauthenticated already; programs and pages that have to
// cross origins use a token, or their own server's proxy.
func (v visit) checkOrigin(who visitor) error {
	switch {
	case isUpgrade(v.r):
		if v.sameOrigin() || !v.hasOrigin() && (who.byHeader() || who.byBasic && !v.byBrowser()) {
			return nil
		}
	case who.byHeader(), v.fromHere(), v.navigates():
		return nil
	}
	return fault.New(fault.Forbidden, "This request came from another website and was refused.")
}

func (v visit) hasOrigin() bool { return len(v.r.Header.Values("Origin")) > 0 }

// byBrowser reports whether the request bears the marks that browsers set and pages cannot.
func (v visit) byBrowser() bool {
	for name := range v.r.Header {
		if strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return v.hasOrigin()
}

func (v visit) sameOrigin() bool {
	origins := v.r.Header.Values("Origin")
	return len(origins) == 1 && origins[0] == v.cfg.Hosts.Origin(v.target)
}

// fromHere reports whether the sandbox's own page, the person or a program made the request. Without Sec-Fetch-Site it
// is an older browser, plain HTTP beyond localhost, or no browser: there a foreign page betrays itself by Origin.
func (v visit) fromHere() bool {
	site := v.r.Header.Get("Sec-Fetch-Site")
	if site == "" {
		return v.sameOrigin() || !v.hasOrigin()
	}
	return site == "same-origin" || site == "none"
}

func (v visit) navigates() bool {
	return (v.r.Method == http.MethodGet || v.r.Method == http.MethodHead) && v.r.Header.Get("Sec-Fetch-Mode") == "navigate"
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
