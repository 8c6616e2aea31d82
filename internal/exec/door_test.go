package exec_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/door"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// awake has the running sandbox "box", and "idle", which is stopped.
type awake struct{}

func (awake) Awake(_ context.Context, name string) (sandbox.Sandbox, error) {
	if name == "idle" {
		return sandbox.Sandbox{}, fault.New(fault.Conflict, "idle is stopped. Start it first.")
	}
	return sandbox.Sandbox{ID: "box", Name: name, State: sandbox.Running}, nil
}

// live gives a service over a real link to a real guest, which is this very process.
func live(t *testing.T) (*exec.Service, *door.Doors) {
	t.Helper()
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "box", Env: map[string]string{"FROM_SETUP": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: t.TempDir(), Version: "test"})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- hub.Run(ctx) }()
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	doors := door.New(awake{}, hub)
	return exec.New(exec.Through(doors)), doors
}

func TestThrough_RunsForReal(t *testing.T) {
	s, doors := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := s.Run(ctx, "box", exec.Request{
		Command: exec.Shell(`cat; echo "$A$FROM_SETUP" "$PWD"; echo err >&2; exit 7`), Cwd: "/", Env: map[string]string{"A": "1"}, Stdin: []byte("in:"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Stdout) != "in:1yes /\n" || string(got.Stderr) != "err\n" || got.ExitCode != 7 {
		t.Errorf("got %q %q %d", got.Stdout, got.Stderr, got.ExitCode)
	}
	if uses := doors.Uses("box"); len(uses) != 0 {
		t.Errorf("still in use: %v", uses)
	}
}

func TestThrough_TimeoutKillsTheWholeTree(t *testing.T) {
	s, _ := live(t)
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
	stubborn := `trap "" TERM INT HUP; exec 9>"$1"; (trap "" TERM INT HUP; while :; do sleep 1; done) & wait`
	got, err := s.Run(ctx, "box", exec.Request{Command: []string{"/bin/sh", "-c", stubborn, "sh", fifo}, Timeout: time.Second})
	if err != nil || !got.TimedOut || got.ExitCode != -1 {
		t.Fatalf("got %+v, %v", got, err)
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

func TestThrough_FloodIsBounded(t *testing.T) {
	s, _ := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := s.Run(ctx, "box", exec.Request{Command: []string{"head", "-c", "134217728", "/dev/zero"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Stdout) != exec.DefaultOutput || !got.Truncated || got.ExitCode != 0 || len(bytes.Trim(got.Stdout, "\x00")) != 0 {
		t.Errorf("%d bytes, truncated %v, exit code %d", len(got.Stdout), got.Truncated, got.ExitCode)
	}
}

func TestThrough_WhatCannotRunIsInvalid(t *testing.T) {
	s, doors := live(t)
	for _, r := range []exec.Request{
		{Command: []string{"no-such-program"}}, {Command: []string{"true"}, Cwd: "/no/such/folder"}, {Command: []string{"true"}, User: "nobody-here"},
	} {
		if _, err := s.Run(t.Context(), "box", r); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := s.Run(t.Context(), "idle", exec.Request{Command: []string{"true"}}); !fault.Is(err, fault.Conflict) {
		t.Errorf("stopped: %v", err)
	}
	for _, name := range []string{"box", "idle"} {
		if uses := doors.Uses(name); len(uses) != 0 {
			t.Errorf("%s is still in use: %v", name, uses)
		}
	}
}

func TestThrough_DialogueOnATerminal(t *testing.T) {
	s, _ := live(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session, err := s.Open(ctx, "box", exec.Request{Command: []string{"/bin/sh", "-c", "stty size; read line; echo got $line; stty size"}}, exec.Size{Cols: 100, Rows: 30})
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
