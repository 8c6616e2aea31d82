//go:build e2e

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"sandboxd/internal/gateway/gatewaytest"
)

// TestChat_TheDemonstrationNeedsNoProvider sees how a person gets going who has no provider: the pane says how, and shows itself.
func TestChat_TheDemonstrationNeedsNoProvider(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	p := newPerson(t)
	p.workspacePage(s)
	p.opensChat()
	p.sees("how to get a model", chatWelcome+` && document.querySelector('.chat-welcome a[href="/settings/models"]') !== null`)
	p.sees("the agents, of which sandboxd's own has no model", `document.querySelector('.chat-welcome [data-agent="sandboxd"] input')?.disabled === true && document.querySelectorAll(".chat-welcome [data-agent]").length > 1`)
	p.pictures("chat-empty")
	p.runs("mark the pane", `document.querySelector(".chat-composer").sameRun = true`)
	p.pushes(".chat-welcome", "Start the demonstration")
	p.sees("the question for leave", chatAsks)
	p.pushes(".chat-question.asks", "Allow")
	p.sees("the end of the script", chatIdle+" && "+tells("That is all."))
	p.sees("all that it did, in order", chatKinds+` === "message thinking text call text call checkpoint text call question text"`)
	p.sees("the file that it wrote", `document.querySelector(".chat-diff .added")?.textContent === "+#!/bin/sh"`)
	p.pictures("chat-demonstration")
	if out := s.exec("lab", map[string]any{"command": "sh demo/hello.sh"}).Stdout; out != "hello 1\nhello 2\nhello 3\n" {
		t.Errorf("the program says %q", out)
	}
	p.pushes(".chat-checkpoint", "Undo")
	p.sees("that it is undone", `document.querySelector(".chat-checkpoint").textContent.includes("Undone")`)
	p.pictures("chat-undone")
	if out := s.exec("lab", map[string]any{"command": "ls -d demo 2>&1 | wc -l; ls demo"}); out.ExitCode == 0 {
		t.Errorf("after undo the home has %q", out.Stdout)
	}
	p.pushes(".chat-checkpoint", "Redo")
	p.sees("that it is done again", `document.querySelector(".chat-checkpoint").textContent.includes("Checkpoint")`)
	if out := s.exec("lab", map[string]any{"command": "ls demo"}); out.Stdout != "hello.sh\n" {
		t.Errorf("after redo the home has %q", out.Stdout)
	}
	p.says("and now?")
	p.sees("that it knows no more", chatIdle+" && "+tells("I am only a demonstration"))
	p.sees("the same pane, though the sandbox was restored twice", `document.querySelector(".chat-composer").sameRun === true`)
}

// TestChat_AsksBeforeItActs writes a file and runs it with leave, shows exactly what will run, and takes a refusal.
func TestChat_AsksBeforeItActs(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.sees("the terminal", `(globalThis.terminals = document.querySelector("sandbox-terminals")) !== null`)
	w.chooses("When the agent asks", "ask")
	w.provider.Play(
		gatewaytest.Script{Text: "I write a program.", Calls: use("write_file", map[string]any{"path": "count.sh", "content": "for i in 1 2 3; do echo number $i; done\n"})},
		gatewaytest.Script{Text: "Now I run it.", Calls: use("run_command", map[string]any{"command": "sh count.sh && echo \u202edone"})},
		gatewaytest.Script{Text: "It counts to **three**."},
	)
	w.says("write a program that counts")
	w.sees("a question with the very file", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent.includes("for i in 1 2 3; do echo number $i; done")`)
	w.pictures("chat-asks")
	w.pushes(".chat-question.asks", "Allow")
	w.sees("a question with the very command, and what is hidden in it", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent.includes("sh count.sh && echo ⟨U+202E⟩done") && document.querySelector(".chat-question.asks .chat-warn") !== null`)
	w.pushes(".chat-question.asks", "Allow")
	w.sees("the answer", chatIdle+` && document.querySelector(".chat-text strong")?.textContent === "three"`)
	w.sees("the output", `[...document.querySelectorAll(".chat-output")].some((o) => o.textContent.includes("number 3"))`)
	w.sees("a checkpoint", `document.querySelector(".chat-checkpoint")?.checkVisibility() === true`)
	w.sees("the terminal that was there before it", `terminals.isConnected && terminals === document.querySelector("sandbox-terminals")`)
	w.provider.Play(
		gatewaytest.Script{Text: "I delete all.", Calls: use("run_command", map[string]any{"command": "rm -rf ~/count.sh"})},
		gatewaytest.Script{Text: "Then I leave it."},
	)
	w.says("clean up")
	w.sees("the question", chatAsks+` && document.querySelector(".chat-question.asks .chat-code").textContent === "rm -rf ~/count.sh"`)
	w.pushes(".chat-question.asks", "Refuse")
	w.sees("that it is refused", chatIdle+" && "+tells("Then I leave it.")+` && document.querySelector('.chat-call-state[data-state="denied"]') !== null`)
	if out := w.server.exec("lab", map[string]any{"command": "cat count.sh"}); out.ExitCode != 0 {
		t.Errorf("the file is gone: %s", out.Stderr)
	}
	w.pictures("chat-answered")
}

// TestChat_AFileGoesAlong drops a file: it is in the sandbox, and the model is told where.
func TestChat_AFileGoesAlong(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.runs("drop a file", `const all = new DataTransfer();
		all.items.add(new File(["six by seven"], "my notes.txt", { type: "text/plain" }));
		document.querySelector(".chat-composer textarea").dispatchEvent(new DragEvent("drop", { dataTransfer: all, bubbles: true, cancelable: true }))`)
	w.sees("the file", `document.querySelector(".chat-composer .chip")?.textContent.includes("my notes.txt")`)
	w.provider.Play(gatewaytest.Script{Text: "I have it."})
	w.says("read this")
	w.sees("the answer", chatIdle+" && "+tells("I have it.")+` && document.querySelector(".chat-composer .chip") === null`)
	calls := w.provider.Requests()
	if said := string(calls[len(calls)-1].Body); !strings.Contains(said, ".attachments/") || !strings.Contains(said, "my_notes.txt") {
		t.Errorf("the model was told %.2000s", said)
	}
	if out := w.server.exec("lab", map[string]any{"command": "cat ~/.attachments/*my_notes.txt"}).Stdout; out != "six by seven" {
		t.Errorf("the file has %q", out)
	}
}

// TestChat_QueuesStopsAndBranches has three messages wait, and sends, stops and edits.
func TestChat_QueuesStopsAndBranches(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	gate := make(chan struct{})
	defer close(gate)
	w.provider.Play(gatewaytest.Script{Text: "begun and never ended", Gate: gate}, gatewaytest.Script{Text: "to the third"}, gatewaytest.Script{Text: "to the first"})
	w.says("hold on")
	w.sees("the beginning of an answer", chatWorks+" && "+tells("begun"))
	for i, text := range []string{"first", "second", "third"} {
		w.says(text)
		w.sees("that it waits", fmt.Sprintf(`document.querySelectorAll(".chat-queue li").length === %d`, i+1))
	}
	w.pictures("chat-queue")
	w.pushes(".chat-queue li:nth-child(2)", "Delete")
	w.sees("two that wait", `document.querySelectorAll(".chat-queue li").length === 2`)
	w.pushes(".chat-queue li:nth-child(2)", "Send now")
	w.sees("the third and then the first", chatIdle+" && "+tells("to the third")+" && "+tells("to the first")+" && !"+tells("second"))
	w.provider.Play(gatewaytest.Script{Text: "halting words", Gate: gate})
	w.says("stop soon")
	w.sees("the beginning", chatWorks+" && "+tells("halting"))
	w.pushes(".chat-composer", "Stop")
	w.sees("that it stopped", chatIdle+" && "+tells("halting"))
	w.provider.Play(gatewaytest.Script{Text: "to the edited"})
	w.pushes(".chat-message", "Edit")
	w.sees("the message to edit", `document.querySelector(".chat-composer textarea").value === "hold on"`)
	w.does("write another", chromedp.SetValue(".chat-composer textarea", "go ahead"))
	w.pushes(".chat-composer", "Send")
	w.sees("another conversation", chatIdle+" && "+tells("go ahead")+" && "+tells("to the edited")+` && document.querySelector(".chat-pick").options.length === 2`)
}

// TestChat_LosesNoWord reloads the page, opens a second window and restarts sandboxd while an answer comes.
func TestChat_LosesNoWord(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.provider.Play(gatewaytest.Script{Text: words("w", 400), Delay: 8 * time.Millisecond})
	w.says("tell me much")
	w.sees("a part", chatWorks+` && document.querySelector(".chat-list").textContent.includes("w020")`)
	w.keptOpen()
	w.reloads()
	w.hears("w", 400)
	gate := make(chan struct{})
	w.provider.Play(gatewaytest.Script{Text: words("v", 100), Gate: gate}, gatewaytest.Script{Text: words("u", 50)})
	w.says("tell me more")
	w.sees("a part", chatWorks+" && "+tells("v000"))
	second := w.window()
	second.does("open a second window", chromedp.Navigate(w.reads("location.href")))
	second.sees("the same", chatWorks+" && "+tells("v000"))
	w.server.stop()
	close(gate)
	w.server.start()
	w.hears("u", 50)
	second.hears("u", 50)
}
