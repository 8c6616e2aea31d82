//go:build e2e

package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const memberPassword = "a-long-test-password"

// entryWith is a script that gives the newest row of the activity with a text.
func entryWith(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".activity-row")].find((r) => r.innerText.replace(/\s+/g, " ").includes(%q))`, text)
}

func (p *person) seesAnEntry(text string) {
	p.t.Helper()
	p.sees("an entry "+text, entryWith(text)+" !== undefined")
}

// signsInAs signs in as a member.
func (p *person) signsInAs(dashboard, name string) {
	p.t.Helper()
	p.opensAs(dashboard, name, memberPassword)
}

const isFollowed = `document.querySelector("sandbox-logs[data-following]") !== null`

// TestActivityPage_TwoUsersSeeWhatTheyMay does things as an admin and as a member, and reads of them in two browsers.
func TestActivityPage_TwoUsersSeeWhatTheyMay(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.addUser("mia")
	admins, mias := s.token, strings.TrimSpace(s.cli("token", "create", "mias-ci", "--user", "mia"))
	as := func(token string, do func()) {
		s.token = token
		defer func() { s.token = admins }()
		do()
	}
	dashboard := "http://localhost:" + s.port()
	admin, mia := newPerson(t), newPerson(t)
	admin.signsIn(dashboard)
	mia.signsInAs(dashboard, "mia")

	mia.sees("the sandboxes, live", current)
	mia.does("open the activity by the keyboard", chromedp.KeyEvent("g"), chromedp.KeyEvent("a"))
	mia.sees("that it is live", at("/activity")+" && "+isFollowed)
	mia.seesAnEntry("Done mia signed in")
	if got := mia.reads(`document.body.innerText.includes("admin signed in") || document.querySelector('[href="/activity/log"]') !== null`); got != "false" {
		t.Error("a member sees what the admin did, or the way to the server's log")
	}
	mia.runs("mark the page", `window.marked = true`)
	s.create(map[string]any{"name": "admins", "template": "echo"})
	as(mias, func() {
		s.create(map[string]any{"name": "web-1", "template": "echo"})
		s.exec("web-1", map[string]any{"command": "make test"})
		s.raw("PUT", "/sandboxes/web-1/files?path="+url.QueryEscape("\x1b]0;owned\a<b>not bold<script>document.title=`owned`</script>\u202egpj.exe"), "x")
		if status, _ := s.raw("DELETE", "/sandboxes/admins", nil); status != 404 {
			t.Errorf("deleting another's gives %d", status)
		}
	})
	mia.seesAnEntry("Done mia created web-1 echo by API token “mias-ci” from 127.0.0.1")
	mia.seesAnEntry("mia ran a command in web-1 make")
	mia.seesAnEntry("mia tried to write a file in web-1 ]0;owned<b>not bold<script>")
	mia.seesAnEntry("Refused mia tried to delete")
	s.call("POST", "/sandboxes/web-1/stop?wait=stopped", nil, nil)
	mia.seesAnEntry("Done admin stopped web-1 by an API token")
	for what, script := range map[string]string{
		"no reload":                      `window.marked === true`,
		"newer ones stand above":         `(() => { const all = [...document.querySelectorAll(".activity-row")].map((r) => Number(r.dataset.id)); return all.length > 4 && all.every((x, i) => i === 0 || x < all[i-1]); })()`,
		"there is one heading, of today": `[...document.querySelectorAll(".activity-day")].map((d) => d.textContent).join() === "Today"`,
		"nothing of the admin's":         `!document.querySelector(".activity").innerText.includes("created admins")`,
		"no element is made":             `document.querySelector(".activity b, .activity script") === null && !document.title.includes("owned")`,
		"times are local":                entryWith("signed in") + `.querySelector("time").textContent === new Date(` + entryWith("signed in") + `.querySelector("time").dateTime).toTimeString().slice(0, 5)`,
	} {
		if mia.reads(script) != "true" {
			t.Errorf("not so: %s", what)
		}
	}
	mia.pictures("activity-member")
	mia.filtersAndDownloads(dashboard)
	mia.looksAtOneSandbox(dashboard)
	admin.readsTheServerLog(dashboard)
	mia.does("try the server's log", chromedp.Navigate(dashboard+"/activity/log"))
	mia.sees("that it is refused", `document.body.innerText.includes("Only an admin may do this")`)
	mia.pictures("server-log-refused")
}

// filtersAndDownloads narrows the page by its form, and takes the file that fits.
func (p *person) filtersAndDownloads(dashboard string) {
	p.t.Helper()
	p.does("filter", chromedp.SetValue("#log-outcome", "refused"), chromedp.SetValue("#log-user", "mia"), chromedp.Submit("#filter"))
	p.sees("what was refused alone", `document.querySelectorAll(".activity-row").length === 2 && location.search === "?user=mia&outcome=refused"`)
	file := fmt.Sprintf(`(() => { const x = new XMLHttpRequest(); x.open("GET", document.querySelector("a[download]").href, false); x.send(); return %s; })()`,
		`x.getResponseHeader("Content-Disposition").startsWith("attachment") && x.responseText.trim().split("\n").map((l) => JSON.parse(l)).map((e) => e.user + " " + e.action + " " + e.outcome).join("|")`)
	if got := p.reads(file); got != "mia sandbox.delete refused|mia file.write refused" {
		p.t.Errorf("the file has %s", got)
	}
	p.pictures("activity-filtered")
	p.does("filter by text", chromedp.Navigate(dashboard+"/activity"), chromedp.SetValue("#filter", "no such words"), chromedp.Submit("#filter"))
	p.sees("nothing", `document.querySelector("[data-empty]")?.innerText.includes("Nothing found")`)
	p.pictures("activity-none")
	p.does("make a mistake", chromedp.Navigate(dashboard+"/activity?via=air&since=2026-01-02T00:00&until=2026-01-01T00:00"))
	p.sees("what is wrong", `document.querySelector(".fault") !== null`)
}

// looksAtOneSandbox goes to the activity of a sandbox by its menu, and pauses it.
func (p *person) looksAtOneSandbox(dashboard string) {
	p.t.Helper()
	p.does("go home", chromedp.Navigate(dashboard+"/"))
	p.sees("the sandbox", `document.querySelector('a[href^="/sandboxes/web-1/activity"]') !== null`)
	p.runs("follow its menu", `document.querySelector('a[href^="/sandboxes/web-1/activity"]').click()`)
	p.sees("its activity alone", at("/sandboxes/web-1/activity")+" && "+isFollowed+` && !document.querySelector(".activity").innerText.includes("signed in")`)
	p.seesAnEntry("mia created web-1")
	p.does("pause", chromedp.Click("[data-pause]"))
	rows := p.reads(`document.querySelectorAll(".activity-row").length`)
	p.runs("start it meanwhile", `void fetch("/sandboxes/web-1/start", {method: "POST"})`)
	p.sees("that entries wait", `/^\d+ new entr/.test(document.querySelector("[data-new]:not([hidden])")?.textContent)`)
	p.never("more rows", `String(document.querySelectorAll(".activity-row").length) !== "`+rows+`"`, time.Second)
	p.does("show them", chromedp.Click("[data-new]"))
	p.seesAnEntry("mia started web-1 on the dashboard")
	p.pictures("activity-sandbox")
}

// readsTheServerLog goes there from the activity, follows it, and looks for a request.
func (p *person) readsTheServerLog(dashboard string) {
	p.t.Helper()
	p.does("open the activity", chromedp.Navigate(dashboard+"/activity"))
	p.seesAnEntry("admin created admins")
	p.seesAnEntry("mia created web-1")
	p.pictures("activity-admin")
	p.does("open the server's log", chromedp.Click(`[href="/activity/log"]`))
	p.sees("that it is live", at("/activity/log")+" && "+isFollowed)
	marker := fmt.Sprintf("marker-%d", time.Now().UnixNano())
	p.runs("make a request", fmt.Sprintf(`void fetch("/%s")`, marker))
	p.sees("a record of it", fmt.Sprintf(`[...document.querySelectorAll(".own-line")].some((r) => r.innerText.includes("path=/%s"))`, marker))
	p.pictures("server-log")
	p.does("search for it", chromedp.SetValue("#filter", "path=/"+strings.ToUpper(marker)), chromedp.Submit("#filter"))
	p.sees("it alone", `document.querySelectorAll(".own-line").length === 1`)
	p.does("look for errors", chromedp.SetValue("#log-level", "error"), chromedp.Submit("#filter"))
	p.sees("none", `document.querySelector("[data-empty]")?.innerText.includes("Nothing found")`)
}
