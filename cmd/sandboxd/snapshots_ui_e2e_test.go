//go:build e2e

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Scripts about the page.
const (
	firstSnapshot  = `document.querySelector("#snapshot-items .snapshot")`
	snapshotNotice = `document.querySelector("#snapshots-restored").textContent`
)

// installed is a file that no home has: it is in the root file system.
const installed = "/usr/local/share/installed"

// TestSnapshotsPage_TakesRestoresAndClones does what a person does with snapshots, on a real engine.
func TestSnapshotsPage_TakesRestoresAndClones(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo", "label": "Protein folding"})
	s.writes("lab", "first")
	s.in("mkdir many && cd many && seq 2000 | xargs touch && head -c 200M /dev/urandom >large")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.takesASnapshot(dashboard)
	s.writes("lab", "second")
	p.seesWhatHasChanged(s)
	p.restoresASnapshot(s)
	p.undoesIt(s)
	p.clonesIt(s, dashboard)
	p.namesAndDeletesIt(s, dashboard)
	p.deletesThemWithTheSandbox(s, dashboard)
}

// writes writes a text to a file in the home of a sandbox and to one outside.
func (s *server) writes(name, text string) {
	s.t.Helper()
	engine(s.t, "exec", "-u", "0", s.container(name), "sh", "-c", "echo "+text+" >"+installed)
	if out := s.exec(name, map[string]any{"command": "echo " + text + " >notes"}); out.ExitCode != 0 {
		s.t.Fatalf("write notes: %+v", out)
	}
}

// has fails the test unless both files of a sandbox have a text.
func (s *server) has(name, text string) {
	s.t.Helper()
	out := s.exec(name, map[string]any{"command": "cat notes " + installed + "; ls many | wc -l"})
	if want := text + "\n" + text + "\n2001\n"; out.Stdout != want {
		s.t.Errorf("%s has %+v, want %q", name, out, want)
	}
}

// takesASnapshot takes one in the page, which the sandbox's menu leads to.
func (p *person) takesASnapshot(dashboard string) {
	p.t.Helper()
	p.does("open the workspace", chromedp.Navigate(dashboard+"/sandboxes/lab"))
	p.sees("its menu", current+` && document.querySelector('#ws-acts a[href^="/sandboxes/lab/snapshots"]') !== null`)
	p.runs("choose snapshots", `document.querySelector('#ws-acts a[href^="/sandboxes/lab/snapshots"]').click()`)
	p.sees("that there are none", at("/sandboxes/lab/snapshots")+" && "+current+` && document.querySelector("#snapshots").textContent.includes("No snapshots yet")`)
	p.pictures("snapshots-none")
	p.runs("mark the page", `window.sameRun = true`)
	p.does("ask for one", chromedp.Click("#snapshots-take .button.primary"))
	p.sees("the form", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("paused for as long as the copy takes")`)
	p.pictures("snapshot-take")
	p.does("name it too long", chromedp.SetValue("#snapshot-name", strings.Repeat("x", 65)), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong", `document.querySelector("#snapshot-name-fault")?.textContent.includes("64 characters")`)
	p.does("name it", chromedp.SetValue("#snapshot-name", "Before <b>the</b> upgrade"), chromedp.SetValue("#snapshot-note", "Python 3.13\nand all models"), chromedp.Click("#sheet .button.primary"))
	p.sees("it, or that it is being taken", `!(`+sheetIsOpen+`) && `+firstSnapshot+`?.textContent.includes("Before <b>the</b> upgrade")`)
	p.picture("snapshots-taking-light", "desktop")
	p.sees("that it is taken", firstSnapshot+`.textContent.includes("2,002 files") && document.querySelector("#snapshots-state").textContent.includes("Running")`)
	if p.reads("window.sameRun") != "true" {
		p.t.Error("the page was loaded again")
	}
	if text := p.reads(firstSnapshot + ".textContent"); !strings.Contains(text, "current") || !strings.Contains(text, "paused for") || !strings.Contains(text, "200 MiB") {
		p.t.Errorf("it says %s", text)
	}
	p.pictures("snapshots-ready")
}

// restoresASnapshot restores it.
func (p *person) restoresASnapshot(s *server) {
	p.t.Helper()
	p.does("ask for a restore", chromedp.Click(`#snapshot-items a[href*="/restore"]`))
	p.sees("what will happen", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("terminals end")`)
	p.pictures("snapshot-restore")
	p.does("restore it", chromedp.Click("#sheet .button.primary"))
	p.sees("its progress, or its end", `!(`+sheetIsOpen+`) && (document.querySelector("#snapshots-take .button.primary").disabled || `+snapshotNotice+`.includes("Restored to"))`)
	p.picture("snapshots-restoring-light", "desktop")
	p.sees("that it is restored", snapshotNotice+`.includes("Restored to “Before <b>the</b> upgrade”") && document.querySelector("#snapshots-state").textContent.includes("Running")`)
	p.sees("what was kept before", firstSnapshot+`.textContent.includes("before a restore")`)
	p.pictures("snapshots-restored")
	s.has("lab", "first")
}

// undoesIt undoes the restore with one click.
func (p *person) undoesIt(s *server) {
	p.t.Helper()
	p.does("undo it", chromedp.Click("#snapshots-restored button"))
	p.sees("that it is undone", snapshotNotice+`.includes("Restored to the snapshot taken") && document.querySelectorAll(".snapshot").length === 3 &&
		document.querySelector("#snapshots-state").textContent.includes("Running")`)
	p.pictures("snapshots-undone")
	s.has("lab", "second")
	if p.reads("window.sameRun") != "true" {
		p.t.Error("the page was loaded again")
	}
}

// seesWhatHasChanged looks at the changes since the snapshot, and at the lines of a file.
func (p *person) seesWhatHasChanged(s *server) {
	p.t.Helper()
	s.in("mkdir new && printf 'def main():\\n\\tprint(1)\\n' >new/main.py")
	p.runs("ask for the changes", `document.querySelector('.snapshot a[href*="/diff"]').click()`)
	p.sees("them", current+` && document.querySelectorAll(".change").length === 3 && document.querySelector("h1").textContent.includes("Before <b>the</b> upgrade")`)
	p.pictures("snapshot-changes")
	p.does("look at a file", chromedp.Click(`.change a[href*="notes"]`))
	p.sees("its lines", current+` && document.querySelector(".diff .added")?.textContent === "+second" && document.querySelector(".diff .deleted").textContent === "-first"`)
	p.pictures("snapshot-changes-file")
	p.does("go back to the snapshots", chromedp.Click(`.crumb a[href*="/snapshots"]`))
	p.sees("them", current+` && `+firstSnapshot+` !== null`)
	p.runs("mark the page", `window.sameRun = true`)
}

// clonesIt makes three clones of the snapshot, and one of the sandbox as it is.
func (p *person) clonesIt(s *server, dashboard string) {
	p.t.Helper()
	p.runs("ask for clones of the oldest", `[...document.querySelectorAll(".snapshot")].at(-1).querySelector('a[href*="/clone"]').click()`)
	p.sees("the form", sheetIsOpen+` && document.querySelector("#clone-name")?.value === "lab-2"`)
	p.pictures("snapshot-clone")
	p.does("ask for too many", chromedp.SetValue("#clone-count", "21"), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong", `document.querySelector("#clone-count-fault")?.textContent.includes("from 1 to 20")`)
	p.does("make three", chromedp.SetValue("#clone-name", "copy"), chromedp.SetValue("#clone-count", "3"), chromedp.Click("#sheet .button.primary"))
	p.sees("the list with them", at("/")+` && `+current+` && ["copy-1", "copy-2", "copy-3"].every((n) => document.querySelector('a[href="/sandboxes/' + n + '"]'))`)
	p.picture("snapshots-clones-light", "desktop")
	for i := range 3 {
		name := fmt.Sprintf("copy-%d", i+1)
		s.until(name+" runs", func() bool {
			status, body := s.raw("GET", "/sandboxes/"+name, nil)
			return status == 200 && strings.Contains(string(body), `"running"`)
		})
		s.has(name, "first")
	}
	p.does("look at the snapshots of one", chromedp.Navigate(dashboard+"/sandboxes/copy-1/snapshots"))
	p.sees("where it is from", current+` && document.querySelector(".page-head").textContent.includes("Cloned from lab")`)
	p.pictures("snapshots-of-clone")
	p.does("look at those of the other", chromedp.Navigate(dashboard+"/sandboxes/lab/snapshots"))
	p.sees("them", current+` && document.querySelectorAll(".snapshot").length === 3`)
	p.does("clone it as it is", chromedp.Click(`#snapshots-take a[href*="/clone"]`))
	p.sees("the form", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("While it is copied, lab is paused")`)
	p.pictures("clone-now")
	p.does("make it", chromedp.Click("#sheet .button.primary"))
	p.sees("it, or the page that it is made from", at("/sandboxes/lab-2")+` || `+at("/sandboxes/lab/snapshots")+` && !(`+sheetIsOpen+`)`)
	s.until("lab-2 runs", func() bool {
		status, body := s.raw("GET", "/sandboxes/lab-2", nil)
		return status == 200 && strings.Contains(string(body), `"running"`)
	})
	s.has("lab-2", "second")
}

// namesAndDeletesIt names a snapshot that a restore has taken, and deletes another.
func (p *person) namesAndDeletesIt(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at the snapshots", chromedp.Navigate(dashboard+"/sandboxes/lab/snapshots"))
	p.sees("them", current+` && document.querySelectorAll(".snapshot").length === 3`)
	const menuOf = `[...document.querySelectorAll(".snapshot")].map((each) => each.querySelector("details.menu"))`
	p.runs("open a menu", `const menu = `+menuOf+`[0].querySelector("summary"); menu.focus(); menu.click()`)
	s.raw("POST", "/sandboxes/lab/snapshots?wait=ready", map[string]any{"name": strings.Repeat("A very long name ", 3), "note": strings.Repeat("unbreakable", 60), "automatic": true})
	p.sees("another one", `document.querySelectorAll(".snapshot").length === 4 && !`+menuOf+`.includes(null)`)
	p.sees("the menu still open for its snapshot", `((all) => all[1].open && !all[0].open && all[1].contains(document.activeElement))(`+menuOf+`)`)
	p.does("open the menu of the newest", chromedp.Click("#snapshot-items summary"))
	p.pictures("snapshots-menu")
	p.runs("name it", `document.querySelector('#snapshot-items a[href*="/edit"]').click()`)
	p.sees("the form", sheetIsOpen+` && document.querySelector("#snapshot-note")?.value.startsWith("unbreakable")`)
	p.pictures("snapshot-edit")
	p.does("change it", chromedp.SetValue("#snapshot-name", "After the upgrade"), chromedp.Click("#sheet .button.primary"))
	p.sees("the new name", `!(`+sheetIsOpen+`) && `+firstSnapshot+`.textContent.includes("After the upgrade")`)
	p.runs("ask to delete it", firstSnapshot+`.querySelector(".danger").click()`)
	p.sees("the question", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("Delete this snapshot?")`)
	p.pictures("snapshot-delete")
	p.does("do so", chromedp.Click("#sheet .button.danger"))
	p.sees("one less", `!(`+sheetIsOpen+`) && document.querySelectorAll(".snapshot").length === 3`)
}

// deletesThemWithTheSandbox deletes the sandbox; its clones keep what they have.
func (p *person) deletesThemWithTheSandbox(s *server, dashboard string) {
	p.t.Helper()
	other := p.window()
	other.does("ask to delete it", chromedp.Navigate(dashboard+"/sandboxes/lab/delete"))
	other.sees("that its snapshots go too", `document.querySelector(".sheet").textContent.includes("Its 3 snapshots.")`)
	other.pictures("snapshots-delete-sandbox")
	if status, text := s.raw("DELETE", "/sandboxes/lab", nil); status >= 300 {
		p.t.Fatalf("delete: %d %s", status, text)
	}
	p.sees("that they are gone", `document.querySelector("#snapshots").textContent.includes("This sandbox was deleted") && document.querySelector("#snapshots-take") === null`)
	p.pictures("snapshots-gone")
	s.has("copy-1", "first")
}
