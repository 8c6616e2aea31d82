//go:build e2e || bench

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// person is a user with a browser of their own. Their dialogs are answered with yes.
type person struct {
	t   *testing.T
	ctx context.Context

	held bool // the mouse's button
}

// The two sizes that every page must be good at.
var sizes = map[string][2]int64{"desktop": {1280, 800}, "phone": {390, 844}}

func newPerson(t *testing.T, flags ...chromedp.ExecAllocatorOption) *person {
	t.Helper()
	flags = append([]chromedp.ExecAllocatorOption{chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true)}, flags...)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(alloc)
	ctx, cancelTime := context.WithTimeout(ctx, 20*time.Minute)
	t.Cleanup(func() { cancelTime(); cancel(); cancelAlloc() })
	p := &person{t: t, ctx: ctx}
	p.opens()
	p.resize("desktop", "light")
	return p
}

// window opens a second window of the same browser.
func (p *person) window() *person {
	ctx, cancel := chromedp.NewContext(p.ctx)
	p.t.Cleanup(cancel)
	other := &person{t: p.t, ctx: ctx}
	other.opens()
	other.resize("desktop", "light")
	return other
}

// opens makes the window, which lives as long as the context that it is made with.
func (p *person) opens() {
	p.t.Helper()
	if err := chromedp.Do(p.ctx); err != nil {
		p.t.Fatal(err)
	}
}

// passing are errors that say nothing of the page: a change of this machine's networks kept it from loading, or it replaced an
// element between the look for it and the click, which has not been sent then.
var passing = []string{"ERR_NETWORK_CHANGED", "Could not find node with given id", "No node with given id"}

// does runs actions, which must all succeed within a minute. After an error that passes all are run again.
func (p *person) does(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	err := chromedp.Do(ctx, actions...)
	passes := func(words string) bool { return strings.Contains(err.Error(), words) }
	for err != nil && slices.ContainsFunc(passing, passes) && ctx.Err() == nil {
		err = chromedp.Do(ctx, actions...)
	}
	if err != nil {
		p.picture("failure", "desktop")
		p.t.Fatalf("%s: %v\nthe page shows: %s", what, err, p.reads("document.title + ' | ' + document.body.innerText"))
	}
}

// reads evaluates a script that gives text.
func (p *person) reads(script string) string {
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+script+")"))
	if err != nil {
		return err.Error()
	}
	return out
}

// runs evaluates a script that gives nothing of interest.
func (p *person) runs(what, script string) {
	p.t.Helper()
	p.does(what, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any]("void (() => {"+script+"})()"))
		return chromedp.Void{}, err
	})
}

// interrupted is a script that tells that the browser has given up loading, because a network of this machine has come or
// gone: the engine makes and removes them all the time. A person reloads then.
const interrupted = `location.protocol === "chrome-error:" && document.body.innerText.includes("ERR_NETWORK_CHANGED")`

// blank is a script that tells that a page has begun and has nothing yet. When a network comes or goes just then, the browser
// neither loads the rest nor says that it has given up.
const blank = `document.body === null`

// blankLimit is how long a page may be blank before a person reloads it.
const blankLimit = 5 * time.Second

// partLate is a script that tells that the page says that it has not arrived as a whole: the same happens to its scripts.
const partLate = `(document.getElementById("late")?.checkVisibility({visibilityProperty: true}) ?? false)`

// sees waits until a script gives true, as an event on the page makes it.
func (p *person) sees(what, script string) {
	p.t.Helper()
	p.seesWithin(what, script, eventLimit)
}

// reloads reloads the page. That it fails is no error here: the browser may reload it by itself at the same moment, and what it
// shows is looked at again.
func (p *person) reloads() {
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		p.t.Logf("reload: %v", err)
	}
}

func (p *person) seesWithin(what, script string, limit time.Duration) {
	p.t.Helper()
	deadline, painted := time.Now().Add(limit), time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for p.reads("location.protocol !== 'chrome-error:' && ("+script+")") != "true" {
		if p.reads(blank) != "true" {
			painted = time.Now()
		}
		if time.Since(painted) > blankLimit || p.reads(interrupted+" || "+partLate) == "true" {
			p.reloads()
			painted = time.Now()
		}
		if time.Now().After(deadline) {
			p.picture("failure", "desktop")
			p.t.Fatalf("within %s nobody saw that %s; the page at %s shows: %s\nterminal: %s", limit, what, p.reads("location.href"), p.reads("document.body.innerText"), p.reads(screenText))
		}
		<-tick.C
	}
}

const screenText = `(document.querySelector("sandbox-terminals")?.text() ?? []).join("\n")`

// showsLine is a script that tells whether the terminal shows a line.
func showsLine(line string) string {
	return fmt.Sprintf(`(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.trimEnd() === %q)`, line)
}

// types sends keys to whatever has the focus.
func (p *person) types(text string) {
	p.t.Helper()
	p.does("type "+text, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	})
	p.does("press Enter", chromedp.KeyEvent("\r"))
}

func (p *person) resize(size, theme string) {
	p.t.Helper()
	p.resizeTo(sizes[size], theme)
}

func (p *person) resizeTo(size [2]int64, theme string) {
	p.t.Helper()
	look := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	p.does("resize", chromedp.EmulateViewport(size[0], size[1]), func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, look)
		return chromedp.Void{}, err
	})
}

// settled is a script that waits for what moves to stand still, for half a second at most, and for it to be painted.
const settled = `Promise.race([
	Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {}))),
	new Promise((soon) => setTimeout(soon, 500)),
]).then(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(() => painted(true)))))`

func (p *person) settles() {
	p.t.Helper()
	p.does("let it settle", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](settled, chromedp.EvalAwaitPromise))
		return chromedp.Void{}, err
	})
}

// picture keeps a screenshot as the window is.
func (p *person) picture(name, size string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("picture %s: %v", name, err)
		return
	}
	if err := os.WriteFile(artefact(p.t, name+"-"+size+".png"), png, 0o644); err != nil {
		p.t.Error(err)
	}
}

func at(path string) string { return fmt.Sprintf("location.pathname === %q", path) }

// TestBrowser_FromFirstRunToDelete is the main job as a person does it, in a real browser on a real engine.
func TestBrowser_FromFirstRunToDelete(t *testing.T) {
	s := newUnclaimedServer(t)
	p := newPerson(t)
	p.does("open the printed link", chromedp.Navigate(s.setup))
	p.pictures("setup")
	p.does("make the admin", chromedp.SetValue(`[name="name"]`, "ann"), chromedp.SendKeys(`[name="password"]`, journeyPassword))
	p.does("submit", chromedp.Submit(`[name="password"]`))
	p.sees("the sandboxes page, empty, with the templates", at("/")+` && document.querySelector('button[value="base"]') !== null`)
	p.pictures("sandboxes-empty")
	p.signsOutAndIn()

	p.does("one click on a template", chromedp.Click(`button[value="base"]`))
	p.sees("the workspace", `location.pathname.startsWith("/sandboxes/")`)
	p.picture("creating", "desktop")
	p.seesWithin("a terminal with a prompt", `(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.includes("$"))`, buildLimit)
	name := strings.TrimPrefix(p.reads("location.pathname"), "/sandboxes/")
	p.types("echo $((6*7))")
	p.sees("42", showsLine("42"))
	p.pictures("workspace")
	p.does("reload", chromedp.Reload())
	p.sees("42 after the reload", showsLine("42"))
	second := p.window()
	second.does("open a second window", chromedp.Navigate(p.reads("location.href")))
	second.sees("the same in a second window", showsLine("42"))
	second.types("echo from-the-second")
	p.sees("what the second window types", showsLine("from-the-second"))

	p.visitsHosts(s, name)
	p.stopsStartsDeletes(s, name)
}

// signsIn signs in as the admin whose password the server was started with.
func (p *person) signsIn(dashboard string) {
	p.t.Helper()
	p.opensAs(dashboard, "admin", journeyPassword)
}

// opensAs signs in, and waits for the dashboard.
func (p *person) opensAs(dashboard, name, password string) {
	p.t.Helper()
	p.does("open the login page", chromedp.Navigate(dashboard+"/login"))
	p.signsInAt(name, password)
	p.sees("the dashboard", at("/")+` && document.querySelector('form[action="/logout"]') !== null`)
}

// signsInAt sends the form of the login page until it has arrived: a network of this machine that comes or goes can take it
// away, and what a browser reloads then is the page, not the form.
func (p *person) signsInAt(name, password string) {
	p.t.Helper()
	const past = `location.protocol.startsWith("http") && location.pathname !== "/login"`
	const anew = `document.readyState === "complete" && window.sent === undefined && document.querySelector("[role=alert]") === null`
	for p.reads(past) != "true" {
		p.does("fill in the form", chromedp.SetValue(`[name="name"]`, name), chromedp.SendKeys(`[name="password"]`, password))
		p.runs("mark the page", `window.sent = true`)
		p.does("sign in", chromedp.Submit(`[name="password"]`))
		p.sees("the next page, or the form again", past+" || "+anew)
	}
}

func (p *person) signsOutAndIn() {
	p.t.Helper()
	p.runs("sign out", `fetch("/logout", {method: "POST"}).then(() => location.assign("/"))`)
	p.sees("the login page", at("/login"))
	p.pictures("login")
	p.does("a wrong password", chromedp.SetValue(`[name="name"]`, "ann"), chromedp.SendKeys(`[name="password"]`, "not this one at all"), chromedp.Submit(`[name="password"]`))
	p.sees("why not", `document.querySelector("[role=alert]") !== null`)
	p.signsInAt("ann", journeyPassword)
	p.sees("the sandboxes page", at("/"))
}

// visitsHosts opens the sandbox's own hosts: ttyd's page, and a port on which nothing listens at first.
func (p *person) visitsHosts(s *server, name string) {
	p.t.Helper()
	_, port, _ := strings.Cut(s.addr, ":")
	w := p.window()
	w.does("open the terminal's own host", chromedp.Navigate("http://"+name+".localhost:"+port+"/"))
	w.sees("ttyd's page on the sandbox's origin", `location.host.startsWith("`+name+`.") && document.querySelector(".xterm") !== null`)
	w.picture("terminal-host", "desktop")
	w.does("open a port", chromedp.Navigate("http://8000-"+name+".localhost:"+port+"/hello.txt"))
	w.sees("that nothing listens", `document.body.innerText.includes("8000")`)
	w.pictures("port-nothing")
	s.exec(name, map[string]any{"command": "cd /tmp; echo hi there > hello.txt; nohup python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 0.2"})
	w.sees("the page by itself once something listens, on the loopback", `document.body.innerText.includes("hi there")`)
	other := newPerson(p.t)
	other.does("a stranger opens the same", chromedp.Navigate("http://8000-"+name+".localhost:"+port+"/hello.txt"))
	other.sees("the login", at("/login"))
	other.signsInAt("ann", journeyPassword)
	other.sees("and is led on to the sandbox", `document.body.innerText.includes("hi there")`)
}

func (p *person) stopsStartsDeletes(s *server, name string) {
	p.t.Helper()
	post := func(what string) string { return `form[action^="/sandboxes/` + name + `/` + what + `?"] button` }
	p.does("open the menu", chromedp.Click(`details:has(form[action*="/stop?"]) > summary`))
	p.does("stop", chromedp.Click(post("stop")))
	p.sees("that it is stopped, how to start it, and no offer of a port", `document.querySelector('#ws-still form[action*="/start?"]') !== null && /stopped/i.test(document.body.innerText) && !document.getElementById("offers")?.checkVisibility()`)
	p.pictures("stopped")
	p.does("start", chromedp.Click("#ws-still "+post("start")))
	p.sees("the terminal again", `(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.includes("$"))`)
	p.does("the list", chromedp.Navigate("http://localhost:"+strings.Split(s.addr, ":")[1]+"/"))
	p.sees("it in the list, running", `/running/i.test(document.querySelector("[data-name='`+name+`']").innerText)`)
	p.pictures("sandboxes")
	for _, path := range []string{"/new", "/templates", "/settings"} {
		p.does("open "+path, chromedp.Navigate("http://localhost:"+strings.Split(s.addr, ":")[1]+path))
		p.pictures(strings.TrimPrefix(path, "/"))
	}
	p.does("delete", chromedp.Navigate("http://localhost:"+strings.Split(s.addr, ":")[1]+"/sandboxes/"+name+"/delete"))
	p.pictures("delete")
	p.does("its name", chromedp.SendKeys(`form[action*="/delete?"] input[type="text"]`, name), chromedp.Submit(`form[action*="/delete?"] input[type="text"]`))
	p.sees("the list without it", at("/")+` && document.querySelector("[data-name='`+name+`']") === null`)
}

// throttle is network.EmulateNetworkConditionsByRule, for older browsers too: they want to be told that they are not offline.
var throttle = cdp.Command[throttling, network.EmulateNetworkConditionsByRuleResult]{Method: network.CommandEmulateNetworkConditionsByRule}

type throttling struct {
	network.EmulateNetworkConditionsByRuleParams
	Offline bool `json:"offline"`
}

// slow bounds what the browser sends, in bytes for a second; -1 for as fast as it goes.
func (p *person) slow(rate float64) {
	p.t.Helper()
	var rule throttling
	rule.MatchedNetworkConditions = []*network.Conditions{{DownloadThroughput: -1, UploadThroughput: rate}}
	p.does("bound the network", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
			return chromedp.Void{}, err
		}
		_, err := chromedp.Call(ctx, throttle, rule)
		return chromedp.Void{}, err
	})
}
