package web

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/views"
)

const setupPath = "/setup"

// pageLogin asks for name and password; before the setup is done it says how to do that.
func (s *accountHandlers) pageLogin(ctx context.Context, r *request) (templ.Component, error) {
	_, needed, err := s.cfg.Accounts.SetupCode(ctx)
	if err != nil {
		return nil, err
	}
	if needed {
		return views.SetupPage(views.Setup{Frame: s.frame(r, "Setup", ""), Needed: true}), nil
	}
	l := views.Login{Next: localPath(r.query("next"))}
	if r.query("done") == "setup" {
		l.Done = "The admin was created. Sign in with its name and password."
	}
	return s.loginForm(r, l), nil
}

func (s *accountHandlers) loginForm(r *request, l views.Login) templ.Component {
	l.Frame = s.frame(r, "Sign in", "")
	r.head.Set("Content-Security-Policy", s.loginPolicy(l.Next))
	return views.LoginPage(l)
}

// submitLogin opens a browser session and leads to where the person wanted to go.
func (s *accountHandlers) submitLogin(ctx context.Context, r *request) (string, error) {
	secret, u, err := s.cfg.Accounts.Login(ctx, r.from, r.field("name"), r.form("password"), stays(r))
	if err != nil {
		return "", err
	}
	r.as = u
	s.setSession(r, secret, stays(r))
	return r.back("/"), nil
}

func (s *accountHandlers) againLogin(_ context.Context, r *request, err error) (templ.Component, error) {
	return s.loginForm(r, views.Login{Name: r.form("name"), Stay: stays(r), Next: localPath(r.form("next")), Fault: fault.Message(err)}), nil
}

// stays reports whether the form of the sign-in asks for a session that outlives the browser.
func stays(r *request) bool { return r.form("stay") == "on" }

// submitLogout ends the browser session, and with it those on the sandboxes' hosts.
func (s *accountHandlers) submitLogout(ctx context.Context, r *request) (string, error) {
	if r.secret != "" {
		if err := s.cfg.Accounts.Logout(ctx, r.secret); err != nil && !fault.Is(err, fault.Unauthenticated) {
			return "", err
		}
	}
	s.setSession(r, "", false)
	return loginPath, nil
}

// pageSetup is the one-time link of the first run.
func (s *accountHandlers) pageSetup(ctx context.Context, r *request) (templ.Component, error) {
	return s.setupForm(ctx, r, views.Setup{Code: r.query("code")})
}

func (s *accountHandlers) setupForm(ctx context.Context, r *request, v views.Setup) (templ.Component, error) {
	code, needed, err := s.cfg.Accounts.SetupCode(ctx)
	if err != nil {
		return nil, err
	}
	if needed && v.Code != "" && subtle.ConstantTimeCompare([]byte(v.Code), []byte(code)) != 1 {
		v.Code, v.Fault = "", "This setup link is not valid: it was used already, or sandboxd has been restarted since. Open the setup link that it printed last."
	}
	v.Frame, v.Needed = s.frame(r, "Setup", ""), needed
	return views.SetupPage(v), nil
}

// submitSetup makes the admin and signs in.
func (s *accountHandlers) submitSetup(ctx context.Context, r *request) (string, error) {
	name, password := r.field("name"), r.form("password")
	_, err := s.cfg.Accounts.Setup(ctx, r.form("code"), name, password)
	if fault.Is(err, fault.Forbidden) { // the form says it best: the link is old, or mistyped
		err = fault.Wrap(err, fault.Invalid, "%s", fault.Message(err))
	}
	if err != nil {
		return "", err
	}
	secret, u, err := s.cfg.Accounts.Login(ctx, r.from, name, password, false)
	if err != nil { // the admin is there all the same
		s.log.Warn("sign in after the setup", "err", err)
		return loginPath + "?" + url.Values{"done": {"setup"}}.Encode(), nil
	}
	r.as = u
	s.setSession(r, secret, false)
	return "/", nil
}

func (s *accountHandlers) againSetup(ctx context.Context, r *request, err error) (templ.Component, error) {
	v := views.Setup{Code: r.form("code")}
	fields := map[string]*views.Field{"name": &v.Name, "password": &v.Password}
	v.Fault = r.fill(fields, err)
	v.Password.Value = "" // never back to the page
	return s.setupForm(ctx, r, v)
}

// submitTheme keeps the choice of colours in a cookie.
func (s *accountHandlers) submitTheme(_ context.Context, r *request) (string, error) {
	r.setCookie(&http.Cookie{
		Name: themeCookie, Value: themeOf(r.form("theme")), Path: "/", MaxAge: themeAge,
		Secure: s.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return r.back("/"), nil
}
