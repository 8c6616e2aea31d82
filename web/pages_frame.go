package web

import (
	"net/http"
	"net/url"
	"strings"

	"sandboxd/internal/auth"
	"sandboxd/static"
	"sandboxd/views"
)

// themeCookie keeps the theme, so that the server draws the page in it and nothing flashes. It is no secret.
const themeCookie = "sandboxd_theme"

// themeAge is how long the choice is kept, in seconds: browsers cap it at about this.
const themeAge = 400 * 24 * 3600

// frame is the page around the content, for the signed-in user.
func (s *Server) frame(r *request, title, nav string) views.Frame {
	return views.Frame{
		Title: title, Nav: nav, Theme: themeOf(r.cookie(themeCookie)),
		Viewer: views.Person{Name: r.who.User.Name, Admin: r.who.User.Role == auth.Admin},
		Assets: s.assets(), Alarm: s.alarm.last(s.cfg.Now()), Alerts: s.cfg.Alerts.Firing(alertScope(r.who)), Here: r.here(),
	}
}

func (s *Server) assets() views.Assets {
	a := s.cfg.Assets
	return views.Assets{
		Style: a.URL("app.css"), Script: script(a, "app.js"), Icon: a.URL("icon.svg"), Touch: a.URL("touch.png"),
		Sans: a.URL("geist-latin-wght-normal.woff2"), Mono: a.URL("geist-mono-latin-wght-normal.woff2"),
		Licences: a.URL("third-party.txt"), Problem: a.Problem(),
		WorkspaceStyle: a.URL("workspace.css"), WorkspaceScript: script(a, "workspace.js"),
		PlotsStyle: a.URL("plots.css"), PlotsScript: script(a, "plots.js"),
	}
}

func script(a *static.Assets, entry string) views.Script {
	return views.Script{URL: a.URL(entry), Needs: a.Needs(entry)}
}

func themeOf(value string) string {
	switch value {
	case "light", "dark":
		return value
	}
	return "auto"
}

// here is the page that the person is on: for a form that a page shows again, or a part that a script asks for, the
// page around it.
func (r *request) here() string {
	if r.http.Method == http.MethodGet && !r.byScript() {
		return r.http.URL.RequestURI()
	}
	if next := localPath(r.http.PostFormValue("next")); next != "" {
		return next
	}
	return "/"
}

// back is the page to come back to after a form, as the form says it, or otherwise.
func (r *request) back(otherwise string) string {
	if next := localPath(r.form("next")); next != "" {
		return next
	}
	return otherwise
}

// localPath gives path if it leads to a page of ours, else "": never to another host, whatever a browser makes of
// slashes, backslashes and control characters.
func localPath(path string) string {
	bad := func(c rune) bool { return c < ' ' || c == '\\' || c == 0x7f }
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsFunc(path, bad) || len(path) > maxPath {
		return ""
	}
	return path
}

// maxPath bounds an address that we lead to.
const maxPath = 2000

// origin is the page from which a sheet or a form's page was opened, to come back to when it is done; otherwise when
// that is not known.
func (r *request) origin(otherwise string) string {
	if r.http.Method == http.MethodPost {
		return r.back(otherwise)
	}
	from := r.http.Header.Get("Referer")
	if r.byScript() {
		from = r.http.Header.Get("HX-Current-URL")
	}
	u, err := url.Parse(from)
	if err != nil || u.Host != r.http.Host || u.Path == r.http.URL.Path {
		return otherwise
	}
	if path := localPath(u.RequestURI()); path != "" {
		return path
	}
	return otherwise
}
