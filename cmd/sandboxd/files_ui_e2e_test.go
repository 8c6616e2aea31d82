//go:build e2e

package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	editorText = `document.querySelector(".editor-host:not([hidden]) .cm-content")?.innerText`
	editorNote = `document.querySelector(".editor-host:not([hidden]) .editor-notes")?.innerText ?? ""`
	toastText  = `[...document.querySelectorAll("#toast")].filter((t) => !t.hidden).map((t) => t.innerText).join()`
)

func says(script, text string) string { return fmt.Sprintf(`(%s ?? "").includes(%q)`, script, text) }

// writeFiles makes files of this machine: name to content.
func writeFiles(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFilesPage_UploadsWhatIsDropped drops files and folders of this machine on a folder of the tree.
func TestFilesPage_UploadsWhatIsDropped(t *testing.T) {
	p := openFiles(t, "mkdir inbox && echo old > inbox/a.txt")
	dir := writeFiles(t, map[string][]byte{
		"a.txt": []byte("new a\n"), "b <b>&.txt": []byte("b\n"), "site/index.html": []byte("<p>hi"), "site/img/one.bin": bytes.Repeat([]byte{7}, 3<<20),
	})
	if err := os.MkdirAll(filepath.Join(dir, "site", "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.drops("inbox", filepath.Join(dir, "a.txt"), filepath.Join(dir, "b <b>&.txt"), filepath.Join(dir, "site"))
	p.sees("the question about the name that is taken", says(`document.querySelector("dialog[open]")?.innerText`, "“a.txt” already exists"))
	p.pictures("files-upload-taken")
	p.button("Keep both")
	p.sees("that all is uploaded", says(`document.querySelector(".uploads").innerText`, "uploaded"))
	p.sees("the folder with them", has(row("inbox"))+` && document.querySelector("sandbox-files").uploads.open.length === 0`)
	p.clicks("inbox")
	p.sees("the new files", has(row("inbox/a (2).txt"))+" && "+has(row("inbox/site")))
	p.pictures("files-uploaded")
	want := "a (2).txt\na.txt\nb <b>&.txt\nsite\nsite/img\nsite/img/one.bin\nsite/index.html\nsite/none\n"
	if got := p.in("cd inbox && find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort"); got != want {
		t.Errorf("in the sandbox are\n%s", got)
	}
	if p.content("/home/agent/inbox/a.txt") != "old\n" || p.content("/home/agent/inbox/a (2).txt") != "new a\n" {
		t.Error("one was not kept as it was")
	}
}

// TestFilesPage_GoesOnWithAnUploadAfterAReload cuts an upload by loading the page anew, and gives it the same file again.
func TestFilesPage_GoesOnWithAnUploadAfterAReload(t *testing.T) {
	p := openFiles(t, "mkdir inbox")
	big := make([]byte, 40<<20)
	rand.Read(big) // never fails since Go 1.24
	path := filepath.Join(writeFiles(t, map[string][]byte{"big.bin": big}), "big.bin")
	p.slow(6 << 20)
	p.drops("inbox", path)
	p.sees("some of it sent", `document.querySelector("sandbox-files").uploads.list[0]?.sent > 17 << 20`)
	p.picture("files-uploading", "desktop")
	p.does("reload", chromedp.Reload())
	p.slow(-1)
	p.sees("that it was interrupted", says(`document.querySelector(".uploads")?.innerText`, "Interrupted"))
	p.pictures("files-upload-interrupted")
	p.runs("note what is sent", `window.sent = []; const set = XMLHttpRequest.prototype.setRequestHeader;
		XMLHttpRequest.prototype.setRequestHeader = function (name, value) { if (name === "Content-Range") sent.push(value); return set.call(this, name, value); }`)
	p.drops("inbox", path)
	p.sees("that it is uploaded", says(`document.querySelector(".uploads").innerText`, "1 file uploaded"))
	var from int
	if _, err := fmt.Sscanf(p.reads("sent[0]"), "bytes %d-", &from); err != nil || from < 16<<20 {
		t.Errorf("it went on with %q: %v", p.reads("sent[0]"), err)
	}
	if sum := strings.Fields(p.in("sha256sum inbox/big.bin"))[0]; sum != fmt.Sprintf("%x", sha256.Sum256(big)) {
		t.Errorf("it has the sum %s", sum)
	}
	if left := p.in("ls -A inbox"); left != "big.bin\n" {
		t.Errorf("there are %q", left)
	}
}

// TestFilesPage_EditsAndSaves changes a file as a person does, while another user changes it on the disk.
func TestFilesPage_EditsAndSaves(t *testing.T) {
	p := openFiles(t, `mkdir src && printf 'package main\n\nfunc main() {}\n' > src/main.go && printf '\357\273\277one\r\ntwo' > dos.txt`)
	p.clicks("src")
	p.opensFile("src/main.go")
	p.keys(kb.End, chromedp.ModifierCtrl)
	p.inserts("// done\n")
	p.sees("that it is not saved", has("sandbox-editor .dirty"))
	p.pictures("files-edit")
	p.keys("s", chromedp.ModifierCtrl)
	p.sees("that it is saved", `document.querySelector("sandbox-editor .dirty") === null`)
	if got := p.content("/home/agent/src/main.go"); got != "package main\n\nfunc main() {}\n// done\n" {
		t.Errorf("it has %q", got)
	}
	p.in(`sed -i 's/done/done by another/' src/main.go`)
	p.sees("what another has made of it, without being asked", says(editorText, "done by another"))

	p.opensFile("dos.txt")
	p.keys(kb.End, chromedp.ModifierCtrl)
	p.inserts("\nthree")
	p.keys("s", chromedp.ModifierCtrl)
	p.sees("that it is saved", `document.querySelector("sandbox-editor .dirty") === null`)
	if got := p.content("/home/agent/dos.txt"); got != "\ufeffone\r\ntwo\r\nthree" {
		t.Errorf("it has %q", got)
	}
}

// TestFilesPage_ShowsBothWhenAFileHasChangedMeanwhile makes the three choices of a conflict, and reloads the page amid one.
func TestFilesPage_ShowsBothWhenAFileHasChangedMeanwhile(t *testing.T) {
	const first = "one\ntwo\nthree\nfour\n"
	p := openFiles(t, "printf 'one\ntwo\nthree\nfour\n' > notes.txt")
	conflict := func() {
		t.Helper()
		p.keys(kb.Home, chromedp.ModifierCtrl)
		p.inserts("mine ")
		p.in("printf 'one\ntwo\nthree\nfour theirs\n' > notes.txt")
		p.sees("that it has changed", says(editorNote, "changed on disk"))
	}
	p.opensFile("notes.txt")
	conflict()
	p.keys("s", chromedp.ModifierCtrl)
	p.sees("both", `document.querySelectorAll(".compare .cm-editor").length > 0`)
	p.pictures("files-conflict")
	if got := p.content("/home/agent/notes.txt"); got != "one\ntwo\nthree\nfour theirs\n" {
		t.Fatalf("saving has overwritten it: %q", got)
	}
	p.button("Use theirs")
	p.sees("theirs", says(editorText, "four theirs")+` && document.querySelector("sandbox-editor .dirty") === null`)

	p.in("printf '" + strings.ReplaceAll(first, "\n", `\n`) + "' > notes.txt")
	p.sees("the first text again", "!"+says(editorText, "theirs"))
	conflict()
	p.button("Keep mine")
	p.sees("that it is saved", `document.querySelector("sandbox-editor .dirty") === null`)
	if got := p.content("/home/agent/notes.txt"); got != "mine "+first {
		t.Errorf("it has %q", got)
	}
	p.loads()
	p.sees("the file, open as before", says(editorText, "mine one"))
	p.mergesAfterAReload()
}

// mergesAfterAReload leaves unsaved work, reloads, finds it again beside a newer file, and puts the two together by hand.
func (p *filesPage) mergesAfterAReload() {
	p.t.Helper()
	p.runs("focus the text", `document.querySelector(".cm-content").focus()`)
	p.keys(kb.Home, chromedp.ModifierCtrl)
	p.inserts("unsaved ")
	p.sees("the draft kept", `!document.querySelector("sandbox-editor").tabs[0].atRisk`)
	p.loads()
	p.sees("the unsaved work", says(editorText, "unsaved mine one")+" && "+says(editorNote, "restored"))
	p.pictures("files-restored")
	p.does("go elsewhere", chromedp.Navigate(p.dashboard()+"/"))
	p.in("printf 'mine one\ntwo\nthree\nfour\nfive theirs\n' > notes.txt")
	p.loads()
	p.sees("that both have changed", says(editorText, "unsaved mine one")+" && "+says(editorNote, "since changed on disk"))
	p.button("Compare")
	p.sees("both", `document.querySelectorAll(".compare .cm-editor").length > 0`)
	p.runs("take the last difference from the disk", `const take = [...document.querySelectorAll(".compare .take, .compare button[name=reject]")].at(-1);
		for (const kind of ["mousedown", "mouseup", "click"]) take.dispatchEvent(new MouseEvent(kind, { bubbles: true, cancelable: true, detail: 1 }))`) // without a count it is the keyboard's click
	p.button("Save merge")
	p.sees("that it is saved", `document.querySelector("sandbox-editor .dirty") === null && document.querySelector(".compare") === null`)
	if got := p.content("/home/agent/notes.txt"); got != "unsaved mine one\ntwo\nthree\nfour\nfive theirs\n" {
		p.t.Errorf("merged it is %q", got)
	}
}

// TestFilesPage_DeletesToTheTrashAndBringsBack renames, moves, deletes, undoes and restores, by the keyboard.
func TestFilesPage_DeletesToTheTrashAndBringsBack(t *testing.T) {
	p := openFiles(t, "mkdir docs plans && echo 1 > docs/one.txt && echo 2 > docs/two.txt")
	p.focuses()
	p.keys("docs")
	p.keys(kb.ArrowRight)
	p.sees("what is in it", has(row("docs/two.txt")))
	p.keys("two")
	p.keys(kb.F2)
	p.sees("the name in a field, all but its ending selected", `(() => { const f = document.querySelector(".name-field"); return f && f.value.slice(f.selectionStart, f.selectionEnd) === "two" })()`)
	p.inserts("second <i>")
	p.pictures("files-rename")
	p.keys("\r")
	p.sees("the new name", has(row("docs/second <i>.txt")))

	p.keys("x", chromedp.ModifierCtrl)
	p.keys("plans")
	p.keys(kb.ArrowRight)
	p.keys("v", chromedp.ModifierCtrl)
	p.sees("it moved", has(row("plans/second <i>.txt"))+" && !("+has(row("docs/second <i>.txt"))+")")

	p.keys("one")
	p.keys(kb.Delete)
	p.sees("it gone, and how to bring it back", "!("+has(row("docs/one.txt"))+") && "+says(toastText, "Undo"))
	p.sees("that the folder is empty, in its row", inRow("Empty"))
	p.pictures("files-trash-undo")
	p.button("Undo")
	p.sees("it again", has(row("docs/one.txt")))

	p.clicks("docs/one.txt")
	p.focuses()
	p.keys(kb.Delete)
	p.sees("it gone", "!("+has(row("docs/one.txt"))+")")
	p.runs("open the trash", `document.querySelector("sandbox-files").setView("trash")`)
	p.sees("it in the trash", says(`document.querySelector(".trash")?.innerText`, "one.txt"))
	p.pictures("files-trash")
	p.runs("choose it", `document.querySelector(".trash-row input").click()`)
	p.button("Restore")
	p.sees("the trash empty", says(`document.querySelector(".trash").innerText`, "The trash is empty"))
	if got := p.content("/home/agent/docs/one.txt") + p.content("/home/agent/plans/second <i>.txt"); got != "1\n2\n" {
		t.Errorf("they have %q", got)
	}
}
