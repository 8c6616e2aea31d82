package sandbox_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

type callerKey struct{}

// notes keeps what Observe is told: the action, the state before, who asked, and how it ended.
type notes struct {
	mu   sync.Mutex
	seen []string
}

func (n *notes) observe(ctx context.Context, a sandbox.Action, was sandbox.State, _ sandbox.Sandbox) func(error) {
	by, _ := ctx.Value(callerKey{}).(string)
	begun := time.Now()
	return func(err error) {
		how := "ok"
		if err != nil {
			how = fault.KindOf(err).String()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.seen = append(n.seen, fmt.Sprintf("%s from %q by %q: %s after %s", a, was, by, how, time.Since(begun)))
	}
}

// has takes what was told since the last time.
func (n *notes) has(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait() // an action is accepted before it has ended
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.seen, want) {
		t.Errorf("told of %q, want %q", n.seen, want)
	}
	n.seen = nil
}

// observing runs test with a Manager whose actions are noted.
func observing(t *testing.T, test func(t *testing.T, w *world, m *sandbox.Manager, n *notes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), &notes{}
		w.observe = n.observe
		m, end := w.run(t)
		defer end()
		test(t, w, m, n)
	})
}

func TestObserve_IsToldOfEveryActionOnce(t *testing.T) {
	observing(t, func(t *testing.T, w *world, m *sandbox.Manager, n *notes) {
		brought(t, m, sandbox.Frozen)
		n.has(t, `create from "" by "": ok after 1s`, `freeze from "running" by "": ok after 1s`)
		ctx := context.WithValue(t.Context(), callerKey{}, "otter")
		if _, err := m.Awake(ctx, ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		n.has(t, `wake from "frozen" by "otter": ok after 1s`)
		if _, err := m.Awake(ctx, ref(t, m, "lab")); err != nil { // it runs: nothing is done
			t.Fatal(err)
		}
		n.has(t)
		if _, err := m.Sleep(ctx, ref(t, m, "lab"), nil); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Asleep)
		n.has(t, `sleep from "running" by "otter": ok after 1s`)
		w.full(fault.New(fault.Unavailable, "The host is full."))
		if _, err := m.Awake(ctx, ref(t, m, "lab")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("on a full host: %v", err)
		}
		n.has(t, `wake from "asleep" by "otter": unavailable after 0s`)
		w.full(nil)
		if _, err := m.Delete(ctx, ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		n.has(t, `delete from "asleep" by "otter": ok after 0s`)
	})
}

func TestObserve_StartsStopsAndWhatCameBetween(t *testing.T) {
	observing(t, func(t *testing.T, w *world, m *sandbox.Manager, n *notes) {
		brought(t, m, sandbox.Stopped)
		n.has(t, `create from "" by "": ok after 1s`, `stop from "running" by "": ok after 1s`)
		lab := ref(t, m, "lab")
		for range 2 { // the second changes nothing
			if _, err := m.Start(t.Context(), lab); err != nil {
				t.Fatal(err)
			}
			settled(t, m, "lab", sandbox.Running)
		}
		n.has(t, `start from "stopped" by "": ok after 1s`)
		if s, err := m.Sleep(t.Context(), lab, turningFalse()); err != nil || s.State != sandbox.Running {
			t.Errorf("used again on its way to sleep: %s, %v", s.State, err)
		}
		n.has(t, `sleep from "running" by "": conflict after 0s`)
		if s, err := m.Freeze(t.Context(), lab, turningFalse()); err != nil || s.State != sandbox.Running {
			t.Errorf("used again on its way to frozen: %s, %v", s.State, err)
		}
		n.has(t, `freeze from "running" by "": conflict after 2s`)
		w.engine.refuse(sandboxtest.OpStart, fault.New(fault.Invalid, "No such device."))
		if _, err := m.Restart(t.Context(), lab); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Failed)
		n.has(t, `fail from "starting" by "": ok after 0s`, `start from "running" by "": invalid after 2s`)
	})
}

// turningFalse says yes once.
func turningFalse() func() bool {
	asked := false
	return func() bool {
		again := asked
		asked = true
		return !again
	}
}
