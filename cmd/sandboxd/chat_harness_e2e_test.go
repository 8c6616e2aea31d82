//go:build e2e

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// Scripts that look at the chat pane.
const (
	chatText    = `document.querySelector("sandbox-chat .chat-list").textContent`
	chatIdle    = `document.querySelector("sandbox-chat").dataset.chatState === "idle"`
	chatWorks   = `document.querySelector("sandbox-chat").dataset.chatState === "working"`
	chatAsks    = `document.querySelector("sandbox-chat").dataset.chatState === "asking"`
	chatKinds   = `[...document.querySelectorAll(".chat-item:not([hidden])")].map((e) => [...e.classList].find((c) => /^chat-(message|text|thinking|call|question|notice|checkpoint)$/.test(c)).slice(5)).join(" ")`
	chatWelcome = `document.querySelector(".chat-welcome")?.checkVisibility() === true`
)

// tells is a script that tells whether the conversation has a text, once.
func tells(text string) string { return fmt.Sprintf(`(%s.split(%q).length === 2)`, chatText, text) }

// chatter is a person at the chat of a sandbox, and the provider that answers.
type chatter struct {
	*person
	server   *server
	provider *gatewaytest.Provider
}

// newChatter opens the chat of a new sandbox whose agent has a scripted provider.
func newChatter(t *testing.T) *chatter {
	t.Helper()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	w := &chatter{person: newPerson(t), server: s, provider: s.offersModels(gateway.Anthropic)}
	w.workspacePage(s)
	w.opensChat()
	w.sees("what to do", chatWelcome)
	return w
}

// opensChat shows the pane.
func (p *person) opensChat() {
	p.t.Helper()
	p.does("show the chat", chromedp.Click(`[data-pane-toggle="chat"]`))
	p.sees("the chat", `document.querySelector("sandbox-chat .chat-composer textarea")?.checkVisibility() === true`)
}

// keptOpen waits until the server knows that the pane is open.
func (w *chatter) keptOpen() {
	w.t.Helper()
	w.sees("that the pane stays", `(() => { const x = new XMLHttpRequest(); x.open("GET", location.href, false); x.send(); return !/id="slot-chat"[^>]*data-off/.test(x.responseText); })()`)
}

// says writes a message and sends it with Enter.
func (p *person) says(text string) {
	p.t.Helper()
	p.writes(text)
	p.key("Enter", "\r", 13)
	p.sees("that it is sent", `document.querySelector(".chat-composer textarea").value === ""`)
}

// writes puts text into the message and does not send it.
func (p *person) writes(text string) {
	p.t.Helper()
	p.does("go to the message", chromedp.Focus(`.chat-composer textarea`))
	p.does("write "+text, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	})
}

// pushes presses a button of the pane by the beginning of its accessible name, within what a selector gives.
func (p *person) pushes(within, name string) {
	p.t.Helper()
	const find = `[...document.querySelectorAll(%q)].flatMap((e) => [...e.querySelectorAll("button")]).find((b) => (b.getAttribute("aria-label") ?? b.textContent).trim().startsWith(%q))`
	button := fmt.Sprintf(find, within, name)
	p.sees("the button "+name, button+` !== undefined`)
	p.runs("press "+name, button+`.click()`)
}

// chooses picks an option of a select by its value, once the select is enabled.
func (p *person) chooses(label, value string) {
	p.t.Helper()
	p.sees("that "+value+" can be chosen", fmt.Sprintf(`document.querySelector('sandbox-chat select[aria-label=%q]')?.disabled === false`, label))
	p.runs("choose "+value, fmt.Sprintf(`const s = document.querySelector('sandbox-chat select[aria-label=%q]'); s.value = %q; s.dispatchEvent(new Event("change", {bubbles: true}))`, label, value))
}

// key presses one key where the focus is.
func (p *person) key(name, text string, code int64) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		p.does("press "+name, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: name, Code: name, Text: text, WindowsVirtualKeyCode: code})
			return chromedp.Void{}, err
		})
	}
}

// words is a long answer, each of whose words is another.
func words(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%03d ", prefix, i)
		if i%10 == 9 {
			b.WriteString("\n\n")
		}
	}
	return b.String()
}

// hears waits until the conversation has all of such words, each once and in their order.
func (p *person) hears(prefix string, n int) {
	p.t.Helper()
	want := strings.Join(strings.Fields(words(prefix, n)), " ")
	p.sees("all words "+prefix, fmt.Sprintf(`%s && ([...document.querySelectorAll(".chat-text p")].flatMap((e) => e.textContent.match(/\b%s\d{3}\b/g) ?? []).join(" ") === %q)`, chatIdle, prefix, want))
}

// use is a call of a tool of the agent's.
func use(tool string, args map[string]any) []gatewaytest.Call {
	return []gatewaytest.Call{{Name: tool, Args: args}}
}
