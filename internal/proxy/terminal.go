package proxy

import (
	"bytes"
	_ "embed" // the page
	"html/template"
	"net/http"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

var (
	//go:embed assets/terminal.html
	terminalHTML string
	terminalPage = template.Must(template.New("terminal").Parse(terminalHTML))
)

const (
	mainTab   = "main"
	maxTab    = 32
	tabFolder = "/t/" // before the name of any other tab
)

// serveTerminal serves the tab that the path names: "/t/<tab>/", else the main one. With ttyd in the sandbox that is
// ttyd's own page and WebSocket, which find each other by relative paths; without, our page over the guest's WebSocket.
func (s *stay) serveTerminal() {
	way := passage{upstream: tabHost(mainTab), path: s.r.URL.Path, rawPath: s.r.URL.RawPath}
	base, tab := "/", mainTab
	if rest, ok := strings.CutPrefix(s.r.URL.EscapedPath(), tabFolder); ok {
		var below bool
		tab, rest, below = strings.Cut(rest, "/")
		if !isTab(tab) {
			s.show(s.noTab("A terminal's name has small letters, digits and hyphens, 32 characters at most."))
			return
		}
		base = tabFolder + tab + "/"
		if !below {
			s.redirect(s.cfg.Hosts.Origin(s.target) + base)
			return
		}
		way.upstream, way.path, way.rawPath = tabHost(tab), strings.TrimPrefix(s.r.URL.Path, base[:len(base)-1]), ""
		if "/"+rest != way.path {
			way.rawPath = "/" + rest
		}
	}
	if !s.session.Guest.Hello().HasTTYD && way.path == "/" && (s.r.Method == http.MethodGet || s.r.Method == http.MethodHead) {
		s.showTerminal(base, tab)
		return
	}
	s.forward(way)
}

// tabOf names the tab that a path leads to, if it is one.
func tabOf(escapedPath string) string {
	if rest, ok := strings.CutPrefix(escapedPath, tabFolder); ok {
		if tab, _, _ := strings.Cut(rest, "/"); isTab(tab) {
			return tab
		}
	}
	return mainTab
}

func isTab(tab string) bool {
	if tab == "" || len(tab) > maxTab || tab[0] == '-' {
		return false
	}
	return strings.Trim(tab, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (v visit) noTab(why string) notice {
	return notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "No such terminal", Text: why,
		Links: []link{{"Open the terminal", v.cfg.Hosts.TerminalURL(v.target.Name)}, v.dashboard("Dashboard", v.target.Name)}}
}

// showTerminal answers with our own full-window terminal.
func (v visit) showTerminal(base, tab string) {
	var page bytes.Buffer
	err := terminalPage.Execute(&page, struct {
		Name, Tab, Socket string
		Scripts, Styles   []string
	}{v.target.Name, tab, base + "ws?" + ownSocket, below(v.cfg.Assets.Scripts), below(v.cfg.Assets.Styles)})
	if err != nil {
		v.refuse(err)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	// The emulator sets styles from script.
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "+
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	v.write(http.StatusOK, page.Bytes())
}

// below gives the paths at which a sandbox's host serves our files, without those that the bundle does not have.
func below(paths []string) []string {
	var out []string
	for _, path := range paths {
		if path != "" {
			out = append(out, hostname.OwnPath+path)
		}
	}
	return out
}
