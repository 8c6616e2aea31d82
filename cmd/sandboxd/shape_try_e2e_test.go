//go:build e2e

package main

import (
	"testing"

	"github.com/chromedp/chromedp"
)

func TestShapeTry(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base", "label": "One view"})
	s.exec("lab", map[string]any{"command": `mkdir -p src && printf 'one\ntwo\nthree\nfour\n' > src/app.js && echo hi > notes.md`})
	p := newPerson(t)
	p.workspacePage(s)
	p.pictures("try-rest")
	p.runs("open", `document.dispatchEvent(new CustomEvent("sandboxd:open", { detail: { path: "/home/agent/src/app.js" } }))`)
	p.sees("editor", `document.querySelector(".cm-content") !== null`)
	p.pictures("try-editor")
	p.resizeTo([2]int64{900, 700}, "light")
	p.settles()
	p.picture("try-900", "x")
	p.resizeTo([2]int64{1920, 1000}, "light")
	p.settles()
	p.picture("try-1920", "x")
	p.resize("desktop", "light")
	p.does("flow", chromedp.Click(`#slot-terminal [data-pane-flow]`))
	p.settles()
	p.picture("try-flow", "x")
	t.Log(p.reads(`JSON.stringify([...document.querySelectorAll(".pane-slot")].map((s) => [s.dataset.pane, s.offsetWidth, s.offsetHeight]))`))
}
