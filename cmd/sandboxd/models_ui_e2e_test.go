//go:build e2e

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// TestModels_ThePagesShowWhatWasUsed has a program outside ask a model, and looks at the pages of usage, of the calls and of one call.
func TestModels_ThePagesShowWhatWasUsed(t *testing.T) {
	p := gatewaytest.NewProvider(t, gateway.Anthropic)
	a := &asker{server: newServer(t, "--prebuild", ""), provider: p, secret: p.Key()}
	in := map[string]any{"kind": gateway.Anthropic, "base_url": p.BaseURL(gateway.Anthropic), "key": p.Key(), "models": []string{"scripted-1"}}
	if status, text := a.raw("PUT", "/providers/cloud", in); status >= 300 {
		t.Fatalf("provider: %d %s", status, text)
	}
	for path, in := range map[string]any{
		"/models/settings": map[string]any{"log_content": true},
		"/models/budgets":  map[string]any{"scope": "user", "subject": "admin", "period": "day", "requests": 4, "tokens": 100_000},
	} {
		if status, text := a.raw("PUT", path, in); status >= 300 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
	}
	token := strings.TrimSpace(a.cli("token", "create", "editor", "--models"))
	p.Play(gatewaytest.Script{Text: "<b>good morning</b>"}, gatewaytest.Script{Status: 400})
	for _, want := range []int{http.StatusOK, http.StatusBadRequest, http.StatusOK} {
		if status, text := a.outsider(token, "/models/v1/messages", askMessages); status != want {
			t.Fatalf("%d %s", status, text)
		}
	}
	a.until("the calls are in the log", func() bool {
		var calls struct{ Calls []struct{ ID string } }
		a.call("GET", "/models/calls", nil, &calls)
		return len(calls.Calls) == 3
	})
	b := newPerson(t)
	dashboard := "http://localhost:" + a.port()
	b.signsIn(dashboard)
	b.does("open the usage", chromedp.Navigate(dashboard+"/usage?user=admin"))
	b.sees("plots", `document.querySelectorAll("usage-plots canvas").length === 3 && [...document.querySelectorAll('[data-plot="requests"] .plot-value b')].map((e) => e.textContent).join() === "3,1"`)
	b.sees("the budget", `document.querySelector(".resources").textContent.includes("of 4")`)
	b.pictures("usage")
	b.does("look at the calls", chromedp.Navigate(dashboard+"/usage"), chromedp.Click(`.page-head a[href="/usage/calls"]`))
	b.sees("three calls", at("/usage/calls")+` && document.querySelectorAll("tr.call").length === 3`)
	b.pictures("usage-calls")
	b.does("open the oldest", chromedp.Click("tr.call:last-child a"))
	b.sees("the answer as text", `document.querySelectorAll(".call-text")[1]?.textContent.includes("morning") && document.querySelector(".call-text b") === null`)
	b.pictures("usage-call")
	b.does("go to the models", chromedp.Navigate(dashboard+"/settings/models"))
	const off = `[...document.querySelectorAll('form[action="/settings/models/settings"] button[name=off]')].map((e) => e.textContent).join()`
	b.sees("the switch", off+` === "Turn off…"`)
	b.does("turn them off", chromedp.Click(`button[name=off]`))
	b.sees("a question", `document.querySelector("dialog[open]")?.innerText.includes("Turn off all models?") === true`)
	b.pictures("models-off-asks")
	b.pushes("dialog[open]", "Cancel")
	b.sees("no question", `document.querySelector("dialog[open]") === null`)
	if status, text := a.outsider(token, "/models/v1/messages", askMessages); status != http.StatusOK {
		t.Errorf("after Cancel: %d %s", status, text)
	}
	b.does("turn them off", chromedp.Click(`button[name=off]`))
	b.pushes("dialog[open]", "Turn off")
	b.sees("that they are off", off+` === "Turn on"`)
	if status, text := a.outsider(token, "/models/v1/messages", askMessages); status < 400 || !strings.Contains(text, "turned off") {
		t.Errorf("turned off: %d %s", status, text)
	}
}
