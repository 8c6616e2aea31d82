//go:build bench

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// benchFolders is how often the large folder is opened in the page.
const benchFolders = 12

// TestFilesPageBench measures the case of the page alone, and writes nothing.
func TestFilesPageBench(t *testing.T) { (&benches{t: t}).filesPage() }

// TestNavigationsBench measures the case of the pages alone, and writes nothing.
func TestNavigationsBench(t *testing.T) { (&benches{t: t}).navigations() }

// filesPage measures how long a folder of ten thousand entries takes from the key that opens it until its rows are drawn and
// take the next key, in a real browser.
func (b *benches) filesPage() {
	p := openFiles(b.t, fmt.Sprintf("mkdir many && cd many && seq -f 'file-%%05g.txt' %d | xargs touch", benchListed), "--freeze-after", "never")
	b.group(p.s, "firstWorkspace", func() { b.firstWorkspace(p) })
	var times []time.Duration
	for round := range benchFolders + 1 {
		p.does("load the page anew", chromedp.Reload())
		p.sees("the tree", has(row("many"))+` && document.querySelector(".tabs-end")?.innerText.includes("Connected")`)
		p.runs("let it come to rest", `window.atRest = false; requestIdleCallback(() => setTimeout(() => requestIdleCallback(() => (window.atRest = true)), 300))`)
		p.sees("the page at rest", "window.atRest")
		p.runs("open it by the keyboard", `const tree = document.querySelector("sandbox-files [role=tree]");
			const press = (key) => tree.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
			const at = () => document.getElementById(tree.getAttribute("aria-activedescendant"))?.dataset.path ?? "";
			window.usable = 0; tree.focus(); press("m");
			const began = performance.now(); press("Enter");
			const look = () => {
				if (!document.querySelector('.tree-row[data-path$="/many/file-00020.txt"]')) return requestAnimationFrame(look);
				press("ArrowDown");
				if (at().endsWith("/many/file-00001.txt")) window.usable = performance.now() - began;
			};
			requestAnimationFrame(look)`)
		p.sees("its rows", "window.usable > 0")
		ms, err := strconv.ParseFloat(p.reads("window.usable"), 64)
		if err != nil {
			b.t.Fatal(err)
		}
		if round > 0 {
			times = append(times, time.Duration(ms*float64(time.Millisecond)))
		}
		p.runs("close it for the next time", `const f = document.querySelector("sandbox-files"); f.toggle(f.tree.find("/home/agent/many"), false)`)
	}
	b.add(fmt.Sprintf("open a folder of %d entries in the page", benchListed), "usable ≤ 300 ms", times, nil)
}

// navigations measures how long it takes in one tab from a link to the next page, loaded and up to date, over all pages.
func (b *benches) navigations() {
	p := openLive(b.t)
	var took []time.Duration
	for i := range 40 {
		took = append(took, p.follows(livePages[i%len(livePages)]))
	}
	b.each("from page to page, over all pages", navigationGoal, took)
}

// firstWorkspace measures what the page of a sandbox costs a browser that has nothing of ours, as it is sent: the page and all
// that it loads until it stands still, with the files' first answers and without what its live connections bring.
func (b *benches) firstWorkspace(p *filesPage) {
	b.t.Helper()
	fresh := &filesPage{person: newPerson(b.t), s: p.s, name: p.name}
	fresh.does("ask the server itself: of what a service worker passes on the browser does not know the size as sent", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
			return chromedp.Void{}, err
		}
		_, err := chromedp.Call(ctx, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true})
		return chromedp.Void{}, err
	})
	fresh.signsIn(p.dashboard())
	fresh.loads()
	fresh.runs("let it come to rest", `requestIdleCallback(() => setTimeout(() => requestIdleCallback(() => (window.atRest = true)), 300))`)
	fresh.sees("the page at rest", "window.atRest")
	var loaded []struct {
		URL         string
		Sent, Plain float64
	}
	// A size is that of the body as it is sent, be it that this load or the sign-in before it has fetched it.
	got := fresh.reads(`JSON.stringify([...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
		.map((e) => ({ URL: e.name, Sent: e.encodedBodySize, Plain: e.decodedBodySize })))`)
	if err := json.Unmarshal([]byte(got), &loaded); err != nil {
		b.t.Fatalf("%v: %s", err, got)
	}
	sent, plain := 0.0, 0.0
	for _, l := range loaded {
		u, err := url.Parse(l.URL)
		if err != nil || u.Scheme+"://"+u.Host != p.dashboard() {
			b.t.Errorf("the page loads %s", l.URL)
		}
		sent, plain = sent+l.Sent, plain+l.Plain
	}
	if len(loaded) < 5 || plain < 2*sent {
		b.t.Errorf("%d things of %.0f bytes, sent as %.0f: %s", len(loaded), plain, sent, got)
	}
	b.sizeIn("kB", "workspace page, first load, compressed", "≤ 300 kB, all of it from our origin", sent/1000)
}
