//go:build e2e

package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/gorilla/websocket"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest/tty"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/terminal"
	"sandboxd/internal/wire"
)

const browserLimit = 5 * time.Minute

// site is a page with a real browser terminal in front of Attach, Pump and the guest's own terminals.
type site struct {
	*httptest.Server
	host    *host
	home    string
	service *terminal.Service
	handle  access.Handle

	mu    sync.Mutex
	conns []*websocket.Conn
	files map[string]api.OutputFile
}

// host is a sandbox whose terminals are in this process, without a link.
type host struct {
	access.Guest
	*tty.Tabs
	sandbox *accesstest.Sandbox

	mu   sync.Mutex
	full bool // so that it cannot be woken
}

func newHost(tabs *tty.Tabs) *host {
	h := &host{Tabs: tabs}
	h.sandbox = accesstest.New("box", h)
	h.sandbox.OnAwake(func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.full {
			return fault.New(fault.Unavailable, "The host is full.")
		}
		return nil
	})
	return h
}

func (h *host) becomes(state sandbox.State, full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = full
	h.sandbox.Becomes(state)
}

func (*host) Done() <-chan struct{} { return nil }

func (h *host) DialTerminal(ctx context.Context, tab string) (net.Conn, error) {
	return h.Dial(ctx, tab)
}

func (h *host) Terminals(context.Context) ([]wire.Terminal, error) { return h.List(), nil }

func (h *host) CloseTerminal(_ context.Context, tab string) error { return h.Close(tab) }

func (h *host) TerminalText(ctx context.Context, tab string) ([]byte, error) {
	var text bytes.Buffer
	err := h.Text(ctx, tab, &text)
	return text.Bytes(), err
}

const testPage = `<!doctype html><html><head><title>t</title><link rel=stylesheet href=/bundle.css>
<style>:root{color-scheme:light dark;--terminal-bg:light-dark(#fff,#000);--terminal-ink:light-dark(#000,#fff)}:root[data-theme=dark]{color-scheme:dark}
:root[data-theme=light]{color-scheme:light} div.t{width:700px;height:300px}</style></head>
<body><div class=t id=a></div><div class=t id=b></div><script type=module src=/bundle.js></script></body></html>`

const testEntry = `import { mount } from "./terminal/terminal.js";
window.states = [];
const url = (tab) => location.origin.replace("http", "ws") + "/ws/" + tab;
window.a = mount(document.getElementById("a"), { url: url("main"), tab: "main", onState: (s, r) => window.states.push(s + ":" + r), onTitle: (t) => { window.title = t; } });
window.second = () => { window.b = mount(document.getElementById("b"), { url: url("other"), tab: "other" }); };
window.shows = (t, text) => t.text().join("\n").includes(text);`

func startSite(t *testing.T) *site {
	t.Helper()
	home := t.TempDir()
	tabs := tty.New(tty.Config{Dir: t.TempDir(), Shell: "/bin/bash", Home: home, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = tabs.Run(ctx) })
	g := newHost(tabs)
	s := &site{host: g, home: home, handle: g.sandbox.Handle(t), service: terminal.New(g.sandbox, slog.New(slog.DiscardHandler)), files: bundle(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, testPage) })
	mux.HandleFunc("GET /{file}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", map[string]string{".js": "text/javascript", ".css": "text/css"}[filepath.Ext(r.URL.Path)])
		_, _ = w.Write(s.files[r.PathValue("file")].Contents)
	})
	mux.HandleFunc("GET /ws/{tab}", s.attach)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.cut()
		s.Close()
		cancel()
		wg.Wait()
	})
	return s
}

func bundle(t *testing.T) map[string]api.OutputFile {
	t.Helper()
	folder, err := filepath.Abs("../../static")
	if err != nil {
		t.Fatal(err)
	}
	built := api.Build(api.BuildOptions{AbsWorkingDir: folder, Bundle: true, Format: api.FormatESModule, Target: api.ES2022,
		Stdin: &api.StdinOptions{Contents: testEntry, ResolveDir: folder}, Outfile: "bundle.js"})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors)
	}
	files := map[string]api.OutputFile{}
	for _, f := range built.OutputFiles {
		files[filepath.Base(f.Path)] = f
	}
	return files
}

func (s *site) attach(w http.ResponseWriter, r *http.Request) {
	attach := s.service.Attach
	if r.URL.Query().Get("wake") == "0" {
		attach = s.service.Join
	}
	a, err := attach(r.Context(), s.handle, r.PathValue("tab"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer a.Close()
	up := websocket.Upgrader{Subprotocols: []string{terminal.Subprotocol}, WriteBufferSize: 32 << 10}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.conns = append(s.conns, conn)
	s.mu.Unlock()
	_ = a.Pump(context.WithoutCancel(r.Context()), conn)
}

// cut breaks all connections without a word.
func (s *site) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

// browser opens the page.
func browser(t *testing.T, s *site) context.Context {
	t.Helper()
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	ctx, cancel := chromedp.NewContext(alloc)
	ctx, cancelTime := context.WithTimeout(ctx, browserLimit)
	t.Cleanup(func() {
		cancelTime()
		cancel()
		cancelAlloc()
	})
	if err := chromedp.Do(ctx, chromedp.Navigate(s.URL)); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for a condition in the page.
func until(t *testing.T, ctx context.Context, condition string) {
	t.Helper()
	untilWithin(t, ctx, browserLimit/10, condition)
}

func untilWithin(t *testing.T, ctx context.Context, limit time.Duration, condition string) {
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(limit), chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		text := eval[json.RawMessage](t, ctx, `[window.a?.text().filter(Boolean).slice(-20), window.states]`)
		t.Fatalf("%s: %v; the page has %s", condition, err, text)
	}
}

func press(t *testing.T, ctx context.Context, keys string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatal(err)
	}
}

// screenState is what stands on the screen, where the cursor is, and which screen it is.
const screenState = `JSON.stringify([(b => [b.type, b.cursorX, b.cursorY, Array.from({length: 20}, (_, i) => b.getLine(b.baseY + i)?.translateToString(true))])(a.screen.buffer.active)])`

func TestBrowser_Terminal(t *testing.T) {
	s := startSite(t)
	ctx := browser(t, s)
	until(t, ctx, `window.a?.state === "connected"`)
	eval[chromedp.Void](t, ctx, `a.focus()`)
	press(t, ctx, "echo $((6*7))\r")
	until(t, ctx, `shows(a, "\n42")`)

	t.Run("a reload shows the same screen", func(t *testing.T) { reloads(t, ctx, s) })
	t.Run("a reload shows exactly what stood there, drawn by whatever means", func(t *testing.T) { reloadsExactly(t, ctx, s) })
	t.Run("terminals in one page are independent", func(t *testing.T) { standAlone(t, ctx, s) })
	t.Run("a cut connection comes back by itself", func(t *testing.T) { comesBack(t, ctx, s) })
	t.Run("a page whose sandbox sleeps waits for its person", func(t *testing.T) { restsAndWakes(t, ctx, s) })
	t.Run("the theme changes live", func(t *testing.T) { changesTheme(t, ctx, s) })
	t.Run("the title is the program's", func(t *testing.T) { hasTitle(t, ctx, s) })
	t.Run("much output leaves the page responsive and arrives", func(t *testing.T) { standsMuchOutput(t, ctx, s) })
	t.Run("the end of the shell is said, and Enter starts a new one", func(t *testing.T) { startsAnew(t, ctx, s) })
}

func reloads(t *testing.T, ctx context.Context, s *site) {
	if err := chromedp.Do(ctx, chromedp.Navigate(s.URL)); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `shows(a, "\n42")`)
}

func reloadsExactly(t *testing.T, ctx context.Context, s *site) {
	for name, script := range map[string]string{
		"ordinary":  `clear; seq 50; printf '\033[5;15r\033[5;1Hregion\n\033[15;1Hlast\n\033[r\033[18;30H\033[7mreverse\033[0m\033(0lqk\033(B'; read x`,
		"alternate": `printf '\033[?1049h\033[2J\033[3;10H\033[44mblue\033[K\033[?25l'; read x; printf '\033[?25h\033[?1049l'`,
	} {
		eval[chromedp.Void](t, ctx, `a.focus()`)
		if err := os.WriteFile(filepath.Join(s.home, name), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		press(t, ctx, ". ./"+name+"\r")
		until(t, ctx, `shows(a, "`+map[string]string{"ordinary": "reverse", "alternate": "blue"}[name]+`")`)
		before := eval[string](t, ctx, screenState)
		if err := chromedp.Do(ctx, chromedp.Navigate(s.URL)); err != nil {
			t.Fatal(err)
		}
		until(t, ctx, screenState+` === `+strconv.Quote(before)) // quoted alike in Go and JavaScript: it is JSON of ASCII and boxes
		eval[chromedp.Void](t, ctx, `a.focus()`)
		press(t, ctx, "\rclear\r")
		until(t, ctx, `!shows(a, "read")`)
	}
}

func standAlone(t *testing.T, ctx context.Context, _ *site) {
	eval[chromedp.Void](t, ctx, `second(); b.focus()`)
	until(t, ctx, `b.state === "connected"`)
	press(t, ctx, "echo in-$((1+1))\r")
	until(t, ctx, `shows(b, "\nin-2")`)
	if eval[bool](t, ctx, `shows(a, "in-2")`) {
		t.Error("the other terminal shows it too")
	}
	if left := eval[int](t, ctx, `(b.dispose(), document.querySelectorAll("#b *").length)`); left != 0 {
		t.Errorf("%d elements are left", left)
	}
}

func comesBack(t *testing.T, ctx context.Context, s *site) {
	eval[chromedp.Void](t, ctx, `a.focus()`)
	press(t, ctx, "echo cut-$((1+1))\r")
	until(t, ctx, `shows(a, "\ncut-2")`)
	s.cut()
	until(t, ctx, `states.filter((s) => s.startsWith("connected")).length === 2`)
	until(t, ctx, `shows(a, "\ncut-2")`)
	if got := eval[string](t, ctx, `states.join(" ")`); !strings.HasPrefix(got, "connecting: connected: reconnecting:") {
		t.Errorf("states %q", got)
	}
}

func restsAndWakes(t *testing.T, ctx context.Context, s *site) {
	eval[chromedp.Void](t, ctx, `states.length = 0`)
	s.host.becomes(sandbox.Asleep, true)
	s.cut()
	until(t, ctx, `a.state === "asleep" && document.querySelector("#a .terminal-notice").textContent === "Asleep. Press Enter or click to wake.Wake"`)
	if !eval[bool](t, ctx, `shows(a, "\ncut-2")`) {
		t.Error("what stood on the screen is gone")
	}
	eval[chromedp.Void](t, ctx, `window.dispatchEvent(new Event("online")), document.dispatchEvent(new Event("visibilitychange")), a.focus()`)
	press(t, ctx, "x")
	if got := eval[string](t, ctx, `states.join(" ")`); got != "reconnecting: connected: asleep:" {
		t.Errorf("states %q", got)
	}
	press(t, ctx, "\r")
	until(t, ctx, `document.querySelector("#a .terminal-notice").textContent.startsWith("Still asleep: The host is full.")`)
	s.host.becomes(sandbox.Asleep, false)
	if err := chromedp.Do(ctx, chromedp.Click("#a .terminal-notice button")); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `a.state === "connected" && shows(a, "\ncut-2")`)
	press(t, ctx, "echo up-$((1+1))\r")
	until(t, ctx, `shows(a, "\nup-2")`)
	if s.host.sandbox.Looks() == 0 {
		t.Error("nobody is said to watch")
	}
}

func changesTheme(t *testing.T, ctx context.Context, _ *site) {
	for theme, want := range map[string]string{"dark": "rgb(0, 0, 0)", "light": "rgb(255, 255, 255)"} {
		eval[chromedp.Void](t, ctx, `void (document.documentElement.dataset.theme = "`+theme+`")`)
		until(t, ctx, `a.screen.options.theme.background === "`+want+`"`)
	}
}

func hasTitle(t *testing.T, ctx context.Context, _ *site) {
	eval[chromedp.Void](t, ctx, `a.focus()`)
	press(t, ctx, "printf '\\033]0;building\\007'; sleep 2\r")
	until(t, ctx, `window.title === "building"`)
}

func standsMuchOutput(t *testing.T, ctx context.Context, _ *site) {
	eval[chromedp.Void](t, ctx, `window.gap = 0; let last = performance.now(); setInterval(() => { const now = performance.now(); gap = Math.max(gap, now - last); last = now; }, 10)`)
	press(t, ctx, "seq 1 6000000; echo all-$((40+2))\r") // 50 MB
	untilWithin(t, ctx, browserLimit/2, `shows(a, "\nall-42")`)
	if gap := eval[float64](t, ctx, `gap`); gap > 1000 {
		t.Errorf("the page stood still for %.0f ms", gap)
	} else {
		t.Logf("longest standstill %.0f ms", gap)
	}
	if !eval[bool](t, ctx, `(t => { const at = t.findIndex((l) => l === "6000000"); return at > 5000 && Array.from({length: 5000}, (_, i) => t[at - i] === String(6000000 - i)).every(Boolean); })(a.text())`) {
		t.Error("lines are missing")
	}
}

func startsAnew(t *testing.T, ctx context.Context, _ *site) {
	press(t, ctx, "exit\r")
	until(t, ctx, `document.querySelector("#a .terminal-notice")?.textContent.includes("The shell has ended")`)
	press(t, ctx, "\r")
	until(t, ctx, `a.state === "connected"`)
	press(t, ctx, "echo new-$((1+1))\r")
	until(t, ctx, `shows(a, "\nnew-2")`)
}
