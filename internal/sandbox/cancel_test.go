package sandbox_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
)

func TestCancel_EndsACreateAndLeavesNothing(t *testing.T) {
	var mu sync.Mutex
	var done []sandbox.Action
	w := newWorld()
	w.observe = func(_ context.Context, a sandbox.Action, _ sandbox.State, _ sandbox.Sandbox) func(error) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, a)
		return func(error) {}
	}
	synctest.Test(t, func(t *testing.T) {
		m, end := w.run(t)
		defer end()
		w.images.set(time.Hour, nil)
		s := create(t, m, sandbox.Request{Name: "lab"})
		sub := m.Subscribe()
		defer sub.Close()
		synctest.Wait()
		start := time.Now()
		if _, err := m.Cancel(t.Context(), ref(t, m, "lab")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Wait(t.Context(), s.Ref()); !fault.Is(err, fault.Gone) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if _, ok := w.engine.instance(t, s.ID); ok {
			t.Error("the engine keeps it")
		}
		for len(sub.C) > 0 {
			if e := <-sub.C; e.Sandbox.State == sandbox.Failed {
				t.Error("for a moment it has failed")
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(done, sandbox.ActionFail) {
			t.Errorf("it is told to have failed: %v", done)
		}
	})
}

func TestCancel_OfWhatIsReadyIsRefused(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		if _, err := m.Cancel(t.Context(), ref(t, m, "lab")); !fault.Is(err, fault.Conflict) {
			t.Errorf("it gives %v", err)
		}
		settled(t, m, "lab", sandbox.Running)
	})
}

// noTimes is a store in which nothing is.
type noTimes struct{}

func (noTimes) StepTimes(context.Context) (map[string]time.Duration, error) {
	return map[string]time.Duration{}, nil
}
func (noTimes) PutStepTimes(context.Context, map[string]time.Duration) error { return nil }

func TestPhaseLength_IsThatOfTheLastCreate(t *testing.T) {
	w := newWorld()
	synctest.Test(t, func(t *testing.T) {
		w.times = pace.Open(t.Context(), noTimes{}, slog.New(slog.DiscardHandler))
		m, end := w.run(t)
		defer end()
		s := create(t, m, sandbox.Request{Name: "lab"})
		synctest.Wait()
		settled(t, m, "lab", sandbox.Running)
		for _, p := range []sandbox.Phase{sandbox.PhaseVolume, sandbox.PhaseStart, sandbox.PhaseReady} {
			if l := m.PhaseLength(s.Spec, p); l.Measured != l.Time {
				t.Errorf("%s takes %+v", p, l)
			}
		}
		if l := m.PhaseLength(sandbox.Spec{Template: "other"}, sandbox.PhaseReady); l.Measured != 0 || l.Time == 0 {
			t.Errorf("another takes %+v", l)
		}
		if l := m.PhaseLength(s.Spec, sandbox.PhaseImage); l != (pace.Length{}) {
			t.Errorf("the image takes %+v", l)
		}
	})
}
