package proxy

import (
	"context"
	"net/http"
	"strings"

	"sandboxd/internal/activity"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// caller is who sent the request, and how they are known.
type caller struct {
	auth.Principal
	byToken bool // by an API token in a header, which no foreign page can make a browser send
	byBasic bool // by the sandbox's own user name and password, for its terminal alone
	outsider
}

// tokenPrefix begins every API token, so that ours can be told from those that a sandbox's program takes.
const tokenPrefix = "sbx_"

// asked gives ctx with who asks, for the record of a wake.
func (q *request) asked(ctx context.Context) context.Context {
	return activity.With(ctx, activity.Caller{UserID: q.who.User.ID, User: q.who.User.Name, Token: q.who.Token, Via: activity.Address, From: q.client().String()})
}

// byHeader reports whether the caller is known by a header that no foreign page can make a browser send.
func (w caller) byHeader() bool { return w.byToken || w.byLink }

// identify asks accounts who the caller is. sb is the sandbox asked for, or the zero one. A caller without valid credentials is
// Unauthenticated.
func (c *claim) identify(ctx context.Context, accounts Accounts, sb sandbox.Sandbox) (caller, error) {
	if token := tokenOf(c.r.Header); token != "" {
		who, err := accounts.Authenticate(ctx, token)
		return caller{Principal: who, byToken: true}, err
	}
	who, err := c.session(ctx, accounts, sb.ID)
	if fault.Is(err, fault.Unauthenticated) && c.target.Kind == hostname.Terminal {
		return c.byPassword(ctx, sb, err)
	}
	return caller{Principal: who}, err
}

// session tries every cookie of the name: without the __Host- prefix a neighbour can set one of that name for this host, which
// must lock no one out. A session is valid for the sandbox with that id only, not for a later one of its name; "" is any.
func (q *request) session(ctx context.Context, accounts Accounts, sandboxID string) (auth.Principal, error) {
	private := fault.New(fault.Unauthenticated, "This sandbox is private.")
	who, _, err := auth.Sole(q.cookies(hostCookie), func(c *http.Cookie) (auth.Principal, error) {
		who, err := accounts.HostSession(ctx, c.Value, q.hosts.Host(q.target))
		if err == nil && sandboxID != "" && who.SandboxID != sandboxID {
			err = private
		}
		return who, err
	})
	if fault.Is(err, fault.Unauthenticated) {
		err = private
	}
	return who, err
}

// tokenOf gives one of our API tokens from the headers, or "".
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
