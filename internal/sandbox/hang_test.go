package sandbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// TestHungEngine_CallersHearOfItInTenSecondsAndTheWorkGoesOn has an engine that takes every call and answers none.
func TestHungEngine_CallersHearOfItInTenSecondsAndTheWorkGoesOn(t *testing.T) {
	type call func(ctx context.Context, m *sandbox.Manager, ref sandbox.Ref) error
	then := func(do func(m *sandbox.Manager, ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)) call {
		return func(ctx context.Context, m *sandbox.Manager, ref sandbox.Ref) error {
			if _, err := do(m, ctx, ref); err != nil {
				return err
			}
			_, err := m.Wait(ctx, ref)
			return err
		}
	}
	for what, c := range map[string]struct {
		from, want sandbox.State // "" for gone
		do         call
	}{
		"stop":   {sandbox.Running, sandbox.Stopped, then((*sandbox.Manager).Stop)},
		"start":  {sandbox.Stopped, sandbox.Running, then((*sandbox.Manager).Start)},
		"delete": {sandbox.Running, "", then((*sandbox.Manager).Delete)},
		"sleep": {sandbox.Running, sandbox.Asleep, then(func(m *sandbox.Manager, ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
			return m.Sleep(ctx, ref, nil)
		})},
		"freeze": {sandbox.Running, sandbox.Frozen, func(ctx context.Context, m *sandbox.Manager, ref sandbox.Ref) error {
			_, err := m.Freeze(ctx, ref, nil)
			return err
		}},
		"use": {sandbox.Asleep, sandbox.Running, func(ctx context.Context, m *sandbox.Manager, ref sandbox.Ref) error {
			_, err := m.Awake(ctx, ref)
			return err
		}},
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			ref := brought(t, m, c.from).Ref()
			pass(time.Second)
			resume := w.engine.Hang()
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err := c.do(ctx, m, ref)
			if took := time.Since(begun); !fault.Is(err, fault.Unavailable) || took >= 10*time.Second {
				t.Errorf("%s: heard %v after %s", what, err, took)
			}
			resume()
			pass(10 * time.Second)
			now, err := m.Wait(t.Context(), ref)
			if c.want == "" && fault.Is(err, fault.Gone) {
				return
			}
			if err != nil || now.State != c.want {
				t.Errorf("%s: afterwards it is %s (%s), %v", what, now.State, now.Problem, err)
			}
		})
	}
}

func TestWait_IsAsLongAsTheCallerSaysWhileTheEngineAnswers(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.images.set(20*time.Minute, nil)
		s := create(t, m, sandbox.Request{Name: "lab"})
		if s, err := m.Wait(t.Context(), s.Ref()); err != nil || s.State != sandbox.Running {
			t.Errorf("after a long build: %s, %v", s.State, err)
		}
	})
}

func TestHungEngine_CallersShareOnePing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		ref := brought(t, m, sandbox.Running).Ref()
		w.engine.Hang()
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref) })
		left, leave := context.WithTimeout(t.Context(), 4*time.Second)
		defer leave()
		var all sync.WaitGroup
		for i := range 20 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = left // takes the ping away from nobody
			}
			all.Go(func() {
				if _, err := m.Wait(ctx, ref); errors.Is(err, sandbox.ErrNoAnswer) != (ctx != left) {
					t.Errorf("waiter %d heard %v", i, err)
				}
			})
		}
		all.Wait()
		if n := w.engine.Calls(sandboxtest.OpPing); n != 1 {
			t.Errorf("%d pings", n)
		}
	})
}

func TestCheckEngine_FindsAHungEngineWithOnePingAtATime(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.engine.Hang()
		var asking sync.WaitGroup
		for i := range 20 {
			asking.Go(func() {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer leave()
				begun := time.Now()
				err := m.CheckEngine(ctx)
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 4*time.Second {
					t.Errorf("caller %d: %v after %v", i, err, took)
				}
			})
		}
		asking.Wait()
		if n := w.engine.Calls(sandboxtest.OpPing); n != 1 {
			t.Errorf("%d pings", n)
		}
	})
}

func TestWait_OneRefusedPingIsNoLostEngineTwoAre(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.images.set(20*time.Minute, nil)
		s, away := create(t, m, sandbox.Request{Name: "lab"}), fault.New(fault.Unavailable, "Away.")
		w.engine.Fail(sandboxtest.OpPing, away, nil, away)
		begun := time.Now()
		if s, err := m.Wait(t.Context(), s.Ref()); err != nil || s.State != sandbox.Running {
			t.Errorf("with refused pings far between: %s, %v, after %s", s.State, err, time.Since(begun))
		}
		s = create(t, m, sandbox.Request{Name: "other"})
		w.engine.Fail(sandboxtest.OpPing, away, away)
		begun = time.Now()
		if _, err := m.Wait(t.Context(), s.Ref()); !errors.Is(err, sandbox.ErrNoAnswer) || time.Since(begun) >= 10*time.Second {
			t.Errorf("with two in a row: %v after %s", err, time.Since(begun))
		}
	})
}
