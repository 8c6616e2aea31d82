//go:build e2e

package main

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestFilesPage_ADoubleClickOpensTheFileOfItsFirstClick uses a real mouse: the first click makes the rows move.
func TestFilesPage_ADoubleClickOpensTheFileOfItsFirstClick(t *testing.T) {
	p := openFiles(t, "touch a.txt b.txt c.txt d.txt")
	p.sees("the files", has(row("a.txt")))
	p.clicksTwice(row("a.txt"))
	p.sees("a.txt open for editing", opened("a.txt")+` && document.querySelector(".tab.passing") === null`)
	p.pictures("files-double-click")
	if names := p.reads(`[...document.querySelectorAll("sandbox-editor [role=tab]")].map((t) => t.textContent).join()`); names != "a.txt" {
		t.Errorf("open are %s", names)
	}
}

// opened is a script that tells that a file is shown in the editor, which has the focus.
func opened(name string) string {
	return previewed(name) + ` && document.activeElement?.closest(".editor-host:not([hidden])") != null`
}

// previewed is a script that tells that a file is shown in the editor.
func previewed(name string) string {
	return fmt.Sprintf(`document.querySelector("sandbox-editor [role=tab][aria-selected=true]")?.textContent.includes(%q) && document.querySelector(".editor-host:not([hidden]) .cm-content") != null`, name)
}

// clicksTwice double-clicks with the mouse, on the left of what a selector finds.
func (p *filesPage) clicksTwice(selector string) {
	p.t.Helper()
	box := fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect()`, selector)
	x, y := p.number(box+".left + 50"), p.number("("+box+".top + "+box+".bottom) / 2")
	for count := range int64(2) {
		for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
			e := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: count + 1}
			p.does("click", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
				_, err := chromedp.Call(ctx, input.DispatchMouseEvent, e)
				return chromedp.Void{}, err
			})
		}
		p.settles() // the rows have moved before the second click
	}
}

// TestFilesPage_AClickPreviewsAFileAndKeysStayInTheTree presses Del after a click: it is for the file, not for its text.
func TestFilesPage_AClickPreviewsAFileAndKeysStayInTheTree(t *testing.T) {
	p := openFiles(t, "echo one > a.txt && echo two > b.txt")
	p.sees("the files", has(row("b.txt")))
	p.does("click", chromedp.Click(row("a.txt")))
	p.sees("a preview", previewed("a.txt")+` && document.activeElement?.matches("[role=tree]")`)
	p.does("press Delete", chromedp.KeyEvent("\u007f"))
	p.sees("the file gone", "!"+has(row("a.txt")))
	p.does("click", chromedp.Click(row("b.txt")))
	p.sees("a preview", previewed("b.txt"))
	p.does("press Enter", chromedp.KeyEvent("\r"))
	p.sees("b.txt open for editing", opened("b.txt")+` && document.querySelector(".tab.passing") === null`)
	if got := p.content("/home/agent/b.txt"); got != "two\n" {
		t.Errorf("b.txt has %q", got)
	}
}

// TestWorkspace_ADeadLineIsSaidOnce stops sandboxd, whose connections stay open but silent, as those of a lost network.
func TestWorkspace_ADeadLineIsSaidOnce(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	p := newPerson(t)
	p.does("note what is sent", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `
			window.sent = [];
			const send = WebSocket.prototype.send;
			WebSocket.prototype.send = function (m) { sent.push(typeof m === "string" ? m : new TextDecoder().decode(m)); return send.call(this, m); };`})
		return chromedp.Void{}, err
	})
	p.workspacePage(s)
	if p.reads(`sent.some((m) => m.includes("columns"))`) != "true" {
		t.Fatal("what is sent was not noted")
	}
	for _, answer := range []string{`0\x1b[?`, `0\x1b[>`, `0\x1bP`} {
		if got := p.reads(`JSON.stringify(sent.filter((m) => m.startsWith("` + answer + `") && /c$|>\|/.test(m)))`); got != "[]" {
			t.Errorf("tmux is told what the terminal is: %s", got)
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) })
	stopped := time.Now()
	p.does("type", chromedp.KeyEvent("x"))
	p.sees("the terminal's bar say that nothing answers", linkState("silent"))
	t.Logf("after %s", time.Since(stopped))
	p.sees("the terminal's bar say so", linkState("reconnecting"))
	p.sees("that what was typed may be lost", `document.querySelector(".terminal-chip").innerText.includes("may not have arrived") && document.body.hasAttribute("data-stale")`)
	p.sees("that live updates have noticed too", `document.querySelector("#live:not([data-current])") !== null`)
	p.never("it said elsewhere", `document.querySelector("#offline").checkVisibility() || document.querySelector(".terminal-notice").checkVisibility()`, 5*time.Second)
	p.pictures("workspace-reconnecting")
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.seesWithin("it connected again", linkState("connected")+" && "+current, 2*time.Minute)
	if got := p.reads(screenText); got == "" || p.reads(`/;276;|1;2c/.test(`+screenText+`)`) != "false" {
		t.Errorf("the shell shows %s", got)
	}
}

// linkState is a script that tells whether the terminal's bar shows a state.
func linkState(state string) string {
	return fmt.Sprintf(`document.querySelector(".link-state[data-state=%s]")?.checkVisibility() === true`, state)
}

// never watches for a while that a script stays false.
func (p *person) never(what, script string, limit time.Duration) {
	p.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(limit); time.Now().Before(until); <-tick.C {
		if p.reads(script) == "true" {
			p.picture("failure", "desktop")
			p.t.Fatalf("%s: %s", what, p.reads("document.body.innerText"))
		}
	}
}
