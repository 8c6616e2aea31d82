package door

import (
	"context"
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
)

// house is a sandbox that runs or does not, with a guest that answers or does not.
type house struct {
	doors  *Doors
	err    error
	silent bool
	seen   map[string]int // the uses that were registered while it was asked to be awake
}

func (h *house) Awake(_ context.Context, name string) (sandbox.Sandbox, error) {
	h.seen = h.doors.Uses(name)
	return sandbox.Sandbox{ID: "id-of-" + name, Name: name, State: sandbox.Running}, h.err
}

func (h *house) Session(ctx context.Context, _ string) (*link.Session, error) {
	if h.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &link.Session{}, nil
}

func newHouse() *house {
	h := &house{}
	h.doors = New(h, h)
	return h
}

func TestOpen_TheUseIsRegisteredBeforeTheWakeAndUntilRelease(t *testing.T) {
	h := newHouse()
	first, err := h.doors.Open(t.Context(), "lab", "exec")
	if err != nil {
		t.Fatal(err)
	}
	if h.seen["exec"] != 1 {
		t.Errorf("while waking: %v", h.seen)
	}
	second, err := h.doors.Open(t.Context(), "lab", "terminal")
	if err != nil {
		t.Fatal(err)
	}
	if uses := h.doors.Uses("lab"); uses["exec"] != 1 || uses["terminal"] != 1 {
		t.Errorf("two uses: %v", uses)
	}
	first.Release()
	first.Release()
	second.Release()
	if uses := h.doors.Uses("lab"); len(uses) != 0 || len(h.doors.uses) != 0 {
		t.Errorf("after the release: %v", uses)
	}
}

func TestOpen_WhatDoesNotRunIsRefusedAndNotCounted(t *testing.T) {
	h := newHouse()
	h.err = fault.New(fault.Conflict, "lab is stopped. Start it first.")
	if _, err := h.doors.Open(t.Context(), "lab", "exec"); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
	if uses := h.doors.Uses("lab"); len(uses) != 0 {
		t.Errorf("it counts: %v", uses)
	}
}

func TestOpen_AGuestThatDoesNotAnswerIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse()
		h.silent = true
		if _, err := h.doors.Open(t.Context(), "lab", "exec"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
		if uses := h.doors.Uses("lab"); len(uses) != 0 {
			t.Errorf("it counts: %v", uses)
		}
	})
}
