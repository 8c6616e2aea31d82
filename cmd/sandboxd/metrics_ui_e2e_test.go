//go:build e2e

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"sandboxd/internal/metrics"
)

// Scripts that look at the page of a sandbox's metrics.
const (
	plotsDrawn = `document.querySelectorAll(".plot canvas").length === 4`
	coresShown = `parseFloat(document.querySelector("[data-plot=cpu] b")?.textContent)`
	announced  = `document.getElementById("announce").textContent`
	zoomedIn   = `/since=.*&until=/.test(location.search) && document.querySelector("[data-reset]") !== null`
)

// metricsPage is a person who looks at what the sandbox lab uses.
type metricsPage struct {
	*person
	s *server
}

func openMetrics(t *testing.T, query string) *metricsPage {
	t.Helper()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim", "cpus": 1, "memory": "256MiB"})
	p := &metricsPage{newPerson(t), s}
	p.does("note what is sent", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `
			window.sent = [];
			const send = WebSocket.prototype.send;
			WebSocket.prototype.send = function (m) { sent.push(m); return send.call(this, m); };`})
		return chromedp.Void{}, err
	})
	p.signsIn("http://localhost:" + s.port())
	p.does("open the metrics", chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab/metrics"+query))
	p.sees("four plots", plotsDrawn)
	return p
}

// at gives a place in the memory plot, by its part from the left.
func (p *metricsPage) at(part float64) (x, y float64) {
	p.t.Helper()
	box := `document.querySelector("[data-plot=memory] .u-over").getBoundingClientRect()`
	return p.number(box+".left") + part*p.number(box+".width"), p.number("(" + box + ".top + " + box + ".bottom) / 2")
}

// end moves the cursor to the newest figures by keyboard, which says them.
func (p *metricsPage) end(says string) {
	p.t.Helper()
	p.runs("focus a plot", `document.querySelector("[data-plot=memory] [data-area]").focus()`)
	p.sees("the newest figures said: "+says, fmt.Sprintf(`(() => {
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true}));
		return %s.includes(%q);
	})()`, announced, says))
}

func TestMetrics_PlotsAreLiveThroughASleep(t *testing.T) {
	p := openMetrics(t, "?range=15m")
	p.sees("little use at first", coresShown+" < 0.2")
	p.s.exec("lab", map[string]any{"command": "nohup timeout 300 sh -c 'while :; do :; done' >/dev/null 2>&1 &"})
	p.sees("a busy core", coresShown+" > 0.2")
	p.s.exec("lab", map[string]any{"command": "pkill -f 'while :' || true"})
	p.sees("its limits", `/limit 1 core/.test(document.querySelector("[data-plot=cpu]").innerText) && /limit 256 MiB/.test(document.querySelector("[data-plot=memory]").innerText)`)
	p.end("Working set")
	p.sees("the sign of its start", `/^Started/.test(document.querySelector(".plot-mark")?.title)`)

	p.s.call("POST", "/sandboxes/lab/sleep?wait=asleep", nil, nil)
	p.sees("that it is asleep", `document.getElementById("metrics-state").innerText.includes("Asleep")`)
	p.end("Asleep, Not measured")
	p.sees("no use shown", `document.querySelector("[data-plot=cpu] b").textContent === "–"`)
	p.pictures("metrics-asleep")
	p.s.call("POST", "/sandboxes/lab/start?wait=ready", nil, nil)
	p.sees("the sign of the wake", `[...document.querySelectorAll(".plot-mark")].some((m) => m.title.includes("Woken by use"))`)
	p.sees("figures again", coresShown+" >= 0")
	p.end("Running, Working set")
	p.does("open the table", chromedp.Click("[data-table] summary"))
	p.sees("the same in the table", `/Woken by use[^]*Asleep[^]*Started/.test(document.getElementById("metrics-table").innerText)`)
	p.pictures("metrics-table")
	p.does("close the table", chromedp.Click("[data-table] summary"))

	p.runs("hide the page", `sent.length = 0; Object.defineProperty(document, "hidden", {value: true, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`)
	p.sees("nothing more being followed", `sent.some((m) => JSON.parse(m).id > 0 && !JSON.parse(m).topic)`)
	p.runs("show it again", `delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`)
	p.sees("it being followed again", `sent.some((m) => JSON.parse(m).topic?.includes("/metrics/points"))`)
}

func TestMetrics_ZoomsHaveAddresses(t *testing.T) {
	p := openMetrics(t, "?range=15m")
	for _, c := range []struct {
		what string
		zoom func()
	}{
		{"drag", func() {
			x, y := p.at(0.3)
			p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0)
			p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, 0)
			x, y = p.at(0.6)
			p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0)
			p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y, 0)
		}},
		{"pinch", p.pinches},
		{"keys", func() {
			p.runs("focus a plot", `document.querySelector("[data-plot=cpu] [data-area]").focus()`)
			p.does("press +", chromedp.KeyEvent("+"))
		}},
	} {
		c.zoom()
		p.sees("the zoom by "+c.what, zoomedIn)
		p.does("reload", chromedp.Reload())
		p.sees("the same after a reload", zoomedIn)
		p.picture("metrics-"+c.what, "desktop")
		p.runs("go back", "history.back()")
		p.sees("the range from before, drawn", `location.search.includes("range=15m") && document.querySelector("[data-range='15m'][aria-current]") !== null && `+plotsDrawn)
	}
	p.runs("focus a plot", `document.querySelector("[data-plot=cpu] [data-area]").focus()`)
	p.does("zoom in twice", chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	p.sees("the zoom", zoomedIn)
	p.runs("double-click", `document.querySelector("[data-plot=cpu] .u-over").dispatchEvent(new MouseEvent("dblclick", {bubbles: true}))`)
	p.sees("the range from before the zoom", `location.search.includes("range=15m") && document.querySelector("[data-range='15m'][aria-current]") !== null && `+plotsDrawn)
	for _, r := range []string{"1h", "6h", "24h", "7d", "30d"} {
		p.does("choose "+r, chromedp.Click(`[data-range="`+r+`"]`))
		p.sees("that range", `location.search.includes("range=`+r+`") && document.querySelector("[data-range='`+r+`'][aria-current]") !== null && `+plotsDrawn)
	}
	p.pictures("metrics-30d")
	if got := p.reads("document.documentElement.scrollWidth <= innerWidth"); got != "true" {
		t.Errorf("the page is wider than its window: %s", got)
	}
}

// TestMetrics_AMonthAndTwoHoursOfItAreDrawn looks at a month that was made in fake time, in which the sandbox sleeps at night.
func TestMetrics_AMonthAndTwoHoursOfItAreDrawn(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	id := engine(t, "ps", "--filter", "label=sandboxd.instance="+s.instance(), "--format", `{{.Label "sandboxd.id"}}`)
	s.stop()
	seedHistory(t, historyPath(&Config{Data: s.data}), metrics.CoarseLife, metrics.MediumStep, id)
	s.start()
	p := newPerson(t)
	p.signsIn("http://localhost:" + s.port())
	wake := time.Now().UTC().Add(-12 * time.Hour).Truncate(24 * time.Hour).Add(morning * time.Hour) // of a morning that is over
	for name, query := range map[string]string{
		"month": "range=30d", "two-hours": "since=" + wake.Add(-time.Hour).Format(time.RFC3339) + "&until=" + wake.Add(time.Hour).Format(time.RFC3339),
	} {
		p.does("open the "+name, chromedp.Navigate("http://localhost:"+s.port()+"/sandboxes/lab/metrics?"+query))
		p.sees("four plots with lines", plotsDrawn+` && [...document.querySelectorAll(".plot canvas")].every((c) => new Set(c.getContext("2d").getImageData(0, 0, c.width, c.height).data).size > 16)`)
		p.does("open the table", chromedp.Click("[data-table] summary"))
		p.sees("a sleep and what was used after it", `/Running[^]*Asleep/.test(document.getElementById("metrics-table").innerText)`)
		p.does("close the table", chromedp.Click("[data-table] summary"))
		for _, theme := range []string{"light", "dark"} {
			for size, by := range map[string][2]int64{"desktop": {1280, 800}, "tablet": {1024, 768}, "narrow": {900, 700}, "phone": {390, 844}} {
				p.resizeTo(by, theme)
				p.settles()
				if got := p.reads("document.documentElement.scrollWidth <= innerWidth"); got != "true" {
					t.Errorf("%s, %s: the page is wider than its window", name, size)
				}
				p.picture("metrics-"+name+"-"+theme, size)
			}
		}
		p.resize("desktop", "light")
	}
}

// pinches moves two fingers apart on a plot.
func (p *metricsPage) pinches() {
	p.t.Helper()
	p.does("have a touch screen", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true, MaxTouchPoints: 5})
		return chromedp.Void{}, err
	})
	touch := func(kind input.DispatchTouchEventType, parts ...float64) {
		e := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}}
		for i, part := range parts {
			x, y := p.at(part)
			e.TouchPoints = append(e.TouchPoints, &input.TouchPoint{X: x, Y: y, ID: new(float64(i + 1))})
		}
		p.does("touch", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, input.DispatchTouchEvent, e)
			return chromedp.Void{}, err
		})
	}
	touch(input.DispatchTouchEventTypeTouchStart, 0.45)
	touch(input.DispatchTouchEventTypeTouchStart, 0.45, 0.55)
	for _, by := range []float64{0.1, 0.2, 0.3} {
		touch(input.DispatchTouchEventTypeTouchMove, 0.45-by, 0.55+by)
	}
	touch(input.DispatchTouchEventTypeTouchEnd)
	if search := p.reads("location.search"); strings.Contains(search, "since=") {
		p.t.Logf("zoomed to %s", search)
	}
}
