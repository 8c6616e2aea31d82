//go:build e2e

package main

import (
	"fmt"

	"github.com/chromedp/chromedp"
)

// findsByName opens a file by its name and runs a command, both by key, beside a terminal that keeps the keys of its shell.
func (p *person) findsByName() {
	const open = `document.querySelector("#palette")?.open === true`
	const keys, width = `document.querySelector(".palette-button .key").textContent`, `document.querySelector(".palette-button").offsetWidth`
	p.runs("focus the terminal", focusTerminal)
	p.sees("the keys that a terminal leaves", keys+` === "Ctrl ⇧ K"`)
	before := p.number(width)
	p.refocuses("the terminal", ".xterm-helper-textarea", ctrlKey|shiftKey)
	p.presses("k", "KeyK", 75, ctrlKey)
	p.presses("P", "KeyP", 80, ctrlKey|shiftKey)
	p.sees("the names of files", open+` && document.querySelector("#palette").innerText.includes("app.js")`)
	p.enters("app:4")
	p.sees("one file", `document.querySelectorAll("#palette [role=option]").length === 1`)
	p.pictures("workspace-quick-open")
	p.presses("Enter", "Enter", 13, 0)
	p.sees("its line in the editor", `document.querySelector("sandbox-editor .cm-activeLine")?.innerText.trim() === "four" && document.activeElement?.matches(".cm-content")`)
	if wide := p.number(`document.querySelector("sandbox-editor").offsetWidth`); wide < 600 {
		p.t.Errorf("the editor is %v wide", wide)
	}
	p.sees("the keys of the rest of the page, in as much room", keys+fmt.Sprintf(` === "Ctrl K" && %s === %v`, width, before))
	p.reloads()
	p.sees("the focus in the editor again", promptShown+` && document.activeElement?.matches(".cm-content")`)
	p.refocuses("the editor", ".cm-content", ctrlKey)
	p.presses("b", "KeyB", 66, ctrlKey)
	p.sees("the files hidden", panesShown+` === "editor terminal"`)
	p.presses("b", "KeyB", 66, ctrlKey)
	p.presses("`", "Backquote", 192, ctrlKey)
	p.sees("the focus in the terminal", `document.activeElement?.matches(".xterm-helper-textarea")`)
	p.presses("`", "Backquote", 192, ctrlKey)
	p.sees("the terminal hidden", panesShown+` === "files editor" && document.activeElement?.matches(".cm-content")`)
	p.presses("k", "KeyK", 75, ctrlKey)
	p.sees("the commands, and what every page leads to", open+` && document.querySelector("#palette").innerText.includes("Templates")`)
	p.pictures("workspace-palette")
	p.presses("Enter", "Enter", 13, 0)
	p.sees("that Enter alone runs nothing", open)
	p.enters("hide term")
	p.sees("the command with its key", `document.querySelector("#palette [aria-selected=true]")?.innerText.includes("Ctrl+`+"`"+`")`)
	p.presses("Enter", "Enter", 13, 0)
	p.sees("the terminal again", panesShown+` === "files editor terminal"`)
	p.does("put them beside each other", chromedp.Click("#slot-terminal [data-pane-flow]"))
	p.sees("that they are", `document.querySelector("#slot-editor").offsetTop === document.querySelector("#slot-terminal").offsetTop && document.querySelector("sandbox-editor").offsetWidth >= 600`)
	p.pictures("workspace-beside")
	p.does("and below again", chromedp.Click("#slot-terminal [data-pane-flow]"))
}

// refocuses opens and leaves the palette in each way, after each of which the focus is where it was.
func (p *person) refocuses(where, place string, held int64) {
	focused := fmt.Sprintf(`document.activeElement?.matches(%q)`, place)
	const open, chosen = `document.querySelector("#palette")?.open === true`, `document.querySelector("#palette [aria-selected=true]")?.innerText`
	back := func() { p.sees("the focus in "+where+" again", `!document.querySelector("dialog[open]") && `+focused) }
	for _, letter := range []string{"K", "P"} {
		p.presses(letter, "Key"+letter, int64(letter[0]), held)
		p.sees("the palette", open)
		p.presses("Escape", "Escape", 27, 0)
		back()
	}
	run := func(query, row string) {
		p.presses("K", "KeyK", 75, held)
		p.sees("the palette", open)
		p.enters(query)
		p.sees(row, fmt.Sprintf(chosen+`?.includes(%q)`, row))
		p.presses("Enter", "Enter", 13, 0)
	}
	for range 2 {
		run("panes beside", "Panes beside")
		back()
	}
	run("size", "Size…")
	p.sees("the dialog", `document.querySelector("#sheet[open] [name=memory]") !== null`)
	p.presses("Escape", "Escape", 27, 0)
	back()
	p.presses("K", "KeyK", 75, held)
	p.sees("the palette", open)
	p.enters("zzz nothing has this")
	p.sees("what else could have it", chosen+`?.includes("Open a file named")`)
	p.presses("ArrowDown", "ArrowDown", 40, 0)
	p.presses("Enter", "Enter", 13, 0)
	p.sees("the search of files with it", `document.activeElement?.matches(".find input") && document.activeElement.value === "zzz nothing has this"`)
	p.presses("Escape", "Escape", 27, 0)
	p.runs("focus "+where, fmt.Sprintf(`document.querySelector(%q).focus()`, place))
}
