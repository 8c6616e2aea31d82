package door_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"sandboxd/internal/door"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const patience = 30 * time.Second

// counting is a sandbox that always runs, and counts how often it was asked to.
type counting struct{ asked int }

func (c *counting) Awake(ctx context.Context, name string) (sandbox.Sandbox, error) {
	c.asked++
	return c.Sandbox(ctx, name)
}

func (*counting) Sandbox(_ context.Context, name string) (sandbox.Sandbox, error) {
	return sandbox.Sandbox{ID: "box", Name: name, State: sandbox.Running}, nil
}

// linked gives a hub with a real guest, which is this very process, until cut.
func linked(t *testing.T) (hub *link.Hub, start func() (cut func())) {
	t.Helper()
	hub = link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	home := t.TempDir()
	return hub, func() func() {
		g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: home, Version: "test"})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		return func() {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
}

func TestTouch_AStreamWhoseLinkHasEndedWakesNothing(t *testing.T) {
	hub, start := linked(t)
	cut := start()
	w := &counting{}
	doors := door.New(w, hub, idle.New())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := doors.OpenStream(ctx, "box", idle.Use{Kind: idle.Terminal})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	if err := e.Touch(ctx, false); err != nil || w.asked != 2 {
		t.Errorf("while it stands: %v; asked %d times", err, w.asked)
	}
	cut()
	select {
	case <-e.Session.Done():
	case <-ctx.Done():
		t.Fatal("the link stays")
	}
	if err := e.Touch(ctx, false); !fault.Is(err, fault.Unavailable) || w.asked != 2 {
		t.Errorf("%v; asked %d times", err, w.asked)
	}
}

func TestOpen_WaitsForTheGuestThatDialsInAgain(t *testing.T) {
	hub, start := linked(t)
	start()()
	doors := door.New(&counting{}, hub, idle.New())
	opened := make(chan error, 1)
	go func() {
		e, err := doors.Open(t.Context(), "box", idle.Use{Kind: idle.Exec})
		if err == nil {
			_, err = e.Session.Terminals(t.Context())
			if fault.Is(err, fault.Unavailable) { // this guest has none, and says so
				err = nil
			}
			e.Release()
		}
		opened <- err
	}()
	defer start()()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
