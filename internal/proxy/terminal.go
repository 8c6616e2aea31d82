package proxy

import (
	"context"
	_ "embed" // the page
	"html/template"
	"net/http"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	terminals "sandboxd/internal/terminal"
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

// textPath is a tab's scrollback, below the tab's path.
const textPath = "/text"

// serveTerminal serves the tab that the path names: "/t/<tab>/", else the main one. The page is ours, as on the dashboard; its
// WebSocket is ttyd's in the sandbox, or the guest's where there is no ttyd.
func (p *proxied) serveTerminal() {
	to := upstream{host: tabHost(mainTab), path: p.r.URL.Path, rawPath: p.r.URL.RawPath}
	base, tab := "/", mainTab
	if rest, ok := strings.CutPrefix(p.r.URL.EscapedPath(), tabFolder); ok {
		var below bool
		tab, rest, below = strings.Cut(rest, "/")
		if !isTab(tab) {
			p.show(p.noTab("A terminal's name has lowercase letters, digits and hyphens, 32 characters at most."))
			return
		}
		base = tabFolder + tab + "/"
		if !below {
			p.redirect(p.hosts.Origin(p.target) + base)
			return
		}
		to.host, to.path, to.rawPath = tabHost(tab), strings.TrimPrefix(p.r.URL.Path, base[:len(base)-1]), ""
		if "/"+rest != to.path {
			to.rawPath = "/" + rest
		}
	}
	reads := p.r.Method == http.MethodGet || p.r.Method == http.MethodHead
	switch {
	case reads && to.path == "/":
		p.showTerminal(base, tab)
	case reads && to.path == textPath:
		p.showText(tab)
	default:
		p.forward(to)
	}
}

// showText answers with what the tab has shown.
func (p *proxied) showText(tab string) {
	ctx, cancel := context.WithTimeout(p.r.Context(), askLimit)
	defer cancel()
	shown, err := terminals.Look(ctx, p.session.Guest, tab, terminals.Part(p.r.URL.Query().Get("part")))
	if err != nil {
		p.refuse(err)
		return
	}
	h := p.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if shown.Full {
		h.Set(terminals.FullHeader, "1")
	}
	_, _ = p.w.Write(shown.Text) // a reader that has left needs none
}

// tabOf gives the tab that a path names, or the main one.
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

func (a *responder) noTab(why string) notice {
	return notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "No such terminal", Text: why,
		Links: []link{{"Open the terminal", a.hosts.TerminalURL(a.target.Name)}, a.dashboard("Dashboard", a.target.Name)}}
}

// showTerminal answers with our own terminal page.
func (p *proxied) showTerminal(base, tab string) {
	p.w.Header().Set("Referrer-Policy", "same-origin")
	p.page(http.StatusOK, terminalPage, struct {
		Name, Tab, Box, Socket, Text string
		Scripts, Styles, Icons       []string
	}{p.target.Name, tab, p.handle.ID(), base + "ws?" + ownSocket, base + textPath[1:], below(p.proxy.cfg.Assets.Scripts), below(p.proxy.cfg.Assets.Styles), below([]string{p.proxy.cfg.Assets.Icon})},
		"script-src 'self'; style-src 'self' 'unsafe-inline'; "+ // the emulator sets styles from script
			"font-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'")
}

// below gives the paths of our files at a sandbox's host, without those that the bundle lacks.
func below(paths []string) []string {
	var out []string
	for _, path := range paths {
		if path != "" {
			out = append(out, hostname.OwnPath+path)
		}
	}
	return out
}
