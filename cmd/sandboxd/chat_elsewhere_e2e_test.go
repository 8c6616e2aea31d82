//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sandboxd/internal/gateway/gatewaytest"
)

// TestChat_IsSharedByALinkAndSeenFromElsewhere has an agent change a file and ask: the list of sandboxes says so and leads to the question, a
// second tab is notified, another person reads the conversation by a link until it is revoked, and comments on the change go to the agent.
func TestChat_IsSharedByALinkAndSeenFromElsewhere(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.sees("the chat beside the terminal", `(() => {
		const [chat, terminal] = ["chat", "terminal"].map((id) => document.getElementById("slot-" + id).getBoundingClientRect());
		return Math.abs(chat.top - terminal.top) < 2 && chat.left >= terminal.right - 2 && chat.width >= 380 && terminal.width >= 380;
	})()`)
	w.provider.Play(
		gatewaytest.Script{Text: "I write it.", Calls: use("write_file", map[string]any{"path": "count.sh", "content": "echo one\necho two\necho three\n"})},
		gatewaytest.Script{Text: "Now I clean up.", Calls: use("run_command", map[string]any{"command": "rm -rf ~/old"})},
		gatewaytest.Script{Text: "All is **done**."},
	)
	list := w.window()
	list.does("open the list", chromedp.Navigate("http://localhost:"+w.server.port()+"/"))
	for _, tab := range []*person{w.person, list} {
		tab.runs("catch notifications", `const note = (title, options) => localStorage.setItem("notes", (localStorage.getItem("notes") ?? "") + title + "|" + options.body + "\n");
			ServiceWorkerRegistration.prototype.showNotification = async (...n) => note(...n);
			window.Notification = class { static permission = "granted"; constructor(...n) { note(...n); } addEventListener() {} }`)
	}
	w.begins("write a program")
	list.sees("that the agent asks", `document.querySelector(".row-badges")?.textContent.includes("asks you")`)
	for _, tab := range []*person{w.person, list} {
		tab.sees("that the agent asks", `document.getElementById("toast").textContent.includes("The agent asks you – lab: rm -rf ~/old")`)
	}
	list.sees("one notification", `localStorage.getItem("notes")?.endsWith("The agent asks you – lab|rm -rf ~/old\n")`)
	w.does("leave the workspace", chromedp.Navigate("about:blank"))
	list.runs("follow the badge", `document.querySelector('.row-badges a[href*="#chat="]').click()`)
	list.sees("the question", `document.querySelector(".chat-question.asks")?.checkVisibility() && document.querySelector(".chat-question.asks .chat-code").textContent === "rm -rf ~/old"`)
	list.pushes(".chat-question.asks", "Allow")
	list.sees("the end", chatIdle+" && "+tells("All is done."))
	w = &chatter{list, w.server, w.provider}
	if got := list.reads(`localStorage.getItem("notes")`); strings.Count(got, "The agent asks you") != 1 {
		t.Errorf("the notifications are %q", got)
	}
	secret := w.shares()
	reader := newPerson(t)
	reader.does("open the link", chromedp.Navigate(secret))
	reader.sees("the conversation", `document.querySelector(".reader")?.dataset.state === "idle" && document.querySelector(".reader .chat-text strong")?.textContent === "done"`)
	reader.sees("no button, no cookie, no name of the sandbox", `document.querySelectorAll(".reader .chat-items button").length === 0 && document.cookie === "" && !document.body.textContent.includes("lab")`)
	reader.pictures("chat-shared")
	w.comments()
	reader.sees("what was said since", `document.querySelector(".reader").textContent.includes("I see.")`)
	w.pushes("sandbox-chat .chat-head", "Share")
	w.pushes("dialog[open] .chat-links", "Revoke")
	reader.sees("that it is over", `document.querySelector(".reader").dataset.state === "gone"`)
}

// begins has the agent begin in a conversation that no tab shows.
func (w *chatter) begins(text string) {
	w.t.Helper()
	var c struct{ ID string }
	all := "/sandboxes/lab/conversations"
	w.server.call(http.MethodPost, all, map[string]any{"mode": "risky"}, &c)
	if got := w.server.call(http.MethodPost, all+"/"+c.ID+"/messages", map[string]any{"text": text}, nil); got != http.StatusAccepted {
		w.t.Fatalf("status %d", got)
	}
}

// shares makes a link without end, and gives its address.
func (w *chatter) shares() string {
	w.t.Helper()
	w.pushes("sandbox-chat .chat-head", "Share")
	w.sees("that there are none", `document.querySelector("dialog[open] .chat-links")?.textContent === "No links yet"`)
	w.runs("choose no end", `document.querySelector("dialog[open] select").value = "never"`)
	w.pictures("chat-share")
	w.pushes("dialog[open]", "Create link")
	w.sees("the link", `document.querySelector("dialog[open] .chat-link-made input") !== null`)
	at := w.reads(`document.querySelector("dialog[open] .chat-link-made input").value`)
	w.runs("close it", `document.querySelector("dialog[open]").close()`)
	return at
}

// comments writes about two lines of the change with the keyboard, and sends that.
func (w *chatter) comments() {
	w.t.Helper()
	w.provider.Play(gatewaytest.Script{Text: "I see."})
	w.does("go to the change", chromedp.Focus(`.chat-diff-lines`))
	w.key("ArrowDown", "", 40)
	w.key("ArrowDown", "", 40)
	w.key("Enter", "\r", 13)
	w.sees("where to write", `document.activeElement?.matches(".chat-comment textarea")`)
	w.types("Say it louder.")
	w.key("Enter", "\r", 13)
	w.sees("the comment that waits", `document.querySelector(".chat-comments li")?.textContent.includes("Say it louder.")`)
	w.pictures("chat-comment")
	w.says("Please.")
	want := "/home/agent/count.sh:1+echo oneSay it louder.\n\nPlease." // a caption, a line of the diff, and what was written
	w.sees("the message with it", fmt.Sprintf(`[...document.querySelectorAll(".chat-message .chat-said")].at(-1).textContent === %q`, want))
	w.sees("the answer", chatIdle+" && "+tells("I see."))
}
