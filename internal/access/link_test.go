package access_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

const patience = time.Minute

// linked gives a hub with a real guest, which is this very process, until cut.
func linked(t *testing.T) (hub *link.Hub, start func() (cut func())) {
	t.Helper()
	hub = link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	accesstest.Run(t, hub.Run)
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

func asked(box *accesstest.Sandbox) int {
	n, _ := box.Awakes()
	return n
}

func TestTouch_AStreamWhoseLinkHasEndedWakesNothing(t *testing.T) {
	hub, start := linked(t)
	cut := start()
	box := accesstest.Linked("box", "box", access.FromHub(hub))
	h := box.Handle(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := h.OpenStream(ctx, idle.Use{Kind: idle.Terminal})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	if err := e.Touch(ctx, false); err != nil || asked(box) != 2 {
		t.Errorf("while it stands: %v; asked %d times", err, asked(box))
	}
	cut()
	select {
	case <-e.Guest.Done():
	case <-ctx.Done():
		t.Fatal("the link stays")
	}
	if err := e.Touch(ctx, false); !fault.Is(err, fault.Unavailable) || asked(box) != 2 {
		t.Errorf("%v; asked %d times", err, asked(box))
	}
}

func TestOpen_WaitsForTheGuestThatDialsInAgain(t *testing.T) {
	hub, start := linked(t)
	start()()
	box := accesstest.Linked("box", "box", access.FromHub(hub))
	h := box.Handle(t)
	opened := make(chan error, 1)
	go func() {
		e, err := h.Open(t.Context(), idle.Use{Kind: idle.Exec})
		if err == nil {
			_, err = e.Guest.Terminals(t.Context())
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
