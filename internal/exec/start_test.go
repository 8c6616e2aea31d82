package exec_test

import (
	"bytes"
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

// place is a service, and a sandbox over a real link to a real guest, which is this very process.
type place struct {
	*exec.Service
	box    *accesstest.Sandbox
	handle access.Handle
}

func live(t *testing.T) *place {
	t.Helper()
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "box", Env: map[string]string{"FROM_SETUP": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: t.TempDir(), Passwd: accesstest.Passwd(t, t.TempDir()), Version: "test"})
	accesstest.Run(t, hub.Run, g.Run)
	box := accesstest.Linked("box", "box", access.FromHub(hub))
	return &place{Service: exec.New(exec.Config{Starter: exec.InGuest()}), box: box, handle: box.Handle(t)}
}

func (p *place) asked() int {
	n, _ := p.box.Awakes()
	return n
}

// unused fails the test when something uses the sandbox.
func (p *place) unused(t *testing.T) {
	t.Helper()
	if s := p.box.Status(); len(s.Because) != 0 {
		t.Errorf("it is still in use: %+v", s.Because)
	}
}

func TestRun_RunsForReal(t *testing.T) {
	s := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := s.Run(ctx, s.handle, exec.Request{
		Command: exec.Shell(`cat; echo "$A$FROM_SETUP" "$PWD"; echo err >&2; exit 7`), Cwd: "/", Env: map[string]string{"A": "1"}, Stdin: []byte("in:"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Stdout) != "in:1yes /\n" || string(got.Stderr) != "err\n" || got.ExitCode != 7 {
		t.Errorf("got %q %q %d", got.Stdout, got.Stderr, got.ExitCode)
	}
	s.unused(t)
}

// beDeaf tells the process that a test starts that it is to run a command itself.
const beDeaf = "EXEC_TEST_DEAF"

// TestRun_ACommandGetsTheSignalsThatItsGuestWasStartedToIgnore runs itself as nohup and a shell's background do. What is ignored at
// the start of a program stays so in all that it starts, unless it does something about it.
func TestRun_ACommandGetsTheSignalsThatItsGuestWasStartedToIgnore(t *testing.T) {
	if os.Getenv(beDeaf) == "" {
		self := osexec.Command("/bin/sh", "-c", `trap "" HUP INT; exec "$0" "$@"`, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		self.Env = append(os.Environ(), beDeaf+"=1")
		if out, err := self.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	s := live(t)
	for _, name := range []string{"HUP", "INT"} {
		got, err := s.Run(t.Context(), s.handle, exec.Request{Command: exec.Shell("kill -" + name + " $$; echo deaf")})
		if err != nil || string(got.Stdout) != "" || got.ExitCode == 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRun_TimeoutKillsTheWholeTree(t *testing.T) {
	s := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	alive := make(chan error, 1)
	go func() { // ends when nobody of the tree has it open any more
		_, err := os.ReadFile(fifo)
		alive <- err
	}()
	stubborn := `trap "" TERM INT HUP; exec 9>"$1"; (trap "" TERM INT HUP; echo up; while :; do sleep 1; done) & wait`
	for limit, up := time.Second, false; !up; limit *= 2 { // on a busy machine its start may take longer than its time
		got, err := s.Run(ctx, s.handle, exec.Request{Command: []string{"/bin/sh", "-c", stubborn, "sh", fifo}, Timeout: limit})
		if err != nil || !got.TimedOut || got.ExitCode != -1 {
			t.Fatalf("got %+v, %v", got, err)
		}
		up = string(got.Stdout) == "up\n"
	}
	select {
	case err := <-alive:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("a process of the tree has survived")
	}
}

func TestRun_FloodIsBounded(t *testing.T) {
	s := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := s.Run(ctx, s.handle, exec.Request{Command: []string{"head", "-c", "134217728", "/dev/zero"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Stdout) != exec.DefaultOutput || !got.Truncated || got.ExitCode != 0 || len(bytes.Trim(got.Stdout, "\x00")) != 0 {
		t.Errorf("%d bytes, truncated %v, exit code %d", len(got.Stdout), got.Truncated, got.ExitCode)
	}
}

func TestRun_WhatCannotRunSaysWhy(t *testing.T) {
	s := live(t)
	for _, c := range []struct {
		ask   exec.Request
		kind  fault.Kind
		field string
	}{
		{exec.Request{Command: []string{"no-such-program"}}, fault.NotFound, "command"},
		{exec.Request{Command: []string{"/etc/passwd"}}, fault.Invalid, "command"},
		{exec.Request{Command: []string{"true"}, Cwd: "/no/such/folder"}, fault.Invalid, ""},
		{exec.Request{Command: []string{"true"}, User: "nobody-here"}, fault.Invalid, ""},
	} {
		if _, err := s.Run(t.Context(), s.handle, c.ask); !fault.Is(err, c.kind) || fault.FieldOf(err) != c.field {
			t.Errorf("%+v: %v about %q", c.ask, err, fault.FieldOf(err))
		}
	}
	s.box.Becomes(sandbox.Stopped)
	if _, err := s.Run(t.Context(), s.handle, exec.Request{Command: []string{"true"}}); !fault.Is(err, fault.Conflict) {
		t.Errorf("stopped: %v", err)
	}
	s.unused(t)
}

func TestRun_TheSandboxIsInUseAsLongAsTheCommandRuns(t *testing.T) {
	s := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := s.Open(ctx, s.handle, exec.Request{Command: exec.Shell("read line; exit 3")}, exec.Size{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if because := s.box.Status().Because; len(because) != 1 || because[0].Kind != idle.Exec || because[0].Detail != "read" {
		t.Errorf("while it waits: %+v", because)
	}
	named, err := s.Open(ctx, s.handle, exec.Request{Command: exec.Shell("read line"), Title: "install Codex"}, exec.Size{})
	if err != nil {
		t.Fatal(err)
	}
	if because := s.box.Status().Because; len(because) != 2 || because[1].Detail != "install Codex" {
		t.Errorf("of one with a name: %+v", because)
	}
	named.Close()
	asked := s.asked()
	if _, err := session.Write([]byte("go\n")); err != nil || s.asked() != asked+1 {
		t.Errorf("input does not wake: %v", err)
	}
	if e, err := session.Next(); err != nil || e.Exit != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	session.Close()
	s.unused(t)
}

func TestRun_DialogueOnATerminal(t *testing.T) {
	s := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := s.Open(ctx, s.handle, exec.Request{Command: []string{"/bin/sh", "-c", "stty size; read line; echo got $line; stty size"}}, exec.Size{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var said strings.Builder
	for told := false; ; {
		e, err := session.Next()
		if err != nil {
			t.Fatalf("after %q: %v", said.String(), err)
		}
		if e.Kind == exec.Exited {
			break
		}
		said.Write(e.Data)
		if !told && strings.Contains(said.String(), "30 100") {
			told = true
			if err := session.Resize(exec.Size{Cols: 120, Rows: 40}); err != nil {
				t.Fatal(err)
			}
			if _, err := session.Write([]byte("hello\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []string{"got hello", "40 120"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q lacks %q", said.String(), want)
		}
	}
}

func TestRun_OnATerminalItIsUsedWhenSomethingIsTypedOrShown(t *testing.T) {
	s := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := s.Open(ctx, s.handle, exec.Request{Command: []string{"/bin/sh", "-c", "read line; echo got $line"}}, exec.Size{Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if because := s.box.Status().Because; len(because) != 1 || because[0].Kind != idle.Terminal {
		t.Errorf("in use by %+v", because)
	}
	asked := s.asked()
	if _, err := session.Write([]byte("go\n")); err != nil || s.asked() != asked+1 {
		t.Errorf("a key does not wake: %v", err)
	}
	for {
		e, err := session.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == exec.Exited {
			return
		}
	}
}
