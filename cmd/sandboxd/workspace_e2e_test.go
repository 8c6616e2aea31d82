//go:build e2e

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Keys that are held, as the browser's protocol counts them.
const (
	ctrlKey  = 2
	shiftKey = 8
)

// Scripts that look at the workspace.
const (
	promptShown   = `(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.includes("$"))`
	sideWidth     = `document.querySelector(".side-splitter").getAttribute("aria-valuenow")`
	focusTerminal = `document.querySelector(".screen:not([hidden]) .xterm-helper-textarea").focus()`
	offered       = `[...document.querySelectorAll(".offer")].map((o) => o.dataset.offer).join(" ")`
	panesShown    = `[...document.querySelectorAll(".pane-slot")].filter((s) => s.checkVisibility()).map((s) => s.dataset.pane).join(" ")`
	treeShows     = `document.querySelector("sandbox-files")?.innerText.includes(%q)`
	pastedPicture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

// workspacePage opens the workspace of lab, signed in, and waits for a prompt.
func (p *person) workspacePage(s *server) {
	p.t.Helper()
	p.signsIn("http://localhost:" + s.port())
	p.does("open the workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("a prompt", promptShown)
}

// mouse sends one event of the mouse, with the keys held that modifiers says.
func (p *person) mouse(kind input.DispatchMouseEventType, x, y float64, modifiers int64) {
	p.t.Helper()
	e := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Modifiers: modifiers}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		e.Button, e.ClickCount = input.MouseButtonLeft, 1
	}
	if p.held = kind == input.DispatchMouseEventTypeMousePressed || p.held && kind == input.DispatchMouseEventTypeMouseMoved; p.held {
		e.Button, e.Buttons = input.MouseButtonLeft, 1
	}
	p.does("move the mouse", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.DispatchMouseEvent, e)
		return chromedp.Void{}, err
	})
}

// presses presses a key with modifiers held.
func (p *person) presses(key, code string, keyCode, modifiers int64) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		e := input.DispatchKeyEventParams{Type: kind, Key: key, Code: code, WindowsVirtualKeyCode: keyCode, Modifiers: modifiers}
		p.does("press "+key, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, input.DispatchKeyEvent, e)
			return chromedp.Void{}, err
		})
	}
}

// number reads a script that gives one.
func (p *person) number(script string) float64 {
	p.t.Helper()
	n, err := strconv.ParseFloat(p.reads(script), 64)
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return n
}

// enters types into whatever has the focus, without Enter.
func (p *person) enters(text string) {
	p.t.Helper()
	p.does("enter "+text, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	})
}

// TestWorkspace_ADayInTheBrowser is what a person does in the one view, on a real engine.
func TestWorkspace_ADayInTheBrowser(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base", "label": "One view"})
	s.exec("lab", map[string]any{"command": `mkdir -p src && printf 'one\ntwo\nthree\nfour\n' > src/app.js`})
	p := newPerson(t)
	p.workspacePage(s)
	p.sees("the files beside the terminal", fmt.Sprintf(treeShows, "src"))
	p.pictures("workspace-split")
	t.Run("the layout is remembered in another browser", func(t *testing.T) { p.on(t).arranges(s) })
	t.Run("a phone has one pane at a time", func(t *testing.T) { p.on(t).usesAPhone() })
	t.Run("the scrollback is searched", func(t *testing.T) { p.on(t).searches() })
	t.Run("a path that is clicked opens in the editor", func(t *testing.T) { p.on(t).followsAPath() })
	t.Run("files and commands are found by name", func(t *testing.T) { p.on(t).findsByName() })
	t.Run("a picture that is pasted becomes a file", func(t *testing.T) { p.on(t).pastesAPicture(s) })
	t.Run("a terminal is named for everybody", func(t *testing.T) { p.on(t).namesATerminal() })
	t.Run("a port is offered as it opens, and shared", func(t *testing.T) { p.on(t).sharesAPort(s) })
	t.Run("a service is declared, and opens", func(t *testing.T) { p.on(t).declaresAService(s) })
	t.Run("nothing wakes until asked to", func(t *testing.T) { p.on(t).wakesFiles(s) })
}

// TestWorkspace_APageThatDoesNotArriveAsAWholeSaysSo keeps the workspace's script from the browser for a while.
func TestWorkspace_APageThatDoesNotArriveAsAWholeSaysSo(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	p := newPerson(t)
	p.signsIn("http://localhost:" + s.port())
	p.blocks("http://localhost:*/static/workspace-*.js")
	p.does("open the workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("that a part of it is missing", partLate+` && document.getElementById("late").innerText.includes("have not loaded")`)
	p.pictures("workspace-late")
	p.blocks()
	p.does("load it again", chromedp.Click("#late a"))
	p.sees("a prompt", promptShown)
	p.sees("no such note", `!document.getElementById("late")`)
}

// blocks has the browser load nothing at such addresses from now on, and everything else.
func (p *person) blocks(urls ...string) {
	p.t.Helper()
	var params network.SetBlockedURLsParams
	for _, url := range urls {
		params.URLPatterns = append(params.URLPatterns, &network.BlockPattern{URLPattern: url, Block: true})
	}
	p.does("block addresses", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		if err == nil {
			_, err = chromedp.Call(ctx, network.SetBlockedURLs, params)
		}
		return chromedp.Void{}, err
	})
}

// on is the same person in a test within a test.
func (p *person) on(t *testing.T) *person { return &person{t: t, ctx: p.ctx} }

func (p *person) arranges(s *server) {
	if got := p.reads(sideWidth); got != "240" {
		p.t.Errorf("the sidebar begins with %s", got)
	}
	const box = `document.querySelector(".side-splitter").getBoundingClientRect()`
	x, y := p.number(box+".x")+4, p.number(box+".y")+200
	p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, 0)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x+50, y, 0)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, 400, y, 0)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, 400, y, 0)
	p.sees("it where it was dragged", sideWidth+` === "400"`)
	p.runs("focus the splitter", `document.querySelector(".side-splitter").focus()`)
	p.presses("ArrowLeft", "ArrowLeft", 37, 0)
	p.sees("it moved by the keyboard", sideWidth+` === "384"`)
	client := s.login("admin", journeyPassword)
	s.until("the layout is kept", func() bool {
		_, page := s.anonymous(client, "http://"+s.addr+"/sandboxes/lab", nil)
		return strings.Contains(page, "&#34;side&#34;:384")
	})
	other := newPerson(p.t)
	other.signsIn("http://localhost:" + s.port())
	other.does("open the workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	other.sees("the same layout in another browser", sideWidth+` === "384"`)
	other.runs("focus the terminal", focusTerminal)
	other.presses("Enter", "Enter", 13, ctrlKey|shiftKey)
	other.sees("the terminal fill the window", panesShown+` === "terminal"`)
	other.presses("Enter", "Enter", 13, ctrlKey|shiftKey)
	other.sees("both again", panesShown+` === "files terminal"`)
	other.resizeTo([2]int64{1000, 700}, "light")
	other.sees("the default in a window of another width", sideWidth+` === "200"`)
	p.does("put it back", chromedp.DoubleClick(".side-splitter"))
	p.sees("it where it began", sideWidth+` === "240"`)
	p.does("hide the files", chromedp.Click(`[data-pane-toggle="files"]`))
	p.sees("the terminal alone", panesShown+` === "terminal"`)
	p.settles()
	p.does("show them", chromedp.Click(`[data-pane-toggle="files"]`))
	p.sees("both", panesShown+` === "files terminal"`)
}

func (p *person) usesAPhone() {
	p.resize("phone", "light")
	p.sees("one pane", panesShown+` === "terminal" || `+panesShown+` === "files"`)
	p.does("to the files", chromedp.Click(`[data-pane-toggle="files"]`))
	p.sees("the files alone", panesShown+` === "files" && `+fmt.Sprintf(treeShows, "src"))
	p.picture("workspace-files-light", "phone")
	p.does("to the terminal", chromedp.Click(`[data-pane-toggle="terminal"]`))
	p.sees("the terminal alone", panesShown+` === "terminal"`)
	p.resize("desktop", "light")
	p.sees("both again", panesShown+` === "files terminal"`)
}

func (p *person) searches() {
	p.runs("focus the terminal", `document.querySelector(".screen:not([hidden]) .xterm-helper-textarea").focus()`)
	p.types("clear; seq 400 | sed 's/^/straw-/'; echo needle-$((6*7)); seq 400")
	p.sees("the end", showsLine("400"))
	p.presses("F", "KeyF", 70, ctrlKey|shiftKey)
	p.sees("the bar that finds", `document.activeElement?.matches(".terminal-find input")`)
	p.enters("needle-42")
	p.sees("it found where it has scrolled away", `document.querySelector(".terminal-found").textContent === "1 of 1"`)
	p.picture("workspace-find-light", "desktop")
	p.runs("ask for more", `const i = document.querySelector(".terminal-find input"); i.value = ""; i.focus()`)
	p.enters("straw-3.7$")
	p.sees("nothing, as text", `document.querySelector(".terminal-found").textContent === "No results"`)
	p.does("as a pattern", chromedp.Click(`.terminal-find [aria-label="Regular expression"]`))
	p.sees("all that fit", `/ of 10$/.test(document.querySelector(".terminal-found").textContent)`)
	p.presses("Escape", "Escape", 27, 0)
	p.sees("the caret in the scrollback", `document.querySelector(".terminal-find") === null && document.querySelector(".terminal-scrollback") !== null`)
	p.runs("watch the clipboard", `navigator.clipboard.writeText = async (text) => { window.copied = text; }`)
	p.presses("End", "End", 35, ctrlKey)
	p.presses("ArrowUp", "ArrowUp", 38, 0)
	p.presses("Home", "Home", 36, 0)
	p.presses("ArrowUp", "ArrowUp", 38, shiftKey)
	p.presses("Enter", "Enter", 13, 0)
	p.sees("what was selected by keyboard copied", `window.copied === "399\n4"`)
	p.sees("the terminal again", `document.querySelector(".terminal-scrollback") === null`)
}

func (p *person) followsAPath() {
	p.types("clear; cd /home/agent; echo src/app.js:3:2: no; echo src/none.js:1")
	p.sees("the path", showsLine("src/app.js:3:2: no"))
	row := p.number(`document.querySelector("sandbox-terminals").text().findIndex((l) => l.startsWith("src/app.js"))`)
	const place = `document.querySelector(".screen:not([hidden]) .xterm-screen").getBoundingClientRect()`
	rows := p.number(`document.querySelector("sandbox-terminals").text().length`)
	x, height := p.number(place+".x")+20, p.number(place+".height")/rows
	y := p.number(place+".y") + (row+0.5)*height
	p.seesBy("the path is a link", `document.querySelector(".screen:not([hidden]) .terminal-root").title.startsWith("/home/agent/src/app.js")`, func() {
		p.mouse(input.DispatchMouseEventTypeMouseMoved, x+60, y+3*height, 0)
		p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0)
	})
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y+height, 0)
	p.sees("what is not there is none", `document.querySelector(".screen:not([hidden]) .terminal-root").title === ""`)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0)
	p.sees("the link again", `document.querySelector(".screen:not([hidden]) .terminal-root").title !== ""`)
	p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, ctrlKey)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y, ctrlKey)
	p.sees("the file in the editor", `/three/.test(document.querySelector("sandbox-editor .cm-content")?.innerText ?? "")`)
	p.sees("its line", `document.querySelector("sandbox-editor .cm-activeLine")?.innerText.trim() === "three"`)
	p.pictures("workspace-editor")
}

// seesBy does something again and again until a script gives true.
func (p *person) seesBy(what, script string, again func()) {
	p.t.Helper()
	deadline := time.Now().Add(eventLimit)
	for p.reads(script) != "true" {
		if time.Now().After(deadline) {
			p.seesWithin(what, script, 0)
		}
		again()
	}
}

func (p *person) pastesAPicture(s *server) {
	p.runs("paste", `const bytes = Uint8Array.from(atob("`+pastedPicture+`"), (c) => c.charCodeAt(0));
		const data = new DataTransfer();
		data.items.add(new File([bytes], "image.png", { type: "image/png" }));
		const place = document.querySelector(".screen:not([hidden]) .xterm-helper-textarea");
		place.focus();
		place.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }))`)
	p.sees("its path typed", `document.querySelector("sandbox-terminals").text().some((l) => /\/home\/agent\/pasted\/[\d_-]+\.png/.test(l))`)
	got := strings.TrimSpace(s.exec("lab", map[string]any{"command": "base64 -w0 pasted/*.png"}).Stdout)
	if got != pastedPicture {
		p.t.Errorf("the file holds %.100q", got)
	}
	if _, err := base64.StdEncoding.DecodeString(got); err != nil {
		p.t.Error(err)
	}
	p.presses("c", "KeyC", 67, ctrlKey)
}

func (p *person) namesATerminal() {
	p.does("rename", chromedp.DoubleClick("sandbox-terminals .tab-pick"))
	p.sees("a place for the name", `document.activeElement?.matches(".tab-name")`)
	p.enters("build & test")
	p.presses("Enter", "Enter", 13, 0)
	p.sees("the name", `document.querySelector("sandbox-terminals .tab-pick").innerText === "build & test"`)
	other := p.window()
	other.does("open a second window", chromedp.Navigate(p.reads("location.href")))
	other.sees("the same name there", `document.querySelector("sandbox-terminals .tab-pick")?.innerText === "build & test"`)
}

func (p *person) sharesAPort(s *server) {
	const serve = "cd /tmp; echo shared-page > index.html; nohup python3 -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1 & echo $!"
	s.exec("lab", map[string]any{"command": serve})
	p.sees("the offer", offered+` === "3000"`)
	p.pictures("workspace-offer")
	href := p.reads(`document.querySelector(".offer a").href`)
	w := p.window()
	w.does("open it", chromedp.Navigate(href))
	w.sees("the page", `document.body.innerText.includes("shared-page")`)

	p.does("make it public", chromedp.Click(`.offer a[href*="choice=public"]`))
	p.sees("the form, with that chosen and what is current", `document.querySelector('#sheet[open] [value="public"]:checked:not([data-current])') !== null && document.querySelector(".port-save").innerText === "Make public"`)
	p.presses("Escape", "Escape", 27, 0)
	p.menusOnAPhone()
	p.does("share it", chromedp.Click(`.offer a[href*="choice=shared"]`))
	p.sees("the form, with a link for a day chosen", `document.querySelector("#sheet[open] .share-fields")?.checkVisibility() && document.querySelector('[name="ttl"]:checked').value === "24h"`)
	p.pictures("workspace-share-form")
	p.does("for whom", chromedp.SendKeys("#share-label", "Grace"), chromedp.Click(`.port-save`))
	p.sees("the link", `document.querySelector("#sheet #share-url")?.value.includes("/.sandboxd/share#")`)
	p.pictures("workspace-share")
	link := p.reads(`document.querySelector("#share-url").value`)
	stranger := newPerson(p.t)
	stranger.does("a stranger opens the link", chromedp.Navigate(link))
	stranger.sees("the page", `document.body.innerText.includes("shared-page")`)
	p.does("revoke", chromedp.Click(`#sheet form[action*="/revoke?"] button`))
	p.sees("that it is", `document.querySelector("#sheet").innerText.includes("was revoked")`)
	for range 2 {
		stranger.does("reload", chromedp.Reload())
		stranger.sees("that the link was revoked", `document.querySelector("h1")?.innerText === "This link was revoked"`)
	}
	p.presses("Escape", "Escape", 27, 0)

	p.does("dismiss", chromedp.Click(`.offer [aria-label="Dismiss port 3000"]`))
	p.sees("no offer", offered+` === ""`)
	s.exec("lab", map[string]any{"command": "pkill -f http.server; sleep 0.2; true"})
	p.sees("that it has closed", `document.querySelector('[data-port="3000"][data-open]') === null`)
	s.exec("lab", map[string]any{"command": serve})
	p.sees("it offered again", offered+` === "3000"`)
	s.sleeps("lab", "asleep")
	p.sees("no offer while it is asleep", `!document.getElementById("offers").checkVisibility()`)
	s.exec("lab", map[string]any{"command": "true"})
	p.sees("no offer of what ended with its sleep", offered+` === ""`)
}

// menusOnAPhone opens the menus of the bar on a phone: they, and all in them, are within the window.
func (p *person) menusOnAPhone() {
	p.t.Helper()
	p.resize("phone", "light")
	for menu, what := range map[string]string{"#ws-ports": ".open-port button, .port-line a", ".account-menu": "[action='/logout'] button"} {
		p.does("open "+menu, chromedp.Click(menu+" > summary"))
		p.sees(menu+" within the window", fmt.Sprintf(`(() => {
			const list = document.querySelector("%s > .menu-list").getBoundingClientRect();
			const all = [...document.querySelectorAll("%[1]s")].flatMap((m) => [...m.querySelectorAll(%[2]q)]).map((e) => e.getBoundingClientRect());
			return list.left >= 0 && list.right <= innerWidth && all.length > 0 && all.every((r) => r.width > 0 && r.left >= list.left && r.right <= list.right);
		})()`, menu, what))
		p.picture("phone-menu-"+strings.Trim(menu, "#."), "phone")
		p.does("close "+menu, chromedp.Click(menu+" > summary"))
	}
	p.resize("desktop", "light")
}

func (p *person) declaresAService(s *server) {
	p.does("the services", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab/services"))
	p.does("add one", chromedp.Click(`.page-head a[data-sheet]`))
	p.sees("the form", `document.querySelector("#sheet[open] #service-name") !== null`)
	p.does("fill it in", chromedp.SendKeys("#service-name", "Docs"), chromedp.SendKeys("#service-port", "8001"),
		chromedp.SendKeys("#service-command", "python3 -u -m http.server 8001 --bind 127.0.0.1"), chromedp.Click(`#sheet .button.primary`))
	p.sees("what is wrong beside its field", `document.querySelector("#service-name-fault")?.innerText.includes("not a valid name")`)
	p.pictures("services-form")
	p.runs("mend it", `document.querySelector("#service-name").value = "docs"; document.querySelector('#sheet [name="health"]').checked = true;
		document.querySelector("#service-health-interval").value = "1s"`)
	p.does("save", chromedp.Click(`#sheet .button.primary`))
	p.sees("it run and be healthy", `/Running[^]*Healthy/.test(document.querySelector('[data-service="docs"]')?.innerText ?? "")`)
	p.sees("its port", `/8001[^]*listening/.test(document.querySelector("#ports").innerText)`)
	p.pictures("services-running")
	w := p.window()
	w.does("open it by its name", chromedp.Navigate(p.reads(`document.querySelector('[data-service="docs"] .service-url').href`)))
	w.sees("what it serves", `document.body.innerText.includes("Directory listing")`)
	log := p.window()
	log.does("its log", chromedp.Navigate(p.reads(`document.querySelector('[data-service="docs"] a[href^="/logs"]').href`)))
	log.sees("what it has written, followed", `document.querySelector("main").innerText.includes("Serving HTTP") && `+isFollowed)
	w.does("ask again", chromedp.Reload())
	log.sees("what it writes", `(document.querySelector("main").innerText.match(/GET \/ /g) ?? []).length > 1`)
	log.picture("service-log-light", "desktop")
	p.does("stop it", chromedp.Click(`[data-service="docs"] button[aria-label="Stop docs"]`))
	p.sees("it stopped", `/Stopped/.test(document.querySelector('[data-service="docs"]').innerText)`)
}

func (p *person) wakesFiles(s *server) {
	p.does("leave", chromedp.Navigate("http://localhost:"+s.port()+"/"))
	s.sleeps("lab", "asleep")
	p.does("open the workspace", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.sees("what wakes it, once, and its files as they were last", `document.querySelectorAll("#ws-still form button").length === 1 && document.getElementById("ws-still").innerText.includes("This sandbox is asleep") && document.querySelector(".panes :is(form, .panel)") === null && document.querySelector(".panes").innerText.includes("src")`)
	p.pictures("workspace-asleep")
	if state := s.rest("lab").State; state != "asleep" {
		p.t.Errorf("looking made it %s", state)
	}
	p.does("wake", chromedp.Click(`#ws-still form button`))
	p.sees("the files", fmt.Sprintf(treeShows, "src"))
	p.sees("a prompt", promptShown)
	if status, _ := s.raw("GET", "/sandboxes/lab", nil); status != http.StatusOK {
		p.t.Errorf("status %d", status)
	}
}
