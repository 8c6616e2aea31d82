//go:build e2e

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// shopPage is a page whose button greets whom its field names.
const shopPage = `<!doctype html><title>Shop</title><style>body{background:#0a0}</style><h1>Our shop</h1><label>Name <input id="n"></label>
<button onclick="document.querySelector('p').textContent = 'Hello ' + n.value + '!'; console.log('greeted')">Greet</button><p>Nobody yet</p>`

// TestChat_BrowserToolsDriveARealBrowser has the agent open a page that is served in its sandbox, write into it, click, and look at it. The
// browser is started when it is first used.
func TestChat_BrowserToolsDriveARealBrowser(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "browser"})
	w := &chatter{person: newPerson(t), server: s, provider: s.offersModels(gateway.Anthropic)}
	w.workspacePage(s)
	w.opensChat()
	if out := s.exec("lab", map[string]any{"command": "mkdir shop && printf %s " + base64.StdEncoding.EncodeToString([]byte(shopPage)) + " | base64 -d > shop/index.html"}); out.ExitCode != 0 {
		t.Fatal(out.Stderr)
	}
	w.chooses("When the agent asks", "ask")
	w.provider.Play(
		gatewaytest.Script{Calls: use("run_command", map[string]any{"command": "cd shop && python3 -m http.server 8000 --bind 127.0.0.1", "wait_seconds": 1})},
		gatewaytest.Script{Calls: use("browser_open", map[string]any{"url": "http://localhost:8000/"})},
		gatewaytest.Script{Calls: use("browser_type", map[string]any{"element": "#n", "text": "Ada"})},
		gatewaytest.Script{Calls: use("browser_click", map[string]any{"element": "button"})},
		gatewaytest.Script{Calls: use("browser_wait", map[string]any{"text": "Hello Ada!"})},
		gatewaytest.Script{Calls: use("browser_log", map[string]any{})},
		gatewaytest.Script{Calls: use("browser_screenshot", map[string]any{})},
		gatewaytest.Script{Text: "It greets."},
	)
	w.says("try the shop")
	for _, shown := range []string{"python3 -m http.server", "http://localhost:8000/", "#n", "button"} {
		w.sees("a question with "+shown, fmt.Sprintf(`%s && document.querySelector(".chat-question.asks .chat-code").textContent.includes(%q)`, chatAsks, shown))
		w.pushes(".chat-question.asks", "Allow")
	}
	w.sees("the end", chatIdle+" && "+tells("It greets."))
	if said := w.told(); !strings.Contains(said, "Our shop") || !strings.Contains(said, "Hello Ada!") || !strings.Contains(said, "greeted") {
		t.Errorf("the model was told %s", said)
	}
	w.sees("the picture", `(() => { const i = document.querySelector(".chat-call img.chat-picture"); return i?.naturalWidth === 1280 && i.checkVisibility(); })()`)
	address := w.reads(`document.querySelector(".chat-call img.chat-picture").src`)
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(address, "data:image/png;base64,"))
	if err != nil {
		t.Fatalf("%.60s: %v", address, err)
	}
	shot, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if c := color.RGBAModel.Convert(shot.At(600, 600)).(color.RGBA); c.G < 0x90 || c.R > 0x20 {
		t.Errorf("the page in the picture is %v", c)
	}
	if !strings.Contains(string(w.provider.Requests()[len(w.provider.Requests())-1].Body), base64.StdEncoding.EncodeToString(data)) {
		t.Error("the model did not get the picture")
	}
	w.pictures("chat-browser")
	if out := s.exec("lab", map[string]any{"command": "ps ax -o args | grep -c '[t]ype=renderer.*--no-sandbox'"}); strings.TrimSpace(out.Stdout) != "0" {
		t.Errorf("pages are not kept apart: %s", out.Stdout)
	}
}

// told is all that the model was sent last.
func (w *chatter) told() string {
	all := w.provider.Requests()
	return string(all[len(all)-1].Body)
}

// TestChat_SeesPicturesThatArePasted pastes a picture: it is shown before it is sent and after, also after a reload, and reaches the model.
func TestChat_SeesPicturesThatArePasted(t *testing.T) {
	t.Parallel()
	w := newChatter(t)
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(b.Bytes())
	w.runs("paste a picture", fmt.Sprintf(`const data = new DataTransfer();
		data.items.add(new File([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))], "image.png", { type: "image/png" }));
		document.querySelector(".chat-composer textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }))`, encoded))
	w.sees("it before it is sent", `document.querySelector(".chat-composer img.chat-thumb")?.naturalWidth === 40`)
	w.pictures("chat-paste")
	w.provider.Play(gatewaytest.Script{Text: "A rectangle."})
	w.says("what is this?")
	const shown = `document.querySelector(".chat-message img.chat-picture")?.naturalWidth === 40`
	w.sees("the answer, and it in the message", chatIdle+" && "+tells("A rectangle.")+" && "+shown+` && document.querySelector(".chat-thumb") === null`)
	if said := w.told(); !strings.Contains(said, encoded) || !strings.Contains(said, ".attachments/") {
		t.Errorf("the model was sent %.2000s", said)
	}
	w.keptOpen()
	w.reloads()
	w.sees("it still", shown)
}
