package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// handoverPath is where sandboxes' hosts send a browser that they do not know; internal/proxy is the other end.
const handoverPath = "/handover"

// handover leads a person who is signed in back to a sandbox's host, with a one-time code that makes a session there.
// It changes nothing but for the code's being issued, which is of no use to anybody but that browser at that host.
func (s *accountHandlers) handover(c echo.Context) error {
	r := requestOf(c)
	ctx, cancel := context.WithTimeout(r.http.Context(), handlerTime)
	defer cancel()
	to, err := s.cfg.Handover.URL(ctx, r.who, r.secret, r.query("to"), r.query("nonce"))
	if err != nil {
		return err
	}
	r.head.Set("Cache-Control", "no-store")
	r.head.Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, to)
}

// loginPolicy is the content policy of the login page: where its form leads on to a sandbox's host, browsers apply
// form-action to that host too.
func (s *accountHandlers) loginPolicy(next string) string {
	if !strings.HasPrefix(next, handoverPath+"?") {
		return contentPolicy
	}
	return strings.Replace(contentPolicy, "form-action 'self'", "form-action 'self' "+s.cfg.Hosts.TerminalURL("*"), 1)
}
