//go:build e2e

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// burn keeps a sandbox busy until it sleeps, with four processes: of a busy machine one alone gets too little.
const burn = `for n in 1 2 3 4; do setsid sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null & done`

// TestHost_AnAdminSeesWhatIsUsedAndPutsSandboxesToSleep looks at the bars of the list, which follow without a reload, and at
// the page of the host, and puts what works to sleep there.
func TestHost_AnAdminSeesWhatIsUsedAndPutsSandboxesToSleep(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	p := newPerson(t)
	dashboard := "http://localhost:" + strings.Split(s.addr, ":")[1]
	p.signsIn(dashboard)
	for _, name := range []string{"busy", "calm"} {
		s.create(map[string]any{"template": "base", "name": name})
	}
	p.does("open the list", chromedp.Navigate(dashboard+"/"))
	p.runs("mark the page, to see a reload", "window.same = true")
	use := func(name string) string {
		return fmt.Sprintf(`parseFloat(document.querySelector("[data-name='%s'] .use b")?.textContent ?? "NaN")`, name)
	}
	p.sees("bars of both", `window.same && `+use("busy")+` >= 0 && `+use("calm")+` >= 0`)
	s.exec("busy", map[string]any{"command": burn})
	p.sees("that one of them works", `window.same && `+use("busy")+` > 0.3 && `+use("calm")+` < 0.3`)
	p.pictures("list-use")
	p.does("open the menu of the state", chromedp.Navigate(dashboard+"/sandboxes/busy"))
	p.sees("the bars there too", `document.querySelectorAll("#ws-meters .use").length === 2`)

	p.does("open the host", chromedp.Navigate(dashboard+"/host"))
	p.sees("what works first by CPU", `document.querySelector(".uses tbody a") !== null`)
	p.does("sort by CPU", chromedp.Click(`.uses thead a[href*="sort=cpu"]`))
	p.sees("the busy one at the top", at("/host")+` && location.search.includes("sort=cpu") && document.querySelector(".uses tbody a")?.textContent.trim() === "busy"`)
	p.sees("the plots", `document.querySelectorAll("[data-plot] canvas").length === 4`)
	p.sees("what the host has", `[...document.querySelectorAll(".resource b")].every((b) => b.textContent.trim() !== "unknown")`)
	p.does("tick it", chromedp.Click(`.uses tbody tr:first-child input[type=checkbox]`))
	p.sees("what its sleep would save", `/^Sleeping this one frees [1-9].* of memory$/.test(document.querySelector("#saving b")?.textContent.trim())`)
	p.pictures("host")
	p.does("put it to sleep", chromedp.Click(`.saving-bar button.primary`))
	p.sees("that it goes to sleep", `document.body.innerText.includes("A sandbox is going to sleep.")`)
	s.until("busy is asleep", func() bool { return s.rest("busy").State == "asleep" })
	if got := s.rest("calm").State; got != "running" {
		t.Errorf("calm is %s", got)
	}
	p.does("open the list", chromedp.Navigate(dashboard+"/"))
	p.sees("no bars of what rests", `document.querySelector("[data-name='busy'] .meters:empty") !== null && `+use("calm")+` >= 0`)
}
