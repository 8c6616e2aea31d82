//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var approve = flag.Bool("approve", false, "keep the screenshots as the approved ones: look at each before they are committed")

const (
	approvedShots  = "testdata/shots"
	approvedBy     = approvedShots + "/browser.txt" // the version of the browser that took them
	shotScale      = 1.0 / 3                        // of what a screen shows, so that hundreds can be kept
	tileTolerance  = 36                             // pixels that may differ in a tile of 24 × 24: fewer than the smallest button has
	otherTolerance = 0.05                           // of all pixels: another version of the browser may draw each letter in another way
)

var shotSizes = []struct {
	name string
	size [2]int64
}{{"desktop", [2]int64{1280, 800}}, {"tablet", [2]int64{1024, 768}}, {"narrow", [2]int64{900, 700}}, {"phone", [2]int64{390, 844}}}

// shotPages are the pages with their addresses, and what a script sees of each once it is whole.
var shotPages = []struct{ name, path, whole string }{
	{"sandboxes", "/", metered},
	{"new", "/new", ""},
	{"workspace", "/sandboxes/lab", `document.querySelector(".tree-row") !== null && ` + prompted},
	{"workspace-stopped", "/sandboxes/quiet-owl", `document.querySelector("#ws-still .button") !== null`},
	{"rest", "/sandboxes/lab/rest", ""},
	{"size", "/sandboxes/lab/size", ""},
	{"rename", "/sandboxes/lab/rename", ""},
	{"delete", "/sandboxes/lab/delete", ""},
	{"vscode", "/sandboxes/lab/vscode", ""},
	{"services", "/sandboxes/lab/services", ""},
	{"service-new", "/sandboxes/lab/services/new", ""},
	{"share", "/sandboxes/lab/share", ""},
	{"port", "/sandboxes/lab/ports/3000", ""},
	{"metrics", "/sandboxes/lab/metrics", `document.querySelector("canvas") !== null`},
	{"sandbox-activity", "/sandboxes/lab/activity", ""},
	{"sandbox-backups", "/sandboxes/lab/backups", ""},
	{"snapshots", "/sandboxes/lab/snapshots", ""},
	{"snapshot-new", "/sandboxes/lab/snapshots/new", ""},
	{"clone", "/sandboxes/lab/clone", ""},
	{"sandbox-volumes", "/sandboxes/lab/volumes", ""},
	{"update", "/sandboxes/lab/update", ""},
	{"templates", "/templates", ""},
	{"template", "/templates/base", ""},
	{"template-new", "/templates/new", ""},
	{"template-git", "/templates/new/git", ""},
	{"logs", "/logs", ""},
	{"activity", "/activity", ""},
	{"alerts", "/alerts", ""},
	{"alert-settings", "/settings/alerts", ""},
	{"backups", "/backups", ""},
	{"schedules", "/schedules", ""},
	{"volumes", "/volumes", ""},
	{"volume-new", "/volumes/new", ""},
	{"host", "/host", ""},
	{"settings", "/settings", ""},
	{"tokens", "/settings/tokens", ""},
	{"users", "/settings/users", ""},
	{"repositories", "/settings/repositories", ""},
	{"repository-new", "/settings/repositories/new", ""},
	{"models", "/settings/models", ""},
	{"provider-new", "/settings/models/providers/new?kind=anthropic", ""},
	{"provider-server-new", "/settings/models/providers/new?kind=compatible", ""},
	{"alias-new", "/settings/models/aliases/new", ""},
	{"budget-new", "/settings/models/budgets/new", ""},
	{"not-found", "/sandboxes/none", ""},
}

// metered is a script that sees three sandboxes, of which two run and have figures.
const metered = `document.querySelectorAll("[data-name]").length === 3 && document.querySelectorAll(".row .meters:not(:empty)").length === 2`

const prompted = `(document.querySelector("sandbox-terminals")?.text() ?? []).some((l) => l.includes("$"))`

// alike makes a page look the same in each run: figures are 0, times are one, and hidden is what is drawn by
// a program, and which images this engine happens to have.
const alike = `(() => {
	if (!window.alikeSheet) {
		window.alikeSheet = new CSSStyleSheet();
		alikeSheet.replaceSync("canvas, .xterm, .meters, .use-bar, .plot-values, .item-title .mono, .item-title code, .resource, .book-foot, meter, progress, .toast, .offers { visibility: hidden !important } .pick-image, .image, .count-badge { display: none !important } * { caret-color: transparent !important }");
		document.adoptedStyleSheets = [...document.adoptedStyleSheets, alikeSheet];
	}
	for (const t of document.querySelectorAll("time")) t.textContent = "1 minute ago";
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const text = walk.currentNode.data.replace(/\d+([.,:]\d+)*/g, "0");
		if (text !== walk.currentNode.data) walk.currentNode.data = text;
	}
})()`

// TestShots_LookAsApproved compares every page, at four sizes, light and dark, with pictures that a person has looked at and
// approved. Figures, times and programs' own output do not count. "make shots" renews them.
func TestShots_LookAsApproved(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	for _, name := range []string{"lab", "brave-otter", "quiet-owl"} {
		s.create(map[string]any{"name": name, "template": "base"})
	}
	s.call("POST", "/sandboxes/quiet-owl/stop?wait=stopped", nil, nil)
	taken := filepath.Join(artefact(t, ""), "shots")
	if *approve {
		taken = approvedShots
	}
	if err := os.RemoveAll(taken); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.does("open the sign-in page", chromedp.Navigate(dashboard+"/login"))
	p.shots(taken, "login")
	p.signsIn(dashboard)
	for _, page := range shotPages {
		p.does("open "+page.path, chromedp.Navigate(dashboard+page.path))
		p.sees("the page "+page.name, current+` && document.readyState === "complete"`)
		if missing := p.reads(`document.querySelector(".error-page") !== null`) == "true"; missing != (page.name == "not-found") {
			t.Errorf("%s: it is a page of an error: %v", page.path, missing)
		}
		if page.whole != "" {
			p.sees("the whole of "+page.name, page.whole)
		}
		p.shots(taken, page.name)
	}
	p.statesShots(s, dashboard, taken)
	version := p.version()
	if *approve {
		if err := os.WriteFile(approvedBy, []byte(version+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compareShots(t, taken, version)
}

// statesShots keeps what pages show once a person has done something on them, and a page that is not the dashboard's.
func (p *person) statesShots(s *server, dashboard, folder string) {
	p.t.Helper()
	s.file("PUT", "?path=notes.md", "# Notes\n\nWhat this sandbox is for, and *how* to start it:\n\n    npm start\n").is(201)
	s.setsModels()
	for _, state := range []struct{ name, address, act, reached string }{
		{"unknown-address", "http://none.localhost:" + s.port() + "/", "", `document.querySelector(".error-page") !== null`},
		{"sandboxes-selected", dashboard + "/", `document.querySelector("[data-pick-all] input").click()`, metered + ` && document.querySelector("[data-picked]").textContent.includes("selected")`},
		{"sandboxes-new", dashboard + "/", `document.querySelector(".new-button .menu").open = true`, metered + ` && document.querySelector(".new-button .menu .menu-item") !== null`},
		{"palette", dashboard + "/", `document.querySelector(".palette-button").click()`, metered + ` && document.querySelectorAll("#palette [role=option]").length > 3`},
		{"models-filled", dashboard + "/settings/models", "", `document.querySelectorAll("[data-provider]").length === 2`},
		{"workspace-editor", dashboard + "/sandboxes/lab", openNotes, `document.querySelector(".cm-content")?.textContent.includes("npm start") && ` + prompted},
	} {
		p.does("open "+state.address, chromedp.Navigate(state.address))
		p.sees("the page of "+state.name, `document.readyState === "complete"`)
		if state.act != "" {
			p.runs("act for "+state.name, state.act)
		}
		p.sees(state.name, state.reached)
		p.shots(folder, state.name)
	}
}

// setsModels fills the page of models. No provider is asked anything.
func (s *server) setsModels() {
	s.t.Helper()
	s.call("PUT", "/providers/anthropic", map[string]any{"kind": "anthropic", "base_url": "https://api.anthropic.com", "key": "no-key", "models": []string{"large", "small"}}, nil)
	s.call("PUT", "/providers/gpu", map[string]any{"kind": "ollama", "base_url": "http://127.0.0.1:11434"}, nil)
	s.call("PUT", "/models/aliases/fast", map[string]any{"targets": []map[string]string{{"provider": "gpu", "model": "qwen3"}, {"provider": "anthropic", "model": "small"}}}, nil)
	s.call("PUT", "/models/budgets", map[string]any{"scope": "user", "period": "day", "requests": 1000, "dollars": 5}, nil)
}

// openNotes opens a file once the tree shows it.
const openNotes = `(async () => {
	const row = () => [...document.querySelectorAll(".tree-row")].find((r) => r.textContent.includes("notes.md"));
	while (!row()) await new Promise((done) => requestAnimationFrame(done));
	document.dispatchEvent(new CustomEvent("sandboxd:open", { detail: { encoded: "notes.md", pin: true } }));
})()`

// shots keeps a page at every size in both themes.
func (p *person) shots(folder, name string) {
	p.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for _, by := range shotSizes {
			p.resizeTo(by.size, theme)
			p.settles()
			p.reads(alike)
			p.shot(filepath.Join(folder, name+"-"+theme+"-"+by.name+".png"), by.size)
		}
	}
}

func (p *person) shot(path string, size [2]int64) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	picture, err := chromedp.Call(ctx, cdpage.CaptureScreenshot, cdpage.CaptureScreenshotParams{
		Clip: &cdpage.Viewport{Width: float64(size[0]), Height: float64(size[1]), Scale: shotScale},
	})
	if err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	if err := os.WriteFile(path, picture.Data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// version is the browser's.
func (p *person) version() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, eventLimit)
	defer cancel()
	v, err := chromedp.CallBrowser(ctx, browser.GetVersion, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	return v.Product
}

func compareShots(t *testing.T, taken, version string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "node", "../../static/shots/compare.js", approvedShots, taken, filepath.Join(taken, "differences")).Output()
	if err != nil {
		t.Fatalf("compare: %v", err)
	}
	var found struct {
		Compared []struct {
			Name                string
			Differ, Total, Tile int
		}
		Missing []string
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	approver, err := os.ReadFile(approvedBy)
	if err != nil {
		t.Fatal(err)
	}
	same := strings.TrimSpace(string(approver)) == version
	if !same {
		t.Logf("taken by %s, approved by %s: compared roughly", version, approver)
	}
	for _, c := range found.Compared {
		part := float64(c.Differ) / float64(c.Total)
		if same && c.Tile > tileTolerance || part > otherTolerance {
			t.Errorf("%s differs in %.1f %% of its pixels, in one place in %d; see artifacts/shots/%s and artifacts/shots/differences. If it should, look at it, then “make shots”", c.Name, 100*part, c.Tile, c.Name)
		}
	}
	if len(found.Missing) > 0 {
		t.Errorf("approved, but not taken: %s", strings.Join(found.Missing, ", "))
	}
	if len(found.Compared) == 0 {
		t.Error(fmt.Errorf("no pictures in %s", taken))
	}
}
