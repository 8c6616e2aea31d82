//go:build e2e

package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Scripts about the page.
const (
	firstBackup = `document.querySelector("#backup-items .backup")`
	uploadFault = `document.querySelector('[data-fault="file"]')`
	chosenFile  = `document.querySelector("#archive-file").files[0]?.name`
)

// TestBackupsPage_MakesRestoresAndUploads does what a person does with backups, on a real engine.
func TestBackupsPage_MakesRestoresAndUploads(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo", "label": "Protein folding"})
	s.in("echo first >notes && mkdir many && cd many && seq 3000 | xargs touch && mkdir ../more && cd ../more && seq 60000 | xargs touch && cd ../many && head -c 600M /dev/urandom >large; true")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.makesABackup(dashboard)
	s.in("rm -r many && echo second >notes")
	p.restoresIt(s)
	p.cancelsARestore(s, dashboard)
	p.makesAnother(s, dashboard)
	p.uploadsToIt(s, dashboard)
	p.uploadsANewOne(s, dashboard)
	p.keepsThemAfterADelete(s, dashboard)
}

// makesABackup makes one, and downloads a part of it.
func (p *person) makesABackup(dashboard string) {
	p.t.Helper()
	p.does("open the workspace", chromedp.Navigate(dashboard+"/sandboxes/lab"))
	p.sees("its menu", current+` && document.querySelector('#ws-acts a[href^="/sandboxes/lab/backups"]') !== null`)
	p.runs("choose backups", `document.querySelector('#ws-acts a[href^="/sandboxes/lab/backups"]').click()`)
	p.sees("that there are none", at("/sandboxes/lab/backups")+" && "+current+` && document.querySelector("#backups").textContent.includes("No backups of this sandbox yet")`)
	p.pictures("backups-none")
	p.does("look at the other way", chromedp.Click("#backups-up summary"))
	p.pictures("backups-ways")
	p.runs("mark the page", `document.querySelector("#backups-up details").open = false; window.sameRun = true`)
	other := p.window()
	other.does("look at the workspace", chromedp.Navigate(dashboard+"/sandboxes/lab"))
	other.sees("that it is live", current)
	p.does("make one", chromedp.Click("#backups-up .button.primary"))
	p.sees("its progress", `/[\d.]+ [KMG]iB in [\d,]+ files? read/.test(`+firstBackup+`?.textContent) && document.querySelector("#backups-state").textContent.includes("Being backed up")`)
	p.picture("backups-making-light", "desktop")
	p.resize("phone", "dark")
	p.settles()
	p.picture("backups-making-dark", "phone")
	p.resize("desktop", "light")
	other.sees("that it is backed up", `document.querySelector("#pane-terminal").textContent.includes("Being backed up")`)
	other.picture("backups-making-workspace-light", "desktop")
	p.sees("the check, or its end", firstBackup+`.textContent.match(/Checking|Ready/)`+" !== null")
	p.sees("that it is ready", firstBackup+`.textContent.includes("Ready") && document.querySelector("#backups-state").textContent.includes("Running")`)
	if p.reads("window.sameRun") != "true" {
		p.t.Error("the page was loaded again")
	}
	if text := p.reads(firstBackup + ".textContent"); !strings.Contains(text, "files") || !strings.Contains(text, "kept for 7 d more") {
		p.t.Errorf("it says %s", text)
	}
	part := fmt.Sprintf(`(() => { const x = new XMLHttpRequest(); x.open("GET", %s.querySelector('a[href$="/archive"]').href, false); x.setRequestHeader("Range", "bytes=1-3"); x.send();
		return [x.status, x.getResponseHeader("Content-Type"), x.getResponseHeader("Content-Disposition").split(";")[0], x.responseText].join(" "); })()`, firstBackup)
	if got := p.reads(part); got != "206 application/zstd attachment \ufffd/\ufffd" {
		p.t.Errorf("a part of the file is answered with %q", got)
	}
	p.pictures("backups-ready")
}

// restoresIt restores it after a backup of what has become of the home since.
func (p *person) restoresIt(s *server) {
	p.t.Helper()
	p.does("ask for a restore", chromedp.Click(`#backup-items a[href$="/restore"]`))
	p.sees("what will happen", sheetIsOpen+` && document.querySelector('#sheet [name="save_first"]').checked && document.querySelector("#sheet").textContent.includes("terminals end")`)
	p.pictures("backup-restore")
	p.does("restore it", chromedp.Click("#sheet .button.danger"))
	p.sees("the sandbox at work", at("/sandboxes/lab")+` && /Being (backed up|restored)/.test(document.querySelector("#pane-terminal").textContent)`)
	p.sees("that it is restored", `document.querySelector("#pane-terminal").textContent.includes("Being restored")`)
	p.picture("backup-restoring-light", "desktop")
	p.resize("phone", "dark")
	p.settles()
	p.picture("backup-restoring-dark", "phone")
	p.resize("desktop", "light")
	p.sees("its terminal", `document.querySelector("#pane-terminal").dataset.kind === "terminals"`)
	if got := s.in("cat notes; ls many | wc -l"); got != "first\n3001\n" {
		p.t.Errorf("the home has %q", got)
	}
}

// cancelsARestore begins to restore the first backup again, and has all stay as it is.
func (p *person) cancelsARestore(s *server, dashboard string) {
	p.t.Helper()
	s.in("echo kept >notes")
	p.does("look at the backups", chromedp.Navigate(dashboard+"/sandboxes/lab/backups"))
	p.sees("both", current+` && document.querySelectorAll(".backup").length === 2`)
	p.runs("ask for the first", `[...document.querySelectorAll(".backup")].at(-1).querySelector('a[href$="/restore"]').click()`)
	p.sees("what will happen", sheetIsOpen)
	p.does("restore it without a backup", chromedp.Click(`#sheet [name="save_first"]`), chromedp.Click("#sheet .button.danger"))
	p.sees("that it can be cancelled", at("/sandboxes/lab")+" && "+current+` && document.querySelector('#work form[action*="/restore/cancel"]') !== null`)
	p.does("cancel it", chromedp.Click(`#work form[action*="/restore/cancel"] button`))
	p.sees("a sign of that", `document.querySelector("#ws-restore").textContent.includes("Not restored") && document.querySelector("#pane-terminal").dataset.kind === "terminals"`)
	p.pictures("backup-cancelled-workspace")
	if got := s.in("cat notes"); got != "kept\n" {
		p.t.Errorf("the home has %q", got)
	}
	p.does("follow the sign", chromedp.Click("#ws-restore a"))
	p.sees("why", at("/sandboxes/lab/backups")+" && "+current+` && document.querySelector("#backups-failed").textContent.includes("The restore was cancelled")`)
	p.pictures("backup-cancelled")
	p.does("dismiss it", chromedp.Click("#backups-failed button"))
	p.sees("no note", `document.querySelector("#backups-failed").textContent.trim() === ""`)
}

// makesAnother makes a sandbox from the first backup.
func (p *person) makesAnother(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at all backups", chromedp.Navigate(dashboard+"/"), chromedp.KeyEvent("g"), chromedp.KeyEvent("b"))
	p.sees("both", at("/backups")+" && "+current+` && document.querySelectorAll(".backup").length === 2`)
	p.runs("open the menu of the first", `[...document.querySelectorAll(".backup")].at(-1).querySelector("summary").click()`)
	p.pictures("backups-all-menu")
	p.runs("ask for a sandbox", `[...document.querySelectorAll(".backup")].at(-1).querySelector('a[href$="/new"]').click()`)
	p.sees("a name", sheetIsOpen+` && document.querySelector("#new-from-name")?.value === "lab-2"`)
	p.pictures("backup-new")
	p.does("take a name that there is", chromedp.SetValue("#new-from-name", "lab"), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong", `document.querySelector("#new-from-name-fault")?.textContent.includes("already a sandbox") && document.querySelector("#new-from-name").value === "lab"`)
	p.does("take another", chromedp.SetValue("#new-from-name", "lab-2"), chromedp.Click("#sheet .button.primary"))
	p.sees("its page", at("/sandboxes/lab-2"))
	p.picture("backup-new-made-light", "desktop")
	p.sees("its terminal", `document.querySelector("#pane-terminal").dataset.kind === "terminals"`)
	if out := s.exec("lab-2", map[string]any{"command": "cat notes"}); out.Stdout != "first\n" {
		p.t.Errorf("its home has %+v", out)
	}
}

// choose gives the form a file.
func (p *person) choose(name string, content []byte) {
	p.t.Helper()
	p.runs("choose a file", fmt.Sprintf(`const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0)); const all = new DataTransfer(); all.items.add(new File([bytes], %q));
		document.querySelector(".archive-form").dispatchEvent(new DragEvent("drop", {dataTransfer: all, bubbles: true, cancelable: true}))`, base64.StdEncoding.EncodeToString(content), name))
	p.sees("it", chosenFile+fmt.Sprintf(` === %q`, name))
}

// homeOf is an archive by another program, with so many bytes that do not count.
func homeOf(t *testing.T, notes string, more int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range map[string][]byte{"notes": []byte(notes), "more": make([]byte, more)} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// uploadsToIt has a file refused, cancels another, and restores that.
func (p *person) uploadsToIt(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at the backups", chromedp.Navigate(dashboard+"/sandboxes/lab/backups"))
	p.sees("the form", current+` && !document.querySelector(".archive-form [type=submit]").disabled`)
	p.choose("notes.txt", []byte("no archive"))
	p.does("upload it", chromedp.Click(".archive-form [type=submit]"))
	p.sees("why not, and the file", uploadFault+`.checkVisibility() && `+uploadFault+`.textContent.includes("no archive") && `+chosenFile+` === "notes.txt"`)
	p.runs("bring it into sight", `document.querySelector("#archive-upload").scrollIntoView()`)
	p.pictures("backup-upload-refused")

	p.choose("home.tar", homeOf(p.t, "third\n", 4<<20))
	p.slow(100 << 10)
	p.does("upload it", chromedp.Click(".archive-form [type=submit]"))
	p.sees("how far it is", `/of 4 MiB uploaded/.test(document.querySelector("[data-words]").textContent) && document.querySelector(".archive-form progress").value > 0`)
	p.pictures("backup-uploading")
	p.does("cancel it", chromedp.Click("[data-cancel-upload]"))
	p.sees("the form again", `!document.querySelector(".archive-form [type=submit]").disabled && document.querySelector("[data-stand]").hidden && `+chosenFile+` === "home.tar"`)
	p.slow(-1)
	p.does("do without a backup", chromedp.Click(`.archive-form [name="save_first"]`), chromedp.Click(".archive-form [type=submit]"))
	p.sees("the sandbox", at("/sandboxes/lab"))
	if got := s.in("cat notes; ls"); got != "third\nmore\nnotes\n" {
		p.t.Errorf("the home has %q", got)
	}
}

// uploadsANewOne makes a sandbox of a file that does not say what it was made from.
func (p *person) uploadsANewOne(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at all backups", chromedp.Navigate(dashboard+"/new"))
	p.sees("the way to backups", at("/new")+` && document.querySelector(".new-from") !== null`)
	p.pictures("backups-new-sandbox")
	p.does("take it", chromedp.Click(".new-from"))
	p.sees("the form", at("/backups")+" && "+current+` && !document.querySelector(".archive-form [type=submit]").disabled`)
	p.choose("home.tar", homeOf(p.t, "fourth\n", 1<<10))
	p.does("upload it", chromedp.SetValue("#archive-name", "from-file"), chromedp.Click(".archive-form [type=submit]"))
	p.sees("what is missing", `document.querySelector("#archive-template-fault").textContent.includes("Name a template") && `+chosenFile+` === "home.tar" && document.activeElement.id === "archive-template"`)
	p.runs("bring it into sight", `document.querySelector("#archive-upload").scrollIntoView()`)
	p.pictures("backup-upload-new")
	p.does("choose a template", chromedp.SetValue("#archive-template", "echo"), chromedp.Click(".archive-form [type=submit]"))
	p.sees("its page", at("/sandboxes/from-file"))
	if out := s.exec("from-file", map[string]any{"command": "cat notes"}); out.Stdout != "fourth\n" {
		p.t.Errorf("its home has %+v", out)
	}
}

// keepsThemAfterADelete deletes the sandbox, and finds its backups.
func (p *person) keepsThemAfterADelete(s *server, dashboard string) {
	p.t.Helper()
	if status, text := s.raw("POST", "/sandboxes/lab-2/backups?wait=ready", nil); status >= 300 {
		p.t.Fatalf("back up: %d %s", status, text)
	}
	p.does("ask to delete it", chromedp.Navigate(dashboard+"/sandboxes/lab/delete"))
	p.sees("that its backups stay", `document.querySelector(".sheet").textContent.includes("Its 2 backups are kept until they expire")`)
	p.pictures("backups-delete-sandbox")
	p.does("look at its backups", chromedp.Navigate(dashboard+"/sandboxes/lab/backups"))
	p.sees("them", current+` && document.querySelectorAll(".backup").length === 2`)
	other := p.window()
	other.does("look at all backups", chromedp.Navigate(dashboard+"/backups"))
	other.sees("them", current+` && document.querySelectorAll(".backup").length === 3`)
	if status, text := s.raw("DELETE", "/sandboxes/lab", nil); status >= 300 {
		p.t.Fatalf("delete: %d %s", status, text)
	}
	p.sees("that it is deleted", `document.querySelector("#backups").textContent.includes("This sandbox was deleted") && document.querySelector("#archive-upload") === null`)
	p.pictures("backups-gone")
	other.sees("that their sandbox is deleted", `document.querySelectorAll(".backup .tag").length === 2 && document.querySelectorAll('a[href$="/restore"]').length === 1`)
	other.pictures("backups-all")
	other.does("show those alone", chromedp.SetValue("#log-sandbox", "lab"), chromedp.Submit("#log-sandbox"))
	other.sees("them", current+` && document.querySelectorAll(".backup").length === 2 && location.search === "?sandbox=lab"`)
	other.does("delete one", chromedp.Click("#backup-items summary"), chromedp.Click(`#backup-items .danger`))
	other.sees("what is lost", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("the only copy")`)
	other.pictures("backup-delete")
	other.does("do so", chromedp.Click("#sheet .button.danger"))
	other.sees("one less", `!(`+sheetIsOpen+`) && document.querySelectorAll(".backup").length === 1`)
}
