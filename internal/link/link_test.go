package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// runHub lets a hub live and gives what ends it.
func runHub(t testing.TB, h *link.Hub) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stop = func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("hub: %v", err)
			}
			done <- nil
		case <-time.After(patience):
			t.Error("the hub does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

// runGuest lets a guest live in this process, on the socket in folder.
func runGuest(t testing.TB, folder string, cfg guest.Config) (stop func()) {
	t.Helper()
	cfg.Socket, cfg.Version = filepath.Join(folder, wire.SocketName), "test"
	if cfg.Home == "" {
		cfg.Home = t.TempDir()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- guest.New(cfg).Run(ctx) }()
	stop = func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("guest: %v", err)
			}
			done <- nil
		case <-time.After(patience):
			t.Error("the guest does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

// connect gives a session with a guest in this process.
func connect(t *testing.T, s wire.Setup) *link.Session {
	t.Helper()
	h := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	runHub(t, h)
	folder, err := h.Expect("box", s)
	if err != nil {
		t.Fatal(err)
	}
	runGuest(t, folder, guest.Config{})
	session, err := h.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

type result struct {
	stdout, stderr bytes.Buffer
	code           int
}

func collect(t *testing.T, p *link.Process) *result {
	t.Helper()
	r := &result{code: -1}
	for {
		f, err := p.Next()
		if err == io.EOF {
			return r
		}
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		switch f.Type {
		case wire.FrameStdout:
			r.stdout.Write(f.Data)
		case wire.FrameStderr:
			r.stderr.Write(f.Data)
		case wire.FrameExit:
			r.code = f.Code
		}
	}
}

func run(t *testing.T, s *link.Session, start wire.ExecStart) *result {
	t.Helper()
	p, err := s.Exec(testContext(t), start)
	if err != nil {
		t.Fatalf("exec: %v", err)
	}
	defer p.Close()
	return collect(t, p)
}

func sh(script string) wire.ExecStart {
	return wire.ExecStart{Command: []string{"/bin/sh", "-c", script}}
}

func TestExec_GivesOutputAndExitCode(t *testing.T) {
	s := connect(t, wire.Setup{Name: "a", Env: map[string]string{"FROM_SETUP": "yes"}})
	for name, c := range map[string]struct {
		start          wire.ExecStart
		stdout, stderr string
		code           int
	}{
		"both outputs":    {sh("echo out; echo err >&2; exit 3"), "out\n", "err\n", 3},
		"no shell":        {wire.ExecStart{Command: []string{"echo", "a b", "$HOME"}}, "a b $HOME\n", "", 0},
		"own environment": {wire.ExecStart{Command: []string{"sh", "-c", "echo $FROM_SETUP $X"}, Env: map[string]string{"X": "1"}}, "yes 1\n", "", 0},
		"working folder":  {wire.ExecStart{Command: []string{"pwd"}, Cwd: "/usr"}, "/usr\n", "", 0},
		"a signal":        {sh("kill -TERM $$"), "", "", 143},
		"no input":        {wire.ExecStart{Command: []string{"true"}}, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, s, c.start)
			if r.stdout.String() != c.stdout || r.stderr.String() != c.stderr || r.code != c.code {
				t.Errorf("got %q, %q, %d", r.stdout.String(), r.stderr.String(), r.code)
			}
		})
	}
}

func TestExec_StdinStreamsAndEnds(t *testing.T) {
	s := connect(t, wire.Setup{})
	p, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	go func() {
		p.Stdin.Write(want)
		p.Stdin.Close()
	}()
	r := collect(t, p)
	if !bytes.Equal(r.stdout.Bytes(), want) || r.code != 0 {
		t.Errorf("got %d bytes and exit code %d", r.stdout.Len(), r.code)
	}
}

func TestExec_WhatCannotStartSaysWhy(t *testing.T) {
	s := connect(t, wire.Setup{})
	for name, c := range map[string]struct {
		start wire.ExecStart
		kind  fault.Kind
		field string
		says  string
	}{
		"no program": {wire.ExecStart{Command: []string{"no-such-program"}}, fault.NotFound, "command", "no program no-such-program"},
		"no folder":  {wire.ExecStart{Command: []string{"true"}, Cwd: "/no/such"}, fault.NotFound, "", "no folder /no/such"},
		"no user":    {wire.ExecStart{Command: []string{"true"}, User: "nobody-here"}, fault.NotFound, "", "nobody-here"},
		"a folder":   {wire.ExecStart{Command: []string{"/usr"}}, fault.Invalid, "command", "may not be run"},
		"not to run": {wire.ExecStart{Command: []string{"/etc/passwd"}}, fault.Invalid, "command", "may not be run"},
		"nothing":    {wire.ExecStart{}, fault.Invalid, "", "empty"},
		"zero byte":  {wire.ExecStart{Command: []string{"a\x00b"}}, fault.Invalid, "", "zero byte"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Exec(testContext(t), c.start)
			if fault.KindOf(err) != c.kind || fault.FieldOf(err) != c.field || !strings.Contains(fault.Message(err), c.says) {
				t.Errorf("got %v: %v", fault.KindOf(err), err)
			}
		})
	}
}

func TestExec_ReturnsThoughABackgroundProcessHoldsItsOutput(t *testing.T) {
	s := connect(t, wire.Setup{})
	r := run(t, s, sh("sleep 300 & echo $!"))
	pid, err := strconv.Atoi(strings.TrimSpace(r.stdout.String()))
	if err != nil {
		t.Fatalf("output %q: %v", r.stdout.String(), err)
	}
	process, _ := os.FindProcess(pid)
	defer process.Kill()
	if !running(pid) {
		t.Error("the background process was killed by a normal exit")
	}
}

func TestExec_NoisyBackgroundProcessDoesNotHoldItUp(t *testing.T) {
	s := connect(t, wire.Setup{})
	began := time.Now()
	r := run(t, s, sh("yes & echo $! >&2"))
	pid, _ := strconv.Atoi(strings.TrimSpace(r.stderr.String()))
	process, _ := os.FindProcess(pid)
	defer process.Kill()
	if d := time.Since(began); d > patience {
		t.Errorf("took %v", d)
	}
}

// running says whether pid is there and no zombie.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(b[bytes.LastIndexByte(b, ')')+1:]), " Z")
}

func waitGone(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left := 0
		for _, pid := range pids {
			if running(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d of %v are still alive", left, pids)
		}
	}
}

// tree starts a command with every kind of offspring and gives their pids, as they announce themselves.
func tree(t *testing.T, p *link.Process) []int {
	t.Helper()
	var seen bytes.Buffer
	for strings.Count(seen.String(), "\n") < 4 {
		f, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(f.Data)
	}
	var pids []int
	for _, line := range strings.Fields(seen.String()) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// treeScript makes a child, one in a session of its own, and one that is forked twice in a session of its own, all deaf
// to TERM.
const treeScript = `trap '' TERM HUP INT; echo $$
sh -c 'echo $$; exec sleep 300' &
setsid sh -c 'echo $$; exec sleep 300' &
( setsid sh -c 'echo $$; sleep 300; true' & )
wait; sleep 300`

func TestExec_CloseKillsTheWholeTree(t *testing.T) {
	s := connect(t, wire.Setup{})
	p, err := s.Exec(testContext(t), sh(treeScript))
	if err != nil {
		t.Fatal(err)
	}
	pids := tree(t, p)
	p.Close()
	waitGone(t, pids)
}

func TestExec_EndOfContextKillsTheWholeTree(t *testing.T) {
	s := connect(t, wire.Setup{})
	ctx, cancel := context.WithCancel(testContext(t))
	p, err := s.Exec(ctx, sh(treeScript))
	if err != nil {
		t.Fatal(err)
	}
	pids := tree(t, p)
	cancel()
	waitGone(t, pids)
	if _, err := p.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestExec_SignalKillEndsTheTreeAndTellsTheExit(t *testing.T) {
	s := connect(t, wire.Setup{})
	p, err := s.Exec(testContext(t), sh(treeScript))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pids := tree(t, p)
	if err := p.Signal("KILL"); err != nil {
		t.Fatal(err)
	}
	if r := collect(t, p); r.code != 137 {
		t.Errorf("exit code %d", r.code)
	}
	waitGone(t, pids)
}

func TestExec_SignalReachesACommandThatDoesNotReadItsInput(t *testing.T) {
	s := connect(t, wire.Setup{})
	p, err := s.Exec(testContext(t), sh("trap 'echo got it; exit 7' INT; echo ready; while :; do sleep 0.01; done"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if f, err := p.Next(); err != nil || string(f.Data) != "ready\n" {
		t.Fatalf("got %q, %v", f.Data, err)
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		p.Stdin.Write(make([]byte, 16<<20)) // more than every buffer on the way
	}()
	if err := p.Signal("INT"); err != nil {
		t.Fatal(err)
	}
	r := collect(t, p)
	if r.code != 7 || r.stdout.String() != "got it\n" {
		t.Errorf("got %q, %d", r.stdout.String(), r.code)
	}
	<-wrote
}

func TestExec_TerminalHasASizeThatFollows(t *testing.T) {
	s := connect(t, wire.Setup{})
	p, err := s.Exec(testContext(t), wire.ExecStart{TTY: true, Cols: 101, Rows: 37,
		Command: []string{"sh", "-c", "trap 'stty size' WINCH; tty >/dev/null && stty size; echo $TERM; read x; stty size; read x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var seen bytes.Buffer
	until := func(want string) {
		t.Helper()
		for !strings.Contains(seen.String(), want) {
			f, err := p.Next()
			if err != nil || f.Type == wire.FrameExit {
				t.Fatalf("want %q, got %q, %v", want, seen.String(), err)
			}
			seen.Write(f.Data)
		}
	}
	until("37 101")
	until("xterm-256color")
	if err := p.Resize(55, 22); err != nil {
		t.Fatal(err)
	}
	p.Stdin.Write([]byte("\n"))
	until("22 55")
	p.Stdin.Write([]byte("\x04"))
	if r := collect(t, p); r.code > 1 {
		t.Errorf("exit code %d, %q", r.code, r.stdout.String())
	}
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestExec_ReaderThatStandsStillHoldsTheCommandUp(t *testing.T) {
	s := connect(t, wire.Setup{})
	end := filepath.Join(t.TempDir(), "end")
	before := heap()
	p, err := s.Exec(testContext(t), sh(`dd if=/dev/zero bs=1M count=1024 2>/dev/null; echo end > `+end))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// Nobody reads. The other streams of the link are not held up, and the command does not get to its end.
	for range 50 {
		if r := run(t, s, sh("echo still here")); r.stdout.String() != "still here\n" {
			t.Fatalf("got %q", r.stdout.String())
		}
	}
	if _, err := os.Stat(end); err == nil {
		t.Fatal("1 GiB has gone somewhere")
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d MiB of heap", grown>>20)
	}
	for total := 0; total < 64<<20; {
		f, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		total += len(f.Data)
	}
}
