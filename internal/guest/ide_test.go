package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// fakeIDE makes the test binary a code-server: it sends its pid on every connection, until that ends.
const fakeIDE = "GUEST_TEST_IDE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeIDE) == "" {
		os.Exit(m.Run())
	}
	listener, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.NewFile(4, "ready").Write([]byte{'1'})
	for {
		conn, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		go func() {
			fmt.Fprintln(conn, os.Getpid(), os.Getenv("VSCODE_PROXY_URI"))
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}()
	}
}

// ideWorld is a guest's VS Code in which "v1" and "v2" are there, and every start runs a script.
type ideWorld struct {
	*testing.T
	*ide
	guest *Guest

	mu     sync.Mutex
	script string
	starts int
}

const serves = `exec env ` + fakeIDE + `=1 "$TEST_BINARY"`

func newIDEWorld(t *testing.T, script string) *ideWorld {
	root := t.TempDir()
	for _, v := range []string{"v1", "v2"} {
		if err := os.MkdirAll(filepath.Join(root, v, "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, v, ideProgram), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := &ideWorld{T: t, guest: New(Config{Home: t.TempDir(), IDE: root}), script: script}
	w.ide = newIDE(root, w.start)
	w.pause = 0
	w.allow(true)
	t.Cleanup(w.close)
	return w
}

func (w *ideWorld) start(c ideCommand) (*process, error) {
	w.mu.Lock()
	w.starts++
	script := w.script
	w.mu.Unlock()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := map[string]string{"TEST_BINARY": self, "VSCODE_PROXY_URI": c.Ports}
	return w.guest.spawnPlain(wire.ExecStart{Command: []string{"/bin/sh", "-c", script}, Env: env}, c.listen, c.ready)
}

func (w *ideWorld) set(script string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = script
}

func (w *ideWorld) started() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts
}

// says dials and gives the pid and the rest of what is said.
func (w *ideWorld) says(version string) (pid int, ports string) {
	w.Helper()
	conn, err := w.dial(w.Context(), wire.IDEStart{Version: version, Ports: "https://{{port}}-x.localhost"})
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(patience))
	var b [200]byte
	n, err := conn.Read(b[:])
	if err != nil {
		w.Fatal(err)
	}
	first, ports, _ := strings.Cut(strings.TrimSpace(string(b[:n])), " ")
	if pid, err = strconv.Atoi(first); err != nil {
		w.Fatal(err)
	}
	return pid, ports
}

func (w *ideWorld) refused(version, code string) string {
	w.Helper()
	_, err := w.dial(w.Context(), wire.IDEStart{Version: version})
	var p *wire.Problem
	if !errors.As(err, &p) || p.Code != code {
		w.Fatalf("got %v, want the code %s", err, code)
	}
	return p.Message
}

func TestIDE_ManyDialsStartOne(t *testing.T) {
	w := newIDEWorld(t, serves)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { w.says("v1") })
	}
	all.Wait()
	if w.started() != 1 {
		t.Errorf("%d starts", w.started())
	}
	if _, ports := w.says("v2"); ports != "https://{{port}}-x.localhost" || w.started() != 1 {
		t.Errorf("ports %q, %d starts", ports, w.started())
	}
	if st := w.status(); st.State != wire.IDERunning || st.Version != "v1" || st.Check() != nil {
		t.Errorf("status %+v", st)
	}
}

func TestIDE_IsStartedAgainWhenItDied(t *testing.T) {
	w := newIDEWorld(t, serves)
	first, _ := w.says("v1")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, "its end", func() bool { return w.status().State == wire.IDEStopped })
	if st := w.status(); !strings.HasPrefix(st.Problem, "VS Code has ended (exit code 137).") {
		t.Errorf("status %+v", st)
	}
	if second, _ := w.says("v2"); second == first || w.status().Version != "v2" {
		t.Errorf("pid %d again, or %+v", second, w.status())
	}
}

func TestIDE_AFailedStartTellsItsLastWordsAndCanBeTriedAgain(t *testing.T) {
	w := newIDEWorld(t, "exec >&2; for i in 1 2 3 4; do echo line $i; done; echo no space left; exit 3")
	if got, want := w.refused("v1", wire.CodeUnavailable), "VS Code could not be started (exit code 3)."; !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "no space left") || strings.Contains(got, "line 1") {
		t.Errorf("got %q", got)
	}
	w.set(serves)
	w.says("v1")
	if w.status().Problem != "" {
		t.Errorf("status %+v", w.status())
	}
}

func TestIDE_AFailedStartIsNotRepeatedAtOnce(t *testing.T) {
	w := newIDEWorld(t, "echo why; exit 3")
	w.pause = time.Hour
	for range 5 {
		if got := w.refused("v1", wire.CodeUnavailable); !strings.Contains(got, "why") {
			t.Errorf("got %q", got)
		}
	}
	if w.started() != 1 {
		t.Errorf("%d starts", w.started())
	}
}

func TestIDE_EndsWhenItIsSwitchedOffAndMayNotBeStarted(t *testing.T) {
	w := newIDEWorld(t, serves)
	pid, _ := w.says("v1")
	w.allow(false)
	within(t, "its end", func() bool { return syscall.Kill(pid, 0) != nil })
	w.refused("v1", wire.CodeConflict)
	within(t, "the note of it", func() bool { return w.status().State == wire.IDEStopped })
	if st := w.status(); st.Problem != "" {
		t.Errorf("status %+v", st)
	}
	w.allow(true)
	w.says("v1")
}

func TestIDE_OneThatIsEndingMakesPlaceForTheNext(t *testing.T) {
	w := newIDEWorld(t, serves)
	for range 5 {
		before, _ := w.says("v1")
		w.allow(false)
		w.allow(true)
		if after, _ := w.says("v1"); after == before {
			t.Errorf("%d answers, which was to end", after)
		}
	}
}

func TestIDE_SwitchedOffWhileItStartsSaysSo(t *testing.T) {
	w := newIDEWorld(t, "exec sleep 1000")
	got := make(chan error, 1)
	go func() {
		_, err := w.dial(t.Context(), wire.IDEStart{Version: "v1"})
		got <- err
	}()
	within(t, "the start", func() bool { return w.status().State == wire.IDEStarting })
	w.allow(false)
	if err := <-got; !errors.Is(err, errIDEOff) {
		t.Errorf("got %v", err)
	}
}

func TestIDE_ADeafOneIsKilledWithWhatItHasStarted(t *testing.T) {
	w := newIDEWorld(t, `trap "" TERM; sleep 1000 & echo $!; printf 1 >&4; while :; do sleep 0.01; done`)
	conn, err := w.dial(t.Context(), wire.IDEStart{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	child := 0
	within(t, "its child", func() bool {
		child, err = strconv.Atoi(strings.TrimSpace(string(w.run.log.bytes())))
		return err == nil
	})
	w.close()
	if st := w.status(); st.State != wire.IDEStopped {
		t.Errorf("status %+v", st)
	}
	within(t, "the child's end", func() bool { p, ok := readStat(child); return !ok || p.zombie })
}

func TestIDE_LeavesNoSocketBehindAndNobodyElseEnters(t *testing.T) {
	w := newIDEWorld(t, serves)
	w.says("v1")
	folder := w.run.folder
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	w.close()
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", folder, err)
	}
}

func TestIDE_AVersionThatIsNotThereIsNotStarted(t *testing.T) {
	w := newIDEWorld(t, serves)
	if got := w.refused("v3", wire.CodeUnavailable); !strings.Contains(got, "older sandboxd") || w.started() != 0 {
		t.Errorf("%q after %d starts", got, w.started())
	}
	w.close()
	w.refused("v1", wire.CodeUnavailable)
}

func TestIDE_OnlyAFolderOfTheMountCanBeNamed(t *testing.T) {
	for _, version := range []string{"", "..", ".", "a/b", "../../bin", "-x", "A", "a\x00", strings.Repeat("a", 65)} {
		s := wire.IDEStart{Version: version}
		if s.Check() == nil {
			t.Errorf("%q was taken", version)
		}
	}
	for _, ports := range []string{"a\nb", "a\x00", strings.Repeat("a", 513)} {
		s := wire.IDEStart{Version: "a", Ports: ports}
		if s.Check() == nil {
			t.Errorf("%q was taken", ports)
		}
	}
}
