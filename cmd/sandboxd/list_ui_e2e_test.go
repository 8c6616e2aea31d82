//go:build e2e

package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestBrowser_TheListIsLive: what programs do over the API shows in an open page without a reload.
func TestBrowser_TheListIsLive(t *testing.T) {
	s := newServer(t)
	p := newPerson(t)
	p.does("open the dashboard", chromedp.Navigate("http://localhost:"+strings.Split(s.addr, ":")[1]+"/"))
	p.sees("the login page", at("/login"))
	p.signsInAt("admin", journeyPassword)
	p.sees("the list", at("/"))
	p.runs("mark the page, to see a reload", "window.same = true")
	row := func(name, text string) string {
		return fmt.Sprintf(`window.same && (document.querySelector("[data-name='%s']")?.innerText ?? "").includes(%q)`, name, text)
	}
	for _, in := range []map[string]any{
		{"template": "base", "name": "brave-otter", "label": "ML Experiments"},
		{"template": "node-api", "name": "checkout", "label": "Checkout API, retries"},
		{"template": "base", "name": "quick-lynx"},
		{"image": "debian:trixie-slim", "name": "silver-heron", "label": "Edge experiments"},
	} {
		s.create(in)
		p.sees("the new one running", row(in["name"].(string), "Running"))
	}
	s.call("POST", "/sandboxes", map[string]any{"image": "sandboxd.invalid/none:1", "name": "tall-birch", "label": "Nightly import"}, nil)
	p.sees("one fail, and why", row("tall-birch", "Failed"))
	s.call("POST", "/sandboxes/silver-heron/stop?wait=stopped", nil, nil)
	p.sees("one stop", row("silver-heron", "Stopped"))
	s.call("PATCH", "/sandboxes/quick-lynx", map[string]any{"label": "Scratch"}, nil)
	p.sees("a new label", row("quick-lynx", "Scratch"))
	for _, name := range []string{"brave-otter", "checkout", "quick-lynx"} {
		p.sees("what it uses", row(name, "CPU"))
	}
	p.pictures("list")
	p.sees("room for an owner and a reason", `(() => {
		const row = document.querySelector("[data-name='brave-otter']"), owner = row.querySelector(".row-owner"), why = row.querySelector(".row-why");
		[owner.textContent, why.textContent] = ["adaadministr", "kept awake by terminal"];
		return owner.scrollWidth <= owner.clientWidth && why.scrollHeight <= why.clientHeight;
	})()`)
	p.goesThroughTheList(row)
	s.call("DELETE", "/sandboxes/quick-lynx?wait=gone", nil, nil)
	p.sees("one vanish", `window.same && document.querySelector("[data-name='quick-lynx']") === null`)
	p.sortsTheList()
	p.deletesWhatIsUnused(s)
}

// goesThroughTheList uses the keyboard, and acts on two at once.
func (p *person) goesThroughTheList(row func(name, text string) string) {
	p.t.Helper()
	focused := func(name string) string {
		return fmt.Sprintf(`document.activeElement?.closest("[data-name]")?.dataset.name === %q`, name)
	}
	for i, modifiers := range []int64{0, shiftKey} { // the first and the fourth
		box := fmt.Sprintf(`document.querySelectorAll(".row-pick")[%d].getBoundingClientRect()`, 3*i)
		x, y := p.coordinate(box+".left + 12"), p.coordinate("("+box+".top + "+box+".bottom) / 2")
		p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, modifiers)
		p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y, modifiers)
	}
	p.sees("all between them selected", `document.querySelector("[data-picked]").textContent === "4 selected" && String(getSelection()) === ""`)
	p.does("clear that", chromedp.Click(`[data-pick-none]`))
	p.sees("nothing selected", `document.querySelector(".rows .tick:checked") === null`)
	p.runs("leave all fields", `document.activeElement.blur()`)
	p.does("go down twice, and up", chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"))
	p.sees("the first row", focused("tall-birch"))
	p.does("go down", chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	p.sees("the third", focused("quick-lynx"))
	p.does("select it, and the one after the next", chromedp.KeyEvent("x"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	p.sees("that two are selected", `document.querySelector("[data-picked]").textContent === "2 selected" && document.querySelector("#many").checkVisibility()`)
	p.pictures("list-selected")
	p.does("put them to sleep", chromedp.Click(`#many button[value="sleep"]`))
	p.sees("what was done, and where the focus went", `document.querySelector("#many-done").innerText.includes("2 sandboxes are going to sleep.") && document.activeElement.id === "many-done" && document.querySelector(".rows .tick:checked") === null`)
	p.sees("them asleep", row("quick-lynx", "Asleep")+" && "+row("brave-otter", "Asleep"))
	p.pictures("list-slept")
	p.does("start them again", chromedp.Click(`#many-done button[value="start"]`))
	p.sees("them running", row("quick-lynx", "Running")+" && "+row("brave-otter", "Running"))
	p.does("close the message", chromedp.Click(`[data-many-close]`))
	p.sees("it gone", `document.querySelector("#many-done").innerText === ""`)
}

// coordinate evaluates a script that gives a number.
func (p *person) coordinate(script string) float64 {
	p.t.Helper()
	n, err := strconv.ParseFloat(p.reads(script), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// sortsTheList sorts, saves that as a filter, and comes back by the browser's button.
func (p *person) sortsTheList() {
	p.t.Helper()
	p.runs("sort by name", `const s = document.getElementById("list-sort"); s.value = "name"; s.dispatchEvent(new Event("change", { bubbles: true }))`)
	p.sees("that in the address and in the rows", `location.search === "?sort=name" && [...document.querySelectorAll("[data-name]")].map((r) => r.dataset.name).join() === "checkout,silver-heron,brave-otter,tall-birch"`)
	p.does("save it", chromedp.Click(`#saved > summary`), chromedp.Click(`#saved a[data-sheet]`))
	p.sees("the form", `document.activeElement?.id === "filter-name"`)
	p.types("By name")
	p.sees("it saved", `document.querySelector("#saved").textContent.includes("By name") && !document.querySelector("#sheet").open`)
	p.runs("back", `history.back()`)
	p.sees("the usual order", `location.search === "" && document.querySelector("[data-name]")?.dataset.name === "tall-birch" && document.getElementById("list-sort").value === ""`)
}

// deletesWhatIsUnused deletes one that was only looked at, and is asked for the name of one in which a key was pressed.
func (p *person) deletesWhatIsUnused(s *server) {
	p.t.Helper()
	dashboard := "http://localhost:" + strings.Split(s.addr, ":")[1]
	asks := func() string {
		p.does("ask to delete it", chromedp.Navigate(dashboard+"/sandboxes/brave-otter/delete"))
		p.sees("the question", `document.querySelector("[data-sheet-part] .button.danger") !== null`)
		return p.reads(`document.querySelector("[name=confirm]") !== null`)
	}
	p.does("look at it", chromedp.Navigate(dashboard+"/sandboxes/brave-otter"))
	p.sees("a prompt", promptShown)
	if asks() != "false" {
		p.t.Error("the name of a sandbox that nobody has used is asked for")
	}
	p.pictures("delete-unused")
	p.does("use it", chromedp.Navigate(dashboard+"/sandboxes/brave-otter"))
	p.sees("a prompt", promptShown)
	p.sees("the terminal with the focus", `document.activeElement?.closest("sandbox-terminals") != null`)
	p.types("touch work")
	p.sees("that typed", strings.Replace(promptShown, `"$"`, `"touch work"`, 1))
	if asks() != "true" {
		p.t.Error("the name of a sandbox with work is not asked for")
	}
	p.does("back to the list", chromedp.Navigate(dashboard+"/"))
	p.sees("the list", `document.querySelector("[data-name='tall-birch']") !== null`)
	p.does("open its menu", chromedp.Click(`[data-name="tall-birch"] .row-acts summary`), chromedp.Click(`[data-name="tall-birch"] a[href*="/delete?"]`))
	p.sees("the question, with the safe button chosen", `document.activeElement?.textContent.trim() === "Cancel" && document.querySelector("#sheet").open`)
	p.does("delete it", chromedp.Click(`#sheet .button.danger`))
	p.sees("it gone", `document.querySelector("[data-name='tall-birch']") === null && document.querySelector("[data-name]") !== null`)
	p.does("select one, and delete it", chromedp.Click(`[data-name="silver-heron"] .row-pick`), chromedp.Click(`#many [formaction="/many/delete"]`), chromedp.Click(`#sheet .button.danger`))
	p.sees("that it was deleted", `document.querySelector("[data-name='silver-heron']") === null && document.querySelector("#many-done").innerText.includes("silver-heron was deleted.")`)
}
