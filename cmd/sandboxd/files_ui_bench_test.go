//go:build bench

package main

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// benchFolders is how often the large folder is opened in the page.
const benchFolders = 12

// TestFilesPageBench measures the case of the page alone, and writes nothing.
func TestFilesPageBench(t *testing.T) { (&benches{t: t}).filesPage() }

// filesPage measures how long a folder of ten thousand entries takes from the key that opens it until its rows are drawn and
// take the next key, in a real browser.
func (b *benches) filesPage() {
	p := openFiles(b.t, fmt.Sprintf("mkdir many && cd many && seq -f 'file-%%05g.txt' %d | xargs touch", benchListed), "--freeze-after", "never")
	var times []time.Duration
	for round := range benchFolders + 1 {
		p.does("load the page anew", chromedp.Reload())
		p.sees("the tree", has(row("many"))+` && document.querySelector(".tabs-end")?.innerText.includes("Connected")`, 30*time.Second)
		p.script("let it come to rest", `window.atRest = false; requestIdleCallback(() => setTimeout(() => requestIdleCallback(() => (window.atRest = true)), 300))`)
		p.sees("the page at rest", "window.atRest", 30*time.Second)
		p.script("open it by the keyboard", `const tree = document.querySelector("sandbox-files [role=tree]");
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
		p.sees("its rows", "window.usable > 0", 20*time.Second)
		ms, err := strconv.ParseFloat(p.reads("window.usable"), 64)
		if err != nil {
			b.t.Fatal(err)
		}
		if round > 0 {
			times = append(times, time.Duration(ms*float64(time.Millisecond)))
		}
		p.script("close it for the next time", `const f = document.querySelector("sandbox-files"); f.toggle(f.tree.find("/home/agent/many"), false)`)
	}
	b.add(fmt.Sprintf("open a folder of %d entries in the page", benchListed), "usable ≤ 300 ms", times, nil)
}
