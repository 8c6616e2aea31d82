//go:build bench

package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const (
	benchReloads = 20
	benchClicks  = 12
)

// paints is a script for every page: it notes when, by the clock, the terminal's first screen was painted.
const paints = `{
	const look = () => {
		const shown = document.querySelector("sandbox-terminals")?.text?.().some((line) => line.includes("$"));
		if (!shown) return requestAnimationFrame(look);
		requestAnimationFrame(() => requestAnimationFrame(() => (window.painted = performance.timeOrigin + performance.now())));
	};
	addEventListener("DOMContentLoaded", look);
}`

// TestWorkspacePageBench measures the cases of the workspace's page alone, and writes nothing.
func TestWorkspacePageBench(t *testing.T) { (&benches{t: t}).workspacePage() }

// workspacePage measures, in a real browser, from a reload to the terminal's screen, and from the click on a template's card to
// the new sandbox's prompt, beside the same over the API.
func (b *benches) workspacePage() {
	p := openFiles(b.t, "true", "--freeze-after", "never")
	p.does("note paints", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: paints})
		return chromedp.Void{}, err
	})
	var reloads, clicks, creates []time.Duration
	for round := range benchReloads + 1 {
		p.does("load it anew", chromedp.Reload())
		if took := p.painted("performance.timeOrigin"); round > 0 {
			reloads = append(reloads, took)
		}
	}
	b.add("workspace, reload to the terminal's screen", "p50 ≤ 400 ms", reloads, nil)
	for round := range benchClicks + 1 {
		name := fmt.Sprintf("api%d", round)
		began := time.Now()
		if err := p.s.ask("POST", "/sandboxes?wait=ready", map[string]any{"template": benchImage, "name": name}); err != nil {
			b.t.Fatal(err)
		}
		created := time.Since(began)
		p.does("open the list", chromedp.Navigate(p.dashboard()+"/templates"))
		p.sees("it", current)
		const card = `button[name="template"][value="` + benchImage + `"]`
		p.runs("click on the card", `sessionStorage.clicked = performance.timeOrigin + performance.now(); document.querySelector('`+card+`').click()`)
		clicked := p.painted("sessionStorage.clicked")
		if round > 0 {
			creates, clicks = append(creates, created), append(clicks, clicked)
		}
		for _, made := range []string{name, p.reads(`location.pathname.split("/").at(-1)`)} {
			if err := p.s.ask("DELETE", "/sandboxes/"+made+"?wait=gone", nil); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.add("click on a card to the prompt", "p50 ≤ 900 ms, ≤ 1.3 × the API's create to ready", clicks, creates)
}

// painted waits for the screen of the terminal, and gives how long after a moment of the page's clock it was painted.
func (p *filesPage) painted(since string) time.Duration {
	p.t.Helper()
	p.sees("the terminal's screen", "window.painted > 0")
	ms, err := strconv.ParseFloat(p.reads("window.painted - "+since), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(ms * float64(time.Millisecond))
}
