package sshd_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/sshd"
)

func TestCommand_OutputInputAndExitStatus(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	s := w.session(c)
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr, s.Stdin = &out, &errs, strings.NewReader("in:")
	if err := s.Setenv("GREETING", "a b"); err != nil {
		t.Fatal(err)
	}
	if got := exitOf(s.Run(`cat; echo "$GREETING"; echo err >&2; exit 7`)); got != 7 || out.String() != "in:a b\n" || errs.String() != "err\n" {
		t.Errorf("%d, %q, %q", got, out.String(), errs.String())
	}
	if err := w.session(c).Setenv("BAD NAME", "x"); err == nil {
		t.Error("a variable with a space in its name is taken")
	}
}

func TestCommand_ASignalIsToldInBothWays(t *testing.T) {
	w := newWorld(t)
	var exit *ssh.ExitError
	err := w.session(w.client()).Run("kill -TERM $$")
	if exit, _ = err.(*ssh.ExitError); exit == nil || exit.ExitStatus() != 143 || exit.Signal() != "TERM" {
		t.Errorf("got %v", err)
	}
}

func TestCommand_ASignalIsPassedOn(t *testing.T) {
	w := newWorld(t)
	s := w.session(w.client())
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done`); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	rest := reader(out)
	if err := s.Signal(ssh.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := exitOf(s.Wait()); got != 4 || rest() != "caught\n" {
		t.Errorf("exit status %d", got)
	}
}

func TestCommand_OnlySoManySignalsWait(t *testing.T) {
	w := newWorld(t)
	s := w.session(w.client())
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("echo ready; sleep 600"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	w.lab.OnAwake(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // it does not wake
	taken, before := 0, runtime.NumGoroutine()
	for range 200 {
		if ok, err := s.SendRequest("signal", true, ssh.Marshal(struct{ Name string }{"USR1"})); err != nil {
			t.Fatal(err)
		} else if ok {
			taken++
		}
	}
	if now := runtime.NumGoroutine(); taken < 16 || taken > 17 || now > before+20 {
		t.Errorf("%d were taken, with %d goroutines more", taken, now-before)
	}
}

func TestTerminal_HasASizeThatFollows(t *testing.T) {
	w := newWorld(t)
	s := w.session(w.client())
	if err := s.RequestPty("xterm-test", 30, 100, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	s.Stdout = &out
	if err := s.Start(`stty size; echo $TERM; until [ "$(stty size)" = "40 120" ]; do :; done; read line; stty size; echo "got $line"; exit 3`); err != nil {
		t.Fatal(err)
	}
	w.until("it tells its size", func() bool {
		return strings.Contains(out.String(), "30 100") && strings.Contains(out.String(), "xterm-test")
	})
	if err := s.WindowChange(40, 120); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "hello\n")
	if got := exitOf(s.Wait()); got != 3 || !strings.Contains(out.String(), "40 120") || !strings.Contains(out.String(), "got hello") {
		t.Errorf("%d: %q", got, out.String())
	}
}

func TestUse_ACommandCountsUntilItEnds(t *testing.T) {
	w := newWorld(t)
	s := w.session(w.client())
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("read line"); err != nil {
		t.Fatal(err)
	}
	w.until("it is in use", func() bool { return w.kinds() == "exec:read line " })
	asked := w.asked()
	io.WriteString(in, "go\n")
	if got := exitOf(s.Wait()); got != 0 || w.asked() == asked {
		t.Errorf("exit status %d; input has woken it: %v", got, w.asked() != asked)
	}
	w.until("it is in use no more", func() bool { return w.kinds() == "" })
}

// TestUse_AShellCountsByItsInput goes by the clock of Pulse, so it looks at what is registered instead: a watch is no lease
// that lasts.
func TestUse_AShellCountsByItsInput(t *testing.T) {
	w := newWorld(t)
	for name, start := range map[string]func(s *ssh.Session) error{
		"shell":      func(s *ssh.Session) error { return s.Shell() },
		"bare shell": func(s *ssh.Session) error { return s.Start("bash --login") },
	} {
		s := w.session(w.client())
		in, err := s.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out lockedBuffer
		s.Stdout = &out
		if err := start(s); err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, "echo here\n")
		w.until(name+" answers", func() bool { return strings.Contains(out.String(), "here\n") })
		if got := w.kinds(); !strings.Contains(got, "terminal:") || strings.Contains(got, "exec:") {
			t.Errorf("%s: in use by %q", name, got)
		}
		asked := w.asked()
		io.WriteString(in, "echo again\n")
		w.until(name+" answers again", func() bool { return strings.Contains(out.String(), "again\n") })
		if w.asked() == asked {
			t.Errorf("%s: a key does not wake", name)
		}
		io.WriteString(in, "exit 5\n")
		if got := exitOf(s.Wait()); got != 5 {
			t.Errorf("%s: exit status %d", name, got)
		}
	}
}

func TestConnection_IsNoUseByLyingOpen(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
	if ok || err != nil || w.kinds() != "" || w.asked() != 0 {
		t.Errorf("%v, %v; in use by %q, woken %d times", ok, err, w.kinds(), w.asked())
	}
}

func TestRefused_WhatIsNotThere(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("remote forwarding is allowed")
	}
	for _, what := range []string{"auth-agent-req@openssh.com", "x11-req", "subsystem", "nonsense"} {
		if ok, err := w.session(c).SendRequest(what, true, ssh.Marshal(struct{ Name string }{"netconf"})); ok || err != nil {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	for _, channel := range []string{"x11", "direct-streamlocal@openssh.com", "forwarded-tcpip", "tun@openssh.com"} {
		if _, _, err := c.OpenChannel(channel, nil); err == nil {
			t.Errorf("the channel %s is opened", channel)
		}
	}
	s := w.session(c)
	if err := s.Start("sleep 100"); err != nil {
		t.Fatal(err)
	}
	if ok, _ := s.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{"echo second"})); ok {
		t.Error("a session runs two commands")
	}
	for range 20 { // more than sessions of SFTP
		if s.RequestSubsystem("sftp") == nil {
			t.Error("a session runs a command and SFTP")
		}
	}
	w.sftp(c)
	if _, _, err := c.SendRequest("no-more-sessions@openssh.com", false, nil); err != nil {
		t.Fatal(err)
	}
	w.until("no more sessions are let in", func() bool { _, err := c.NewSession(); return err != nil })
}

func TestForward_ReachesThePortsOfTheSandboxOnly(t *testing.T) {
	w := newWorld(t)
	inside := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "inside") }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(inside.URL, "http://"))
	c := w.client()
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "LOCALHOST", "lab", "0.0.0.0"} {
		conn, err := c.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		if text, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(text), "inside") {
			t.Errorf("%s: %q, %v", host, text, err)
		}
		conn.Close()
	}
	for _, to := range []string{"example.com:80", "10.0.0.1:80", "169.254.169.254:80", "host.docker.internal:80", "another:80", "[fe80::1]:80"} {
		if _, err := c.Dial("tcp", to); err == nil || !strings.Contains(err.Error(), "only the sandbox's own ports") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if _, err := c.Dial("tcp", "localhost:1"); err == nil || !strings.Contains(err.Error(), "Nothing is listening on port 1 ") {
		t.Errorf("a closed port: %v", err)
	}
}

func TestBounds_OnlySoManyChannels(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	var open []*ssh.Session
	for len(open) < 200 {
		s, err := c.NewSession()
		if err != nil {
			break
		}
		open = append(open, s)
	}
	if len(open) != 100 {
		t.Errorf("%d channels are open", len(open))
	}
	open[0].Close()
	w.until("there is room again", func() bool { s, err := c.NewSession(); return err == nil && s != nil })
}

func TestReplaced_AnotherSandboxOfThatNameIsNotReached(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	w.replace()
	s := w.session(c)
	var errs bytes.Buffer
	s.Stderr = &errs
	if got := exitOf(s.Run("echo reached")); got != 255 || !strings.Contains(errs.String(), "has been deleted") {
		t.Errorf("exit status %d, %q", got, errs.String())
	}
	if _, err := c.Dial("tcp", "localhost:80"); err == nil || !strings.Contains(err.Error(), "has been deleted") {
		t.Errorf("a port: %v", err)
	}
	if _, err := sftp.NewClient(c); err == nil {
		t.Error("its files are reached")
	}
	if got := w.kinds(); strings.Contains(got, "files") || strings.Contains(got, "exec") {
		t.Errorf("in use by %q", got)
	}
}

// TestReplaced_WhileFilesAreOpen has the sandbox replaced under an SFTP session.
func TestReplaced_WhileFilesAreOpen(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	file, err := f.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	w.replace()
	_, writeErr := file.Write([]byte("x"))
	if closeErr := file.Close(); writeErr == nil && closeErr == nil {
		t.Error("a file is written")
	}
	if _, err := f.ReadDir(dir); err == nil {
		t.Error("a folder is read")
	}
	if err := f.Mkdir(filepath.Join(dir, "new")); err == nil {
		t.Error("a folder is made")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || content(t, filepath.Join(dir, "file")) != "" {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestServe_WhatIsNoSSHIsRefusedInTime(t *testing.T) {
	w := newWorld(t)
	here, there := pair(t)
	go func() {
		io.WriteString(here, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"+strings.Repeat("x", 1000))
		here.Close()
	}()
	go io.Copy(io.Discard, here)
	if err := w.server.Serve(t.Context(), w.lab.Handle(t), there); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestServe_AHandshakeThatTakesForEverIsEnded(t *testing.T) {
	key, err := sshd.OpenHostKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		go io.Copy(io.Discard, here)
		began := time.Now()
		err := sshd.New(sshd.Config{Key: key}).Serve(context.Background(), accesstest.New("lab", nil).Handle(t), there)
		if took := time.Since(began); err == nil || took > time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestServe_EndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	here, there := pair(t)
	defer here.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.server.Serve(ctx, w.lab.Handle(t), there) }()
	in, err := sshd.Dial(t.Context(), here, w.server.HostKey())
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan int, 1)
	go func() {
		code, _ := in.Run(t.Context(), sshd.Run{Line: "sleep 1000", Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
		ran <- code
	}()
	w.until("the command runs", func() bool { return strings.Contains(w.kinds(), "exec:sleep") })
	cancel()
	select {
	case err := <-done:
		if err != nil || <-ran != 255 {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	w.until("it is in use no more", func() bool { return w.kinds() == "" })
}

func TestClient_RefusesAnotherHostKey(t *testing.T) {
	w := newWorld(t)
	other, err := sshd.OpenHostKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sshd.Dial(t.Context(), w.connect(), other.Public()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("got %v", err)
	}
}

func TestHostKey_IsMadeOnceAndItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	first, err := sshd.OpenHostKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sshd.OpenHostKey(path)
	if err != nil || again.Public() != first.Public() || !strings.HasPrefix(first.Public(), "ssh-ed25519 ") {
		t.Errorf("%v: %s", err, again.Public())
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := sshd.OpenHostKey(path); !fault.Is(err, fault.Unavailable) {
		t.Errorf("one that others may read: %v", err)
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sshd.OpenHostKey(path); !fault.Is(err, fault.Unavailable) {
		t.Errorf("what is no key: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files are left: %v, %s", err, strconv.Itoa(len(entries)))
	}
}
