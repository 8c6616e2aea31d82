//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestBrowser_ANewSandboxIsChosenAdjustedCreatedAndCancelled goes through the form with the keyboard, cancels while the image is being
// built, and creates with one click in the end.
func TestBrowser_ANewSandboxIsChosenAdjustedCreatedAndCancelled(t *testing.T) {
	dropImages(t, "slow")
	s := newServer(t, "--prebuild", "")
	files := map[string]string{"template.yaml": "name: slow\ntitle: Slow\ndescription: Takes its time.\n",
		"Dockerfile": "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo " + time.Now().String() + "; sleep 4\nRUN sleep 600\n"}
	slow := func() {
		if status := s.call("PUT", "/templates/slow", map[string]any{"files": files}, nil); status >= 300 {
			t.Fatalf("the template gives %d", status)
		}
	}
	files["template.yaml"] += "base: base\n"
	slow()
	p := newPerson(t)
	p.signsIn("http://localhost:" + s.port())
	p.fillsInTheForm()
	p.cancels(s)
	files["Dockerfile"] = strings.Replace(files["Dockerfile"], "sleep 600", "true", 1)
	slow()
	p.createsAfterAll(s)
}

// fillsInTheForm does it from the list, with the keyboard.
func (p *person) fillsInTheForm() {
	p.t.Helper()
	p.sees("the sandboxes, live", current)
	p.does("press c", chromedp.KeyEvent("c"))
	p.sees("the form, at its first field", `document.activeElement?.id === "new-name"`)
	p.does("type a name", chromedp.SendKeys("#new-name", "My Slow Box"))
	p.sees("a name", `document.querySelector("#new-name").value === "my-slow-box" && document.querySelector("[data-address]").textContent.startsWith("http://my-slow-box.localhost")`)
	p.does("choose a template", chromedp.Click(`.template-choice:has([value="slow"])`))
	p.sees("that it has no image", `document.querySelector('.template-choice:has([value="slow"]) .pick-image').textContent.includes("(estimate)")`)
	p.pictures("new-sandbox")
	p.does("adjust it", chromedp.SendKeys("#new-memory", "512 MiB\r"))
}

// cancels waits until the step after the one that can be found again, and is back with what was typed.
func (p *person) cancels(s *server) {
	p.t.Helper()
	p.sees("the build, with the time that is left", at("/sandboxes/my-slow-box")+` && document.querySelector("#work-steps [data-left]") !== null`)
	bar := `document.querySelector("#work-steps progress").value`
	before := p.number(bar)
	p.sees("the bar move between two words of the server", fmt.Sprintf("%s > %v", bar, before))
	p.seesWithin("the last step, which says nothing more", `["#work-log", "#work-steps .detail"].every((at) => document.querySelector(at).textContent.includes("sleep 600"))`, time.Minute)
	p.pictures("creating-image")
	p.does("cancel", chromedp.Click(`#work form[action*="/cancel"] button`))
	p.sees("the form with what was typed", at("/new")+` && document.querySelector("#new-name")?.value === "my-slow-box" &&
		document.querySelector("#new-memory").value === "512 MiB" && document.querySelector('[value="slow"]').checked && document.querySelector(".sheet .notice").textContent.includes("my-slow-box was not created")`)
	p.pictures("new-sandbox-again")
	if status, _ := s.raw("GET", "/sandboxes/my-slow-box", nil); status != http.StatusNotFound && status != http.StatusGone {
		p.t.Errorf("the sandbox is still there: %d", status)
	}
	s.until("the build has ended, too", func() bool {
		var got struct{ Image struct{ State string } }
		return s.call("GET", "/templates/slow", nil, &got) == http.StatusOK && got.Image.State == "failed"
	})
	s.checkNothingLeft()
}

// createsAfterAll sends the form again, and then creates another one with one click.
func (p *person) createsAfterAll(s *server) {
	p.t.Helper()
	p.does("press Enter", chromedp.SendKeys("#new-name", "\r"))
	p.seesWithin("a terminal with a prompt", showsPrompt, time.Minute)
	var got struct{ Image struct{ State string } }
	if s.call("GET", "/templates/slow", nil, &got); got.Image.State != "built" {
		p.t.Errorf("the image is %s", got.Image.State)
	}
	p.does("go to the list", chromedp.Navigate("http://localhost:"+s.port()+"/"))
	p.sees("the list", `document.querySelector("#rows .row") !== null`)
	p.does("open the menu", chromedp.Click(`.new-button summary`))
	p.pictures("new-menu")
	p.does("one click", chromedp.Click(`.new-button button[value="slow"]`))
	p.seesWithin("a terminal with a prompt", `location.pathname.startsWith("/sandboxes/") && `+showsPrompt, time.Minute)
}

const showsPrompt = `(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.includes("$"))`
