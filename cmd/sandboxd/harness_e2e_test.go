//go:build e2e

package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// doomed is a test within a test, which may fail.
type doomed struct {
	testing.TB
	cleanups []func()
	faults   []string
}

func (d *doomed) Cleanup(f func()) { d.cleanups = append(d.cleanups, f) }
func (d *doomed) Failed() bool     { return len(d.faults) > 0 }
func (d *doomed) Error(args ...any) {
	d.faults = append(d.faults, fmt.Sprint(args...))
}
func (d *doomed) Errorf(format string, args ...any) { d.Error(fmt.Sprintf(format, args...)) }
func (d *doomed) Fatal(args ...any)                 { d.Error(args...); runtime.Goexit() }
func (d *doomed) Fatalf(format string, args ...any) { d.Fatal(fmt.Sprintf(format, args...)) }
func (d *doomed) Logf(string, ...any)               {}

// run runs f as a test, and then its clean-up.
func (d *doomed) run(f func()) {
	for len(d.cleanups) > 0 || f != nil {
		next := f
		if f = nil; next == nil {
			next, d.cleanups = d.cleanups[len(d.cleanups)-1], d.cleanups[:len(d.cleanups)-1]
		}
		var done sync.WaitGroup
		done.Go(next)
		done.Wait()
	}
}

// TestHarness_AStartThatFailsLeavesNoProcess starts a sandboxd that is never ready, as it listens elsewhere, and one that
// ends by itself.
func TestHarness_AStartThatFailsLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, flag := range [][]string{{"--listen", freeAddr(t)}, {"--no-such-flag"}} {
		d := &doomed{TB: t}
		var s *server
		began := time.Now()
		d.run(func() {
			s = prepare(d, "", append([]string{"--prebuild", ""}, flag...)...)
			s.patience = 3 * time.Second
			s.start()
		})
		if len(d.faults) != 1 || s.cmd == nil || s.runs() || time.Since(began) > eventLimit {
			t.Errorf("%v: it runs on, or more went wrong: %q", flag, d.faults)
		}
	}
}

// TestHarness_LeavesNothingOnTheEngine ends a server that has sandboxes of every kind: running, frozen, and made in
// advance.
func TestHarness_LeavesNothingOnTheEngine(t *testing.T) {
	t.Parallel()
	var filter string
	has := func(list []string) []string { return strings.Fields(engine(t, append(list, "--filter", filter)...)) }
	t.Run("server", func(t *testing.T) {
		s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t, "pool: 2"))
		filter = "label=sandboxd.instance=" + s.instance()
		for _, name := range []string{"one", "two"} {
			s.create(map[string]any{"name": name, "image": "debian:trixie-slim"})
		}
		s.sleeps("two", "frozen")
		s.until("the pool is full", func() bool { return len(has([]string{"ps", "-q", "--filter", "status=paused"})) == 3 })
	})
	for _, b := range belongings {
		if left := has(b.list); len(left) > 0 {
			t.Errorf("%s are left: %v", b.what, left)
		}
	}
}
