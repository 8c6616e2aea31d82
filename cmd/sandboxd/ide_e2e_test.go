//go:build e2e

package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ideBody is the API's VS Code.
type ideBody struct {
	Enabled             bool
	State, URL, Problem string
	Progress            *struct {
		Step, Steps, Percent int
		Line                 string
	}
}

func (s *server) ide(name string) ideBody {
	s.t.Helper()
	var out ideBody
	if status := s.call("GET", "/sandboxes/"+name+"/ide", nil, &out); status != http.StatusOK {
		s.t.Fatalf("VS Code of %s: %d", name, status)
	}
	return out
}

func (s *server) setIDE(name string, on bool) ideBody {
	s.t.Helper()
	var out ideBody
	if status := s.call("PUT", "/sandboxes/"+name+"/ide", map[string]any{"enabled": on}, &out); status != http.StatusOK || out.Enabled != on {
		s.t.Fatalf("switch VS Code of %s to %t: %d %+v", name, on, status, out)
	}
	return out
}

// offersIDE switches VS Code on and waits until it can be opened.
func (s *server) offersIDE(name string) ideBody {
	s.t.Helper()
	st := s.setIDE(name, true)
	s.untilWithin(buildLimit, "VS Code is ready", func() bool {
		if st = s.ide(name); st.State == "failed" {
			s.t.Fatalf("VS Code could not be built: %s", st.Problem)
		}
		return st.State == "ready" || st.State == "running"
	})
	return st
}

// Scripts that look at VS Code's page.
const (
	ideExplorer = `.explorer-folders-view .monaco-list-row`
	ideUsable   = `document.querySelector(".monaco-workbench ` + ideExplorer + `") !== null`
	ideText     = `[...document.querySelectorAll(".editor-instance .view-line")].map((l) => l.innerText.replaceAll("\u00a0", " ")).join("\n")`
)

// coder is a person at VS Code.
type coder struct{ *person }

// presses presses one key.
func (p coder) presses(key string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	p.does("press "+key, chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
}

// commands runs a command of VS Code's palette.
func (p coder) commands(name string) {
	p.t.Helper()
	const palette = `document.querySelector(".quick-input-widget:not([style*='display: none'])")`
	listed := fmt.Sprintf(`(document.querySelector(".quick-input-list .monaco-list-row.focused")?.getAttribute("aria-label")?.startsWith(%q) ?? false)`, name)
	// It has what is there when it opens, and extensions bring theirs a while after the page.
	for deadline := time.Now().Add(eventLimit); ; p.presses(kb.Escape) {
		p.presses(kb.F1)
		p.sees("the palette", palette+`?.querySelector("input") != null`)
		p.inserts(name)
		p.sees("what it has of "+name, listed+" || "+palette+`.innerText.includes("No matching")`)
		if p.reads(listed) == "true" {
			break
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("there is no command %q", name)
		}
	}
	p.presses("\r")
}

// writes types text where the focus is, key by key.
func (p coder) writes(text string) {
	p.t.Helper()
	p.does("write "+text, chromedp.KeyEvent(text))
}

// inserts puts text where the focus is, at once.
func (p coder) inserts(text string) {
	p.t.Helper()
	p.does("insert "+text, func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return chromedp.Void{}, err
	})
}

// opensIDE opens VS Code in this window and waits until it can be used.
func (p coder) opensIDE(url string) {
	p.t.Helper()
	p.does("open VS Code", chromedp.Navigate(url))
	p.sees("its explorer", ideUsable)
}

// opensFile opens a file of the explorer, for good.
func (p coder) opensFile(name string) {
	p.t.Helper()
	p.does("open "+name, chromedp.DoubleClick(fmt.Sprintf(`.explorer-folders-view [role="treeitem"][aria-label^=%q]`, name)))
}

// TestIDE_FromOffToOff is VS Code as a person has it: switched on, a file edited, its terminal, an extension and a setting that
// stay, and switched off again.
func TestIDE_FromOffToOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"template": "base", "name": "lab"})
	s.exec("lab", map[string]any{"command": "printf 'first line\\n' > hello.txt"})
	if st := s.ide("lab"); st.Enabled || st.State != "off" {
		t.Fatalf("before: %+v", st)
	}
	p := coder{newPerson(t)}
	p.signsIn("http://localhost:" + strings.Split(s.addr, ":")[1])
	url := s.ide("lab").URL
	p.does("open VS Code where there is none", chromedp.Navigate(url))
	p.sees("that it is off", `document.body.innerText.includes("VS Code is off in lab")`)
	p.pictures("ide-off")

	s.offersIDE("lab")
	if tree := s.treeOfIDE(); tree > mostIDE {
		t.Errorf("VS Code has %d bytes on the disk", tree)
	}
	p.opensIDE(url)
	if host := p.reads("location.host"); host != s.host("code-lab") {
		t.Errorf("the page is at %s", host)
	}
	p.edits(s)
	p.looksRound(s)
	p.usesItsTerminal(s)
	p.keepsAcrossAStop(s, url)
	p.seesWhatHasChanged(s)

	s.setIDE("lab", false)
	s.until("it has ended", func() bool {
		return s.exec("lab", map[string]any{"command": "pgrep -f start.js"}).ExitCode != 0
	})
	p = coder{p.window()} // the other asks whether to leave it
	p.does("open it again", chromedp.Navigate(url))
	p.sees("that it is off", `document.body.innerText.includes("VS Code is off in lab")`)
}

// mostIDE is how much the tree of VS Code may have, which all sandboxes share.
const mostIDE = 260 << 20

// treeOfIDE is how many bytes the files of VS Code have that were built.
func (s *server) treeOfIDE() (total int64) {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.data, "ide", "[0-9a-f]*"))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("VS Code is built in %q, %v", found, err)
	}
	err = filepath.WalkDir(found[0], func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil || total < 1<<20 {
		s.t.Fatalf("the tree of VS Code: %d bytes, %v", total, err)
	}
	s.t.Logf("VS Code: %.1f MiB", float64(total)/(1<<20))
	return total
}

// looksRound keeps pictures of the open editor, and finds the sandbox's ports led to their own hosts.
func (p coder) looksRound(s *server) {
	p.t.Helper()
	p.sees("the sandbox in the title", `document.title.endsWith("lab · VS Code")`)
	for _, theme := range []string{"dark", "light"} {
		for _, size := range []string{"phone", "desktop"} {
			p.resize(size, theme)
			p.sees(theme+" colours", fmt.Sprintf(`document.querySelector(".monaco-workbench").classList.contains(%q)`, map[string]string{"dark": "vs-dark", "light": "vs"}[theme]))
			p.picture("ide-"+theme, size)
		}
	}
	out := s.exec("lab", map[string]any{"command": `tr '\0' '\n' < /proc/$(pgrep -fo start.js)/environ | grep ^VSCODE_PROXY_URI=`}).Stdout
	if want := "VSCODE_PROXY_URI=http://{{port}}-lab.localhost:" + s.port() + "\n"; out != want {
		p.t.Errorf("ports are led to %q, want %q", out, want)
	}
}

// edits changes a file and saves it.
func (p coder) edits(s *server) {
	p.t.Helper()
	p.opensFile("hello.txt")
	p.sees("the file", ideText+`.includes("first line")`)
	p.presses(kb.End, chromedp.ModifierCtrl)
	p.writes("second line, by hand")
	p.presses("s", chromedp.ModifierCtrl)
	s.until("it is saved", func() bool {
		return s.exec("lab", map[string]any{"command": "cat hello.txt"}).Stdout == "first line\nsecond line, by hand"
	})
	p.picture("ide-file", "desktop")
}

// usesItsTerminal runs a command in VS Code's own terminal, and installs an extension by the command that is there.
func (p coder) usesItsTerminal(s *server) {
	p.t.Helper()
	s.exec("lab", map[string]any{"command": extensionFile})
	p.presses("`", chromedp.ModifierCtrl)
	p.sees("a terminal", `document.querySelector(".terminal-wrapper .xterm-helper-textarea") !== null`)
	p.sees("a prompt", `document.querySelector(".terminal-wrapper .xterm-screen") !== null`)
	p.does("click into it", chromedp.Click(".terminal-wrapper .xterm-screen"))
	p.types("echo $((6*7)) $(whoami) $PWD > answer.txt")
	s.until("the command has run", func() bool {
		return s.exec("lab", map[string]any{"command": "cat answer.txt"}).Stdout == "42 agent /home/agent\n"
	})
	p.types("code-server --install-extension /tmp/tiny.vsix; code-server hello.txt")
	s.until("the extension is there", func() bool {
		return s.exec("lab", map[string]any{"command": "ls -d .local/share/code-server/extensions/test.tiny-*"}).ExitCode == 0
	})
	p.picture("ide-terminal", "desktop")
}

// extensionFile makes an extension with a command of its own and nothing else.
const extensionFile = `mkdir -p /tmp/tiny/extension && cd /tmp/tiny && cat > extension/package.json <<'END'
{"name":"tiny","publisher":"test","version":"1.0.0","engines":{"vscode":"^1.50.0"},"main":"./main.js","activationEvents":["onStartupFinished"],
"contributes":{"commands":[{"command":"tiny.say","title":"Tiny: Say Something"}]}}
END
cat > extension/main.js <<'END'
const vscode = require("vscode");
exports.activate = (c) => c.subscriptions.push(vscode.commands.registerCommand("tiny.say", () =>
	require("fs").writeFileSync(process.env.HOME + "/said.txt", "something")));
END
cat > '[Content_Types].xml' <<'END'
<?xml version="1.0" encoding="utf-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension=".json" ContentType="application/json"/><Default Extension=".vsixmanifest" ContentType="text/xml"/></Types>
END
cat > extension.vsixmanifest <<'END'
<?xml version="1.0" encoding="utf-8"?><PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011"><Metadata><Identity Language="en-US" Id="tiny" Version="1.0.0" Publisher="test"/><DisplayName>Tiny</DisplayName></Metadata><Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation><Dependencies/><Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/></Assets></PackageManifest>
END
rm -f /tmp/tiny.vsix && zip -qr /tmp/tiny.vsix .`

// keepsAcrossAStop changes a setting, stops and starts the sandbox, and finds the setting and the extension again.
func (p coder) keepsAcrossAStop(s *server, url string) {
	p.t.Helper()
	p.commands("View: Toggle Status Bar Visibility")
	const hidden = `document.querySelector(".part.statusbar")?.offsetParent === null || document.querySelector(".monaco-workbench.nostatusbar") !== null`
	p.sees("no status bar", hidden)
	s.until("the setting is kept", func() bool {
		return strings.Contains(s.exec("lab", map[string]any{"command": "cat .local/share/code-server/User/settings.json"}).Stdout, "statusBar.visible")
	})
	for _, verb := range []string{"stop?wait=stopped", "start?wait=ready"} {
		if status, text := s.raw("POST", "/sandboxes/lab/"+verb, nil); status != http.StatusOK {
			p.t.Fatalf("%s: %d %s", verb, status, text)
		}
	}
	if st := s.ide("lab"); !st.Enabled || st.State == "off" { // the page that is still open may have it started by now
		p.t.Errorf("after a start it is %+v", st)
	}
	p = coder{p.window()}
	p.opensIDE(url)
	p.sees("no status bar again", hidden)
	p.sees("the file that was open", ideText+`.includes("second line")`)
	p.commands("Tiny: Say Something")
	s.until("the extension has spoken", func() bool {
		return s.exec("lab", map[string]any{"command": "cat said.txt"}).Stdout == "something"
	})
	p.pictures("ide-again")
}

// seesWhatHasChanged opens a folder that is under git, finds its changed file and its new one in the Source Control view, and
// that no extension could not be started.
func (p coder) seesWhatHasChanged(s *server) {
	p.t.Helper()
	made := s.exec("lab", map[string]any{"command": `mkdir project && cd project && git init -q && echo one > changed.txt && git add . &&
git -c user.name=Agent -c user.email=agent@lab.test commit -q -m First && echo two >> changed.txt && echo new > new.txt`})
	if made.ExitCode != 0 {
		p.t.Fatalf("a folder under git: %+v", made)
	}
	p = coder{p.window()}
	p.opensIDE("http://" + s.host("code-lab") + "/?folder=/home/agent/project")
	p.commands("Source Control: Focus on Changes View")
	for _, row := range []string{"changed.txt, Modified", "new.txt, Untracked"} {
		p.sees(row, fmt.Sprintf(`document.querySelector('.scm-view .monaco-list-row[aria-label^=%q]') !== null`, row))
	}
	p.pictures("ide-git")
	if failed := s.exec("lab", map[string]any{"command": "grep -rhE 'Activating extension|Cannot find' .local/share/code-server/logs | grep -iE 'failed|Cannot find'"}); failed.ExitCode != 1 {
		p.t.Errorf("VS Code has extensions that do not start: %+v", failed)
	}
}

// TestIDE_AFreezeLastsUnderAnOpenTabUntilAKeyIsPressed leaves a tab open in an image that has nothing but Debian: neither Node
// nor a user.
func TestIDE_AFreezeLastsUnderAnOpenTabUntilAKeyIsPressed(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "", "--settle", "1s")
	s.create(map[string]any{"image": "debian:trixie-slim", "name": "lab"})
	s.exec("lab", map[string]any{"command": "echo one > hello.txt"})
	s.offersIDE("lab")
	p := coder{newPerson(t)}
	p.signsIn("http://localhost:" + strings.Split(s.addr, ":")[1])
	p.opensIDE(s.ide("lab").URL)
	p.opensFile("hello.txt")
	p.sees("the file", ideText+`.includes("one")`)
	p.runs("mark the page, to see a reload", "window.same = true")
	if status, text := s.raw("PATCH", "/sandboxes/lab", map[string]any{"freeze_after": "10s"}); status != http.StatusOK {
		t.Fatalf("patch: %d %s", status, text)
	}
	for range 8 { // a person who writes, slowly, for longer than that
		p.writes("x")
		p.unusedFor(3 * time.Second)
		if state := s.rest("lab").State; state != "running" {
			t.Fatalf("while a person writes it is %s", state)
		}
	}
	p.presses("s", chromedp.ModifierCtrl)
	p.freezesAndGoesOn(s, "first")
	p.freezesAndGoesOn(s, "second")
	if p.reads("window.same") != "true" {
		t.Error("the page was loaded again")
	}
}

// unusedFor lets time pass in which nobody does anything.
func (p coder) unusedFor(d time.Duration) {
	p.t.Helper()
	select {
	case <-time.After(d):
	case <-p.t.Context().Done():
		p.t.Fatal("the test has ended")
	}
}

// freezesAndGoesOn freezes the sandbox under the open tab, sees that it stays so, and types. An unused tab keeps it up for an hour.
func (p coder) freezesAndGoesOn(s *server, word string) {
	p.t.Helper()
	p.unusedFor(20 * time.Second) // longer than freeze_after, and until what was done last has no more consequences in the page
	if state := s.rest("lab").State; state != "running" {
		p.t.Errorf("under an open tab it is %s", state)
	}
	s.sleeps("lab", "frozen")
	p.unusedFor(40 * time.Second) // longer than VS Code waits for an answer before it connects again
	if state := s.rest("lab").State; state != "frozen" {
		p.t.Errorf("under an unused tab it is %s: %+v", state, s.rest("lab"))
	}
	p.picture("ide-frozen-"+word, "desktop")
	p.writes(word)
	s.until("a key has thawed it", func() bool { return s.rest("lab").State == "running" })
	p.presses("s", chromedp.ModifierCtrl)
	s.until("what was written is saved", func() bool {
		return strings.Contains(s.exec("lab", map[string]any{"command": "cat hello.txt"}).Stdout, word)
	})
	p.sees("no word of a lost connection", `!/reconnect|disconnected/i.test(document.body.innerText)`)
}

// TestIDE_ATemplateOffersItAlsoWhereTheSandboxIsHeldStrictly asks for the page with a token, in a sandbox without network whose
// root cannot be written to.
func TestIDE_ATemplateOffersItAlsoWhereTheSandboxIsHeldStrictly(t *testing.T) {
	t.Parallel()
	templates := t.TempDir()
	folder := filepath.Join(templates, "closed")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	manifest := "name: closed\ntitle: Closed\ndescription: Held strictly.\nimage: debian:trixie-slim\nprofile: strict\nide: true\n"
	if err := os.WriteFile(filepath.Join(folder, "template.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, "--prebuild", "", "--templates", templates)
	s.create(map[string]any{"template": "closed", "name": "lab"})
	s.untilWithin(buildLimit, "VS Code is ready, unasked", func() bool { return s.ide("lab").State == "ready" })
	for _, path := range []string{"/?folder=/home/agent", "/healthz"} {
		if status, text, _ := s.get("code-lab", path, nil); status != http.StatusOK || path != "/healthz" && !strings.Contains(text, "workbench.js") {
			t.Errorf("%s: %d %.300s", path, status, text)
		}
	}
	if st := s.ide("lab"); st.State != "running" || !st.Enabled {
		t.Errorf("then it is %+v", st)
	}
	s.exec("lab", map[string]any{"command": "for p in /proc/[0-9]*; do grep -qs start.js $p/cmdline && kill -9 ${p#/proc/}; done; true"})
	s.until("it is started again after its death", func() bool {
		status, _, _ := s.get("code-lab", "/healthz", nil)
		return status == http.StatusOK && s.ide("lab").State == "running"
	})
}
