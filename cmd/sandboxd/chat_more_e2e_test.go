//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"testing"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// chatFailed is a script that tells whether the pane says that a turn failed, and offers to resume it.
const chatFailed = `document.querySelector("sandbox-chat").dataset.chatState === "failed" && document.querySelector(".chat-failed[role=alert] p")?.textContent.length > 10`

// messagesAre is a script that tells whether the person's messages in the conversation are these.
func messagesAre(texts string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".chat-message .chat-said")].map((e) => e.textContent).join() === %q`, texts)
}

// TestChat_ResumesAfterAFailedTurn has a provider refuse a request, and break down until the agent gives up. Each time Resume continues
// with the same message, which is there once.
func TestChat_ResumesAfterAFailedTurn(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	const tries = 5 // of a request that may succeed later
	for i, c := range []struct {
		fault gatewaytest.Script
		asked int
	}{{gatewaytest.Script{Status: http.StatusBadRequest}, 1}, {gatewaytest.Script{Status: http.StatusInternalServerError, Repeat: tries}, tries}} {
		answer := fmt.Sprintf("Answer %d is here.", i)
		w.provider.Play(c.fault, gatewaytest.Script{Text: answer})
		w.says(fmt.Sprintf("question %d", i))
		w.sees("that it failed, and why", chatFailed)
		if n := w.provider.Waiting(); n != 1 {
			t.Errorf("status %d: %d answers wait, want 1 after %d requests", c.fault.Status, n, c.asked)
		}
		w.pictures(fmt.Sprintf("chat-failed-%d", c.fault.Status))
		w.pushes(".chat-failed", "Resume")
		w.sees("the answer, and the failure no more", chatIdle+" && "+tells(answer)+" && "+tells(fmt.Sprintf("question %d", i))+` && document.querySelector(".chat-failed") === null`)
	}
}

// TestChat_BranchesAndSendsAgain continues from an answer in the middle, and sends a message once more. The first conversation stays as it was.
func TestChat_BranchesAndSendsAgain(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.provider.Play(gatewaytest.Script{Text: "to the first"}, gatewaytest.Script{Text: "to the second"}, gatewaytest.Script{Text: "to the branch"}, gatewaytest.Script{Text: "to the same again"})
	for _, text := range []string{"first", "second"} {
		w.says("my " + text)
		w.sees("an answer", chatIdle+" && "+tells("to the "+text))
	}
	w.pushes(".chat-text", "Branch from here")
	w.sees("another conversation, up to that answer", chatIdle+` && document.querySelector(".chat-pick").options.length === 2 && `+messagesAre("my first")+" && "+tells("to the first")+" && !"+tells("to the second"))
	w.says("my branch")
	w.sees("an answer there", chatIdle+" && "+tells("to the branch")+" && "+messagesAre("my first,my branch"))
	w.pushes(".chat-message", "Send again") // the first one
	w.sees("the message alone, with another answer", chatIdle+` && document.querySelector(".chat-pick").options.length === 3 && `+tells("to the same again")+" && !"+tells("to the branch")+" && "+messagesAre("my first"))
	w.runs("open the first conversation", `const s = document.querySelector(".chat-pick"); s.value = [...s.options].at(-1).value; s.dispatchEvent(new Event("change"))`)
	w.sees("it, as it was", chatIdle+" && "+messagesAre("my first,my second")+" && "+tells("to the first")+" && "+tells("to the second"))
}

// TestChat_MovesAWaitingMessageUp has two messages wait, and the second come first.
func TestChat_MovesAWaitingMessageUp(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	gate := make(chan struct{})
	w.provider.Play(gatewaytest.Script{Text: "begun and ended", Gate: gate}, gatewaytest.Script{Text: "answer one"}, gatewaytest.Script{Text: "answer two"})
	w.says("hold on")
	w.sees("the beginning of an answer", chatWorks+" && "+tells("begun"))
	for i, text := range []string{"early", "late"} {
		w.says(text)
		w.sees("that it waits", fmt.Sprintf(`document.querySelectorAll(".chat-queue li").length === %d`, i+1))
	}
	w.pushes(".chat-queue li:nth-child(2)", "Earlier")
	w.sees("the other order", `[...document.querySelectorAll(".chat-queue li span.clip")].map((e) => e.textContent).join() === "late,early"`)
	w.sees("no way up for the first", `![...document.querySelectorAll(".chat-queue li:first-child button")].some((b) => b.getAttribute("aria-label").startsWith("Earlier"))`)
	close(gate)
	w.sees("answers in that order", chatIdle+" && "+tells("answer one")+" && "+tells("answer two")+" && "+messagesAre("hold on,late,early"))
}

// TestChat_RenamesAndDeletesAConversation does both from the menu, and finds what came of it after a reload.
func TestChat_RenamesAndDeletesAConversation(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.provider.Play(gatewaytest.Script{Text: "to the kept"}, gatewaytest.Script{Text: "to the doomed"})
	w.says("keep me")
	w.sees("an answer", chatIdle+" && "+tells("to the kept"))
	const answers = `window.asked = []; window.prompt = (text) => { window.asked.push(text); return "A new name"; }; window.confirm = (text) => { window.asked.push(text); return true; }`
	w.runs("answer what is asked", answers)
	w.pushes(".chat-head .menu", "Rename")
	const named = `[...document.querySelector(".chat-pick").options].map((o) => o.textContent)`
	w.sees("the new name", named+`.join() === "A new name"`)
	w.pushes(".chat-head", "New conversation")
	w.sees("an empty one", chatWelcome)
	w.says("delete me")
	w.sees("an answer", chatIdle+" && "+tells("to the doomed")+` && document.querySelector(".chat-pick").options.length === 2`)
	w.pushes(".chat-head .menu", "Delete")
	w.sees("the other one in its place", chatIdle+" && "+tells("to the kept")+" && !"+tells("to the doomed")+" && "+named+`.join() === "A new name"`)
	w.sees("that it was asked first", `window.asked.length === 2 && window.asked[1].startsWith("Delete the conversation")`)
	w.keptOpen()
	w.reloads()
	w.sees("the same", chatIdle+" && "+tells("to the kept")+" && "+named+`.join() === "A new name"`)
}

// taps presses a button of the pane that a finger can reach: it is on the screen, nothing covers it, and it is large enough.
func (p *person) taps(within, name string) {
	p.t.Helper()
	const reach = `(() => {
		const b = [...document.querySelectorAll(%q)].flatMap((e) => [...e.querySelectorAll("button")]).find((b) => (b.getAttribute("aria-label") ?? b.textContent).trim().startsWith(%q));
		b?.scrollIntoView({ block: "nearest" });
		const r = b?.getBoundingClientRect();
		if (!r || r.width < 24 || r.height < 24 || r.left < 0 || r.right > innerWidth || r.top < 0 || r.bottom > innerHeight) return null;
		return b.contains(document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)) ? b : null;
	})()`
	button := fmt.Sprintf(reach, within, name)
	p.sees("within reach the button "+name, button+" !== null")
	p.runs("tap "+name, button+".click()")
}

// inTheDark has the person hold a phone, at night.
func (p *person) inTheDark() {
	p.t.Helper()
	p.resize("phone", "dark")
	p.sees("the chat on a small screen, in the dark", `innerWidth < 400 && matchMedia("(prefers-color-scheme: dark)").matches && document.querySelector("sandbox-chat .chat-composer textarea")?.checkVisibility() === true && document.documentElement.scrollWidth <= innerWidth`)
}

// TestChat_OnAPhoneInTheDark allows, refuses and stops with a thumb.
func TestChat_OnAPhoneInTheDark(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.chooses("When the agent asks", "ask")
	w.inTheDark()
	w.provider.Play(
		gatewaytest.Script{Text: "I make it.", Calls: use("run_command", map[string]any{"command": "echo made > made.txt"})},
		gatewaytest.Script{Text: "It is made.", Calls: use("run_command", map[string]any{"command": "rm made.txt"})},
		gatewaytest.Script{Text: "Then it stays."},
	)
	w.says("make a file, and delete it")
	w.sees("the question", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "echo made > made.txt"`)
	w.picture("chat-phone-dark-asks", "phone")
	w.taps(".chat-question.asks", "Allow")
	w.sees("the next question", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "rm made.txt"`)
	w.taps(".chat-question.asks", "Refuse")
	w.sees("the end", chatIdle+" && "+tells("Then it stays.")+` && document.querySelector('.chat-call-state[data-state="denied"]') !== null`)
	if out := w.server.exec("lab", map[string]any{"command": "cat made.txt"}); out.Stdout != "made\n" {
		t.Errorf("after an Allow and a Refuse: %+v", out)
	}
	gate := make(chan struct{})
	defer close(gate)
	w.provider.Play(gatewaytest.Script{Text: "halting words", Gate: gate})
	w.says("hold on")
	w.sees("that it works", chatWorks+" && "+tells("halting"))
	w.taps(".chat-composer", "Stop")
	w.sees("that it stopped", chatIdle)
	w.picture("chat-phone-dark-stopped", "phone")
}

// TestChat_AsksTheNextProviderWhenOneIsAway has the best model be of a provider that is not there and speaks another protocol than the next
// one. When there is none at all, the pane says so in sandboxd's own words.
func TestChat_AsksTheNextProviderWhenOneIsAway(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	set := func(path string, in map[string]any) {
		t.Helper()
		if status, body := w.server.raw("PUT", path, in); status >= 300 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
	}
	set("/providers/away", map[string]any{"kind": gateway.OpenAI, "base_url": "http://127.0.0.1:1/v1", "key": "none", "models": []string{"small"}})
	away, there := map[string]any{"provider": "away", "model": "small"}, map[string]any{"provider": string(gateway.Anthropic), "model": "scripted-1"}
	set("/models/aliases/best", map[string]any{"targets": []any{away, there}})
	w.provider.Play(gatewaytest.Script{Text: "I am the second."})
	w.says("who is there?")
	w.sees("the second one's answer", chatIdle+" && "+tells("I am the second."))

	set("/models/settings", map[string]any{"off": true})
	w.says("and now?")
	w.sees("why there is none", `document.querySelector(".chat-failed p")?.textContent.startsWith("An admin has turned off models")`)
}
