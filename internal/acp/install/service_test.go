package install

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestInstall_RunsTheScriptAndTellsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.program.next = func(*program) {}
		if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p := w.program.all()[0]
		if p.start.Title != "install Gemini CLI" {
			t.Errorf("people are told that %q keeps the sandbox awake", p.start.Title)
		}
		want := []string{"install-agent", Root, "gemini", "@google/gemini-cli", "0.61.0", "gemini", "20", "24.21.0", "24.22.0", "--ignore-scripts", "--omit=optional"}
		if got := p.start.Command; !slices.Equal(got[:3], []string{"/bin/sh", "-c", installScript}) || !slices.Equal(got[3:], want) {
			t.Errorf("it ran %q", got[3:])
		}
		p.says("npm http fetch GET 200 \x1b[31mhttps://registry/gem")
		p.says("ini\nnot complete")
		p.says("\n@kib 49152\n")
		synctest.Wait()
		if s := w.status("gemini"); s.State != Installing || s.Percent != 50 || s.Line != "not complete" {
			t.Errorf("it is %s, %d %%, %q", s.State, s.Percent, s.Line)
		}
		if s := w.status("qwen"); s.State != Available {
			t.Errorf("another one is %s", s.State)
		}
		w.guest.put(Root+"/gemini/version", "0.61.0\n")
		p.exit(0)
		synctest.Wait()
		if s := w.status("gemini"); s.State != Installed || s.Installed != "0.61.0" {
			t.Errorf("it is %s, version %q", s.State, s.Installed)
		}
	})
}

func TestInstall_ASandboxHasOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.program.next = func(*program) {}
		if err := w.Install(t.Context(), w.handle, "none"); !fault.Is(err, fault.NotFound) {
			t.Errorf("one that there is none of: %v", err)
		}
		if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, id := range []string{"gemini", "qwen"} {
			if err := w.Install(t.Context(), w.handle, id); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "Gemini CLI") {
				t.Errorf("install %s: %v", id, err)
			}
		}
		if err := w.Remove(t.Context(), w.handle, "qwen"); !fault.Is(err, fault.Conflict) {
			t.Errorf("remove another one: %v", err)
		}
		other := accesstest.New("other", w.guest).Handle(t)
		if err := w.Install(t.Context(), other, "qwen"); err != nil {
			t.Errorf("in another sandbox: %v", err)
		}
	})
}

func TestInstall_ContinuesWithoutItsCallerAndEndsWithTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.program.next = func(*program) {}
		ctx, leave := context.WithCancel(t.Context())
		if err := w.Install(ctx, w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		leave()
		synctest.Wait()
		if s := w.status("gemini"); s.State != Installing {
			t.Fatalf("it is %s", s.State)
		}
		w.end(errClosing)
		w.works.Wait()
		select {
		case <-w.program.all()[0].closed:
		default:
			t.Error("the program was not ended")
		}
		if err := w.Install(t.Context(), w.handle, "gemini"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a later one: %v", err)
		}
	})
}

func TestInstall_ThatWasCutOffIsToldAndMayBeRepeated(t *testing.T) {
	w := newWorld(t)
	w.guest.put(Root+"/.installing/gemini/package.json", "{}") // as an earlier run of sandboxd has left it
	if s := w.status("gemini"); s.State != Interrupted || s.Installed != "" {
		t.Errorf("it is %s, version %q", s.State, s.Installed)
	}
	if s := w.status("qwen"); s.State != Available {
		t.Errorf("another one is %s", s.State)
	}
	if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
		t.Error(err)
	}
	w.ended()
}

func TestRemove_CancelsWhatIsUnderWayAndCleansUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.program.next = func(p *program) {
			if p.start.Command[2] != installScript {
				p.exit(0)
			}
		}
		if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := w.Remove(t.Context(), w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		all := w.program.all()
		if len(all) != 2 || all[1].start.Command[2] != cleanScript || all[1].start.Command[4] != Root {
			t.Errorf("%d programs ran", len(all))
		}
		if s := w.status("gemini"); s.State != Available || s.Problem != "" {
			t.Errorf("it is %s: %q", s.State, s.Problem)
		}
	})
}

func TestRemove_EndsWithTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.program.next = func(*program) {}
		removed := make(chan error)
		go func() { removed <- w.Remove(t.Context(), w.handle, "gemini") }()
		synctest.Wait()
		w.end(errClosing)
		w.works.Wait()
		if err := <-removed; !fault.Is(err, fault.Unavailable) {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestRemove_RunsTheScriptAndSaysWhenItFails(t *testing.T) {
	w := newWorld(t)
	if err := w.Remove(t.Context(), w.handle, "no-longer-listed"); err != nil {
		t.Fatal(err)
	}
	if got := w.program.all()[0].start.Command; !slices.Equal(got, []string{"/bin/sh", "-c", removeScript, "install-agent", Root, "no-longer-listed"}) {
		t.Errorf("it ran %q", got)
	}
	for _, id := range []string{"", "../x", ".node", "a/b", "A", "-rf", "x\ny"} {
		if err := w.Remove(t.Context(), w.handle, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("remove %q: %v", id, err)
		}
	}
	w.program.next = func(p *program) { p.exit(1) }
	if err := w.Remove(t.Context(), w.handle, "gemini"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("one that cannot be removed: %v", err)
	}
}

func TestInstall_SaysWhyItFailed(t *testing.T) {
	for says, want := range map[string]string{
		"@fail npm":                  "no npm",
		"@fail network":              "no network",
		"@fail machine":              "kind of machine",
		"@fail program":              "no program gemini",
		"@fail \x1b[2Jsomething":     "exit code 7",
		"npm error code EAI_AGAIN":   "registry cannot be reached",
		"npm ERR! code ECONNREFUSED": "registry cannot be reached",
		"npm error code ETARGET":     "has no @google/gemini-cli 0.61.0",
		"npm error code ENOSPC":      "disk of the sandbox is full",
		"mkdir: cannot create directory ‘x’: No space left on device":       "disk of the sandbox is full",
		"npm error code EPERM\nnpm error path /x\nnpm http fetch GET /left": "exit code 7. code EPERM path /x",
	} {
		w := newWorld(t)
		w.program.next = func(p *program) { p.says(says + "\n"); p.exit(7) }
		if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		w.ended()
		if s := w.status("gemini"); s.State != Failed || !strings.Contains(s.Problem, want) || strings.Contains(s.Problem, "\x1b") {
			t.Errorf("%q: it is %s: %q", says, s.State, s.Problem)
		}
		w.program.next = nil
		if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
			t.Fatal(err)
		}
		w.ended()
		if s := w.status("gemini"); s.State != Available {
			t.Errorf("after another try it is %s: %q", s.State, s.Problem)
		}
	}
}

func TestInstall_AFloodOfOutputIsKeptWithinBounds(t *testing.T) {
	var p progress
	p.total = 1 << 10
	for range 100 {
		p.write([]byte(strings.Repeat("long \u202e", 10_000)))
	}
	p.write([]byte("\n@kib -5\n@kib 999999999999999999999\n@kib x\n"))
	if p.percent != 0 || len(p.line) > maxLine || strings.Contains(p.line, "\u202e") {
		t.Errorf("%d %%, a line of %d bytes", p.percent, len(p.line))
	}
	for i := range 10_000 {
		p.write(fmt.Appendf(nil, "line %d\n@kib %d\n", i, i))
	}
	p.write([]byte("@kib 5\n"))
	if p.percent != 99 || len(p.tail) != maxTail || cap(p.rest) > 4*maxRaw {
		t.Errorf("%d %%, %d lines", p.percent, len(p.tail))
	}
}

func TestInstall_OneThatNeverStopsTalkingIsEnded(t *testing.T) {
	w := newWorld(t)
	w.program.next = func(p *program) {
		for range maxSaid>>20 + 1 {
			p.says(strings.Repeat("y\n", 512<<10))
		}
	}
	if err := w.Install(t.Context(), w.handle, "gemini"); err != nil {
		t.Fatal(err)
	}
	w.ended()
	if s := w.status("gemini"); s.State != Failed || !strings.Contains(s.Problem, "16 MiB") {
		t.Errorf("it is %s: %q", s.State, s.Problem)
	}
	<-w.program.all()[0].closed
}

func TestProgress_CountsNodeAndTheAgent(t *testing.T) {
	p := progress{total: nodeMB << 10}
	p.write(fmt.Appendf(nil, "@node\n@kib %d\n", nodeMB<<9))
	if p.percent != 25 {
		t.Errorf("half of Node: %d %%", p.percent)
	}
	p.write(fmt.Appendf(nil, "@agent\n@kib 0\n@kib %d\n", nodeMB<<9))
	if p.percent != 75 {
		t.Errorf("half of the agent: %d %%", p.percent)
	}
}

func TestInstall_WritesFilesThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	w.adminList(`{"agents": [{"id": "kimi", "name": "Kimi", "summary": "s", "licence": "MIT", "licence_url": "https://example.com/l", "package": "kimi",
		"version": "1.0.0", "node": 22, "size_mb": 50, "command": ["kimi", "acp"], "files": [{"path": ".kimi/config.toml", "text": "new"}, {"path": ".kimi/own", "text": "new"}]}]}`)
	w.guest.put("/home/agent/.kimi/own", "mine")
	if err := w.Install(t.Context(), w.handle, "kimi"); err != nil {
		t.Fatal(err)
	}
	w.ended()
	if s := w.status("kimi"); s.State == Failed {
		t.Error(s.Problem)
	}
	if n := len(w.program.all()); n != 1 {
		t.Errorf("%d programs ran", n)
	}
	if w.guest.files["/home/agent/.kimi/config.toml"] != "new" || w.guest.files["/home/agent/.kimi/own"] != "mine" || w.guest.puts[0].Mode != 0o600 {
		t.Errorf("there are %q", w.guest.files)
	}
}

func TestInstall_IsNotBegunWhenItsFilesCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.adminList(`{"agents": [{"id": "kimi", "name": "Kimi", "summary": "s", "licence": "MIT", "licence_url": "https://example.com/l", "package": "kimi",
		"version": "1.0.0", "node": 22, "size_mb": 50, "command": ["kimi", "acp"], "files": [{"path": ".kimi/config.toml", "text": "new"}]}]}`)
	w.guest.writes = fault.New(fault.Unavailable, "The disk is full.")
	if err := w.Install(t.Context(), w.handle, "kimi"); err != nil {
		t.Fatal(err)
	}
	w.ended()
	if s := w.status("kimi"); s.State != Failed || s.Problem != "The disk is full." || len(w.program.all()) != 0 {
		t.Errorf("it is %s: %q, after %d programs", s.State, s.Problem, len(w.program.all()))
	}
}

func TestList_OfAHostileSandbox(t *testing.T) {
	w := newWorld(t)
	w.guest.put(Root+"/gemini/version", "<img src=x onerror=alert(1)>\n")
	w.guest.put(Root+"/qwen/version", strings.Repeat("1.", 1<<20))
	w.guest.put(Root+"/codex/version", "1.2.3\n\n")
	w.guest.put(Root+"/../../x/version", "1.2.3")
	w.guest.put(Root+"/sandboxd/version", "1.2.3")
	w.guest.put(Root+"/opencode/version", "9.9.9\n")
	w.guest.put(Root+"/.installing/<b>/x", "")
	w.guest.many = 150
	all, _, err := w.List(t.Context(), w.handle)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d agents, %v", len(all), err)
	}
	for _, a := range all {
		want := State(Available)
		if a.ID == "opencode" {
			want = Installed
		}
		if a.State != want || a.Installed != "" && a.Installed != "9.9.9" {
			t.Errorf("%s is %s, version %q", a.ID, a.State, a.Installed)
		}
	}
	w.guest.fails = fault.New(fault.Unavailable, "no")
	if s := w.status("opencode"); s.State != Unknown {
		t.Errorf("of a guest that fails: %s", s.State)
	}
}

func TestList_WakesNothing(t *testing.T) {
	w := newWorld(t)
	w.box.Becomes(sandbox.Frozen)
	if s := w.status("gemini"); s.State != Unknown {
		t.Errorf("it is %s", s.State)
	}
	if asked, _ := w.box.Awakes(); asked != 0 {
		t.Error("the sandbox was woken")
	}
	w.box.Change(func(row *sandbox.Sandbox) { row.ID = "" })
	if _, _, err := w.List(t.Context(), w.handle); !fault.Is(err, fault.Gone) {
		t.Errorf("of one that is deleted: %v", err)
	}
}

func (w *world) adminList(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.list, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}
