//go:build bench

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"
)

// benchOpens is how often VS Code is opened, from a click to its explorer.
const benchOpens = 7

const coderPassword = "correct horse battery"

// usableIDE waits in VS Code's page until its explorer shows a file.
const usableIDE = `new Promise((done) => {
	const look = () => document.querySelector(".monaco-workbench .explorer-folders-view .monaco-list-row") ? done(true) : setTimeout(look, 5);
	look();
})`

// ide opens VS Code that does not run yet: through sandboxd, and code-server by itself on the host, as it starts by its own
// command. The same browser opens both, which has seen both before.
func (b *benches) ide() {
	b.t.Setenv(adminPasswordEnv, coderPassword)
	s := newServer(b.t, "--prebuild", "")
	s.create(map[string]any{"template": benchImage, "name": "editor"})
	s.exec("editor", map[string]any{"command": "echo hello > hello.txt"})
	s.codes("editor", true)
	s.untilWithin(buildLimit, "VS Code is ready", func() bool {
		var st struct{ State string }
		s.call("GET", "/sandboxes/editor/ide", nil, &st)
		return st.State == "ready"
	})
	alone := newAlone(b, s)
	browser := newBenchBrowser(b)
	browser.signsIn(s)
	ours, base := make([]time.Duration, 0, benchOpens), make([]time.Duration, 0, benchOpens)
	for i := range benchOpens + 1 {
		one := browser.opens(s.url("code-editor"), s.stillCode, func() {})
		other := browser.opens(alone.url, alone.stop, alone.start)
		if i > 0 { // the first fills the caches
			ours, base = append(ours, one), append(base, other)
		}
	}
	b.add("VS Code, stopped: click to usable editor", "≤ 1.2 × code-server alone", ours, base)
}

// codes switches VS Code on or off.
func (s *server) codes(name string, on bool) {
	s.t.Helper()
	if status, text := s.raw("PUT", "/sandboxes/"+name+"/ide", map[string]any{"enabled": on}); status != http.StatusOK {
		s.t.Fatalf("switch VS Code to %t: %d %s", on, status, text)
	}
}

// stillCode has VS Code not running and ready to be opened, before the clock starts.
func (s *server) stillCode() {
	s.t.Helper()
	s.codes("editor", false)
	s.until("VS Code has ended", func() bool {
		return s.exec("editor", map[string]any{"command": "pgrep -f start.js"}).ExitCode != 0
	})
	s.codes("editor", true)
}

func (s *server) url(sub string) string { return "http://" + s.host(sub) + "/" }

// alone is code-server by itself, of the very files that sandboxes have.
type alone struct {
	b    *benches
	tree string
	home string
	addr string
	url  string
	cmd  *exec.Cmd
}

func newAlone(b *benches, s *server) *alone {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.data, "ide", "[0-9a-f]*"))
	if err != nil || len(found) != 1 {
		b.t.Fatalf("%q, %v", found, err)
	}
	a := &alone{b: b, tree: found[0], home: b.t.TempDir(), addr: freeAddr(b.t)}
	a.url = "http://" + a.addr + "/"
	if err := os.WriteFile(filepath.Join(a.home, "hello.txt"), []byte("hello\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(a.stop)
	return a
}

// start starts it. The clock runs already.
func (a *alone) start() {
	a.cmd = exec.Command(filepath.Join(a.tree, "lib/node"), filepath.Join(a.tree, "out/node/entry.js"), "--auth", "none", "--bind-addr", a.addr,
		"--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-workspace-trust", a.home)
	a.cmd.Env = append(os.Environ(), "HOME="+a.home, "XDG_DATA_HOME="+a.home+"/.local/share", "XDG_CONFIG_HOME="+a.home+"/.config")
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.cmd.Start(); err != nil {
		a.b.t.Fatal(err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		conn, err := net.Dial("tcp", a.addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			a.b.t.Fatalf("code-server does not listen: %v", err)
		}
	}
}

func (a *alone) stop() {
	if a.cmd == nil {
		return
	}
	_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL)
	_ = a.cmd.Wait()
	a.cmd = nil
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for conn, err := net.Dial("tcp", a.addr); err == nil; conn, err = net.Dial("tcp", a.addr) { // what it has started ends beside it
		_ = conn.Close()
		<-tick.C
	}
}

// benchBrowser is the browser of a benchmark.
type benchBrowser struct {
	b   *benches
	ctx context.Context
}

func newBenchBrowser(b *benches) *benchBrowser {
	b.t.Helper()
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	ctx, end := chromedp.NewContext(alloc)
	b.t.Cleanup(func() { end(); endAlloc() })
	if err := chromedp.Do(ctx); err != nil {
		b.t.Fatal(err)
	}
	return &benchBrowser{b: b, ctx: ctx}
}

func (p *benchBrowser) signsIn(s *server) {
	p.b.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	dashboard := "http://localhost:" + s.port()
	err := chromedp.Do(ctx, chromedp.Navigate(dashboard+"/login"), chromedp.SetValue(`[name="name"]`, "admin"),
		chromedp.SendKeys(`[name="password"]`, coderPassword), chromedp.Submit(`[name="password"]`), chromedp.WaitVisible(`form[action="/logout"]`))
	if err != nil {
		p.b.t.Fatal(err)
	}
}

// opens opens url in a window of its own, after ready, and gives how long that takes from begin until the editor can be used.
func (p *benchBrowser) opens(url string, ready, begin func()) time.Duration {
	p.b.t.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		p.b.t.Fatal(err)
	}
	ready()
	begun := time.Now()
	begin()
	err := chromedp.Do(ctx, chromedp.Navigate(url))
	if err == nil {
		_, err = chromedp.Run(ctx, chromedp.Evaluate[bool](usableIDE, chromedp.EvalAwaitPromise))
	}
	if err != nil {
		p.b.t.Fatal(fmt.Errorf("open %s: %w", url, err))
	}
	return time.Since(begun)
}
