//go:build e2e

package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// menu opens the menu of something in the tree, and takes what has a text.
func (p *filesPage) menu(path, text string) {
	p.t.Helper()
	p.sees(path+" in the tree", has(row(path)))
	p.points("ask for the menu of "+path, row(path), "contextmenu")
	p.button(text)
}

// names types the name of something new or renamed, where it will stand.
func (p *filesPage) names(name string) {
	p.t.Helper()
	p.sees("a field for the name", `document.activeElement?.matches(".name-field") === true`)
	p.inserts(name)
	p.keys("\r")
}

// TestFilesPage_MakesFilesAndFoldersByTheMenu in a folder by its own menu, and beside what is chosen by the button.
func TestFilesPage_MakesFilesAndFoldersByTheMenu(t *testing.T) {
	p := openFiles(t, "mkdir src && touch src/taken")
	p.sees("the folder", has(row("src")))
	p.points("ask for the menu", row("src"), "contextmenu")
	p.sees("the menu", has(`.menu-list[role=menu] [role=menuitem]`))
	p.picture("files-menu", "desktop") // another size would close it
	p.menu("src", "New folder")
	p.names("new <b>folder")
	p.sees("the new folder, chosen", fmt.Sprintf("document.querySelector(%q)?.getAttribute('aria-selected') === 'true'", row("src/new <b>folder")))

	p.menu("src/new <b>folder", "New file")
	p.names("notes.txt")
	p.sees("the new file, open", fmt.Sprintf(`%s && document.querySelector("sandbox-editor [role=tab][aria-selected=true]")?.textContent.includes("notes.txt")`, has(row("src/new <b>folder/notes.txt"))))
	p.sees("where it is written in", `document.activeElement?.closest(".editor-host:not([hidden]) .cm-content") != null`)
	p.inserts("first words")
	p.keys("s", chromedp.ModifierCtrl)
	p.sees("that it is saved", `document.querySelector("sandbox-editor .dirty") === null`)

	p.focuses()
	p.keys(kb.Home)
	p.keys("taken") // a click would open it, and take the keyboard
	p.sees("it chosen", fmt.Sprintf("document.querySelector(%q)?.getAttribute('aria-selected') === 'true'", row("src/taken")))
	p.runs("ask for what can be new", `document.querySelector('sandbox-files button[aria-label="New or upload"]').click()`)
	p.button("New file")
	p.names("taken")
	p.sees("that the name is taken, below the field", `document.activeElement.getAttribute("aria-invalid") === "true" && document.querySelector(".name-fault")?.checkVisibility() && document.querySelector(".name-fault").textContent === "This name is already taken."`)
	p.picture("files-name-taken", "desktop") // another size would hide the tree, which ends it
	p.keys(kb.Escape)
	p.sees("what was chosen before, again", fmt.Sprintf(`document.querySelector(".name-field") === null && document.querySelector(%q)?.classList.contains("here")`, row("src/taken")))
	p.runs("ask again", `document.querySelector('sandbox-files button[aria-label="New or upload"]').click()`)
	p.button("New folder")
	p.names("one/two/three")
	p.sees("all on the way to it", has(row("src/one/two/three")))
	p.pictures("files-made")
	want := "d new <b>folder\nd one\nd one/two\nd one/two/three\nf new <b>folder/notes.txt\nf taken\n"
	if got := p.in(`cd src && find . -mindepth 1 -printf '%y %P\n' | LC_ALL=C sort`); got != want {
		t.Errorf("in the sandbox are\n%s", got)
	}
	if got := p.content("/home/agent/src/new <b>folder/notes.txt"); got != "first words" {
		t.Errorf("the new file has %q", got)
	}
	p.keepsUnsavedWork()
}

// keepsUnsavedWork of a sandbox that is deleted elsewhere: it can still be read, copied and downloaded.
func (p *filesPage) keepsUnsavedWork() {
	p.t.Helper()
	p.runs("go to the editor", `document.querySelector(".editor-host:not([hidden]) .cm-content").focus()`)
	p.inserts("unsaved ")
	p.sees("that it is not saved", `document.querySelector("sandbox-editor .dirty") !== null`)
	p.s.raw("DELETE", "/sandboxes/"+p.name, nil)
	p.sees("what is not saved, in the message", `document.querySelector("#ws-still .left-work")?.textContent.includes("notes.txt")`)
	p.pictures("workspace-deleted")
	p.runs("read it", `document.querySelector(".left-work .link").click()`)
	p.sees("its text", `document.querySelector("dialog .left-text")?.value.includes("unsaved")`)
}

// TestFilesPage_CopiesAndPastesByTheKeyboard into another folder, beside the original, and where a name is taken.
func TestFilesPage_CopiesAndPastesByTheKeyboard(t *testing.T) {
	p := openFiles(t, "mkdir -p docs/deep plans && echo 1 > docs/one.txt && echo deep > docs/deep/file")
	p.focuses()
	p.keys("docs")
	p.keys(kb.ArrowRight)
	p.sees("what is in it", has(row("docs/one.txt")))
	p.keys(kb.ArrowDown)
	p.keys(kb.ArrowDown, chromedp.ModifierShift)
	p.sees("both chosen", `document.querySelectorAll(".tree-row[aria-selected=true]").length === 2`)
	p.keys("c", chromedp.ModifierCtrl)
	p.keys("plans")
	p.keys(kb.ArrowRight)
	p.sees("that it is empty", inRow("Empty"))
	p.keys("v", chromedp.ModifierCtrl)
	p.sees("both there", has(row("plans/one.txt"))+" && "+has(row("plans/deep"))+" && "+has(row("docs/one.txt")))

	p.keys("one.txt")
	p.sees("one of them chosen", fmt.Sprintf("document.querySelector(%q)?.getAttribute('aria-selected') === 'true'", row("plans/one.txt")))
	p.keys("c", chromedp.ModifierCtrl)
	p.keys("v", chromedp.ModifierCtrl)
	p.sees("another beside it", has(row("plans/one (2).txt")))
	p.in("echo changed > plans/one.txt")
	p.keys(kb.Home) // what was typed before is forgotten
	p.keys("docs")
	p.sees("the other folder chosen", fmt.Sprintf("document.querySelector(%q)?.getAttribute('aria-selected') === 'true'", row("docs")))
	p.keys("v", chromedp.ModifierCtrl)
	p.sees("the question about the name that is taken", says(`document.querySelector("dialog[open]")?.innerText`, "“one.txt” already exists"))
	p.pictures("files-paste-taken")
	p.button("Replace")
	p.sees("no question", `document.querySelector("dialog[open]") === null`)
	p.s.until("it is replaced", func() bool { return p.in("cat docs/one.txt") == "changed\n" })
	want := "docs/deep/file\ndocs/one.txt\nplans/deep/file\nplans/one (2).txt\nplans/one.txt\n"
	if got := p.in("find docs plans -type f | LC_ALL=C sort"); got != want {
		t.Errorf("in the sandbox are\n%s", got)
	}
}

// TestFilesPage_ACancelledUploadLeavesNothing of a file that goes in pieces nor of one that goes whole; and the same file can be
// uploaded again.
func TestFilesPage_ACancelledUploadLeavesNothing(t *testing.T) {
	p := openFiles(t, "mkdir inbox")
	big, whole := make([]byte, 24<<20), make([]byte, 7<<20)
	rand.Read(big) // never fails since Go 1.24
	dir := writeFiles(t, map[string][]byte{"big.bin": big, "whole.bin": whole})
	p.slow(1 << 20)
	p.drops("inbox", filepath.Join(dir, "big.bin"), filepath.Join(dir, "whole.bin"))
	p.sees("some of both sent", `(() => { const { list } = document.querySelector("sandbox-files").uploads;
		return list.length === 2 && list.every((u) => u.state === "sending" && u.sent > 1 << 18) })()`)
	p.s.until("a half of each is in the sandbox", func() bool { return p.in("find inbox -name '.*sandboxd*' -size +0 | wc -l") == "2\n" })
	p.runs("press the cross", `document.querySelector('.uploads button[aria-label="Cancel all"]').click()`)
	p.sees("no upload any more", `document.querySelector("sandbox-files").uploads.list.length === 0 && document.querySelector(".uploads").hidden`)
	p.s.until("nothing of them is left", func() bool { return p.in("ls -A inbox") == "" })
	p.sees("nothing to go on with after a reload", `Object.keys(localStorage).every((key) => !key.startsWith("uploads "))`)

	p.slow(-1)
	p.s.until("the file is taken", func() bool { // it is not by a row that is drawn anew at that moment
		p.drops("inbox", filepath.Join(dir, "big.bin"))
		return p.within(5*time.Second, `document.querySelector("sandbox-files").uploads.list.length > 0`)
	})
	p.sees("the upload of the same again", says(`document.querySelector(".uploads").innerText`, "1 file uploaded"))
	if got := p.in("ls -A inbox && wc -c < inbox/big.bin"); got != fmt.Sprintf("big.bin\n%d\n", len(big)) {
		t.Errorf("then there are %q", got)
	}
	if p.content("/home/agent/inbox/big.bin") != string(big) {
		t.Error("it is another file")
	}
}

// permits changes one of the boxes of the dialog, such as "Owner: Run".
func (p *filesPage) permits(what string) {
	p.t.Helper()
	p.runs("change "+what, fmt.Sprintf(`[...document.querySelectorAll(".props-dialog label")].find((l) => l.textContent === %q).querySelector("input").click()`, what))
}

// TestFilesPage_ChangesPermissions of a file by its boxes, of a folder by their number, and of what belongs to root not at all.
func TestFilesPage_ChangesPermissions(t *testing.T) {
	p := openFiles(t, "umask 022 && mkdir tools && echo 'echo ran' > run.sh")
	if out := p.s.exec(p.name, map[string]any{"command": "echo root > /home/agent/roots.txt", "user": "root"}); out.ExitCode != 0 {
		t.Fatalf("%+v", out)
	}
	shown := func(path, rights string) string {
		return fmt.Sprintf(`document.querySelector(%q)?.textContent === %q`, row(path)+" .col-mode", rights)
	}
	const open, closed = `document.querySelector(".props-dialog[open]") !== null`, `document.querySelector(".props-dialog") === null`
	p.menu("run.sh", "Properties…")
	p.sees("the dialog", open+` && document.querySelector(".props-dialog input[type=text]").value === "0644"`)
	p.pictures("files-properties")
	p.permits("Owner: Run")
	p.permits("Others: Read")
	p.sees("the number of that", `document.querySelector(".props-dialog input[type=text]").value === "0740"`)
	p.button("Save permissions")
	p.sees("the row with them", closed+" && "+shown("run.sh", "rwxr-----"))
	if got := p.in("stat -c %a run.sh && ./run.sh"); got != "740\nran\n" {
		t.Errorf("the file has %q", got)
	}

	p.menu("tools", "Properties…")
	p.sees("the dialog", open)
	p.runs("choose the number", `document.querySelector(".props-dialog input[type=text]").select()`)
	p.inserts("2750")
	p.sees("the boxes of that", `[...document.querySelectorAll(".props-dialog input[type=checkbox]")].map((b) => Number(b.checked)).join("") === "111101000"`)
	p.keys("\r")
	p.sees("the row with them", closed+" && "+shown("tools", "rwxr-s---"))
	if got := p.in("stat -c %a tools"); got != "2750\n" {
		t.Errorf("the folder has %q", got)
	}

	p.menu("roots.txt", "Properties…")
	p.sees("the dialog", open)
	p.permits("Others: Write")
	p.button("Save permissions")
	p.sees("why not", `document.querySelector(".props-dialog .fault")?.checkVisibility() === true`)
	p.pictures("files-properties-refused")
	p.button("Cancel")
	p.sees("no dialog", closed)
	if got := p.in("stat -c '%U %a' roots.txt"); got != "root 644\n" {
		t.Errorf("root's file is %q", got)
	}
}

// TestFilesPage_FindsAndReplaces in the panel of the editor, all and one after the other, and saves.
func TestFilesPage_FindsAndReplaces(t *testing.T) {
	p := openFiles(t, `printf 'alpha one\nbeta Alpha\nalphabet $1\nnone\n' > words.txt`)
	p.opensFile("words.txt")
	p.keys("f", chromedp.ModifierCtrl)
	p.sees("the panel, ready to be written in", `document.activeElement?.matches(".cm-search input[name=search]") === true`)
	p.keys("alpha")
	p.sees("what is found", `document.querySelectorAll(".editor-host:not([hidden]) .cm-searchMatch").length === 3`)
	p.pictures("files-editor-find")
	p.runs("mind the case", `document.querySelector(".cm-search input[name=case]").click()`)
	p.sees("what is found then", `document.querySelectorAll(".editor-host:not([hidden]) .cm-searchMatch").length === 2`)
	p.runs("go to what it is replaced by", `document.querySelector(".cm-search input[name=replace]").focus()`)
	p.keys("omega")
	p.runs("replace all", `document.querySelector(".cm-search button[name=replaceAll]").click()`)
	p.sees("the new text", says(editorText, "omega one")+" && "+says(editorText, "omegabet $1")+" && "+says(editorText, "beta Alpha")+" && "+has("sandbox-editor .dirty"))
	p.pictures("files-editor-replaced")
	p.keys("s", chromedp.ModifierCtrl) // within the panel
	p.sees("that it is saved", `document.querySelector("sandbox-editor .dirty") === null`)
	if got := p.content("/home/agent/words.txt"); got != "omega one\nbeta Alpha\nomegabet $1\nnone\n" {
		t.Errorf("it has %q", got)
	}
	p.runs("look for another", `document.querySelector(".cm-search input[name=search]").select()`)
	p.runs("focus it", `document.querySelector(".cm-search input[name=search]").focus()`)
	p.keys("omega")
	p.keys("\r")
	p.sees("the first of them chosen", `document.querySelectorAll(".cm-searchMatch-selected").length === 1`)
	p.keys(kb.Escape)
	p.sees("no panel, and the cursor in the text", `document.querySelector(".cm-search") === null && document.activeElement?.closest(".cm-content") != null`)
}

// TestFilesPage_ShowsAPicture in its own size, small and larger than the window.
func TestFilesPage_ShowsAPicture(t *testing.T) {
	p := openFiles(t, "true")
	for name, size := range map[string]image.Point{"small.png": {64, 48}, "large.png": {3000, 1000}} {
		img := image.NewRGBA(image.Rectangle{Max: size})
		for x := range size.X {
			for y := range size.Y {
				img.Set(x, y, color.RGBA{uint8(255 * x / size.X), uint8(255 * y / size.Y), 96, 255})
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		p.puts(name, b.String())
		p.clicks(name)
		p.sees(name+" in its size", fmt.Sprintf(`(() => { const i = document.querySelector(".picture-view > img");
			return i?.checkVisibility() && i.alt === %q && i.complete && i.naturalWidth === %d && i.naturalHeight === %d })()`, name, size.X, size.Y))
		p.sees("how large it is", says(`document.querySelector(".editor-tools")?.textContent`, fmt.Sprintf("%d × %d", size.X, size.Y)))
		p.sees("its own colours", `(() => { const c = document.createElement("canvas").getContext("2d"); const i = document.querySelector(".picture-view > img");
			c.drawImage(i, 0, 0, 1, 1, 0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data].join() === "0,0,96,255" })()`)
		p.pictures("files-picture-" + strings.TrimSuffix(name, ".png"))
	}
	const drawn = `document.querySelector(".picture-view > img").getBoundingClientRect().width`
	p.clicks("large.png")
	p.sees("the whole of the large one", `document.querySelector(".picture-view > img")?.alt === "large.png" && `+drawn+" <= innerWidth")
	p.runs("ask for its full size", `document.querySelector('button[aria-label="Full size"]').click()`)
	p.sees("its full size", drawn+" === 3000")
	p.picture("files-picture-full", "desktop")
}
