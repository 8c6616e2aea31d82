//go:build e2e

package main

import (
	"strings"
	"testing"

	"sandboxd/internal/gateway/gatewaytest"
)

// pixel is a command that writes a picture of one pixel to the folder that is given to a run.
const pixel = `echo iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg== | base64 -d > $OUTPUT/dot.png`

// TestChat_RunsCodeOfMessagesAndAnswers presses Run, sees output live, stops, has code run by itself, and finds all of it after a reload.
func TestChat_RunsCodeOfMessagesAndAnswers(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	w.provider.Play(gatewaytest.Script{Text: "Here it is:\n\n```bash\necho begun; sleep 2; echo oops >&2; " + pixel + "; exit 3\n```\n\nAnd one that waits:\n\n```sh\necho waits; sleep 300\n```\n\n```text\nnot code\n```\n"})
	w.says("write me a loop")
	w.sees("the answer with two blocks that can be run", chatIdle+` && document.querySelectorAll(".chat-text .code-block").length === 3`)
	w.sees("a button for each of the two", `[...document.querySelectorAll(".chat-text .code-tools")].map((t) => t.textContent.includes("Run")).join() === "true,true,false"`)
	w.runs("press Run twice", `const b = [...document.querySelectorAll(".chat-text .code-tools button")].find((b) => b.textContent === "Run"); b.click(); b.click()`)
	w.sees("output while it runs", `document.querySelector('.chat-run:has([data-state="busy"]) .chat-output')?.textContent === "begun\n"`)
	w.sees("how it ended", `document.querySelector(".chat-run .chat-facts").textContent.startsWith("exit code 3 · 2")`)
	w.sees("what it wrote to stderr", `document.querySelector(".chat-run .stderr").textContent === "oops\n"`)
	w.sees("its picture", `document.querySelector(".chat-run img")?.naturalWidth === 1`)
	w.sees("one run, below the answer", `document.querySelectorAll(".chat-run").length === 1 && document.querySelector(".chat-text").nextElementSibling.classList.contains("chat-run")`)
	w.pictures("chat-run")
	w.runs("press Run of the other", `[...document.querySelectorAll(".chat-text .code-tools button")].filter((b) => b.textContent === "Run")[1].click()`)
	w.sees("that it waits", `[...document.querySelectorAll(".chat-run .chat-output")].some((o) => o.textContent === "waits\n")`)
	w.sees("an agent that is idle", chatIdle)
	w.runs("press Stop", `[...document.querySelectorAll(".chat-run button")].find((b) => b.textContent === "Stop" && b.checkVisibility()).click()`)
	w.sees("that it is stopped", `[...document.querySelectorAll(".chat-run .chat-facts")].some((f) => f.textContent.startsWith("stopped"))`)
	w.provider.Play(gatewaytest.Script{Text: "It is forty-two."})
	w.says("run it\n```bash\necho auto $((6*7))\n```")
	w.sees("what came of it before the answer", chatIdle+" && "+tells("It is forty-two.")+` && document.querySelector(".chat-message + .chat-run .chat-output")?.textContent === "auto 42\n"`)
	asked := w.provider.Requests()
	if last := string(asked[len(asked)-1].Body); !strings.Contains(last, "auto 42") || !strings.Contains(last, "waits") {
		t.Errorf("the model is told %s", last)
	}
	w.keptOpen()
	w.reloads()
	w.sees("all three runs", `document.querySelectorAll(".chat-run").length === 3 && document.querySelector(".chat-run img")?.naturalWidth === 1`)
	w.sees("the button at the person's own code", `document.querySelector(".chat-message .code-tools")?.textContent.includes("Run")`)
}

// TestChat_HostileMarkdownDoesNothing shows an answer that wants to run, load and hang.
func TestChat_HostileMarkdownDoesNothing(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	const evil = "<script>window.pwned = 1</script><img src=x onerror=\"window.pwned = 1\"><svg onload=\"window.pwned = 1\">\n\n" +
		"[link](javascript:window.pwned=1) [data](data:text/html,x) [good](https://example.test/page) ![remote](https://evil.test/pixel.png)\n\n" +
		"<iframe src=\"https://evil.test/\"></iframe><form action=\"https://evil.test/\"><input name=x></form><style>*{display:none}</style>\n\n" +
		"<a href=\"jAvAsCrIpT:window.pwned=1\" style=\"background:url(https://evil.test/a)\" onclick=\"window.pwned=1\">x</a>\n\n" +
		"```html\n<script>window.pwned = 1</script>\n```\n\n"
	w.runs("watch for frames that are late", `window.slowest = 0; let last = performance.now(); const look = () => { const now = performance.now(); window.slowest = Math.max(window.slowest, now - last); last = now; requestAnimationFrame(look); }; look()`)
	w.provider.Play(gatewaytest.Script{Text: evil + strings.Repeat("x", 50_000) + "\n\n|" + strings.Repeat("a|", 2500) + "\n|" + strings.Repeat("-|", 2500) + "\n\n" + strings.Repeat(">", 900_000) + "\n\nTHE END"})
	w.says("go")
	w.sees("the end of the turn", chatIdle+` && document.querySelector(".chat-text code.language-html, .chat-text .code-block") !== null`)
	w.sees("the only link", `[...document.querySelectorAll(".chat-text a")].map((a) => a.href + a.rel + a.target).join() === "https://example.test/pagenoopener noreferrer nofollow_blank"`)
	const runs = `[String(window.pwned), ...[...document.querySelectorAll(".chat-text :is(img, iframe, form, input, style, script, svg:not(.icon), [style], [onclick], [onerror])")].map((e) => e.outerHTML.slice(0, 200)), ...performance.getEntriesByType("resource").map((e) => e.name).filter((n) => n.includes("evil.test"))].join(" ")`
	if found := w.reads(runs); found != "undefined" {
		t.Errorf("it runs or loads %s", found)
	}
	w.sees("a page that answers", `window.slowest < 2000`)
	t.Logf("the slowest frame took %s ms", w.reads("Math.round(window.slowest)"))
	w.provider.Play(gatewaytest.Script{Text: "It was long."}, gatewaytest.Script{Text: "still here"}) // the first one sums up what was before
	w.says("hello")
	w.sees("the next answer", chatIdle+" && "+tells("still here"))
}
