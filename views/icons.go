package views

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/a-h/templ"
)

// shapes are our own icons, drawn on a 16 by 16 grid with a line of 1.5. Keys are their names; templates name theirs
// in template.yaml.
var shapes = map[string]string{
	// Actions.
	"plus":     `<path d="M8 3v10M3 8h10"/>`,
	"search":   `<circle cx="7" cy="7" r="4.25"/><path d="m10.25 10.25 3.25 3.25"/>`,
	"close":    `<path d="m4 4 8 8m0-8-8 8"/>`,
	"check":    `<path d="m3 8.5 3.5 3.5L13 4.5"/>`,
	"right":    `<path d="m6 3.5 4.5 4.5L6 12.5"/>`,
	"left":     `<path d="M10 3.5 5.5 8l4.5 4.5"/>`,
	"down":     `<path d="M3.5 6 8 10.5 12.5 6"/>`,
	"dots":     `<g fill="currentColor" stroke="none"><circle cx="3" cy="8" r="1.25"/><circle cx="8" cy="8" r="1.25"/><circle cx="13" cy="8" r="1.25"/></g>`,
	"play":     `<path d="M5 3.2v9.6L12.7 8z"/>`,
	"stop":     `<rect x="4" y="4" width="8" height="8" rx="1.25"/>`,
	"restart":  `<path d="M13 8a5 5 0 1 1-1.6-3.7L13 5.8"/><path d="M13 2.6v3.2H9.8"/>`,
	"undo":     `<path d="M3 8a5 5 0 1 0 1.6-3.7L3 5.8"/><path d="M3 2.6v3.2h3.2"/>`,
	"download": `<path d="M8 2.5v7m-3-3 3 3 3-3M2.75 11v1.25c0 .7.55 1.25 1.25 1.25h8c.7 0 1.25-.55 1.25-1.25V11"/>`,
	"trash":    `<path d="M2.75 4.5h10.5M6 4.5V3a.75.75 0 0 1 .75-.75h2.5A.75.75 0 0 1 10 3v1.5m-5.75 0 .5 8a1.25 1.25 0 0 0 1.25 1.25h4a1.25 1.25 0 0 0 1.25-1.25l.5-8"/>`,
	"pencil":   `<path d="m10.25 3.25 2.5 2.5L5.5 13H3v-2.5z"/>`,
	"open":     `<path d="M6 3.5H3.75A1.25 1.25 0 0 0 2.5 4.75v7.5c0 .7.55 1.25 1.25 1.25h7.5c.7 0 1.25-.55 1.25-1.25V10M9.5 2.5h4v4m0-4-6 6"/>`,
	"copy":     `<rect x="5.5" y="5.5" width="8" height="8" rx="1.25"/><path d="M10.5 3.75c0-.7-.55-1.25-1.25-1.25h-5.5c-.7 0-1.25.55-1.25 1.25v5.5c0 .7.55 1.25 1.25 1.25"/>`,
	"leave":    `<path d="M6.5 2.5H4c-.7 0-1.25.55-1.25 1.25v8.5c0 .7.55 1.25 1.25 1.25h2.5M10 5l3 3-3 3m3-3H6.5"/>`,
	"hammer":   `<path d="m8.6 6.4-5.8 5.8a.9.9 0 0 0 1.2 1.2l5.8-5.8M7 3.2 9.4 2l4 4-1.2 2.4-1.6-.4-2-2z"/>`,
	"update":   `<circle cx="8" cy="8" r="5.75"/><path d="M8 11V5.25M5.5 7.5 8 5l2.5 2.5"/>`,
	"chat":     `<path d="M3.5 2.75h9c.7 0 1.25.55 1.25 1.25v6c0 .7-.55 1.25-1.25 1.25H7.25L4 13.75v-2.5h-.5c-.7 0-1.25-.55-1.25-1.25V4c0-.7.55-1.25 1.25-1.25z"/>`,
	"keyboard": `<rect x="1.75" y="4" width="12.5" height="8" rx="1.25"/><path d="M4.5 6.75h0m2.3 0h0m2.4 0h0m2.3 0h0M5.5 9.5h5"/>`,

	"maximise": `<path d="M6.5 2.5h-4v4m7-4h4v4m-7 7h-4v-4m7 4h4v-4"/>`,
	"split":    `<rect x="2.25" y="2.75" width="11.5" height="10.5" rx="1.25"/><path d="M8 2.75v10.5M8 8h5.75"/>`,

	// Things.
	"archive": `<path d="M2.25 2.75h11.5v3H2.25zM3.25 5.75v6.5c0 .55.45 1 1 1h7.5c.55 0 1-.45 1-1v-6.5M6.5 8.5h3"/>`,
	"camera":  `<path d="M1.75 5.25c0-.55.45-1 1-1h2l1.1-1.75h4.3l1.1 1.75h2c.55 0 1 .45 1 1v7c0 .55-.45 1-1 1H2.75c-.55 0-1-.45-1-1z"/><circle cx="8" cy="8.5" r="2.5"/>`,
	"list":    `<path d="M5.75 4h7.75M5.75 8h7.75M5.75 12h7.75M2.5 4h.01M2.5 8h.01M2.5 12h.01"/>`,
	"file":    `<path d="M9.25 1.75h-5c-.7 0-1.25.55-1.25 1.25v10c0 .7.55 1.25 1.25 1.25h7.5c.7 0 1.25-.55 1.25-1.25V5.5zM9.25 1.75V5.5H13"/>`,
	"folder":  `<path d="M1.75 4.25c0-.7.55-1.25 1.25-1.25h3l1.5 1.75H13c.7 0 1.25.55 1.25 1.25v6c0 .7-.55 1.25-1.25 1.25H3c-.7 0-1.25-.55-1.25-1.25z"/>`,
	"layers":  `<path d="m8 2.25 6 3-6 3-6-3zM2.25 8.25 8 11l5.75-2.75M2.25 11 8 13.75 13.75 11"/>`,
	"key":     `<circle cx="5.25" cy="10.75" r="2.75"/><path d="m7.25 8.75 6-6m-2.5 2.5 2 2"/>`,
	"user":    `<circle cx="8" cy="5.25" r="2.75"/><path d="M2.75 13.5c.6-2.6 2.7-4 5.25-4s4.65 1.4 5.25 4"/>`,
	"users":   `<circle cx="6" cy="5.5" r="2.5"/><path d="M1.5 13c.5-2.4 2.3-3.6 4.5-3.6s4 1.2 4.5 3.6M10.5 3.2a2.5 2.5 0 0 1 0 4.6m1.5 1.9c1.3.5 2.2 1.6 2.5 3.3"/>`,
	"sun":     `<circle cx="8" cy="8" r="2.75"/><path d="M8 1.5v1m0 11v1M1.5 8h1m11 0h1M3.4 3.4l.7.7m7.8 7.8.7.7m0-9.2-.7.7M4.1 11.9l-.7.7"/>`,
	"moon":    `<path d="M13.25 9.6A5.6 5.6 0 0 1 6.4 2.75a5.6 5.6 0 1 0 6.85 6.85z"/>`,
	"auto":    `<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" fill="currentColor"/>`,
	"clock":   `<circle cx="8" cy="8" r="5.75"/><path d="M8 4.75V8l2.25 1.5"/>`,
	"warn":    `<path d="M8 2.25 14.25 13H1.75zM8 6.5v3m0 1.75v.01"/>`,
	"note":    `<circle cx="8" cy="8" r="5.75"/><path d="M8 7.5V11m0-6v.01"/>`,
	"shield":  `<path d="M8 1.75 3 3.5v4c0 3.2 2 5.5 5 6.75 3-1.25 5-3.55 5-6.75v-4z"/>`,
	"size":    `<rect x="4" y="4" width="8" height="8" rx="1"/><path d="M6.5 1.75V4m3-2.25V4m-3 8v2.25m3-2.25v2.25M1.75 6.5H4m-2.25 3H4m8-3h2.25m-2.25 3h2.25"/>`,
	"gear":    `<circle cx="8" cy="8" r="2"/><path d="M8 1.75v1.75m0 9v1.75M14.25 8H12.5m-9 0H1.75m10.67-4.42-1.24 1.24m-6.36 6.36-1.24 1.24m0-8.84 1.24 1.24m6.36 6.36 1.24 1.24"/>`,
	"palette": `<path d="M8 2a6 6 0 0 0 0 12c1 0 1.5-.7 1.5-1.4 0-1-.9-1.3-.9-2.2 0-.7.6-1.15 1.4-1.15h1.5c1.5 0 2.5-1 2.5-2.5C14 4 11.3 2 8 2zM5 7.5h0m1.5-2.75h0m3.5 0h0"/>`,
	"lock":    `<rect x="3" y="7" width="10" height="6.75" rx="1.25"/><path d="M5 7V5a3 3 0 0 1 6 0v2"/>`,
	"link":    `<path d="M6.75 9.25 9.5 6.5M7.25 4.5l1.5-1.5a2.9 2.9 0 0 1 4.1 4.1l-1.5 1.5M8.75 11.5l-1.5 1.5a2.9 2.9 0 0 1-4.1-4.1l1.5-1.5"/>`,
	"mail":    `<rect x="1.75" y="3.25" width="12.5" height="9.5" rx="1.25"/><path d="m2.25 4.5 5.75 4.25 5.75-4.25"/>`,
	"bell":    `<path d="M3.25 11.5h9.5c-1-1-1.25-2.1-1.25-4.25a3.5 3.5 0 0 0-7 0c0 2.15-.25 3.25-1.25 4.25zM6.5 13.5h3M8 3.75v-1.5"/>`,
	"plug":    `<path d="M5.75 2v3m4.5-3v3M4 5h8v2.5a4 4 0 0 1-8 0zm4 6.5V14"/>`,

	// What templates may name.
	"box":      `<path d="m8 1.75 5.5 3v6.5L8 14.25l-5.5-3v-6.5zM2.75 5 8 7.9 13.25 5M8 8v6"/>`,
	"terminal": `<rect x="1.75" y="2.75" width="12.5" height="10.5" rx="1.5"/><path d="M4.5 6l2 2-2 2M8.5 10.25h3"/>`,
	"code":     `<path d="M5.25 4.5 1.75 8l3.5 3.5m5.5-7L14.25 8l-3.5 3.5M9.25 3l-2.5 10"/>`,
	"brain":    `<path d="M8 3.2v9.6M8 4.2a2 2 0 0 0-3.8-.8 2 2 0 0 0-1.5 3 2.2 2.2 0 0 0 .3 3.6 2 2 0 0 0 2.2 2.8A2 2 0 0 0 8 12m0-7.8a2 2 0 0 1 3.8-.8 2 2 0 0 1 1.5 3 2.2 2.2 0 0 1-.3 3.6 2 2 0 0 1-2.2 2.8A2 2 0 0 1 8 12"/>`,
	"chart":    `<path d="M2.25 2.25v11.5h11.5M5.25 11V8.5m3 2.5V5m3 6V7"/>`,
	"server":   `<rect x="2.25" y="2.5" width="11.5" height="4.5" rx="1"/><rect x="2.25" y="9" width="11.5" height="4.5" rx="1"/><path d="M4.75 4.75h.01M4.75 11.25h.01M7.25 4.75h4m-4 6.5h4"/>`,
	"hexagon":  `<path d="m8 1.75 5.4 3.125v6.25L8 14.25l-5.4-3.125v-6.25z"/><path d="M6 10V6.5l4 3.5V6.5"/>`,
	"database": `<ellipse cx="8" cy="4" rx="5.25" ry="2.25"/><path d="M2.75 4v8c0 1.25 2.35 2.25 5.25 2.25s5.25-1 5.25-2.25V4M2.75 8c0 1.25 2.35 2.25 5.25 2.25S13.25 9.25 13.25 8"/>`,
	"globe":    `<circle cx="8" cy="8" r="6"/><path d="M2 8h12M8 2c1.8 1.7 2.6 3.7 2.6 6S9.8 12.3 8 14c-1.8-1.7-2.6-3.7-2.6-6S6.2 3.7 8 2z"/>`,
	"flask":    `<path d="M6 1.75h4M6.75 1.75v4.5l-3.9 6.1a1.25 1.25 0 0 0 1.05 1.9h8.2a1.25 1.25 0 0 0 1.05-1.9l-3.9-6.1v-4.5M4.75 10h6.5"/>`,
	"python":   `<path d="M8 8H5.5A2.25 2.25 0 0 0 3.25 10.25M10.75 5.5V4A1.75 1.75 0 0 0 9 2.25H7A1.75 1.75 0 0 0 5.25 4v1.5H8M5.25 5.5H4A1.75 1.75 0 0 0 2.25 7.25v1.5A1.75 1.75 0 0 0 4 10.5h1.25V12A1.75 1.75 0 0 0 7 13.75h2A1.75 1.75 0 0 0 10.75 12v-1.5H8m0-2.5h1.5a1.25 1.25 0 0 0 1.25-1.25V5.5H12a1.75 1.75 0 0 1 1.75 1.75v1.5A1.75 1.75 0 0 1 12 10.5h-1.25"/>`,
	"book":     `<path d="M8 4.25C6.75 3.25 5 2.75 2.25 2.75v9.5c2.75 0 4.5.5 5.75 1.5 1.25-1 3-1.5 5.75-1.5v-9.5C11 2.75 9.25 3.25 8 4.25zm0 0v9.5"/>`,

	// States: each another shape.
	"state-running": `<circle cx="8" cy="8" r="5" fill="currentColor"/>`,
	"state-busy":    `<path d="M8 2.5A5.5 5.5 0 1 1 2.5 8" stroke-width="2"/>`,
	"state-stopped": `<rect x="3.5" y="3.5" width="9" height="9" rx="1.5" stroke-width="1.75"/>`,
	"state-asleep":  `<path d="M13.25 9.6A5.6 5.6 0 0 1 6.4 2.75a5.6 5.6 0 1 0 6.85 6.85z" fill="currentColor"/>`,
	"state-frozen":  `<path d="M8 1.75v12.5M2.6 4.9l10.8 6.2M2.6 11.1l10.8-6.2"/>`,
	"state-failed":  `<path d="M8 2.25 14.25 13H1.75z" fill="currentColor"/><path d="M8 6.5v3m0 1.75v.01" stroke="var(--surface)" stroke-width="1.75"/>`,
	"state-done":    `<circle cx="8" cy="8" r="5.75"/><path d="m5.4 8.2 1.9 1.9 3.4-4"/>`,
	"state-todo":    `<circle cx="8" cy="8" r="5.75" stroke-dasharray="2 2.5"/>`,
	"state-stale":   `<circle cx="8" cy="8" r="5.75"/><path d="M8 4.75V8l2.25 1.5"/>`,
}

// sprite writes all icons once per page; icon refers to them. So a row of a list costs a few bytes per icon, and so
// does a fragment of the live stream.
func sprite() templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, spriteText())
		return err
	})
}

var spriteText = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(`<svg hidden aria-hidden="true">`)
	names := make([]string, 0, len(shapes))
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(`<symbol id="i-` + name + `" viewBox="0 0 16 16">` + shapes[name] + `</symbol>`)
	}
	b.WriteString(`</svg>`)
	return b.String()
})

// iconRef gives the reference to an icon by name; a name that we have not drawn gets the box.
func iconRef(name string) string {
	if _, ok := shapes[name]; !ok {
		name = "box"
	}
	return "#i-" + name
}
