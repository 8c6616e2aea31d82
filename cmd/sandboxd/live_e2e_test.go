//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var (
	liveOpened = regexp.MustCompile(`msg="live connection opened"`)
	liveEnded  = regexp.MustCompile(`(?m)msg=request .*path=/live status=101`)
)

// live counts the live connections that the server has.
func (s *server) live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log.String()
	return len(liveOpened.FindAllString(log, -1)) - len(liveEnded.FindAllString(log, -1))
}

func (s *server) hasLive(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("there are %d live connections", n), func() bool { return s.live() == n })
}

func TestLive_FortyNavigationsInOneTab(t *testing.T) {
	p := openLive(t)
	var took []time.Duration
	for i := range 40 {
		took = append(took, p.follows(livePages[i%len(livePages)]))
		if n := p.s.live(); n > 2 { // the page's, and the one before may be about to end
			t.Errorf("%d live connections after %d navigations", n, i+1)
		}
	}
	t.Log(summary(took))
	p.follows("/")
	p.s.hasLive(1)
	p.does("leave", chromedp.Navigate("about:blank"))
	p.s.hasLive(0)
}

// keeping starts a proxy that removes no-store from the dashboard's pages, and gives its address. Chromium does not keep a
// no-store page that had a WebSocket; other browsers may.
func (p *filesPage) keeping() string {
	p.t.Helper()
	dashboard, err := url.Parse(p.dashboard())
	if err != nil {
		p.t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(dashboard) // Host too
			if r.In.Header.Get("Origin") != "" {
				r.Out.Header.Set("Origin", p.dashboard())
			}
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Cache-Control")
			return nil
		},
	})
	p.t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

func TestLive_BackAndForwardTwentyTimes(t *testing.T) {
	p := openLive(t)
	p.backAndForward()
	p.s.hasLive(1)
}

func TestLive_PagesThatTheBrowserKeptAreBroughtUpToDate(t *testing.T) {
	p := openLive(t)
	p.does("open what the browser may keep", chromedp.Navigate(p.keeping()+"/"))
	if kept := p.backAndForward(); kept < 15 {
		t.Errorf("only %d of 20 pages came from the browser's cache, so this shows little: %s", kept, p.reads(`JSON.stringify(performance.getEntriesByType("navigation")[0].notRestoredReasons)`))
	}
	p.s.hasLive(1)
}

// backAndForward goes back and forth between three pages twenty times, while the sandbox changes, and gives how many of them
// the browser had kept.
func (p *filesPage) backAndForward() (kept int) {
	p.t.Helper()
	path := []string{"/", "/sandboxes/otter/services", "/templates"}
	for _, page := range path {
		p.follows(page)
	}
	var took []time.Duration
	at := len(path) - 1
	for i := range 20 {
		step := "back"
		if at == 0 || at == 1 && i%4 > 1 {
			step = "forward"
		}
		at += map[string]int{"back": -1, "forward": 1}[step]
		label := fmt.Sprintf("Otter %d", i)
		p.s.call("PATCH", "/sandboxes/otter", map[string]any{"label": label}, nil)
		took = append(took, p.goes(path[at], "history."+step+"()"))
		if p.reads("window.kept") == "true" {
			kept++
		}
		if at == 0 {
			p.seesWithin("what changed meanwhile", fmt.Sprintf(`document.querySelector("[data-name='otter']").innerText.includes(%q)`, label), navigationLimit)
		}
	}
	p.t.Logf("%s; %d from the browser's cache", summary(took), kept)
	return kept
}

func TestLive_TenWorkspacesWithADownloadAndAnUpload(t *testing.T) {
	p := openLive(t)
	tabs := []*filesPage{p}
	for range 9 {
		tab := &filesPage{person: p.window(), s: p.s, name: p.name}
		tab.loads()
		tabs = append(tabs, tab)
	}
	tabs[0].runs("begin a download that takes its time", `fetch("/sandboxes/otter/files?path=big").then((answer) => { window.download = answer; })`)
	tabs[0].sees("that it has begun", `window.download?.ok`)
	tabs[1].runs("begin an upload", `fetch("/sandboxes/otter/files?path=up", { method: "PUT", body: new Blob([new Uint8Array(64 << 20)]) }).then((answer) => { window.upload = answer.status; })`)
	p.s.call("PATCH", "/sandboxes/otter", map[string]any{"label": "Busy otter"}, nil)
	for _, tab := range tabs {
		tab.seesWithin("the change", `document.getElementById("ws-name").innerText.includes("Busy otter")`, navigationLimit)
	}
	var took []time.Duration
	for _, tab := range tabs[2:] {
		took = append(took, tab.follows("/"))
	}
	t.Log(summary(took))
	tabs[1].sees("that the upload has arrived", `window.upload === 201`)
	tabs[0].runs("take the rest of the download", `window.download.arrayBuffer().then((b) => { window.took = b.byteLength; })`)
	tabs[0].sees("that the download is whole", `window.took === 64 << 20`)
	p.s.hasLive(10)
}

func TestLive_SaysWhenNoOneOrAnotherUserIsSignedIn(t *testing.T) {
	p := openLive(t)
	p.follows("/")
	p.runs("make a second user", `fetch("/settings/users", { method: "POST", body: new URLSearchParams({ name: "bea", password: "`+journeyPassword+`", role: "member" }) }).then((a) => { window.made = a.ok; })`)
	p.sees("that there is one", "window.made")
	other := &filesPage{person: p.window(), s: p.s, name: p.name}
	other.does("open the list", chromedp.Navigate(p.dashboard()+"/"))
	shows := func(note string) string { return fmt.Sprintf(`document.getElementById(%q).checkVisibility()`, note) }
	other.runs("sign out", `void fetch("/logout", {method: "POST"})`)
	p.sees("that it is signed out", shows("signed-out"))
	p.pictures("signed-out")
	other.signsIn(p.dashboard())
	p.sees("that it is signed in again", "!"+shows("signed-out")+" && "+current)
	other.runs("sign in as the other", `fetch("/login", { method: "POST", body: new URLSearchParams({ name: "bea", password: "`+journeyPassword+`" }) }).then((a) => { window.other = a.ok; })`)
	other.sees("that it is", "window.other")
	p.runs("leave the page and come back", `dispatchEvent(new PageTransitionEvent("pagehide")); dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))`)
	p.sees("that it is for another account", shows("other-account"))
	p.pictures("other-account")
}

// TestLive_AnEndlessLogLeavesItsPageUsable, as a hostile sandbox may write one.
func TestLive_AnEndlessLogLeavesItsPageUsable(t *testing.T) {
	p := openLive(t)
	if status, body := p.s.raw("PUT", "/sandboxes/otter/services/flood", map[string]any{"command": "yes a line that is written again and again"}); status >= 300 {
		t.Fatalf("service: %d %s", status, body)
	}
	const flood = "/logs?sandbox=otter&service=flood"
	p.follows(flood)
	p.sees("that it is followed", isFollowed)
	p.sees("a part of it, which is not all", `((n) => n > 500 && n <= 1000)(document.querySelectorAll("li.log-line").length)`)
	began := time.Now()
	for range 20 {
		p.reads("document.body.offsetHeight")
	}
	t.Logf("20 looks beside it took %s", time.Since(began))
	t.Log(summary([]time.Duration{p.follows("/"), p.follows(flood), p.follows("/templates")}))
	p.s.hasLive(1)
}
