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

// rolling is the text of the page on which the sandboxes of a template are updated.
const rolling = `document.querySelector("#rolling-update").textContent`

// TestUpdatesPage_UpdatesFourSandboxesOfWhichOneFails does what an admin does when a template has changed, on a real engine.
func TestUpdatesPage_UpdatesFourSandboxesOfWhichOneFails(t *testing.T) {
	v := newVersions(t, "versions-page")
	s := newServer(t, "--prebuild", "", "--templates", v.folder)
	for _, name := range []string{"alpha", "beta", "gamma", "delta"} {
		s.marked(name, "versions-page")
	}
	// The service of one of them does not work on the new image, because of a file in its home.
	s.exec("gamma", map[string]any{"command": "touch old-format"})
	v.makes(2, "[ -e /home/agent/old-format ] && echo cannot read the old format && exit 3\\nexec sleep 1000000")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.does("look at the list", chromedp.Navigate(dashboard+"/"))
	p.sees("the marks", current+` && document.querySelectorAll(".update-mark").length === 4`)
	p.pictures("updates-list")
	p.does("open the template", chromedp.Navigate(dashboard+"/templates/versions-page"))
	p.sees("how many are older", current+` && document.querySelector("#template-older").textContent.includes("4 of 4 sandboxes are on an older image")`)
	p.pictures("updates-template")
	p.does("open the update", chromedp.Click("#template-older a.button"))
	p.sees("the form", at("/templates/versions-page/update")+" && "+current+" && "+rolling+`.includes("Update 4 sandboxes")`)
	p.pictures("updates-ready")
	p.does("begin", chromedp.SetValue("#max-failures", "2"), chromedp.Click(`input[name="force"]`), chromedp.Click(".rolling-form .button.primary"))
	p.sees("that it is under way", current+" && "+rolling+`.includes("Update under way")`)
	p.runs("mark the page", `window.sameRun = true`)
	p.seesWithin("one that is done and one under way", rolling+`.includes("1 updated") && `+rolling+`.includes("1 updating")`, 2*time.Minute)
	p.pictures("updates-running")
	p.seesWithin("the end", rolling+`.includes("Last update")`, 6*time.Minute)
	if text := p.reads(rolling); !strings.Contains(text, "Done, with failures") || !strings.Contains(text, "3 updated") || !strings.Contains(text, "1 failed") || !strings.Contains(text, "put back as it was") || !strings.Contains(text, "The service web does not work") {
		t.Errorf("it says %s", text)
	}
	if p.reads("window.sameRun") != "true" {
		t.Error("the page was loaded again")
	}
	p.runs("open the log", `document.querySelector(".update-item details").open = true`)
	p.pictures("updates-ended")
	for name, want := range map[string]string{"alpha": "2 alpha runs", "beta": "2 beta runs", "gamma": "1 gamma runs", "delta": "2 delta runs"} {
		if got := s.version(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	p.does("open the one that failed", chromedp.Navigate(dashboard+"/sandboxes/gamma"))
	p.sees("its mark", current+` && document.querySelector("#ws-name .update-mark")?.textContent === "update failed"`)
	p.runs("ask for it", `document.querySelector("#ws-name .update-mark").click()`)
	p.sees("why", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("cannot read the old format")`)
	p.pictures("updates-sheet")
	p.runs("open the log", `document.querySelector("#sheet details").open = true`)
	p.picture("updates-sheet-log-light", "desktop")
	s.exec("gamma", map[string]any{"command": "rm old-format"})
	p.runs("update it all the same", `document.querySelector('#sheet input[name="force"]')?.click(); document.querySelector("#sheet .button.primary").click()`)
	p.sees("its progress, or its end", `!(`+sheetIsOpen+`)`)
	p.sees("that it is being updated", `document.querySelector("#ws-state").textContent.includes("Being")`)
	p.picture("updates-one-light", "desktop")
	p.seesWithin("that it is up to date", `document.querySelector("#ws-state").textContent.includes("Running") && document.querySelector("#ws-name .update-mark") === null`, 3*time.Minute)
	p.does("open its snapshots", chromedp.Navigate(dashboard+"/sandboxes/gamma/snapshots"))
	p.sees("that it can be undone", current+` && document.querySelector("#snapshots-restored").textContent.includes("Updated to a newer image")`)
	p.pictures("updates-undo")
	if status, body := s.raw("GET", "/activity?action=sandbox.update", nil); status != http.StatusOK || strings.Count(string(body), `"sandbox.update"`) < 5 {
		t.Errorf("recorded: %d %s", status, fmt.Sprintf("%.2000s", body))
	}
}
