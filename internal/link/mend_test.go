package link_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/guest/tty"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// connectTo gives a session with a guest in this process that is configured so.
func connectTo(t *testing.T, cfg guest.Config) *link.Session {
	t.Helper()
	h := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	runHub(t, h)
	folder, err := h.Expect("box", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	runGuest(t, folder, cfg)
	s, err := h.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// full are terminals of which there are as many as may be.
type full struct{}

func (full) Dial(context.Context, string) (net.Conn, error) { return nil, tty.ErrTooMany }
func (full) List() []wire.Terminal                          { return nil }
func (full) Close(string) error                             { return nil }

func (full) Text(_ context.Context, tab string, w io.Writer) error {
	if tab != "main" {
		return tty.ErrNoText
	}
	_, err := io.WriteString(w, "\x1b[1mshown\n")
	return err
}

func TestDialTerminal_OneTooManyIsAConflict(t *testing.T) {
	s := connectTo(t, guest.Config{Terminals: func(guest.Shell) (guest.Terminals, func(context.Context) error) {
		return full{}, func(ctx context.Context) error { <-ctx.Done(); return nil }
	}})
	_, err := s.DialTerminal(testContext(t), "another")
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.Message(err), "Close one first") {
		t.Errorf("got %v: %v", fault.KindOf(err), err)
	}
}

func TestTerminalText_IsTheEndOfTheScrollback(t *testing.T) {
	s := connectTo(t, guest.Config{Terminals: func(guest.Shell) (guest.Terminals, func(context.Context) error) {
		return full{}, func(ctx context.Context) error { <-ctx.Done(); return nil }
	}})
	if text, err := s.TerminalText(testContext(t), "main"); err != nil || string(text) != "\x1b[1mshown\n" {
		t.Errorf("text %q, %v", text, err)
	}
	for tab, kind := range map[string]fault.Kind{"other": fault.NotFound, "../main": fault.Invalid} {
		if _, err := s.TerminalText(testContext(t), tab); fault.KindOf(err) != kind {
			t.Errorf("%s: %v", tab, err)
		}
	}
}

func TestExec_ClosedHomeKeepsNobodyOut(t *testing.T) {
	home := t.TempDir()
	s := connectTo(t, guest.Config{Home: home})
	if err := os.Chmod(home, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(home, 0o700) })
	start := wire.ExecStart{Command: []string{"pwd"}}
	if os.Getuid() == 0 {
		start.User = "4242:4242" // root may enter everything
	}
	if r := run(t, s, start); r.stdout.String() != "/\n" || r.code != 0 {
		t.Errorf("got %q, %d", r.stdout.String(), r.code)
	}
	start.Cwd = home
	if _, err := s.Exec(testContext(t), start); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a closed folder that was asked for: %v", err)
	}
}

// astray starts a command, of which a process leaves the session, the environment and its parents, and gives its pid.
func astray(t *testing.T, s *link.Session) (*link.Process, int) {
	t.Helper()
	p, err := s.Exec(testContext(t), sh("setsid -f env -i /bin/sh -c 'echo $$; exec sleep 300'; sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	f, err := p.Next()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(f.Data)))
	if err != nil {
		t.Fatal(err)
	}
	return p, pid
}

func TestExec_CloseKillsWhatLeftSessionEnvironmentAndParents(t *testing.T) {
	s := connect(t, wire.Setup{})
	p, pid := astray(t, s)
	other, spared := astray(t, s)
	p.Close()
	waitGone(t, []int{pid})
	if !running(spared) {
		t.Error("another command's process was killed, too")
	}
	other.Close()
	waitGone(t, []int{spared})
}
