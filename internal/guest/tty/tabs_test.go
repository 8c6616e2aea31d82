package tty

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/wire"
)

const testLimit = time.Minute

// shown is in every replay.
const shown = "\x1b[?2004l"

// own starts tabs without ttyd and tmux. Shells are plain and have no start-up files.
func own(t *testing.T) *Tabs {
	t.Helper()
	return start(t, Config{Dir: t.TempDir(), Shell: "/bin/sh", Home: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}})
}

func start(t *testing.T, c Config) *Tabs {
	t.Helper()
	tabs := New(c, slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := tabs.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return tabs
}

// screen is a viewer under test.
type screen struct {
	t    *testing.T
	conn *websocket.Conn
	all  []byte // output so far
	rest int    // where expect continues
}

func view(t *testing.T, tabs *Tabs, tab string, columns, rows int) *screen {
	t.Helper()
	return viewWith(t, tabs, tab, fmt.Sprintf(`{"AuthToken":"","columns":%d,"rows":%d}`, columns, rows))
}

func viewWith(t *testing.T, tabs *Tabs, tab, first string) *screen {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"tty"}, NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return tabs.Dial(ctx, tab) }}
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	conn, resp, err := d.DialContext(ctx, "ws://terminal/ws", nil)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	if got := resp.Header.Get("Sec-Websocket-Protocol"); got != "tty" {
		t.Fatalf("subprotocol %q", got)
	}
	t.Cleanup(func() { conn.Close() })
	s := &screen{t: t, conn: conn}
	s.send(first)
	return s
}

func (s *screen) send(m string) {
	s.t.Helper()
	if err := s.conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
		s.t.Fatalf("send: %v", err)
	}
}

func (s *screen) types(keys string) { s.t.Helper(); s.send("0" + keys) }

func (s *screen) next() (byte, []byte, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(testLimit))
	_, p, err := s.conn.ReadMessage()
	if err != nil || len(p) == 0 {
		return 0, nil, err
	}
	if p[0] == wire.TTYOutput {
		s.all = append(s.all, p[1:]...)
	}
	return p[0], p[1:], nil
}

// expect reads output until it has text, beyond what an earlier expect has seen.
func (s *screen) expect(text string) string {
	s.t.Helper()
	for {
		if i := bytes.Index(s.all[s.rest:], []byte(text)); i >= 0 {
			seen := s.all[s.rest : s.rest+i+len(text)]
			s.rest += i + len(text)
			return string(seen)
		}
		if _, _, err := s.next(); err != nil {
			s.t.Fatalf("no %q: %v; got %q", text, err, s.all[s.rest:])
		}
	}
}

// end reads until the connection ends and gives the close code.
func (s *screen) end() int {
	s.t.Helper()
	for {
		_, _, err := s.next()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return closed.Code
		}
		if err != nil {
			s.t.Fatalf("end: %v", err)
		}
	}
}

func TestOwnServer_SpeaksAsTTYDDoes(t *testing.T) {
	tabs := own(t)
	s := view(t, tabs, "", 93, 31)
	for _, want := range []byte{wire.TTYTitle, wire.TTYPrefs, wire.TTYOutput} {
		kind, p, err := s.next()
		if err != nil || kind != want {
			t.Fatalf("message %q %q, %v; want %q", kind, p, err, want)
		}
		if kind == wire.TTYPrefs && !json.Valid(p) {
			t.Fatalf("preferences %q", p)
		}
	}
	s.types("stty size; echo $TERM $((6*7))\r")
	s.expect("31 93")
	s.expect("xterm-256color 42")
	s.send(`1{"columns":80,"rows":24}`)
	s.types("stty size\r")
	s.expect("24 80")
	s.send("2")
	s.send("3")
	s.send("?unknown")
	s.types("exit 3\r")
	if code := s.end(); code != websocket.CloseNormalClosure {
		t.Fatalf("close code %d", code)
	}
}

func TestOwnServer_AnswersToken(t *testing.T) {
	tabs := own(t)
	client := http.Client{Timeout: testLimit, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return tabs.Dial(ctx, "main") }}}
	resp, err := client.Get("http://terminal/token")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct{ Token *string }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Token == nil || *got.Token != "" {
		t.Fatalf("token %v, %v", got.Token, err)
	}
}

func TestSession_OutlivesItsViewersAndGivesTheScreenBack(t *testing.T) {
	tabs := own(t)
	first := view(t, tabs, "work", 80, 24)
	first.types("x=kept; printf '\\033[32mgr''een\\033[6n'\r")
	first.expect("\x1b[32mgreen\x1b[6n")
	first.conn.Close()
	second := view(t, tabs, "work", 80, 24)
	second.expect("\x1b[32mgreen")
	second.types("\recho \"<$x>\"\r")
	second.expect("<kept>")
	if strings.Contains(string(second.all), "\x1b[6n") {
		t.Error("the replay asks a question again")
	}
}

func TestSession_SeveralViewersSeeTheSame_LatestSizeCounts(t *testing.T) {
	tabs := own(t)
	a := view(t, tabs, "main", 100, 30)
	a.types("stty size\r")
	a.expect("30 100")
	b := view(t, tabs, "main", 70, 20)
	b.types("stty size\r")
	b.expect("20 70")
	a.expect("20 70")
	a.types("stty size\r")
	a.expect("30 100")
	b.expect("30 100")
	a.conn.Close()
	waitFor(t, func() bool { l := tabs.List(); return len(l) == 1 && l[0].Viewers == 1 })
	b.types("stty size\r")
	b.expect("20 70")
}

func TestSession_QueriesGoToOneViewer(t *testing.T) {
	tabs := own(t)
	a := view(t, tabs, "main", 80, 24)
	a.types("echo a wr''ites\r")
	a.expect("a writes") // and is heard, before b is
	b := view(t, tabs, "main", 80, 24)
	b.types("printf 'as\\033[6nked\\n'\r")
	b.expect("as\x1b[6nked")
	a.expect("asked")
}

func TestSession_FullScreenProgramIsToldToDrawAnew(t *testing.T) {
	tabs := own(t)
	a := view(t, tabs, "main", 80, 24)
	a.types("trap 'echo win''ch' WINCH; printf '\\033[?1049h'; while :; do read x; done\r")
	a.expect("\x1b[?1049h")
	b := view(t, tabs, "main", 80, 24)
	b.expect("\x1b[?1049h")
	b.expect("winch")
}

func TestSession_AllOutputArrivesBeforeTheEnd(t *testing.T) {
	tabs := own(t)
	file := filepath.Join(t.TempDir(), "data")
	data := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz\n"), 8<<20/37)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := view(t, tabs, "main", 80, 24)
	s.types("stty -onlcr -echo; PS1=; echo be''gin; exec cat " + file + "\r")
	s.expect("begin\n")
	if code := s.end(); code != websocket.CloseNormalClosure {
		t.Fatalf("close code %d", code)
	}
	if got := s.all[s.rest:]; sha256.Sum256(got) != sha256.Sum256(data) {
		t.Fatalf("%d bytes arrived of %d", len(got), len(data))
	}
}

func TestSession_SlowViewerIsLetGoAndOthersGoOn(t *testing.T) {
	tabs := own(t)
	slow := view(t, tabs, "main", 80, 24)
	slow.expect(shown)
	fast := view(t, tabs, "main", 80, 24)
	fast.types("head -c 30000000 /dev/zero | tr '\\0' x; echo do''ne\r")
	fast.expect("done")
	waitFor(t, func() bool { l := tabs.List(); return len(l) == 1 && l[0].Viewers == 1 })
	again := view(t, tabs, "main", 80, 24)
	again.expect("done")
}

func TestSession_WindowHoldsOutputBackUntilAcknowledged(t *testing.T) {
	tabs := own(t)
	s := viewWith(t, tabs, "main", fmt.Sprintf(`{"columns":80,"rows":24,"window":%d}`, outputMessage))
	s.types("stty -echo; PS1=; head -c 1000000 /dev/zero | tr '\\0' x; echo do''ne\r")
	held := 0
	for !bytes.Contains(s.all, []byte("done")) {
		_, p, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		if held += len(p); held > outputMessage+4096 {
			t.Fatalf("%d bytes are unacknowledged", held)
		}
		if held > outputMessage/2 {
			s.send(fmt.Sprintf("4%d", held))
			held = 0
		}
	}
}

func TestTabs_ListAndClose(t *testing.T) {
	tabs := own(t)
	if err := tabs.Close("main"); err != nil {
		t.Fatalf("close of nothing: %v", err)
	}
	a := view(t, tabs, "one", 80, 24)
	b := view(t, tabs, "two", 80, 24)
	a.types("printf '\\033]2;bu''ilding\\007'; echo o''k\r")
	a.expect("ok")
	b.expect(shown)
	l := tabs.List()
	if len(l) != 2 || l[0].Name != "one" || l[0].Title != "building" || l[0].Viewers != 1 || l[1].Name != "two" || l[0].Created.IsZero() {
		t.Fatalf("list: %+v", l)
	}
	if err := tabs.Close("one"); err != nil {
		t.Fatal(err)
	}
	if code := a.end(); code != websocket.CloseNormalClosure {
		t.Fatalf("close code %d", code)
	}
	waitFor(t, func() bool { return len(tabs.List()) == 1 })
	view(t, tabs, "one", 80, 24).expect(shown)
}

func TestTabs_RefuseBadNamesAndTooMany(t *testing.T) {
	tabs := own(t)
	for _, name := range []string{"-x", "A", "a.b", "../x", strings.Repeat("a", 33), "a:b", "é"} {
		if _, err := tabs.Dial(t.Context(), name); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for i := range wire.MaxTabs {
		view(t, tabs, fmt.Sprintf("tab-%d", i), 80, 24).expect(shown)
	}
	if code := view(t, tabs, "another", 80, 24).end(); code != websocket.CloseInternalServerErr {
		t.Fatalf("close code %d", code)
	}
}

func TestTabs_BadFirstMessageStartsNothing(t *testing.T) {
	tabs := own(t)
	for _, first := range []string{"0ls", "{", `{"columns":"x"}`, "[]"} {
		if code := viewWith(t, tabs, "main", first).end(); code != websocket.ClosePolicyViolation {
			t.Errorf("%q: close code %d", first, code)
		}
	}
	if l := tabs.List(); len(l) != 0 {
		t.Fatalf("list: %+v", l)
	}
}

func TestTabs_RunEndsShellsThatIgnoreIt(t *testing.T) {
	tabs := New(Config{Dir: t.TempDir(), Shell: "/bin/sh", Env: []string{"PATH=" + os.Getenv("PATH")}}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tabs.Run(ctx) }()
	s := view(t, tabs, "main", 80, 24)
	s.types("trap '' HUP TERM; echo rea''dy $$; while :; do sleep 1; done\r")
	s.expect("ready ")
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(testLimit):
		t.Fatal("Run does not return")
	}
	if _, err := tabs.Dial(t.Context(), "main"); err == nil {
		t.Fatal("dialled after the end")
	}
}

// waitFor waits for what happens in another goroutine soon.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(testLimit)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it does not happen")
		}
	}
}

// FuzzViewer reads hostile messages: what is accepted is within bounds.
func FuzzViewer(f *testing.F) {
	f.Add([]byte(`{"columns":-1,"rows":99999999}`))
	f.Add([]byte(`{"columns":1,"rows":1,"window":-5}`))
	f.Add([]byte("{\"columns\":1e9}"))
	f.Fuzz(func(t *testing.T, p []byte) {
		within := func(z wire.TTYSize) bool {
			return z.Columns >= 1 && z.Columns <= wire.MaxTTYSide && z.Rows >= 1 && z.Rows <= wire.MaxTTYSide
		}
		if h, err := readHello(p); err == nil && (!within(h.TTYSize) || h.Window > 0 && h.Window < outputMessage) {
			t.Fatalf("hello %+v", h)
		}
		if z, err := readSize(p); err == nil && !within(z) {
			t.Fatalf("size %+v", z)
		}
	})
}

func TestTabs_RealOnesTooManyAreAConflict(t *testing.T) {
	dir := t.TempDir()
	var list strings.Builder
	for i := range wire.MaxTabs {
		fmt.Fprintf(&list, "echo 1 0 tab-%d x\n", i)
	}
	tmux := filepath.Join(dir, "tmux")
	if err := os.WriteFile(tmux, []byte("#!/bin/sh\n"+list.String()), 0o755); err != nil {
		t.Fatal(err)
	}
	tabs := start(t, Config{Dir: dir, Shell: "/bin/sh", TTYD: "/no/ttyd", Tmux: tmux})
	for i := range wire.MaxTabs {
		if _, err := tabs.ttyd(t.Context(), fmt.Sprintf("tab-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tabs.Dial(t.Context(), "another")
	if p, ok := errors.AsType[*wire.Problem](err); !ok || p.Code != wire.CodeConflict {
		t.Errorf("got %v", err)
	}
}

func TestConfig_HomeIsTheRootWhenItsUserMayNotEnter(t *testing.T) {
	home := t.TempDir()
	for path := filepath.Dir(home); path != filepath.Clean(os.TempDir()); path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own, other := uint32(os.Getuid()), uint32(4242)
	group := []uint32{uint32(os.Getgid())}
	for name, c := range map[string]struct {
		mode os.FileMode
		who  syscall.Credential
		want string
	}{
		"open":             {0o755, syscall.Credential{Uid: other, Gid: other}, home},
		"closed to others": {0o770, syscall.Credential{Uid: other, Gid: other}, "/"},
		"open to a group":  {0o710, syscall.Credential{Uid: other, Gid: other, Groups: group}, home},
		"closed to it":     {0o701, syscall.Credential{Uid: other, Gid: group[0]}, "/"},
		"root":             {0, syscall.Credential{}, home},
		"closed":           {0, syscall.Credential{Uid: max(own, 1)}, "/"},
	} {
		if err := os.Chmod(home, c.mode); err != nil {
			t.Fatal(err)
		}
		config := Config{Home: home, Credential: &c.who}
		if got := config.home(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
