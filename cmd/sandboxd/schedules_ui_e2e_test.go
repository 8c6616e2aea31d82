//go:build e2e

package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// firstSchedule is a script's word for it.
const firstSchedule = `document.querySelector("#schedules [data-schedule]")`

// TestSchedulesPage_PlansRunsAndShows does what a person does with schedules, on a real engine.
func TestSchedulesPage_PlansRunsAndShows(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t), "--backup-quota", "500MiB")
	s.create(map[string]any{"name": "lab", "template": "echo", "label": "Protein folding"})
	s.create(map[string]any{"name": "den", "template": "echo"})
	s.in("head -c 200M /dev/urandom >large; true")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.plans(dashboard)
	p.runsIt()
	p.testsIt()
	p.seesAFailure(s, dashboard)
	p.deletesIt(dashboard)
}

// plans makes a schedule from the page of a sandbox's backups.
func (p *person) plans(dashboard string) {
	p.t.Helper()
	p.does("look at schedules", chromedp.Navigate(dashboard+"/schedules"))
	p.sees("none", current+` && document.querySelector("#schedules").textContent.includes("No schedules yet")`)
	p.pictures("schedules-none")
	p.does("look at the backups", chromedp.Navigate(dashboard+"/sandboxes/lab/backups"), chromedp.Click("#backups-up summary"))
	p.runs("ask for a schedule", `document.querySelector('#backups-up a[href^="/schedules/new"]').click()`)
	p.sees("the form with the browser's zone", sheetIsOpen+` && document.querySelector("#schedule-name").value === "lab" && document.querySelector("#schedule-target").selectedOptions[0].textContent === "lab" &&
		document.querySelector("#schedule-zone").value === Intl.DateTimeFormat().resolvedOptions().timeZone && document.querySelectorAll("#schedule-preview li").length === 5`)
	p.pictures("schedule-form")
	p.does("choose every week", chromedp.SetValue("#schedule-every", "week"), chromedp.SetValue("#schedule-weekday", "3"))
	p.runs("tell the form", `document.querySelector("#schedule-weekday").dispatchEvent(new Event("input", {bubbles: true}))`)
	p.sees("its next times", `[...document.querySelectorAll("#schedule-preview li")].every((li) => li.textContent.startsWith("Wed ")) && document.querySelector("#schedule-weekday").checkVisibility()`)
	p.does("write a cron", chromedp.SetValue("#schedule-every", "cron"), chromedp.SetValue("#schedule-cron", "* * * * *"))
	p.runs("tell the form", `document.querySelector("#schedule-cron").dispatchEvent(new Event("input", {bubbles: true}))`)
	p.sees("that it is too often", `document.querySelector("#schedule-preview").textContent.includes("more often than every 15 minutes") && !document.querySelector("#schedule-at").checkVisibility()`)
	p.does("save it", chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong", `document.querySelector("#schedule-cron-fault")?.textContent.includes("more often")`)
	p.pictures("schedule-form-fault")
	p.does("do it every day, for all", chromedp.SetValue("#schedule-every", "day"), chromedp.SetValue("#schedule-name", "Every night"), chromedp.SetValue("#schedule-last", "1"),
		chromedp.SetValue("#schedule-target", "mine"), chromedp.SetValue("#schedule-daily", "0"), chromedp.SetValue("#schedule-weekly", "0"),
		chromedp.SetValue("#schedule-test", "0 5 * * 0"), chromedp.Click("#sheet .button.primary"))
	p.sees("it in the list", at("/schedules")+" && "+current+` && `+firstSchedule+`?.textContent.includes("Every day at 03:30")`)
	if text := p.reads(firstSchedule + ".textContent"); !strings.Contains(text, "All my sandboxes") || !strings.Contains(text, "Keeps the last one") || !strings.Contains(text, "Not run yet") {
		p.t.Errorf("it says %s", text)
	}
	p.pictures("schedules")
}

// runsIt runs it twice, and finds the backups.
func (p *person) runsIt() {
	p.t.Helper()
	p.does("run it", chromedp.Click(`#schedules form[action$="/run"] button`))
	p.sees("that it runs", firstSchedule+`.textContent.includes("Running")`)
	p.picture("schedules-running-light", "desktop")
	p.sees("that it is done", firstSchedule+`.textContent.includes("Done")`)
	// A list that changes between the press and the release of a button takes no click, so it is one event here.
	p.runs("open it", `document.querySelector("#schedules [data-schedule] .item-title a").click()`)
	p.sees("its run", current+` && document.querySelectorAll("[data-run]").length === 1 && document.querySelector("[data-run]").textContent.includes("2 sandboxes")`)
	p.does("run it again", chromedp.Click(`#schedule form[action$="/run"] button`))
	p.sees("both runs", `document.querySelectorAll("[data-run]").length === 2 && document.querySelector("[data-run]").textContent.includes("Done")`)
}

// testsIt has the newest backups restored.
func (p *person) testsIt() {
	p.t.Helper()
	p.does("open the menu", chromedp.Click("#schedule summary[aria-label^='More for']"))
	p.runs("test it", `document.querySelector('#schedule [name="work"][value="test"]').form.requestSubmit()`)
	p.sees("that it is restored", `document.querySelectorAll("[data-run]").length === 3 && document.querySelector("[data-run]").textContent.includes("Done")`)
	p.pictures("schedule-menu")
}

// seesAFailure has a run fail, and looks at the backups that are left.
func (p *person) seesAFailure(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at the backups", chromedp.Navigate(dashboard+"/backups"))
	p.sees("one of each, tested", current+` && document.querySelectorAll(".backup").length === 2 && document.querySelectorAll(".backup .tone-good").length >= 2 && document.body.textContent.includes("restore tested")`)
	p.pictures("schedules-backups")
	s.in("head -c 400M /dev/urandom >more; true")
	p.does("back to the list", chromedp.Navigate(dashboard+"/schedules"))
	p.sees("it", current)
	p.does("run it", chromedp.Click(`#schedules form[action$="/run"] button`))
	p.sees("that it failed", firstSchedule+`.textContent.includes("Trying again at")`)
	p.does("open it", chromedp.Click("#schedules [data-schedule] .item-title a"))
	p.sees("why", current+` && document.querySelector("[data-run] .backup-problem")?.textContent.includes("may take 500 MiB in all")`)
	p.runs("open the rest", `document.querySelectorAll("[data-run] details").forEach((d) => { d.open = true })`)
	p.pictures("schedule")
	p.does("back to the list", chromedp.Navigate(dashboard+"/schedules"))
	p.sees("it", current)
	p.does("pause it", chromedp.Click("#schedules summary[aria-label^='More for']"))
	p.runs("choose that", `document.querySelector('#schedules form[action$="/switch"]').requestSubmit()`)
	p.sees("that it is paused", firstSchedule+`.textContent.includes("paused")`)
}

// deletesIt deletes it.
func (p *person) deletesIt(dashboard string) {
	p.t.Helper()
	p.runs("ask to delete it", `document.querySelector('#schedules a[href$="/delete"]').click()`)
	p.sees("what becomes of its backups", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("Its 3 backups are kept for 7 d more.")`)
	p.pictures("schedule-delete")
	p.does("do so", chromedp.Click("#sheet .button.danger"))
	p.sees("none", `document.querySelector("#schedules").textContent.includes("No schedules yet")`)
	p.does("look at the backups", chromedp.Navigate(dashboard+"/backups"))
	p.sees("that they stay for a while", current+` && document.querySelectorAll(".backup").length === 4 && document.querySelector("#backups").textContent.split("kept for 7 d more").length === 4`)
}
