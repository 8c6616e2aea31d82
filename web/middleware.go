package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/activity"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// contentPolicy keeps everything that is not ours off the dashboard, and scripts and styles out of pages. The workspace
// has its own (workspacePolicy).
const contentPolicy = "default-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// requestID makes the request that everything behind it shares. The id is ours: a client's own is not believed.
func (s *Server) requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := newRequest(c)
		c.Set(requestKey, r)
		r.head.Set("X-Request-Id", r.id)
		return next(c)
	}
}

// accessLog notes each request at debug level: path only, because queries carry codes and headers carry secrets.
func (s *Server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := s.cfg.Now()
		err := next(c)
		if err != nil {
			c.Error(err) // so that the status is known here; Echo does not handle it twice
		}
		r := requestOf(c)
		s.log.Debug("request", "request_id", r.id, "method", r.http.Method, "path", r.http.URL.Path,
			"status", c.Response().Status, "bytes", c.Response().Size, "took", s.cfg.Now().Sub(start),
			"from", r.from, "user", r.who.User.Name)
		return nil
	}
}

// recoverPanic turns a panic into an error with its stack for the log. http.ErrAbortHandler stays a panic.
func (s *Server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error { return rescued(func() error { return next(c) }) }
}

func rescued(f func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler { // net/http compares it so
			panic(v)
		}
		err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
	}()
	return f()
}

// secureHeaders says what browsers may do with anything that comes from the dashboard's origin.
func (s *Server) secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // pages and answers are personal; static files say otherwise
		return next(c)
	}
}

// refuseCrossSite refuses unsafe methods that a page of another origin makes a browser send; a sandbox's pages are of
// another origin though of the same site.
func (s *Server) refuseCrossSite(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.cross.Check(c.Request()); err != nil {
			return fault.Wrap(err, fault.Forbidden, "This request came from another website and was refused.")
		}
		return next(c)
	}
}

func (s *Server) limitBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.ContentLength > maxBody {
			return fault.New(fault.TooLarge, "The body is larger than 1 MiB.")
		}
		r.Body = http.MaxBytesReader(c.Response(), r.Body, maxBody)
		return next(c)
	}
}

// admit finds out who asks and refuses those whom the route is not for.
func (s *Server) admit(a admission) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := requestOf(c)
			r.access = a
			if a == scripted && foreign(r.http) {
				return fault.New(fault.Forbidden, "This request came from another website and was refused.")
			}
			who, err := s.identify(r.http.Context(), r, a)
			if err != nil {
				return err
			}
			r.who = who
			c.SetRequest(r.http.WithContext(activity.With(r.http.Context(), callerOf(r))))
			if err := a.check(who); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// foreign reports whether a browser says that a page of another origin asks. Sandboxes live on sibling hosts, so their pages
// send our cookie along: what such a page cannot read would still wake sandboxes, pack homes and use up what a person may do
// at once. Our own pages' scripts, links and pictures are of the same origin, and what a person types is of none. Browsers say
// so over HTTPS and on localhost; elsewhere they do not, and programs never do.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

func (s *Server) identify(ctx context.Context, r *request, a admission) (auth.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	switch a {
	case public, modelToken:
		return auth.Principal{}, nil
	case visitor, signedIn, scripted, adminOnly:
		who, err := s.sessionOf(ctx, r)
		if a == visitor && fault.Is(err, fault.Unauthenticated) {
			return auth.Principal{}, nil
		}
		return who, err
	}
	secret := tokenSecret(r.http.Header)
	if secret == "" {
		return auth.Principal{}, fault.New(fault.Unauthenticated,
			"This needs an API token: send it as \"Authorization: Bearer …\" or \"X-API-Key: …\".")
	}
	return s.cfg.Accounts.Authenticate(ctx, secret)
}

func (a admission) check(who auth.Principal) error {
	switch {
	case (a == adminOnly || a == tokenAdmin) && who.User.Role != auth.Admin:
		return fault.New(fault.Forbidden, "Only an admin may do this.")
	case (a == tokenWide || a == tokenAdmin) && who.SandboxID != "":
		return fault.New(fault.Forbidden, "This token is limited to the sandbox %q and may not do this.", who.Sandbox)
	}
	return nil
}

// sessionOf tells who is signed in, and puts the secret that proved it into r.
func (s *Server) sessionOf(ctx context.Context, r *request) (auth.Principal, error) {
	who, cookie, err := auth.Sole(r.http.CookiesNamed(s.sessionCookie()), func(c *http.Cookie) (auth.Principal, error) {
		return s.cfg.Accounts.Session(ctx, c.Value)
	})
	if err == nil {
		r.secret = cookie.Value
	}
	return who, err
}

// tokenSecret takes the API token out of the headers, or gives "".
func tokenSecret(h http.Header) string {
	if scheme, secret, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return h.Get("X-Api-Key")
}

// sessionCookie names the browser session's cookie. The prefix, which needs HTTPS, keeps sandboxes, which live on
// sibling hosts, from setting it. The port tells two sandboxds on one machine apart, which cookies do not.
func (s *Server) sessionCookie() string {
	if s.secure() {
		return "__Host-sandboxd"
	}
	if dashboard, err := url.Parse(s.cfg.Hosts.DashboardURL()); err == nil && dashboard.Port() != "" {
		return "sandboxd_" + dashboard.Port()
	}
	return "sandboxd"
}

func (s *Server) secure() bool { return strings.HasPrefix(s.cfg.Hosts.DashboardURL(), "https:") }

// setSession puts the browser session's secret into its cookie, which ends with the browser unless the user asked to stay
// signed in; an empty secret removes it.
func (s *Server) setSession(r *request, secret string, stay bool) {
	c := &http.Cookie{
		Name: s.sessionCookie(), Value: secret, Path: "/",
		Secure: s.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	switch {
	case secret == "":
		c.MaxAge = -1
	case stay:
		c.MaxAge = int(auth.StayFor / time.Second)
	}
	r.setCookie(c)
}

// loginURL leads to the login and back to where the person wanted to go, when that was a page.
func loginURL(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.Path == "/" {
		return loginPath
	}
	return loginPath + "?next=" + url.QueryEscape(r.URL.RequestURI())
}
