//go:build e2e

package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Scripts that look at a terminal, of the workspace or of a sandbox's own host.
const (
	shownScreen   = `(document.querySelector(".screen:not([hidden])") ?? document)`
	scrollView    = shownScreen + `.querySelector(".terminal-scrollback.view")`
	cellsOf       = shownScreen + `.querySelector(".xterm-screen").getBoundingClientRect()`
	chipShows     = shownScreen + `.querySelector(".terminal-chip.shown")?.textContent === %q`
	clipboardHas  = `(navigator.clipboard.readText().then((t) => { window.clip = t; }, (e) => { window.clip = String(e); }), window.clip === %q)`
	clipboardLike = `(navigator.clipboard.readText().then((t) => { window.clip = t; }, (e) => { window.clip = String(e); }), /%s/.test(window.clip))`
	askedToCopy   = `(` + shownScreen + `.querySelector(".terminal-request:not([hidden])")?.innerText ?? "")`
	scrolledTo    = `parseFloat(` + scrollView + `.querySelector(".scrollbar.vertical .slider").style.top)`
)

// permits lets the page use the clipboard, as a person does who is asked.
func (p *person) permits(origin string) {
	p.t.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		params := browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, Origin: origin}
		p.does("permit "+name, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, browser.SetPermission, params)
			return chromedp.Void{}, err
		})
	}
}

// grid is where a terminal's cells are.
type grid struct{ x, y, width, height float64 }

func (p *person) grid() grid {
	p.t.Helper()
	const lines = `document.querySelector("sandbox-terminals").text().length`
	const width = `(() => { const c = document.createElement("canvas").getContext("2d"), s = getComputedStyle(` + shownScreen + `.querySelector(".terminal-root"));
		c.font = s.fontSize + " " + s.fontFamily; return Math.floor(c.measureText("W").width); })()`
	return grid{p.number(cellsOf + ".x"), p.number(cellsOf + ".y"), p.number(width), p.number(cellsOf+".height") / p.number(lines)}
}

// at is the middle of a cell.
func (g grid) at(column, row float64) (x, y float64) {
	return g.x + (column+0.5)*g.width, g.y + (row+0.5)*g.height
}

// drags selects from one cell to before another, with keys held.
func (p *person) drags(g grid, row, from, to float64, modifiers int64) {
	p.t.Helper()
	x, y := g.at(from, row)
	x -= g.width / 3
	end := g.x + (to+0.05)*g.width
	p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, modifiers)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, (x+end)/2, y, modifiers)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, end, y, modifiers)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, end, y, modifiers)
}

// clicks presses the button so many times at one place.
func (p *person) clicks(x, y float64, times int64) {
	p.t.Helper()
	for count := int64(1); count <= times; count++ {
		for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
			e := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: count}
			p.does("click", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
				_, err := chromedp.Call(ctx, input.DispatchMouseEvent, e)
				return chromedp.Void{}, err
			})
		}
	}
}

// wheels turns the wheel, down when positive.
func (p *person) wheels(x, y, pixels float64) {
	p.t.Helper()
	e := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: 0.01, DeltaY: pixels} // a zero would be left out
	p.does("turn the wheel", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.DispatchMouseEvent, e)
		return chromedp.Void{}, err
	})
}

// rowOf is where the terminal shows a line.
func (p *person) rowOf(line string) float64 {
	p.t.Helper()
	p.sees(line, showsLine(line))
	return p.number(fmt.Sprintf(`document.querySelector("sandbox-terminals").text().findLastIndex((l) => l.trimEnd() === %q)`, line))
}

// selects is what a person does with the mouse in a terminal.
func (p *person) selects(s *server) {
	p.permits("http://localhost:" + s.port())
	p.runs("focus the terminal", `document.querySelector(".screen:not([hidden]) .xterm-helper-textarea").focus()`)
	p.types(`clear; seq 200 | sed 's/^/straw-/'; echo alpha beta/gamma.txt delta`)
	row, g := p.rowOf("alpha beta/gamma.txt delta"), p.grid()
	p.drags(g, row, 0, 5, 0)
	p.sees("that it is copied", fmt.Sprintf(chipShows, "Copied"))
	p.sees("it in the clipboard", fmt.Sprintf(clipboardHas, "alpha"))
	p.picture("terminal-selected-light", "desktop")
	p.runs("empty the clipboard", `navigator.clipboard.writeText("-")`)
	p.sees("it empty", fmt.Sprintf(clipboardHas, "-"))
	p.presses("C", "KeyC", 67, ctrlKey|shiftKey)
	p.sees("the selection there still, and copied again", fmt.Sprintf(clipboardHas, "alpha"))
	g = p.grid()
	x, y := g.at(8, row)
	p.clicks(x, y, 2)
	p.sees("a word", fmt.Sprintf(clipboardHas, "beta/gamma.txt"))
	p.clicks(x, y, 3)
	p.sees("a line", fmt.Sprintf(clipboardLike, "^alpha beta.gamma.txt delta\\n?$"))
	p.selectsAcross(g)
}

// selectsAcross selects in the scrollback.
func (p *person) selectsAcross(g grid) {
	x, y := g.at(2, 2)
	p.wheels(x, y, -400)
	p.sees("the scrollback", scrollView+` !== null`)
	p.settles()
	p.pictures("terminal-scrolled")
	g = p.grid()
	x, y = g.at(2, 2)
	p.clicks(x, y, 2)
	p.sees("a line that has scrolled away", fmt.Sprintf(clipboardLike, "^straw-1[0-9]+$"))
	p.presses("Escape", "Escape", 27, 0)
	p.sees("the screen again", scrollView+` === null`)

	p.wheels(x, y, -400)
	p.sees("the scrollback", scrollView+` !== null`)
	p.seesBy("the screen again, at the end", scrollView+` === null`, func() { p.wheels(x, y, 400) })

	p.wheels(x, y, -200)
	p.sees("the scrollback", scrollView+` !== null`)
	p.types("echo typed-$((6*7))")
	p.sees("the screen again, and what was typed", scrollView+` === null && `+showsLine("typed-42"))

	row := p.rowOf("alpha beta/gamma.txt delta")
	x, y = g.at(5, row)
	p.mouse(input.DispatchMouseEventTypeMousePressed, x-g.width/2, y, 0)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, g.y+g.height, 0)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, g.y-g.height, 0)
	p.sees("the scrollback, while the button is held", scrollView+` !== null`)
	top := p.number(scrolledTo)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, g.y-3*g.height, 0)
	p.sees("it scroll", fmt.Sprintf(scrolledTo+` < %v`, top-2))
	p.mouse(input.DispatchMouseEventTypeMouseReleased, x, g.y-3*g.height, 0)
	p.sees("all of it", fmt.Sprintf(clipboardLike, "^(straw)?-?[0-9]*\\n(straw-[0-9]+\\n)+alpha$"))
	p.presses("Escape", "Escape", 27, 0)
	p.sees("the screen again", scrollView+` === null`)
}

// givesTheMouse runs programs that ask for the mouse, or that have the whole screen.
func (p *person) givesTheMouse() {
	p.types(`clear; printf 'has the mouse\n\e[?1002h\e[?1006h'; IFS= read -rsd M press; read -rsd m release; printf '\e[?1002l\e[?1006l'; echo "got ${press#?}M"`)
	row, g := p.rowOf("has the mouse"), p.grid()
	p.drags(g, row, 4, 7, shiftKey)
	p.sees("a selection with Shift", fmt.Sprintf(clipboardHas, "the"))
	p.drags(g, row, 4, 9, 0)
	p.sees("how to select", fmt.Sprintf(chipShows, "This program uses the mouse. Shift+drag selects text."))
	p.picture("terminal-mouse-light", "desktop")
	p.sees("the program get the mouse", showsLine(fmt.Sprintf("got [<0;5;%dM", int(row)+1)))

	p.types(`clear; seq 500 | less; echo left-$((6*7))`)
	p.sees("the pager", showsLine("1")+" && !"+showsLine("60"))
	x, y := g.at(4, 4)
	p.wheels(x, y, 300)
	p.sees("it scroll by itself", `!`+showsLine("1")+` && `+scrollView+` === null`)
	p.wheels(x, y, -300)
	p.sees("and back", showsLine("1"))
	p.enters("q")
	p.sees("the shell again", showsLine("left-42"))
}

// asksForTheClipboard has a program put text into the clipboard.
func (p *person) asksForTheClipboard() {
	put := func(text string) string { return `printf '\e]52;c;%s\a' $(printf ` + text + ` | base64)` }
	p.runs("empty the clipboard", `navigator.clipboard.writeText("-")`)
	p.types("clear; " + put("from-program"))
	p.sees("the question", askedToCopy+`.includes("lab wants to put text into your clipboard") && `+askedToCopy+`.includes("from-program")`)
	p.sees("nothing done yet", fmt.Sprintf(clipboardHas, "-"))
	p.pictures("terminal-clipboard")
	p.presses("F6", "F6", 117, 0)
	p.sees("the answer in focus", `document.activeElement?.textContent === "Allow"`)
	p.does("allow", chromedp.KeyEvent("\r"))
	p.sees("the text", fmt.Sprintf(clipboardHas, "from-program")+` && `+askedToCopy+` === "" && document.activeElement?.matches(".xterm-helper-textarea")`)
	p.types(put("unasked"))
	p.sees("the next without a question", fmt.Sprintf(clipboardHas, "unasked")+` && `+askedToCopy+` === ""`)
	p.does("open the menu", chromedp.Click(`.terminal-menu summary`))
	p.sees("that it may", `[...document.querySelectorAll(".terminal-menu label")].find((l) => l.innerText.includes("Let programs set the clipboard")).querySelector("input").checked`)
	p.pictures("terminal-menu")
	p.runs("forbid it", `[...document.querySelectorAll(".terminal-menu label")].find((l) => l.innerText.includes("Let programs set the clipboard")).querySelector("input").click()`)
	p.runs("focus the terminal", `document.querySelector(".screen:not([hidden]) .xterm-helper-textarea").focus()`)
	p.types(put("forbidden") + `; echo put-$((6*7))`)
	p.sees("that it is over", showsLine("put-42"))
	p.sees("the clipboard as it was, and no question", fmt.Sprintf(clipboardHas, "unasked")+` && `+askedToCopy+` === ""`)
	p.runs("paste by the menu", `[...document.querySelectorAll(".terminal-menu button")].find((b) => b.textContent.startsWith("Paste")).click()`)
	p.sees("what was in the clipboard", `document.querySelector("sandbox-terminals").text().some((l) => l.endsWith("$ unasked"))`)
	p.presses("c", "KeyC", 67, ctrlKey)
}

// TestTerminal_SelectsAndCopiesAsNativeOnes uses a real mouse and the browser's own clipboard.
func TestTerminal_SelectsAndCopiesAsNativeOnes(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	p := newPerson(t)
	p.workspacePage(s)
	t.Run("what the mouse selects is copied", func(t *testing.T) { p.on(t).selects(s) })
	t.Run("programs that ask for the mouse get it", func(t *testing.T) { p.on(t).givesTheMouse() })
	t.Run("a program asks once for the clipboard", func(t *testing.T) { p.on(t).asksForTheClipboard() })
	t.Run("a scale that is only emulated shows the text", func(t *testing.T) { p.on(t).emulatesAScale() })
	t.Run("a sandbox's own host has the same terminal", func(t *testing.T) { p.on(t).opensTheHost(s) })
}

// emulatesAScale has two device pixels for one of the page, as developer tools emulate it. The browser's ResizeObserver does not
// know of it, so that WebGL would draw into a corner.
func (p *person) emulatesAScale() {
	const webgl = shownScreen + `.querySelector(".xterm-screen canvas:not(.xterm-link-layer)")`
	p.types("clear; echo painted-$((6*7))")
	p.sees("it drawn with WebGL", webgl+` !== null && `+showsLine("painted-42"))
	p.does("emulate", chromedp.EmulateViewport(1200, 760, chromedp.EmulateScale(2)))
	p.sees("it drawn without", `devicePixelRatio === 2 && `+webgl+` === null && `+shownScreen+`.querySelector(".xterm-rows")?.innerText.includes("painted-42")`)
	p.picture("terminal-emulated-scale", "desktop")
	p.resize("desktop", "light")
}

// opensTheHost looks at the terminal on the sandbox's own host.
func (p *person) opensTheHost(s *server) {
	w := p.window()
	w.does("open it", chromedp.Navigate("http://lab.localhost:"+s.port()+"/"))
	w.sees("the terminal", `document.querySelector(".terminal-root")?.dataset.state === "connected"`)
	w.sees("the sandbox in its title", `document.title.endsWith(" · lab")`)
	w.sees("an icon", `document.querySelector("link[rel=icon]").href.includes("/.sandboxd/static/icon")`)
	w.pictures("terminal-host")
	w.types("seq 300 && touch counted")
	s.in("until test -e counted; do sleep 0.1; done")
	w.wheels(400, 300, -400)
	w.sees("the scrollback", `document.querySelector(".terminal-scrollback.view") !== null`)
	w.presses("Escape", "Escape", 27, 0)
	w.sees("the screen again", `document.querySelector(".terminal-scrollback") === null`)
}
