//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// talkerScript is a service that writes what people's programs write, and counterScript one that goes on.
const talkerScript = `printf '\033[32mready\033[0m on port \033[1;36m3000\033[0m\n'
printf '\033]0;title\007\033[2J<b>not bold</b> <script>document.title="owned"</script>\n'
printf 'photo_\342\200\256gpj.exe\n'
echo '{"time":"2026-01-01T00:00:00Z","level":"warn","msg":"slow query","took_ms":1530,"sql":"select * from orders where customer = 42"}'
echo 'ERROR upstream did not answer: connect ECONNREFUSED 127.0.0.1:5432'
printf 'a long line %s end-of-it\n' "$(head -c 9000 /dev/zero | tr '\0' x)"
exec sleep infinity`

const counterScript = `i=0; while :; do i=$((i+1)); echo "GET /items/$i 200"; sleep 0.5; done`

// rowWith is a script that gives the row of the log with a text.
func rowWith(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".log-line")].find((r) => r.textContent.includes(%q))`, text)
}

// TestLogsPage_SearchesFollowsAndLinks reads the log of two sandboxes in a browser.
func TestLogsPage_SearchesFollowsAndLinks(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo"})
	s.declare("web", map[string]any{"command": talkerScript})
	s.declare("items", map[string]any{"command": counterScript})
	s.until("its lines are found", func() bool { return len(s.found(url.Values{"q": {"items"}})) > 3 })
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.sees("the sandboxes", at("/")+" && "+current)
	p.does("open the logs by the keyboard", chromedp.KeyEvent("g"), chromedp.KeyEvent("l"))
	p.sees("the tail", `document.querySelector("sandbox-logs[data-following]") !== null`)
	p.seesARow("GET /items/")
	before := p.number(`document.querySelectorAll(".log-line").length`)
	p.sees("new lines on top", fmt.Sprintf(`document.querySelectorAll(".log-line").length > %g + 2`, before))
	p.sees("that newer ones stand above", `(() => { const n = [...document.querySelectorAll(".log-body")].map((b) => Number(/items\/(\d+)/.exec(b.textContent)?.[1] ?? 0)).filter(Boolean); return n.length > 3 && n.every((x, i) => i === 0 || x === n[i-1] - 1); })()`)
	p.pausesAndReads()

	p.does("search", chromedp.SetValue("#filter", `slow OR nothing`), chromedp.Submit("#filter"))
	p.sees("nothing found", `document.querySelector("[data-empty]")?.textContent.includes("Nothing found")`)
	p.pictures("logs-none")
	p.does("search again", chromedp.SetValue("#filter", `"slow query" sel*`), chromedp.Submit("#filter"))
	p.sees("one line, with its message first", `document.querySelectorAll(".log-line").length === 1 && document.querySelector(".log-text").textContent.trim() === "slow query"`)
	p.does("show its fields", chromedp.Click(".log-fields-fold summary"))
	p.sees("the fields", `document.querySelector(".log-fields-fold dl").textContent.includes("customer = 42")`)
	p.pictures("logs-json")

	p.hostileLines(dashboard)
	p.lineInContext(dashboard)
	p.deletesAndKeepsTheLog(dashboard)
	s.until("it is deleted", func() bool { status, _ := s.raw("GET", "/sandboxes/lab", nil); return status == http.StatusGone })
	p.dropsTheLog(dashboard)
}

func (p *person) seesARow(text string) {
	p.t.Helper()
	p.sees("a row with "+text, rowWith(text)+" !== undefined")
}

// pausesAndReads pauses the tail, and scrolls, which pauses too.
func (p *person) pausesAndReads() {
	p.t.Helper()
	p.does("pause", chromedp.Click("[data-pause]"))
	p.sees("that lines wait", `/\d+ new line/.test(document.querySelector("[data-new]:not([hidden])")?.textContent)`)
	p.pictures("logs-paused")
	rows := p.reads(`document.querySelectorAll(".log-line").length`)
	p.never("more rows", `String(document.querySelectorAll(".log-line").length) !== "`+rows+`"`, 2*time.Second)
	p.does("show them", chromedp.Click("[data-new]"))
	p.sees("them", `document.querySelectorAll(".log-line").length > `+rows+` && document.querySelector("[data-new]").hidden`)
	p.sees("enough to scroll", `document.documentElement.scrollHeight > innerHeight + 400`)
	p.runs("scroll", `scrollTo(0, 350)`)
	p.sees("that lines wait while one reads", `document.querySelector("[data-new]:not([hidden])") !== null`)
	p.runs("scroll back", `scrollTo(0, 0)`)
	p.sees("that they come", `document.querySelector("[data-new]").hidden`)
	p.pictures("logs")
	p.does("switch it off", chromedp.Click("[data-live]"))
	p.sees("it off", `document.querySelector("[data-live]").getAttribute("aria-checked") === "false"`)
}

// hostileLines looks at lines that want to be more than text.
func (p *person) hostileLines(dashboard string) {
	p.t.Helper()
	p.does("show those of the start", chromedp.Navigate(dashboard+"/logs?sandbox=lab&q="+url.QueryEscape("*")+"&until="+url.QueryEscape("2000-01-01T00:00")))
	p.sees("nothing found", `document.querySelector("[data-empty]") !== null`)
	if got := p.reads(`document.querySelector("#log-since").checkVisibility() && document.querySelector("#log-until").value !== ""`); got != "true" {
		p.t.Errorf("the form forgets the time: %s", got)
	}
	p.does("show those that are no requests", chromedp.Navigate(dashboard+"/logs?sandbox=lab&service=web"))
	p.seesARow("not bold")
	for what, script := range map[string]string{
		"the title stays":         `!document.title.includes("owned")`,
		"no element is made":      `document.querySelector(".log-lines b, .log-lines script") === null`,
		"escapes are signs":       rowWith("not bold") + `.textContent.includes("‹ESC›[2J")`,
		"direction marks are too": rowWith("photo_") + `.textContent.includes("‹U+202E›gpj.exe")`,
		"colours are kept":        rowWith("ready") + `.querySelector(".fg-green")?.textContent === "ready"`,
		"the level has a word":    rowWith("upstream") + `.querySelector(".log-level").textContent === "error"`,
		"times are local":         `/^\d\d:\d\d:\d\d\.\d{3}$/.test(document.querySelector(".log-time time").textContent)`,
	} {
		if p.reads(script) != "true" {
			p.t.Errorf("not so: %s", what)
		}
	}
	p.pictures("logs-kinds")
	p.does("show all of the long one", chromedp.Click(".log-all"))
	p.sees("its end", `document.querySelector(".log-lines").textContent.includes("end-of-it")`)
}

// lineInContext follows the permanent link of a line.
func (p *person) lineInContext(dashboard string) {
	p.t.Helper()
	p.does("show one line", chromedp.Navigate(dashboard+"/logs?q=items%2F25"))
	for p.reads(`document.querySelector(".log-time") !== null`) != "true" { // it is not written yet
		p.does("reload", chromedp.Reload())
	}
	p.does("open it", chromedp.Click(".log-time"))
	p.sees("it among those around", `location.pathname.startsWith("/logs/lines/") && document.querySelectorAll(".log-line").length > 15 && document.querySelector(".log-line[aria-current]").textContent.includes("items/25 ")`)
	if p.reads(`(() => { const b = document.querySelector(".log-line[aria-current]").getBoundingClientRect(); return b.top > 0 && b.bottom < innerHeight; })()`) != "true" {
		p.t.Error("the line is out of sight")
	}
	p.pictures("logs-line")
	p.does("open one that is gone", chromedp.Navigate(dashboard+"/logs/lines/abc"))
	p.sees("that it is gone", `document.body.innerText.includes("There is no such log line")`)
	p.pictures("logs-gone")
	p.does("make a mistake", chromedp.Navigate(dashboard+"/logs?sandbox=none&since=2026-01-02T00:00&until=2026-01-01T00:00"))
	p.sees("what is wrong", `document.querySelector(".fault") !== null`)
	p.pictures("logs-fault")
}

// deletesAndKeepsTheLog deletes a sandbox and keeps its log.
func (p *person) deletesAndKeepsTheLog(dashboard string) {
	p.t.Helper()
	p.does("ask for the delete", chromedp.Navigate(dashboard+"/sandboxes/lab/delete"))
	p.does("keep the log", chromedp.Click(`[name="keep_log"]`), chromedp.SendKeys("#delete-name", "lab"))
	p.pictures("logs-keep")
	p.does("delete", chromedp.Submit("#delete-name"))
	p.sees("the list without it", at("/")+` && !document.body.innerText.includes("lab")`)
}

// dropsTheLog finds the log of the deleted sandbox until it is deleted too.
func (p *person) dropsTheLog(dashboard string) {
	p.t.Helper()
	p.does("look for its log", chromedp.Navigate(dashboard+"/logs?service=web"))
	p.seesARow("not bold")
	p.does("show it alone", chromedp.Click(".log-box"))
	p.sees("that it was deleted", `document.querySelector(".notice")?.innerText.includes("lab was deleted")`)
	p.pictures("logs-kept")
	p.does("delete the log", chromedp.Click(".notice summary"), chromedp.Click(".notice .danger"))
	p.sees("nothing any more", `document.querySelector("[data-empty]")?.innerText.includes("No lines yet")`)
}
