//go:build e2e

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// buildBody is a build in the record.
type buildRecordBody struct {
	ID      int64  `json:"id"`
	State   string `json:"state"`
	Commit  string `json:"commit"`
	Why     string `json:"why"`
	By      string `json:"by"`
	Problem string `json:"problem"`
	Log     string `json:"log"`
}

// dropImages removes the images of a template that only a test has.
func dropImages(t *testing.T, template string) {
	t.Helper()
	t.Cleanup(func() {
		if refs := strings.Fields(engine(t, "images", "--format", "{{.Repository}}:{{.Tag}}", "sandboxd/"+template)); len(refs) > 0 {
			engine(t, append([]string{"rmi", "--force"}, refs...)...)
		}
	})
}

func (s *server) builds(template string) []buildRecordBody {
	s.t.Helper()
	var list struct {
		Builds []buildRecordBody `json:"builds"`
	}
	s.call("GET", "/templates/"+template+"/builds", nil, &list)
	return list.Builds
}

// gitRepository is a repository that git's own server gives away.
type gitRepository struct {
	t        *testing.T
	dir, url string
}

func newGitRepository(t *testing.T) *gitRepository {
	t.Helper()
	r := &gitRepository{t: t, dir: filepath.Join(t.TempDir(), "t.git")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("config", "user.name", "Ann")
	r.git("config", "user.email", "ann@example.com")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	programs, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Not by git, which would begin it as another process that does not end with it.
	cmd := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(programs)), "git-daemon"), "--reuseaddr", "--export-all", "--listen=127.0.0.1", "--port="+port, "--base-path="+filepath.Dir(r.dir))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it is of no use any more, however it ends
	r.url = "git://127.0.0.1:" + port + "/t.git"
	return r
}

func (r *gitRepository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes the files of the template tool, and gives the commit's id.
func (r *gitRepository) commit(yaml, dockerfile string) string {
	r.t.Helper()
	at := filepath.Join(r.dir, "templates/tool")
	err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "template.yaml"), []byte(yaml), 0o644), os.WriteFile(filepath.Join(at, "Dockerfile"), []byte(dockerfile), 0o644))
	if err != nil {
		r.t.Fatal(err)
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", "A change")
	return r.git("rev-parse", "HEAD")
}

const toolYAML = "name: tool\ntitle: Tool\ndescription: A tool of ours.\n"

// TestTemplates_AreBuiltFromGit fetches, builds and uses a template from a repository, which then has a bad revision.
func TestTemplates_AreBuiltFromGit(t *testing.T) {
	dropImages(t, "tool")
	s := newServer(t, "--prebuild", "")
	r := newGitRepository(t)
	from := "FROM debian:trixie-slim\n# " + time.Now().String() + "\n" // no image of an earlier run will do
	first := r.commit(toolYAML, from+"RUN echo one >/made\n")
	source := map[string]any{"url": r.url, "ref": "main", "path": "templates/tool"}
	s.until("git serves", func() bool {
		status, _ := s.raw("PUT", "/templates/tool/source", source)
		return status == http.StatusCreated
	})
	box := map[string]any{"name": "first", "template": "tool"}
	s.create(box)
	if out := s.exec("first", map[string]any{"command": "cat /made"}); out.Stdout != "one\n" {
		t.Errorf("the sandbox has %q", out.Stdout)
	}

	next := r.commit(toolYAML, from+"RUN echo two >/made\n")
	s.call("POST", "/templates/tool/build", map[string]any{}, nil)
	s.untilWithin(2*time.Minute, "the next revision is built", func() bool {
		list := s.builds("tool")
		return len(list) == 2 && list[0].State == "done" && list[0].Commit == next && list[0].Why == "asked" && list[1].Commit == first && list[1].Why == ""
	})
	s.create(map[string]any{"name": "second", "template": "tool"})
	if out := s.exec("second", map[string]any{"command": "cat /made"}); out.Stdout != "two\n" {
		t.Errorf("the sandbox has %q", out.Stdout)
	}

	r.commit("name: tool\ntitel: Tool\n", "FROM debian:trixie-slim\n")
	s.call("POST", "/templates/tool/build", nil, nil)
	s.until("the bad revision is refused", func() bool {
		list := s.builds("tool")
		return len(list) == 3 && list[0].State == "failed" && strings.Contains(list[0].Problem, "template.yaml:2")
	})
	var at struct{ Commit, Problem string }
	s.call("GET", "/templates/tool/source", nil, &at)
	if at.Commit != next || !strings.Contains(at.Problem, "template.yaml:2") {
		t.Errorf("the source is %+v", at)
	}
	s.create(map[string]any{"name": "third", "template": "tool"})
	if status, body := s.raw("DELETE", "/templates/tool", nil); status != http.StatusConflict || !strings.Contains(string(body), "first") {
		t.Errorf("deleting it gives %d, %s", status, body)
	}
	if out := s.remote("template", "builds", "tool"); !strings.Contains(out, "failed") || !strings.Contains(out, next[:10]) {
		t.Errorf("the command lists\n%s", out)
	}
}

// remote runs a command that asks the server from anywhere.
func (s *server) remote(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "SANDBOXD_URL=http://localhost:"+s.port(), "SANDBOXD_TOKEN="+s.token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("%v: %v", args, err)
	}
	return string(out)
}

// TestTemplates_ABuildThatIsCutOffIsShownAsSuch kills sandboxd in the middle of a build.
func TestTemplates_ABuildThatIsCutOffIsShownAsSuch(t *testing.T) {
	dropImages(t, "tool")
	s := newServer(t, "--prebuild", "")
	files := map[string]string{"template.yaml": toolYAML, "Dockerfile": "FROM debian:trixie-slim\nRUN echo " + time.Now().String() + "; sleep 20\n"}
	s.call("PUT", "/templates/tool", map[string]any{"files": files}, nil)
	s.call("POST", "/templates/tool/build", map[string]any{}, nil)
	s.until("it is building", func() bool { list := s.builds("tool"); return len(list) == 1 && list[0].State == "running" })
	s.kill()
	s.start()
	if list := s.builds("tool"); len(list) != 1 || list[0].State != "cut-off" {
		t.Errorf("builds are %+v", list)
	}
	files["Dockerfile"] = "FROM debian:trixie-slim\nRUN true\n"
	s.call("PUT", "/templates/tool", map[string]any{"files": files}, nil)
	s.create(map[string]any{"name": "lab", "template": "tool"})
}

// TestTemplatesPage_CopiesChecksAndBuilds does what a person does who writes a template.
func TestTemplatesPage_CopiesChecksAndBuilds(t *testing.T) {
	dropImages(t, "my-tool")
	dir := t.TempDir()
	writeTemplate(t, dir, "tool", toolYAML)
	if err := os.WriteFile(filepath.Join(dir, "tool/Dockerfile"), []byte("FROM debian:trixie-slim\n\n# What everyone needs.\nRUN echo tool >/tool\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, "--prebuild", "", "--templates", dir)
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.copies(dashboard)
	p.writesAMistake()
	p.mendsAndBuilds()
	p.savesOverAChange(s)
	p.plansRebuilds(dashboard)
}

func (p *person) copies(dashboard string) {
	p.t.Helper()
	p.does("look at a template", chromedp.Navigate(dashboard+"/templates/tool"))
	p.sees("how to edit it", current+` && document.querySelector('a[href="/templates/new?from=tool"]') !== null`)
	p.runs("make a copy", `document.querySelector('a[href="/templates/new?from=tool"]').click()`)
	p.sees("a name", sheetIsOpen+` && document.querySelector("#template-name").value === "my-tool" && document.querySelector("#schedule-from").value === "tool"`)
	p.pictures("template-new")
	p.does("create it", chromedp.Submit("#template-name"))
	p.sees("its files", at("/templates/my-tool/edit")+` && document.querySelectorAll(".template-tab").length === 3 && document.querySelector(".cm-content")?.textContent.includes("name: my-tool")`)
}

// problems is a script that gives the problems that are listed.
const problems = `[...document.querySelectorAll(".template-problem")].map((p) => p.innerText).join("|")`

// pressesInEditor presses a key with Ctrl in the editor of the file that is open.
func (p *person) pressesInEditor(key, code string, keyCode int64) {
	p.t.Helper()
	p.runs("focus the editor", `document.querySelector(".template-place:not([hidden]) .cm-content").focus()`)
	p.presses(key, code, keyCode, ctrlKey)
}

func (p *person) writesAMistake() {
	p.t.Helper()
	p.runs("open the Dockerfile", `document.querySelector('[data-file="Dockerfile"]').click()`)
	p.sees("it", `document.querySelector(".template-place:not([hidden]) .cm-content").textContent.includes("What everyone needs")`)
	p.pressesInEditor("End", "End", 35)
	p.types("RNU echo built-here-$((6*7))")
	p.sees("that it is marked", problems+`.includes("Dockerfile:5") && document.querySelector(".template-place:not([hidden]) .cm-lint-marker-error") !== null &&
		document.querySelector("[data-stand]").textContent === "1 problem"`)
	p.pictures("template-edit-problem")
	p.does("save all the same", chromedp.Click("[data-save]"))
	p.sees("that it is refused", `document.querySelector("[data-notes]").textContent.includes("Dockerfile:5")`)
}

func (p *person) mendsAndBuilds() {
	p.t.Helper()
	p.pressesInEditor("a", "KeyA", 65)
	p.types(fmt.Sprintf("FROM debian:trixie-slim\nRUN echo built-here-$((6*7)) in-run-%d", time.Now().UnixNano())) // of the engine's cache nothing is in the log
	p.sees("no problem", problems+` === "" && document.querySelector("[data-stand]").textContent === "Not saved"`)
	p.does("build, which saves first", chromedp.Click(`#template-image form[action$="/build"] button`))
	p.seesWithin("the log", `document.querySelector("#build-log").textContent.includes("built-here-42") && /Built/.test(document.querySelector("#template-image").innerText)`, 2*time.Minute)
	p.sees("that it is saved, on the same page", at("/templates/my-tool/edit")+` && document.querySelector("[data-stand]").textContent === "Saved"`)
	p.pictures("template-edit-built")
}

func (p *person) savesOverAChange(s *server) {
	p.t.Helper()
	s.call("PUT", "/templates/my-tool", map[string]any{"files": map[string]any{"template.yaml": strings.Replace(toolYAML, "name: tool", "name: my-tool", 1),
		"Dockerfile": "FROM debian:trixie-slim\nRUN echo theirs\n", "README.md": nil}}, nil)
	p.pressesInEditor("End", "End", 35)
	p.types("# mine")
	p.does("save", chromedp.Click("[data-save]"))
	p.sees("that another was quicker", `document.querySelector("[data-notes]").textContent.includes("Another user has saved this template")`)
	p.runs("compare", `[...document.querySelectorAll("[data-notes] button")].find((b) => b.textContent === "Compare").click()`)
	p.sees("both", `document.querySelector(".compare")?.textContent.includes("theirs")`)
	p.pictures("template-edit-conflict")
	p.runs("use theirs", `[...document.querySelectorAll("[data-notes] button")].find((b) => b.textContent === "Use theirs").click()`)
	p.sees("theirs", `document.querySelector(".template-place:not([hidden]) .cm-content").textContent.includes("theirs") && document.querySelector("[data-stand]").textContent === "Saved"`)
}

func (p *person) plansRebuilds(dashboard string) {
	p.t.Helper()
	p.does("its page", chromedp.Navigate(dashboard+"/templates/my-tool"))
	p.sees("the build", current+` && document.querySelectorAll("[data-build-record]").length === 1`)
	p.runs("plan rebuilds", `document.querySelector('a[href$="/rebuild"]').click()`)
	p.sees("the form", sheetIsOpen+` && document.querySelector("#schedule-every") !== null`)
	p.runs("every week", `(() => { const e = document.querySelector("#schedule-every"); e.value = "week"; e.dispatchEvent(new Event("change", {bubbles: true})) })()`)
	p.pictures("template-plan")
	p.does("save", chromedp.Submit("#schedule-at"))
	p.sees("when it is", `document.querySelector("#template-upkeep").textContent.includes("every week on Monday at 04:00")`)
	p.pictures("template-page")
	p.does("the build's log", chromedp.Click("[data-build-record] a"))
	p.sees("it", `document.querySelector(".log").textContent.includes("built-here-42")`)
	p.pictures("template-build")
	p.does("a repository", chromedp.Navigate(dashboard+"/templates/new/git"))
	p.sees("the form", `document.querySelector("#source-url") !== null`)
	p.pictures("template-source")
}

// gitsIn counts the processes that work in a folder.
func gitsIn(t *testing.T, folder string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if at, err := os.Readlink(filepath.Join("/proc", p.Name(), "cwd")); err == nil && strings.HasPrefix(at, folder) {
			n++
		}
	}
	return n
}

// TestTemplates_AFetchThatIsCutOffLeavesNothing kills sandboxd while git waits for a server that never answers.
func TestTemplates_AFetchThatIsCutOffLeavesNothing(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	folder := filepath.Join(s.data, "own-templates")
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _, _ = s.try("PUT", "/templates/tool/source", map[string]any{"url": "git://" + l.Addr().String() + "/t.git"}) // it is cut off
	}()
	s.until("git waits", func() bool { return gitsIn(t, folder) > 0 })
	s.kill()
	<-asked
	s.until("git ends too", func() bool { return gitsIn(t, folder) == 0 })
	s.start()
	left, err := filepath.Glob(filepath.Join(folder, ".versions", "*"))
	if status, _ := s.raw("GET", "/templates/tool/source", nil); err != nil || len(left) != 0 || status != http.StatusNotFound {
		t.Errorf("left are %v, %v, and the source gives %d", left, err, status)
	}
}
