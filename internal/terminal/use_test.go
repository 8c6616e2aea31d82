package terminal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// hears gives a world whose terminal passes on what it gets.
func hears(t *testing.T) (*world, chan string) {
	t.Helper()
	got := make(chan string, 100)
	return ttydWorld(t, func(conn *websocket.Conn) {
		for {
			_, p, err := conn.ReadMessage()
			if err != nil {
				return
			}
			got <- string(p)
		}
	}), got
}

// await waits for the next message that a terminal gets.
func await(t *testing.T, got <-chan string, want string) {
	t.Helper()
	select {
	case m := <-got:
		if m != want {
			t.Fatalf("the terminal got %q, want %q", m, want)
		}
	case <-time.After(testLimit):
		t.Fatalf("the terminal does not get %q", want)
	}
}

// comesToUse waits until just this has counted as use.
func comesToUse(t *testing.T, w *world, want string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(testLimit); w.used() != want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("used: %s", w.used())
		}
	}
}

const hello, greeted = `{"columns":80,"rows":24}`, `{"AuthToken":"","columns":80,"rows":24}`

func TestPump_OnlyWhatAPersonDoesIsAttendedUse(t *testing.T) {
	w, got := hears(t)
	v := watch(t, w)
	v.send(hello)
	await(t, got, greeted)
	for _, m := range []string{"45000", "2", `1{"columns":90,"rows":30}`, "0\x1b[?1;2c", "0\x1b[O"} { // nothing of these
		v.send(m)
	}
	await(t, got, `1{"columns":90,"rows":30}`)
	await(t, got, "0\x1b[?1;2c")
	await(t, got, "0\x1b[O")
	if used := w.used(); used != "open" {
		t.Fatalf("used: %s", used)
	}
	v.send("5")
	v.send("0ls\r")
	await(t, got, "0ls\r")
	if used := w.used(); used != "open, watched, typed" {
		t.Errorf("used: %s", used)
	}
}

func TestPump_OutputIsUnattendedUse(t *testing.T) {
	w := ttydWorld(t, func(conn *websocket.Conn) {
		_ = say(conn, "1title", "0top", "0 - 12:00")
		_, _, _ = conn.ReadMessage()
	})
	v := watch(t, w)
	for read := ""; read != "0 - 12:00" && read != "0top - 12:00"; {
		m, err := v.next()
		if err != nil {
			t.Fatal(err)
		}
		read = m
	}
	if used := w.used(); used != "open, output" {
		t.Errorf("used: %s", used)
	}
}

func TestPump_WhatIsTypedWaitsForAFrozenSandboxAndArrives(t *testing.T) {
	w, got := hears(t)
	v := watch(t, w)
	v.send(hello)
	await(t, got, greeted)
	w.mu.Lock()
	w.thaw, w.state = make(chan struct{}), sandbox.Frozen
	w.mu.Unlock()
	v.send("0echo hi\r")
	v.send("0exit\r")
	comesToUse(t, w, "open, typed")
	select {
	case m := <-got:
		t.Fatalf("%q went into a frozen sandbox", m)
	default:
	}
	close(w.thaw)
	await(t, got, "0echo hi\r")
	await(t, got, "0exit\r")
}

func TestPump_AViewerWhoLeavesDoesNotWaitForAWake(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, got := hears(t)
	v := watchUntil(t, w, ctx)
	v.send(hello)
	await(t, got, greeted)
	w.mu.Lock()
	w.thaw = make(chan struct{}) // never
	w.mu.Unlock()
	v.send("0x")
	comesToUse(t, w, "open, typed")
	cancel()
	if _, code, _ := v.end(); code != CloseGoingAway {
		t.Errorf("code %d", code)
	}
	if err := v.result(); err != nil {
		t.Errorf("pump: %v", err)
	}
}

func TestPump_AViewerWhoseTypingCannotWakeIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		state sandbox.State
		dead  error
		code  int
		text  string
	}{
		{"the host is full", sandbox.Asleep, fault.New(fault.Unavailable, "The host is full."), CloseAsleep, "The host is full."},
		{"stopped meanwhile", sandbox.Stopped, fault.New(fault.Conflict, "box is stopped."), CloseStopped, "The sandbox was stopped."},
		{"woken by another use meanwhile", sandbox.Running, errors.New("the connection has ended"), CloseInterrupted, interrupted.reason},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, got := hears(t)
			v := watch(t, w)
			v.send(hello)
			await(t, got, greeted)
			w.mu.Lock()
			w.state, w.dead = c.state, c.dead
			w.mu.Unlock()
			v.send("0x")
			if _, code, reason := v.end(); code != c.code || reason != c.text {
				t.Errorf("code %d %q", code, reason)
			}
			if err := v.result(); err != nil {
				t.Errorf("pump: %v", err)
			}
		})
	}
}

func TestJoin_AttachesWithoutWaking(t *testing.T) {
	w, got := hears(t)
	v := watchBy(t, w, t.Context(), (*Service).Join)
	v.send(hello)
	await(t, got, greeted)
	if used := w.used(); used != "" {
		t.Errorf("used: %s", used)
	}
}
