//go:build e2e

package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// commandLimit bounds one command of a person's.
const commandLimit = 2 * time.Minute

// laptop is another machine, as far as the commands for anywhere can tell: a home of its own, signed in at a server.
type laptop struct {
	*server
	t    testing.TB // of the subtest that is under way
	home string
}

// during is l as a subtest uses it.
func (l *laptop) during(test func(l *laptop, t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { test(&laptop{server: l.server, t: t, home: l.home}, t) }
}

// newLaptop signs in, and has ssh configured.
func newLaptop(s *server) *laptop {
	s.t.Helper()
	l := &laptop{server: s, t: s.t, home: s.t.TempDir()}
	l.must(l.run(s.token+"\n", "sandboxd", "login", "http://localhost:"+s.port()))
	l.must(l.run("", "sandboxd", "ssh-config", "--install"))
	return l
}

// said is what a command has said, and how it ended.
type said struct {
	out, err string
	code     int
}

// command is one of a person's. ssh and its company take their configuration from the laptop's home.
func (l *laptop) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	config := filepath.Join(l.home, ".ssh", "config")
	switch name {
	case "sandboxd":
		self, err := filepath.Abs(binary)
		if err != nil {
			l.t.Fatal(err)
		}
		name = self
	case "ssh", "scp", "sftp":
		args = append([]string{"-F", config}, args...)
	case "rsync":
		args = append([]string{"-e", "ssh -F " + config}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "HOME="+l.home, "XDG_CONFIG_HOME="+filepath.Join(l.home, ".config"), "SSH_AUTH_SOCK=", "TERM=xterm")
	cmd.Dir, cmd.WaitDelay = l.home, 5*time.Second
	return cmd
}

func (l *laptop) run(in, name string, args ...string) said {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), commandLimit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := l.command(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return said{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must fails the test for a command that has failed.
func (l *laptop) must(s said) string {
	l.t.Helper()
	if s.code != 0 {
		l.t.Fatalf("exit code %d\n%s\n%s\n%s", s.code, s.out, s.err, l.tail())
	}
	return s.out
}

// file makes a file in the laptop's home.
func (l *laptop) file(name string, content []byte) string {
	l.t.Helper()
	path := filepath.Join(l.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// screenful is a command on a terminal that a person uses.
type screenful struct {
	t        *testing.T
	l        *laptop
	cmd      *exec.Cmd
	terminal *os.File
	ended    chan error

	mu   sync.Mutex
	seen bytes.Buffer
}

// sit starts a command on a terminal of that size.
func (l *laptop) sit(t *testing.T, cols, rows int, name string, args ...string) *screenful {
	t.Helper()
	s := &screenful{t: t, l: l, cmd: l.command(t.Context(), name, args...), ended: make(chan error, 1)}
	var err error
	if s.terminal, err = pty.StartWithSize(s.cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := s.terminal.Read(buf)
			s.mu.Lock()
			s.seen.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		err := s.cmd.Wait()
		<-read
		s.ended <- err
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		s.terminal.Close()
	})
	return s
}

func (s *screenful) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

func (s *screenful) types(keys string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until text is seen.
func (s *screenful) shows(text string) {
	s.t.Helper()
	deadline := time.Now().Add(commandLimit)
	for !strings.Contains(s.text(), text) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen does not show %q:\n%s\n%s", text, s.text(), s.l.tail())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// ends waits for the command's end, and gives its exit code.
func (s *screenful) ends() int {
	s.t.Helper()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(commandLimit):
		s.t.Fatalf("it does not end:\n%s", s.text())
		return -1
	}
}

func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}
