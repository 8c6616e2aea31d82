package tunnel

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// world is a service over a real link to a real guest, which is this very process.
func world(t *testing.T) (*Service, *accesstest.Sandbox) {
	t.Helper()
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: t.TempDir(), Version: "test"})
	accesstest.Run(t, hub.Run, g.Run)
	return New(), accesstest.Linked("lab", "box", access.FromHub(hub))
}

// echo listens, gives back what it reads in capitals, and says goodbye.
func echo(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn)
				io.WriteString(conn, strings.ToUpper(string(text))+" BYE")
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestDial_CarriesBothWaysAndEachEnd(t *testing.T) {
	s, lab := world(t)
	c, err := s.Dial(t.Context(), lab.Handle(t), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	asked, _ := lab.Awakes()
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Error(err)
	}
	if now, _ := lab.Awakes(); now != asked+1 {
		t.Errorf("what is sent has asked for it %d times", now-asked)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(c); string(text) != "HELLO BYE" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if because := lab.Status().Because; len(because) != 1 || because[0].Kind != idle.Stream {
		t.Errorf("in use by %+v", because)
	}
	c.Close()
	c.Close()
}

func TestDial_WhatIsRefused(t *testing.T) {
	s, lab := world(t)
	box := lab.Handle(t)
	for port, kind := range map[int]fault.Kind{0: fault.Invalid, 65536: fault.Invalid, -1: fault.Invalid, 1: fault.NotFound} {
		if _, err := s.Dial(t.Context(), box, port); !fault.Is(err, kind) {
			t.Errorf("%d: %v", port, err)
		}
	}
	port := echo(t)
	for range maxAtOnce {
		c, err := s.Dial(t.Context(), box, port)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if _, err := s.Dial(t.Context(), box, port); !fault.Is(err, fault.Limited) {
		t.Errorf("one too many: %v", err)
	}
	lab.Change(func(row *sandbox.Sandbox) { row.ID = "another" })
	if _, err := New().Dial(t.Context(), box, port); !fault.Is(err, fault.Gone) {
		t.Errorf("another sandbox of that name: %v", err)
	}
}

// counted notes how it was touched.
type counted struct{ attended, unattended int }

func (c *counted) Touch(_ context.Context, unattended bool) error {
	if unattended {
		c.unattended++
	} else {
		c.attended++
	}
	return nil
}

func (*counted) Release() {}

func TestWrite_AHeartbeatIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		use := &counted{}
		c := &Conn{Conn: here, use: use, leave: func() {}}
		c.life, c.end = context.WithCancel(t.Context())
		defer c.Close()
		for range 100 {
			c.Write([]byte("ping\n"))
			time.Sleep(5 * time.Second)
		}
		if use.attended > 5 || use.unattended < 90 {
			t.Errorf("%+v", use)
		}
		before := use.attended
		for range 10 {
			c.Write(make([]byte, 200))
			time.Sleep(5 * time.Second)
		}
		if use.attended != before+10 {
			t.Errorf("what is said: %+v", use)
		}
	})
}
