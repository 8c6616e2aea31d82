package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// pausing gives a part of an archive, calls paused, and waits for resume; then it gives the rest.
type pausing struct {
	io.Reader
	paused func()
	resume <-chan struct{}
	rest   io.Reader
}

func pause(b []byte, paused func(), resume <-chan struct{}) *pausing {
	return &pausing{bytes.NewReader(b[:len(b)/2]), paused, resume, bytes.NewReader(b[len(b)/2:])}
}

// Read implements io.Reader.
func (p *pausing) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err == io.EOF && p.rest != nil {
		p.paused()
		<-p.resume
		p.Reader, p.rest = p.rest, nil
		return 0, nil
	}
	return n, err
}

func homeContext(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	good := tarOf(t, "in/", newFiles())
	ctx, cancel := context.WithCancel(h.ctx)
	_, err := h.home(b.ID).Replace(ctx, pause(good, cancel, ctx.Done()), sandbox.Content{Prefix: "in/"}, ignore)
	if !errors.Is(err, context.Canceled) || fault.Is(err, fault.Unavailable) {
		t.Errorf("cancelled: got %v", err)
	}
	h.settle(b.ID)
	h.has(b.ID, oldFiles())
	ctx, cancel = context.WithTimeout(h.ctx, 300*time.Millisecond)
	defer cancel()
	if _, err = h.home(b.ID).Replace(ctx, pause(good, func() {}, ctx.Done()), sandbox.Content{Prefix: "in/"}, ignore); !fault.Is(err, fault.Timeout) {
		t.Errorf("timed out: got %v", err)
	}
	h.settle(b.ID)
	h.has(b.ID, oldFiles())
	ended, cancel := context.WithCancel(h.ctx)
	cancel()
	if _, err := h.s.Homes.OpenHome(ended, b.ID, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v", err)
	}
	for name, job := range jobs(h.t) {
		if err := job(ended, h.home(b.ID)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	h.has(b.ID, oldFiles())
}

// jobs are all that a Home can do.
func jobs(t *testing.T) map[string]func(context.Context, sandbox.Home) error {
	b := tarOf(t, "in/", newFiles())
	return map[string]func(context.Context, sandbox.Home) error{
		"read": func(ctx context.Context, home sandbox.Home) error {
			_, err := home.Read(ctx, io.Discard, suitePrefix, ignore)
			return err
		},
		"replace": func(ctx context.Context, home sandbox.Home) error {
			_, err := home.Replace(ctx, bytes.NewReader(b), sandbox.Content{Prefix: "in/"}, ignore)
			return err
		},
		"copy out": func(ctx context.Context, home sandbox.Home) error { _, err := home.CopyOut(ctx, ignore); return err },
		"copy in":  func(ctx context.Context, home sandbox.Home) error { _, err := home.CopyIn(ctx, ignore); return err },
		"settle":   func(ctx context.Context, home sandbox.Home) error { _, err := home.Settle(ctx); return err },
	}
}

func homeSettled(_ *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.settle(b.ID)
	h.has(b.ID, map[string]string{})
	h.put(b.ID, oldFiles())
	h.settle(b.ID)
	h.settle(b.ID)
	h.has(b.ID, oldFiles())
}

// replacing has a Home replace until meanwhile has returned, half-way, and gives the outcome.
func (h *homesTest) replacing(home sandbox.Home, meanwhile func()) error {
	paused, resume, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	source := pause(tarOf(h.t, "in/", newFiles()), func() { close(paused) }, resume)
	go func() {
		_, err := home.Replace(h.ctx, source, sandbox.Content{Prefix: "in/"}, ignore)
		done <- err
	}()
	<-paused
	meanwhile()
	close(resume)
	return <-done
}

func homeOpenedAgain(_ *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	first := h.home(b.ID)
	h.kind(h.replacing(first, func() { h.has(b.ID, oldFiles()) }), fault.Unavailable)
	h.has(b.ID, oldFiles())
	idle, second := h.home(b.ID), h.home(b.ID)
	if err := idle.Close(); err != nil { // which is not the open one any more
		h.t.Error(err)
	}
	if _, err := second.Settle(h.ctx); err != nil {
		h.t.Errorf("the later one: %v", err)
	}
	for name, job := range jobs(h.t) {
		if err := job(h.ctx, idle); !fault.Is(err, fault.Unavailable) {
			h.t.Errorf("%s with the earlier one: got %v, want Unavailable", name, err)
		}
	}
}

func homeClosed(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	home := h.home(b.ID)
	h.kind(h.replacing(home, func() {
		for range 3 {
			if err := home.Close(); err != nil {
				t.Error(err)
			}
		}
	}), fault.Unavailable)
	h.has(b.ID, oldFiles())
}

func homeRemoved(_ *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	h.kind(h.replacing(h.home(b.ID), func() { h.remove(b.ID) }), fault.Unavailable)
	h.empty()
	h.create(b)
	h.has(b.ID, map[string]string{})
}

func homeFrozen(_ *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	h.start(b.ID)
	h.Freeze(h.t, b.ID)
	h.has(b.ID, oldFiles())
	h.put(b.ID, newFiles())
	h.has(b.ID, newFiles())
	id := sandbox.NewID()
	h.copyOut(b.ID, id)
	h.removeCopies(id)
	h.start(b.ID) // thaws
	h.stop(b.ID, longGrace)
	h.has(b.ID, newFiles())
}

func homeAbsent(_ *testing.T, h *homesTest) {
	partial := h.Spec(Patient)
	h.Cut(h.t, partial)
	for _, id := range []string{sandbox.NewID(), partial.ID} {
		_, err := h.s.Homes.OpenHome(h.ctx, id, "")
		h.kind(err, fault.NotFound)
	}
}

func homeHung(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	resume := h.Hang()
	ctx, cancel := context.WithTimeout(h.ctx, 150*time.Millisecond)
	defer cancel()
	if _, err := h.s.Homes.OpenHome(ctx, b.ID, ""); !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v, want a Timeout", err)
	}
	ctx, cancel = context.WithCancel(h.ctx)
	cancel()
	if _, err := h.s.Homes.OpenHome(ctx, b.ID, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	resume()
	h.put(b.ID, oldFiles())
}

func homeLost(_ *testing.T, h *homesTest) {
	b := h.made(Patient)
	back := h.Lose()
	_, err := h.s.Homes.OpenHome(h.ctx, b.ID, "")
	h.kind(err, fault.Unavailable)
	back()
	h.put(b.ID, oldFiles())
}
