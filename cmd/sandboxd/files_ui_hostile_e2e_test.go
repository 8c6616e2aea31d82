//go:build e2e

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// owned is what hostile files try to run.
const owned = `window.owned=1;parent.owned=1;top.owned=1;document.title='owned'`

// hostileFiles are files that run something when they are taken for pages, and how to see that they are shown.
func hostileFiles() map[string]string {
	attack := `<script>` + owned + `</script><img src=x onerror="` + owned + `"><svg onload="` + owned + `"></svg><a href="javascript:` + owned + `">press</a>` +
		`<iframe srcdoc="<script>` + owned + `</script>"></iframe><form action="/logout" method="post"><button>go</button></form><style>*{display:none}</style>` +
		`<meta http-equiv="refresh" content="0;url=https://evil.invalid/"><link rel="stylesheet" href="https://evil.invalid/x.css"><object data="https://evil.invalid/"></object>`
	return map[string]string{
		"page.html": "<!doctype html><title>page</title>seen" + attack,
		"readme.md": "# seen\n\n" + attack + "\n\n[link](javascript:" + owned + ") ![remote](https://evil.invalid/track.png)\n",
		"book.ipynb": `{"nbformat":4,"cells":[{"cell_type":"markdown","source":["# seen\n",` + jsonText(attack) + `]},
			{"cell_type":"code","execution_count":1,"source":"x","outputs":[{"output_type":"execute_result","data":{"text/html":` + jsonText(attack) + `,"image/svg+xml":` + jsonText(attack) + `}}]}]}`,
		"data.csv":    "seen,b\n" + strings.ReplaceAll(attack, ",", ";") + ",=1+1\n",
		"drawing.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="90" height="90" onload="` + owned + `"><script>` + owned + `</script><image href="https://evil.invalid/x.png"/><foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:` + owned + `"/></foreignObject><rect width="9" height="9" fill="teal"/></svg>`,
		"report.pdf":  scriptedPDF(),
	}
}

func jsonText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// scriptedPDF is a page of text that a reader runs a script of when it opens it.
func scriptedPDF() string {
	page := "BT /F1 36 Tf 72 700 Td (seen) Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (window.owned=1) >> >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(page), page),
	}
	out := "%PDF-1.4\n"
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, len(out))
		out += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := len(out)
	out += fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		out += fmt.Sprintf("%010d 00000 n \n", at)
	}
	return out + fmt.Sprintf("trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF", len(objects)+1, table)
}

// hostileShown says for each hostile file how a person sees that it is shown, and shown so that it runs nothing.
var hostileShown = map[string]string{
	"page.html":   says(editorText, "<script>") + ` && document.querySelector(".preview-frame") === null`,
	"readme.md":   framed,
	"book.ipynb":  framed,
	"data.csv":    says(`document.querySelector(".table-view")?.innerText`, "seen") + ` && document.querySelector(".table-view").innerText.includes("<script>")`,
	"drawing.svg": `document.querySelector(".picture-view > img")?.naturalWidth > 0`,
	"report.pdf":  `document.querySelector(".pdf-page > canvas") !== null`,
}

// framed says that a document is shown in a frame that may do nothing.
const framed = `(() => { const f = document.querySelector(".preview-frame"); return f !== null && f.getAttribute("sandbox") === "" && f.contentDocument === null &&
	f.srcdoc.includes("seen") && f.srcdoc.includes("default-src 'none'") && !/<script|onerror|onload|<iframe|<form|javascript:window|evil\.invalid\/x/i.test(f.srcdoc.replace(/title="[^"]*"/g, "")) })()`

// unharmed says that nothing has run, nothing was loaded from elsewhere, and the person is still where they were.
const unharmed = `window.owned === undefined && document.title !== "owned" && location.pathname === "/sandboxes/otter" &&
	performance.getEntriesByType("resource").every((e) => new URL(e.name).origin === location.origin || e.name.startsWith("data:"))`

// TestFilesPage_RunsNothingOfASandbox opens files that are made to run something in every way that there is to show them.
func TestFilesPage_RunsNothingOfASandbox(t *testing.T) {
	p := openFiles(t, "true")
	for name, content := range hostileFiles() {
		p.puts(name, content)
	}
	for name := range hostileShown { // rows move as long as others come
		p.sees(name+" in the tree", has(row(name)))
	}
	for name := range hostileShown {
		p.clicks(name)
		p.sees(name+" shown", hostileShown[name])
		p.pictures("files-preview-" + strings.ReplaceAll(name, ".", "-"))
		if p.reads(unharmed) != "true" {
			t.Errorf("%s has done something: owned %s, title %s, at %s, loaded %s", name, p.reads("window.owned"), p.reads("document.title"), p.reads("location.href"),
				p.reads(`performance.getEntriesByType("resource").map((e) => e.name).join()`))
		}
	}
	for _, name := range []string{"page.html", "drawing.svg"} {
		p.runs("go to it", fmt.Sprintf(`location.href = %q`, p.dashboard()+"/sandboxes/otter/files?path=/home/agent/"+name+"&preview=image"))
		p.sees("that it is kept, not shown", `document.querySelector("sandbox-files") !== null && `+unharmed)
	}
}

// puts writes a file over the API.
func (p *filesPage) puts(name, content string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPut, "http://"+p.s.addr+"/api/v1/sandboxes/"+p.name+"/files?path="+url.QueryEscape("/home/agent/"+name), strings.NewReader(content))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.s.token)
	resp, err := p.s.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		p.t.Fatalf("write %s: %s", name, resp.Status)
	}
}

// TestFilesPage_ShowsEveryNameAsItIs has names that are made to mislead.
func TestFilesPage_ShowsEveryNameAsItIs(t *testing.T) {
	p := openFiles(t, `mkdir odd && cd odd && touch '<img src=x onerror=window.owned=1>.txt' "$(printf 'line\nbreak')" "$(printf 'esc\033[31m')" "$(printf 'photo\342\200\256gnp.exe')" "$(printf 'bad\377bytes')" ' ends ' '日本語'`)
	p.clicks("odd")
	for want, key := range map[string]string{
		`line\nbreak`: "line%0Abreak", `esc\e[31m`: "esc%1B%5B31m", `photo\u202egnp.exe`: "photo%E2%80%AEgnp.exe", `bad\xffbytes`: "bad%FFbytes", "·ends·": "%20ends%20",
		"<img src=x onerror=window.owned=1>.txt": "%3Cimg%20src%3Dx%20onerror%3Dwindow.owned%3D1%3E.txt", "日本語": "%E6%97%A5%E6%9C%AC%E8%AA%9E",
	} {
		name := fmt.Sprintf(`document.querySelector(".tree-row[data-path$='/%s'] .name")?.textContent`, key)
		p.sees(want, fmt.Sprintf("%s === %q", name, want))
	}
	p.pictures("files-names")
	// What bytes a name has is kept: it can be renamed, though it is no text.
	p.does("choose it", chromedp.Click(`.tree-row[data-path$="/bad%FFbytes"]`))
	p.focuses()
	p.keys(kb.F2)
	p.inserts("good")
	p.keys("\r")
	p.sees("the new name", `document.querySelector(".tree-row[data-path$='/good']") !== null`)
	if p.reads("window.owned") != "undefined" {
		t.Error("a name has run")
	}
}

// TestFilesPage_FollowsTheSandbox shows what happens in it, without losing what the person is at, and says what wakes it.
func TestFilesPage_FollowsTheSandbox(t *testing.T) {
	p := openFiles(t, "mkdir -p src/deep && touch src/a.txt src/b.txt src/deep/c.txt")
	p.clicks("src")
	p.clicks("src/b.txt")
	p.in("rm src/a.txt && touch src/new.txt && mkdir src/deep/hidden-from-view")
	p.sees("what has come and gone", has(row("src/new.txt"))+" && !("+has(row("src/a.txt"))+")")
	if p.reads(fmt.Sprintf("document.querySelector(%q)?.getAttribute('aria-selected')", row("src/b.txt"))) != "true" {
		t.Error("the selection is lost")
	}
	p.runs("tell from outside", `document.dispatchEvent(new CustomEvent("sandboxd:reveal", { detail: { path: "~/src/deep/c.txt" } }))`)
	p.sees("what was asked for", has(row("src/deep/c.txt")))
	p.findsAndGoesToALine()

	p.s.call("POST", "/sandboxes/otter/sleep", nil, nil)
	p.sees("that it sleeps, and what wakes it", `document.querySelector("sandbox-files").dataset.state === "asleep" && /Wake/.test(document.querySelector("#ws-still").innerText)`)
	p.pictures("files-asleep")
	p.does("load the page", chromedp.Reload())
	p.sees("that it sleeps still", `/This sandbox is asleep/.test(document.querySelector("#ws-still")?.innerText ?? "")`)
	var box sandboxBody
	if p.s.call("GET", "/sandboxes/otter", nil, &box); box.State != "asleep" {
		t.Errorf("opening the page has made it %s", box.State)
	}
	p.button("Wake")
	p.sees("the tree", has(row("src")))
}

func (p *filesPage) findsAndGoesToALine() {
	p.t.Helper()
	p.puts("src/long.txt", strings.Repeat("nothing here\n", 300)+"ü the needle\n"+strings.Repeat("nor here\n", 300))
	p.focuses()
	p.keys("f", chromedp.ModifierCtrl)
	p.does("look for names", chromedp.Click(`.find-how [data-mode="names"]`))
	p.inserts("needle")
	p.sees("that no file has it as its name", says(`document.querySelector(".find-note").innerText`, "No results"))
	p.does("look into files", chromedp.Click(".find-note .link"))
	p.sees("the line", says(`document.querySelector(".find-results").innerText`, "ü the needle"))
	p.pictures("files-find")
	p.does("open it", chromedp.Click(".find-row.line"))
	p.sees("the very place", says(`document.querySelector(".editor-status")?.innerText`, "Ln 301, Col 13 (6 selected)"))
	p.runs("back to the tree", `document.querySelector("sandbox-files").setView("tree")`)
}

// TestFilesPage_LongFoldersAndFiles has ten thousand entries, a file that is too long to change, and one that is no text.
func TestFilesPage_LongFoldersAndFiles(t *testing.T) {
	p := openFiles(t, `mkdir many && cd many && seq -f 'file-%05g.txt' 10000 | xargs touch && cd .. && yes 'a line of a log' | head -c 7000000 > long.log && head -c 5000 /dev/zero > zero.bin`)
	p.clicks("many")
	p.sees("the first of them", has(row("many/file-00001.txt")))
	if drawn := p.reads(`document.querySelectorAll(".tree-row").length < 200`); drawn != "true" {
		t.Error("all rows are drawn")
	}
	p.focuses()
	// Each time that it gets to the end of what is known, more is fetched.
	p.seesBy("all of them", `document.querySelector("sandbox-files").tree.find("/home/agent/many").children.length === 10000`, func() { p.keys(kb.End) })
	typed := has(row("many/file-09999.txt")) + fmt.Sprintf(` && document.querySelector(%q).classList.contains("here")`, row("many/file-09999.txt"))
	p.seesBy("the one that was typed", typed, func() { p.keys(kb.Home + "file-09999") }) // a pause between letters begins anew
	p.picture("files-many", "desktop")
	p.runs("close it", `(() => { const f = document.querySelector("sandbox-files"); f.toggle(f.tree.find("/home/agent/many"), false) })()`)
	p.clicks("long.log")
	p.sees("its beginning", says(editorNote, "Only the first")+" && "+says(editorText, "a line of a log"))
	p.clicks("zero.bin")
	p.sees("its bytes", says(`document.querySelector(".hex")?.innerText`, "00000000  00 00"))
	p.pictures("files-binary")
	p.saves()
}

// saves downloads the folder by the link that the page makes.
func (p *filesPage) saves() {
	p.t.Helper()
	p.runs("note the link", `window.links = []; HTMLAnchorElement.prototype.click = function () { links.push(this.href) }`)
	p.runs("download", `(() => { const f = document.querySelector("sandbox-files"); f.actions.download([f.tree.find("/home/agent/zero.bin"), f.tree.find("/home/agent/long.log")], "zip") })()`)
	link := p.reads("links[0]")
	client := p.s.login("admin", journeyPassword)
	resp, err := client.Get(strings.Replace(link, "localhost", "127.0.0.1", 1))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var zip bytes.Buffer
	if _, err := zip.ReadFrom(resp.Body); err != nil || resp.StatusCode != 200 || !bytes.HasPrefix(zip.Bytes(), []byte("PK")) {
		p.t.Errorf("%s gives %s, %d bytes: %v", link, resp.Status, zip.Len(), err)
	}
}
