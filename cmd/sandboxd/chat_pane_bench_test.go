//go:build bench

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// How the pane is measured.
const (
	paneOpenings = 20
	paneStep     = 400 // px that are scrolled in each frame
	paneFrame    = 50 * time.Millisecond
)

// TestChatPaneBench measures the pane with a long conversation alone, and writes nothing.
func TestChatPaneBench(t *testing.T) {
	b := &benches{t: t}
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	b.chatPane(s)
}

// chatPane measures, in a real browser, how soon the last message of a long conversation is shown, and the frames while a person scrolls
// to its first one.
func (b *benches) chatPane(s *server) {
	var long, short struct{ ID string }
	for _, c := range []any{&long, &short} {
		if status := s.call("POST", "/sandboxes/lab/conversations", map[string]any{}, c); status != http.StatusCreated {
			b.t.Fatalf("create: %d", status)
		}
	}
	s.stop()
	fillConversation(b.t, s.data+"/sandboxd.db", long.ID)
	s.start()
	p := newPerson(b.t)
	p.signsIn("http://localhost:" + s.port())
	p.does("open the sandbox", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab"))
	p.runs("show the chat, unless it is shown", `document.querySelector('[data-pane-toggle="chat"][aria-pressed="false"]')?.click()`)
	const last = `[...document.querySelectorAll(".chat-item")].at(-1)?.textContent.startsWith("Message %d.")`
	p.sees("the chat", `document.querySelector(".chat-pick")?.options.length >= 2`)
	var opened []time.Duration
	for range paneOpenings {
		p.runs("open the short one", `const s = document.querySelector(".chat-pick"); s.value = "`+short.ID+`"; s.dispatchEvent(new Event("change"))`)
		p.sees("nothing in it", `document.querySelector(".chat-items").childElementCount === 0 && document.querySelector(".chat-pick").value === "`+short.ID+`"`)
		p.runs("open the long one", fmt.Sprintf(`const s = document.querySelector(".chat-pick"); window.opened = 0; const began = performance.now();
			const look = () => {
				if (!(`+last+`)) return requestAnimationFrame(look);
				requestAnimationFrame(() => setTimeout(() => (window.opened = performance.now() - began)));
			};
			s.value = %q; s.dispatchEvent(new Event("change")); look()`, benchMessages, long.ID))
		p.sees("its last message", "window.opened > 0")
		opened = append(opened, milliseconds(b.t, p.reads("window.opened")))
	}
	b.add("pane, open a conversation of 5,000 messages to the last one", "p50 ≤ 300 ms", opened, nil)
	b.scrolls(p)
}

// TestChatDeltasBench measures how soon words are in the pane alone, and writes nothing.
func TestChatDeltasBench(t *testing.T) {
	b := &benches{t: t}
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	b.deltasToThePane(s)
}

// watchWords is a script that notes how old each word of an answer, which is a time in nanoseconds, is when the page first has it.
const watchWords = `window.ages = [];
	const look = () => {
		const now = performance.timeOrigin + performance.now();
		const words = [...document.querySelectorAll(".chat-text")].at(-1)?.textContent.match(/\d{19}(?!\d)/g) ?? [];
		for (const word of words.slice(window.ages.length)) window.ages.push(now - Number(word) / 1e6);
	};
	new MutationObserver(look).observe(document.querySelector(".chat-list"), { childList: true, characterData: true, subtree: true });`

// deltasToThePane measures, in a real browser, how old what a provider and what a program says is when the pane has it.
func (b *benches) deltasToThePane(s *server) {
	provider := httptest.NewServer(http.HandlerFunc(clock))
	defer provider.Close()
	if err := s.ask("PUT", "/providers/clock", map[string]any{"kind": "openai", "base_url": provider.URL + "/v1", "models": []string{"clock"}}); err != nil {
		b.t.Fatal(err)
	}
	s.hasScriptedAgent("lab")
	p := newPerson(b.t)
	p.signsIn("http://localhost:" + s.port())
	b.wordsInThePane(s, p, "delta from the provider to the pane", map[string]any{"model": "clock"}, "What time is it?")
	b.wordsInThePane(s, p, "delta from an agent over ACP to the pane", map[string]any{"agent": "scripted"}, fmt.Sprintf("clock %d", benchDeltas))
}

func (b *benches) wordsInThePane(s *server, p *person, name string, conversation map[string]any, message string) {
	var c struct{ ID string }
	if status := s.call("POST", "/sandboxes/lab/conversations", conversation, &c); status != http.StatusCreated {
		b.t.Fatalf("create: %d", status)
	}
	p.does("leave what is shown", chromedp.Navigate("about:blank"))
	p.does("open the conversation", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab#chat="+c.ID))
	p.sees("it", `document.querySelector(".chat-pick")?.value === "`+c.ID+`" && document.querySelector("sandbox-chat").dataset.chatState === "idle"`)
	p.runs("watch", watchWords)
	if err := s.ask("POST", "/sandboxes/lab/conversations/"+c.ID+"/messages", map[string]any{"text": message}); err != nil {
		b.t.Fatal(err)
	}
	p.seesWithin("the whole answer", fmt.Sprintf(`window.ages.length >= %d`, benchDeltas), eventLimit)
	var ages []float64
	if err := json.Unmarshal([]byte(p.reads("JSON.stringify(window.ages)")), &ages); err != nil || len(ages) != benchDeltas {
		b.t.Fatalf("%d of %d words, %v", len(ages), benchDeltas, err)
	}
	var took []time.Duration
	for _, ms := range ages {
		took = append(took, time.Duration(ms*float64(time.Millisecond)))
	}
	b.add(name, "p50 ≤ 15 ms", took, nil)
}

// scrolls goes from the end of the conversation to its beginning, as fast as its messages come.
func (b *benches) scrolls(p *person) {
	p.runs("scroll to the first message", fmt.Sprintf(`const list = document.querySelector(".chat-list"); window.frames = []; window.jumps = 0; window.first = false;
		let [before, seen] = [performance.now(), null];
		const view = () => { const top = list.getBoundingClientRect().top; const e = document.elementFromPoint(list.getBoundingClientRect().left + 60, top + list.clientHeight / 2)?.closest(".chat-item"); return e && { e, y: e.getBoundingClientRect().top }; };
		const frame = (now) => {
			window.frames.push(now - before); before = now;
			if (seen?.e.isConnected && Math.abs(seen.e.getBoundingClientRect().top - seen.y) > 2) window.jumps++;
			const at = list.scrollTop; list.scrollTop -= %d; seen = view();
			if (at === 0 && document.querySelector(".chat-item")?.textContent.startsWith("Message 1.")) return (window.first = true);
			requestAnimationFrame(frame);
		};
		requestAnimationFrame((now) => { before = now; requestAnimationFrame(frame); })`, paneStep))
	p.seesWithin("the first message", "window.first", 3*eventLimit)
	var frames []float64
	if err := json.Unmarshal([]byte(p.reads("JSON.stringify(window.frames)")), &frames); err != nil {
		b.t.Fatal(err)
	}
	var took []time.Duration
	for _, ms := range frames {
		took = append(took, time.Duration(ms*float64(time.Millisecond)))
	}
	if n := p.reads("window.jumps"); n != "0" {
		b.t.Errorf("what one reads jumped in %s of %d frames", n, len(frames))
	}
	if n := p.reads(`document.querySelectorAll(".chat-item").length`); n != strconv.Itoa(benchMessages) {
		b.t.Errorf("%s messages are there", n)
	}
	b.each("pane, frames while scrolling through 5,000 messages", paneFrame, took)
}

func milliseconds(t testing.TB, text string) time.Duration {
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms * float64(time.Millisecond))
}
