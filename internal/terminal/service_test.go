package terminal

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func service(w *world) *Service { return New(w, slog.New(slog.DiscardHandler)) }

func TestService_ListsAndClosesTabs(t *testing.T) {
	w := &world{state: sandbox.Running}
	s := service(w)
	tabs, err := s.Tabs(t.Context(), w.handle())
	if err != nil || len(tabs) != 1 || tabs[0].Viewers != 2 {
		t.Fatalf("%v, %v", tabs, err)
	}
	if used := w.used(); used != "" {
		t.Errorf("looking counts as use: %s", used)
	}
	if err := s.CloseTab(t.Context(), w.handle(), "two"); err != nil || !slices.Equal(w.closed, []string{"two"}) {
		t.Fatalf("%v, %v", w.closed, err)
	}
	if err := s.CloseTab(t.Context(), w.handle(), "A b"); !fault.Is(err, fault.Invalid) {
		t.Fatalf("%v", err)
	}
}

func TestText_IsReadWithoutAnyUse(t *testing.T) {
	w := &world{state: sandbox.Running}
	s := service(w)
	if text, err := s.Text(t.Context(), w.handle(), "main", Everything); err != nil || string(text.Text) != "\x1b[1mshown\n" {
		t.Errorf("text %q, %v", text.Text, err)
	}
	for tab, kind := range map[string]fault.Kind{"2": fault.NotFound, "A b": fault.Invalid} {
		if _, err := s.Text(t.Context(), w.handle(), tab, Everything); fault.KindOf(err) != kind {
			t.Errorf("%s: %v", tab, err)
		}
	}
	asleep := &world{state: sandbox.Asleep, refuse: fault.New(fault.Conflict, "box is asleep.")}
	if _, err := service(asleep).Text(t.Context(), asleep.handle(), "main", Everything); !fault.Is(err, fault.Conflict) || asleep.used()+w.used() != "" {
		t.Errorf("%v; used: %s%s", err, asleep.used(), w.used())
	}
}

func TestTabs_OfASandboxThatDoesNotRunAreAConflict(t *testing.T) {
	w := &world{state: sandbox.Asleep, refuse: fault.New(fault.Conflict, "box is asleep.")}
	if _, err := service(w).Tabs(t.Context(), w.handle()); !fault.Is(err, fault.Conflict) || w.used() != "" {
		t.Errorf("%v; used: %s", err, w.used())
	}
}

func TestCloseTab_WakesOnlyWhatStillHasTheTab(t *testing.T) {
	for state, wakes := range map[sandbox.State]bool{
		sandbox.Running: true, sandbox.Frozen: true, sandbox.Asleep: false, sandbox.Stopped: false, sandbox.Failed: false,
	} {
		w := &world{state: state}
		err := service(w).CloseTab(t.Context(), w.handle(), "two")
		if err != nil || (len(w.closed) == 1) != wakes || (w.used() == "open") != wakes {
			t.Errorf("%s: %v; closed %v; used: %s", state, err, w.closed, w.used())
		}
	}
	if err := service(&world{gone: true}).CloseTab(t.Context(), (&world{gone: true}).handle(), "two"); !fault.Is(err, fault.Gone) {
		t.Errorf("%v", err)
	}
}

func TestAttach_TellsAViewerThatTheSandboxIsStillAsleepAndWhy(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Sleeping, sandbox.Asleep} {
		w := &world{state: state, refuse: fault.New(fault.Unavailable, "The host is full.")}
		v := watch(t, w)
		v.send(`{"columns":80,"rows":24}`)
		if output, code, reason := v.end(); output != "" || code != CloseAsleep || reason != "The host is full." {
			t.Errorf("%s: %q, code %d %q", state, output, code, reason)
		}
		if err := v.result(); err != nil {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestAttach_WhatIsNotAtRestIsRefusedBeforeTheUpgrade(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Stopped, sandbox.Failed} {
		w := &world{state: state, refuse: fault.New(fault.Conflict, "box is stopped. Start it first.")}
		if _, err := service(w).Attach(t.Context(), w.handle(), ""); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestAttach_ANeverPumpedOneIsClosed(t *testing.T) {
	w := &world{state: sandbox.Asleep, refuse: fault.New(fault.Conflict, "box is asleep.")}
	a, err := service(w).Join(t.Context(), w.handle(), "")
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	w = rawWorld(t, func(net.Conn) {})
	if _, err := service(w).Join(context.Background(), w.handle(), ""); !fault.Is(err, fault.Unavailable) || w.used() != "" {
		t.Errorf("%v; used: %s", err, w.used())
	}
}
