//go:build e2e || bench

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/chromedp/chromedp"
)

// axeScript gives axe-core, which knows what keeps people with disabilities out of a page.
var axeScript = sync.OnceValues(func() (string, error) {
	script, err := os.ReadFile("../../static/node_modules/axe-core/axe.min.js")
	return string(script), err
})

// axeRun gives the serious and critical violations as lines, one for each element. A whole look at every page in every size and
// theme takes minutes, so those after the first look for contrast alone: that is what a theme changes. The content of a terminal and of a frame is
// not ours.
const axeRun = `(async () => {
	const rules = %q;
	const found = await axe.run({ exclude: [["iframe"], [".xterm"]] }, { iframes: false, resultTypes: ["violations"], ...(rules ? { runOnly: { type: "rule", values: [rules] } } : {}) });
	return JSON.stringify(found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).flatMap((v) =>
		v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200) + " (" + n.target.join(" ") + "; " + (n.any[0]?.message ?? v.help).slice(0, 200) + ")")));
})()`

// accessible has axe-core look at the page.
func (p *person) accessible(name string, whole bool) {
	p.t.Helper()
	axe, err := axeScript()
	if err != nil {
		p.t.Fatal(err)
	}
	rules := "color-contrast"
	if whole {
		rules = ""
	}
	if p.reads(`document.querySelector(".monaco-workbench") !== null`) == "true" { // VS Code is not ours
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	if p.reads("typeof axe") == "undefined" {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[any]("void (() => {"+axe+"})()")); err != nil {
			p.t.Errorf("%s: axe-core: %v", name, err)
			return
		}
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(axeRun, rules), chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Errorf("%s: axe-core: %v", name, err)
		return
	}
	var found []string
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.t.Errorf("%s: axe-core: %v", name, err)
	}
	for _, v := range found {
		p.t.Errorf("%s: %s", name, v)
	}
}

// pictures keeps a page at both sizes in both themes, each after a look at who could not use it.
func (p *person) pictures(name string) {
	p.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for size := range sizes {
			p.resize(size, theme)
			p.settles()
			p.accessible(name+"-"+theme+"-"+size, theme == "light")
			p.picture(name+"-"+theme, size)
		}
	}
	p.resize("desktop", "light")
}
