//go:build e2e

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sandboxd/internal/acp/acptest"
)

// newChatterWithScripted opens the chat of a sandbox that has the scripted agent.
func newChatterWithScripted(t *testing.T) *chatter {
	t.Helper()
	w := newChatter(t)
	w.server.hasScriptedAgent("lab")
	w.keptOpen()
	w.reloads()
	w.sees("the agent among the others", `document.querySelector('[data-agent="scripted"] input')?.disabled === false`)
	return w
}

// TestPrograms_InThePaneAnAgentIsLikeOurOwn has a person choose an agent that is a program in the sandbox, and do with it what the tests of
// the chat do with sandboxd's own.
func TestPrograms_InThePaneAnAgentIsLikeOurOwn(t *testing.T) {
	t.Parallel()
	w := newChatterWithScripted(t)
	w.choosesTheScripted()
	w.chooses("When the agent asks", "ask")
	w.pictures("chat-program-chosen")

	w.says("run printf 'echo made it' > made.sh && sh made.sh")
	w.sees("a question with the very command", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "printf 'echo made it' > made.sh && sh made.sh"`)
	w.pictures("chat-program-asks")
	w.pushes(".chat-question.asks", "Allow")
	w.sees("what it put out", chatIdle+` && [...document.querySelectorAll(".chat-output")].some((o) => o.textContent.includes("made it"))`)
	w.pushes(".chat-checkpoint", "Undo")
	w.sees("that it is undone", `document.querySelector(".chat-checkpoint").textContent.includes("Undone")`)
	if out := w.server.exec("lab", map[string]any{"command": "ls made.sh"}); out.ExitCode == 0 {
		t.Error("after undo the file is there")
	}
	w.does("go to the message", chromedp.Focus(".chat-composer textarea"))
	w.pushes(".chat-checkpoint", "Redo")
	w.sees("that it is done again", `document.querySelector(".chat-checkpoint").textContent.includes("Checkpoint")`)
	w.sees("a terminal again, which leaves the focus where it is", `document.querySelector(".tabs-end")?.innerText.includes("Connected") && document.activeElement.closest(".chat-composer") !== null`)
	w.says("run rm made.sh")
	w.sees("the question", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "rm made.sh"`)
	w.pushes(".chat-question.asks", "Refuse")
	w.sees("that it is refused", chatIdle+` && document.querySelector('.chat-call-state[data-state="denied"]') !== null`)
	if out := w.server.exec("lab", map[string]any{"command": "cat made.sh"}); out.Stdout != "echo made it" {
		t.Errorf("after a refusal: %+v", out)
	}
	w.pictures("chat-program-answered")

	w.choosesACommand()

	w.says("hang")
	w.sees("that it works", chatWorks)
	w.says("one that waits")
	w.sees("the queue", `document.querySelectorAll(".chat-queue li").length === 1`)
	w.pushes(".chat-queue li", "Send now")
	w.sees("an answer to it", chatIdle+" && "+tells("You said: one that waits"))
	w.says("hang")
	w.sees("that it works", chatWorks)
	w.pushes(".chat-composer", "Stop")
	w.sees("that it stopped", chatIdle)

	w.says("slowly 300")
	w.sees("a part", chatWorks+` && document.querySelector(".chat-list").textContent.includes("w00020")`)
	w.reloads()
	var all strings.Builder
	for i := range 300 {
		all.WriteString(acptest.Word(i))
	}
	w.sees("all of it, each word once", fmt.Sprintf(`%s && [...document.querySelectorAll(".chat-text p")].flatMap((e) => e.textContent.match(/\bw\d{5}\b/g) ?? []).join(" ") === %q`, chatIdle, strings.TrimSpace(all.String())))

	w.pushes(".chat-message", "Edit")
	w.sees("the message to edit", `document.querySelector(".chat-composer textarea").value.startsWith("run printf")`)
	w.does("write another", chromedp.SetValue(".chat-composer textarea", "another beginning"))
	w.pushes(".chat-composer", "Send")
	w.sees("another conversation", chatIdle+" && "+tells("You said: another beginning")+` && document.querySelector(".chat-pick").options.length === 2`)
}

func (w *chatter) choosesTheScripted() {
	w.t.Helper()
	w.runs("choose it", `document.querySelector('[data-agent="scripted"] input').click()`)
	w.sees("no model of sandboxd's to choose", `!document.querySelector('sandbox-chat select[aria-label="Model"]').checkVisibility()`)
}

func (w *chatter) choosesACommand() {
	w.t.Helper()
	w.writes("/re")
	w.sees("its commands", `document.querySelector(".chat-commands [aria-selected=true]")?.textContent.startsWith("/review") && document.activeElement.getAttribute("aria-activedescendant") === "chat-commands-0"`)
	w.pictures("chat-program-commands")
	w.key("Enter", "\r", 13)
	w.sees("the command", `document.querySelector(".chat-composer textarea").value === "/review " && !document.querySelector(".chat-commands").checkVisibility()`)
	w.says("it")
	w.sees("an answer to it", chatIdle+" && "+tells("You said: /review it"))
}

// TestPrograms_NeedNoModelOfOurOwn has a person choose such an agent where sandboxd's own has no model.
func TestPrograms_NeedNoModelOfOurOwn(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	s.hasScriptedAgent("lab")
	p := newPerson(t)
	p.workspacePage(s)
	p.opensChat()
	p.sees("the agent", `document.querySelector('.chat-welcome [data-agent="scripted"] input')?.disabled === false`)
	p.runs("choose it", `document.querySelector('[data-agent="scripted"] input').click()`)
	p.pictures("chat-program-alone")
	p.says("hello")
	p.sees("an answer", chatIdle+" && "+tells("You said: hello"))
}

// TestPrograms_OnAPhoneInTheDark allows, refuses and stops a program with a thumb.
func TestPrograms_OnAPhoneInTheDark(t *testing.T) {
	t.Parallel()
	w := newChatterWithScripted(t)
	w.inTheDark()
	w.runs("choose it", `document.querySelector('[data-agent="scripted"] input').click()`)
	w.chooses("When the agent asks", "ask")
	w.says("run echo made > made.txt")
	w.sees("the question", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "echo made > made.txt"`)
	w.picture("chat-program-phone-dark-asks", "phone")
	w.taps(".chat-question.asks", "Allow")
	w.sees("that it is done", chatIdle+` && document.querySelector('.chat-call-state[data-state="ok"]') !== null`)
	w.says("run rm made.txt")
	w.sees("the question", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "rm made.txt"`)
	w.taps(".chat-question.asks", "Refuse")
	w.sees("that it is refused", chatIdle+` && document.querySelector('.chat-call-state[data-state="denied"]') !== null`)
	if out := w.server.exec("lab", map[string]any{"command": "cat made.txt"}); out.Stdout != "made\n" {
		t.Errorf("after an Allow and a Refuse: %+v", out)
	}
	w.says("hang")
	w.sees("that it works", chatWorks)
	w.taps(".chat-composer", "Stop")
	w.sees("that it stopped", chatIdle)
}
