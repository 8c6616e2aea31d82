//go:build e2e || bench

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// filesPage is a person who has the page of a sandbox open, with its files.
type filesPage struct {
	*person
	s    *server
	name string // of the sandbox
}

// openFiles starts a server with one sandbox in which a command has been run, and opens its page.
func openFiles(t *testing.T, command string, flags ...string) *filesPage {
	t.Helper()
	s := newServer(t, append([]string{"--prebuild", ""}, flags...)...)
	s.create(map[string]any{"name": "otter", "template": "base"})
	p := &filesPage{person: newPerson(t), s: s, name: "otter"}
	p.in(command)
	p.signsIn(p.dashboard())
	p.loads()
	p.resize("phone", "light")
	p.does("have the files in front on a phone", chromedp.Click(`[data-pane-toggle="files"]`))
	p.resize("desktop", "light")
	p.settles() // what hears of the new size would close a menu
	return p
}

func (p *filesPage) dashboard() string {
	return "http://localhost:" + strings.Split(p.s.addr, ":")[1]
}

// loads opens the page, and waits for the tree, and for the terminal, which takes the focus when it is there. A network of
// this machine that comes or goes can keep a script of the page from loading: then a person loads it again.
func (p *filesPage) loads() {
	p.t.Helper()
	p.does("open the page", chromedp.Navigate(p.dashboard()+"/sandboxes/"+p.name))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < 10*time.Second && p.reads(`customElements.get("sandbox-files") !== undefined`) != "true"; {
		<-tick.C
	}
	if p.reads(`customElements.get("sandbox-files") !== undefined`) != "true" {
		p.does("load it again", chromedp.Reload())
	}
	p.sees("the tree", `document.querySelector("sandbox-files [role=treeitem], sandbox-files .note") !== null`)
	p.sees("the terminal", `document.querySelector(".tabs-end")?.innerText.includes("Connected")`)
}

// in runs a command in the sandbox's home and gives what it writes.
func (p *filesPage) in(command string) string {
	p.t.Helper()
	out := p.s.exec(p.name, map[string]any{"command": command})
	if out.ExitCode != 0 {
		p.t.Fatalf("%s: exit %d: %s", command, out.ExitCode, out.Stderr)
	}
	return out.Stdout
}

// content gives a file of the sandbox over the API.
func (p *filesPage) content(path string) string {
	p.t.Helper()
	status, body := p.s.raw("GET", "/sandboxes/"+p.name+"/files?path="+url.QueryEscape(path), nil)
	if status != http.StatusOK {
		p.t.Fatalf("read %s: %d %s", path, status, body)
	}
	return string(body)
}

// row is a selector of something in the tree, by the end of its path.
func row(path string) string {
	as := strings.NewReplacer("+", "%20", "%2F", "/", "%28", "(", "%29", ")", "%21", "!", "%27", "'", "%2A", "*", "%7E", "~") // as encodeURIComponent has it
	return `.tree-row[data-path$="/` + as.Replace(url.QueryEscape(path)) + `"]`
}

// has is a script that tells whether a selector finds something that can be seen.
func has(selector string) string {
	return fmt.Sprintf("document.querySelector(%q)?.checkVisibility() === true", selector)
}

// inRow is a script that tells whether a note says so within its row of the tree.
func inRow(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".tree-row.note")].some((row) => {
		const words = document.createRange();
		words.selectNodeContents(row);
		const [said, whole] = [words.getBoundingClientRect(), row.getBoundingClientRect()];
		return row.textContent === %q && said.top >= whole.top && said.bottom <= whole.bottom;
	})`, text)
}

// clicks clicks on something in the tree, when it is there.
func (p *filesPage) clicks(path string) {
	p.t.Helper()
	p.sees(path+" in the tree", has(row(path)))
	p.points("click "+path, row(path), "pointerdown", "pointerup", "click")
}

// points does with the pointer what events say, at something that may move: rows do when others come.
func (p *filesPage) points(what, selector string, events ...string) {
	p.t.Helper()
	p.runs(what, fmt.Sprintf(`const e = document.querySelector(%q);
		e.scrollIntoView({ block: "nearest" });
		for (const kind of %q.split(" ")) {
			const of = kind.startsWith("pointer") ? PointerEvent : MouseEvent;
			e.dispatchEvent(new of(kind, { bubbles: true, cancelable: true, composed: true, button: 0 }));
		}`, selector, strings.Join(events, " ")))
}

// opensFile opens a file for good.
func (p *filesPage) opensFile(path string) {
	p.t.Helper()
	p.sees(path+" in the tree", has(row(path)))
	p.points("open "+path, row(path), "pointerdown", "pointerup", "click", "pointerdown", "pointerup", "click", "dblclick")
	name := path[strings.LastIndex(path, "/")+1:]
	p.sees(name+" open", fmt.Sprintf(`document.querySelector('sandbox-editor [role=tab][aria-selected=true]')?.textContent.includes(%q) && document.activeElement?.closest('.editor-host:not([hidden]) .cm-content') != null`, name))
}

// button presses the button of a text that can be seen.
func (p *filesPage) button(text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("button")].find((b) => b.checkVisibility() && b.textContent.trim() === %q)`, text)
	p.sees("the button "+text, find+" !== undefined")
	p.runs("press "+text, find+".click()")
}

// keys presses keys of the kb package one after the other. All bear the time of the first, so that the letters of a name
// are one word to the page, however long a busy machine takes to deliver them.
func (p *filesPage) keys(keys string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	began := input.TimeSinceEpoch(float64(time.Now().UnixMicro()) / 1e6)
	at := func(key *input.DispatchKeyEventParams) { key.Timestamp = began }
	p.does("press keys", chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...), at))
}

// inserts puts text where the cursor is.
func (p *filesPage) inserts(text string) {
	p.t.Helper()
	p.does("insert text", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	})
}

// focuses puts the focus into the tree.
func (p *filesPage) focuses() {
	p.t.Helper()
	p.runs("focus the tree", `document.querySelector("sandbox-files [role=tree]").focus()`)
}

// within says whether something is so before a time has passed.
func (p *filesPage) within(limit time.Duration, script string) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if p.reads("Boolean("+script+")") == "true" {
			return true
		}
	}
	return false
}

// drops drags files of this machine over something in the tree, and lets go.
func (p *filesPage) drops(onto string, files ...string) {
	p.t.Helper()
	p.sees(onto+" in the tree", has(row(onto)))
	var at struct{ X, Y float64 }
	place := p.reads(fmt.Sprintf(`(() => { const b = document.querySelector(%q).getBoundingClientRect(); return JSON.stringify({X: b.left + 60, Y: b.top + b.height / 2}) })()`, row(onto)))
	if err := json.Unmarshal([]byte(place), &at); err != nil {
		p.t.Fatalf("%s: %v", place, err)
	}
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: files, DragOperationsMask: 1}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		p.does("drag", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at.X, Y: at.Y, Data: data})
			return chromedp.Void{}, err
		})
	}
}
