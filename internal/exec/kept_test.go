package exec_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// cuttable is a place whose link a test can cut.
func cuttable(t *testing.T) (s *exec.Service, h access.Handle, cut func()) {
	t.Helper()
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: t.TempDir(), Passwd: accesstest.Passwd(t, t.TempDir()), Version: "test"})
	accesstest.Run(t, hub.Run, g.Run)
	box := accesstest.Linked("box", "box", access.FromHub(hub))
	return exec.New(exec.Config{Starter: exec.InGuest()}), box.Handle(t), func() {
		if err := hub.HangUp(t.Context(), "box"); err != nil {
			t.Error(err)
		}
		if _, err := hub.Expect("box", wire.Setup{Name: "box"}); err != nil {
			t.Error(err)
		}
	}
}

func TestPipe_GoesOnWhereItWasThoughTheLinkIsCut(t *testing.T) {
	s, h, cut := cuttable(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 { // the same again is no error
		if err := s.Keep(ctx, h, "a", exec.Request{Command: []string{"/bin/sh", "-c", `while read -r x; do echo "got $x"; done; echo why >&2; exit 7`}}); err != nil {
			t.Fatal(err)
		}
	}
	p := s.Attach(ctx, h, "a", exec.Offsets{})
	defer p.Close()
	for i := range 5 {
		if n, err := fmt.Fprintf(p, "%d\n", i); n != 2 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		answer := make([]byte, len("got 0\n"))
		if _, err := io.ReadFull(p, answer); err != nil || string(answer) != fmt.Sprintf("got %d\n", i) {
			t.Fatalf("got %q, %v", answer, err)
		}
		if err := p.Ack(p.Offsets().Output); err != nil {
			t.Fatal(err)
		}
		cut()
	}
	at := p.Offsets()
	if at != (exec.Offsets{Output: 30, Input: 10}) {
		t.Errorf("it is at %+v", at)
	}
	p.Close()
	next := s.Attach(ctx, h, "a", at) // as after a restart
	defer next.Close()
	fmt.Fprintln(next, "more")
	answer := make([]byte, len("got more\n"))
	if _, err := io.ReadFull(next, answer); err != nil || string(answer) != "got more\n" {
		t.Fatalf("got %q, %v", answer, err)
	}
	if l, err := s.Kept(ctx, h); err != nil || len(l) != 1 || l[0].ID != "a" || l[0].First != 30 {
		t.Errorf("got %+v, %v", l, err)
	}
	if err := s.EndKept(ctx, h, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Read(answer); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

func TestPipe_TellsTheEnd(t *testing.T) {
	s, h, _ := cuttable(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Keep(ctx, h, "a", exec.Request{Command: []string{"/bin/sh", "-c", "echo out; echo why >&2; exit 7"}}); err != nil {
		t.Fatal(err)
	}
	p := s.Attach(ctx, h, "a", exec.Offsets{})
	defer p.Close()
	out, err := io.ReadAll(p)
	if code, _ := p.Exit(); string(out) != "out\n" || err != nil || code != 7 {
		t.Errorf("got %q, %v, exit code %d", out, err, code)
	}
	if text, err := p.Stderr(); string(text) != "why\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := p.Write([]byte(strings.Repeat("x", 1<<20))); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
	none := s.Attach(ctx, h, "none", exec.Offsets{})
	defer none.Close()
	if _, err := none.Read(out); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

func TestPipe_CloseEndsAReadAndNotTheProgram(t *testing.T) {
	s, h, _ := cuttable(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Keep(ctx, h, "a", exec.Request{Command: []string{"cat"}}); err != nil {
		t.Fatal(err)
	}
	p := s.Attach(ctx, h, "a", exec.Offsets{})
	read := make(chan error, 1)
	go func() {
		_, err := p.Read(make([]byte, 1))
		read <- err
	}()
	p.Close()
	if err := <-read; err == nil {
		t.Error("it has read something")
	}
	if l, err := s.Kept(ctx, h); err != nil || len(l) != 1 || !l[0].Ended.IsZero() {
		t.Errorf("got %+v, %v", l, err)
	}
}
