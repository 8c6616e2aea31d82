package exec

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
)

func TestEnded_IsToldOnceOfEveryCommand(t *testing.T) {
	var (
		lost   = func(p *fakeProcess) { p.Close() }
		exits  = func(p *fakeProcess) { p.script <- Event{Kind: Exited, Exit: 3} }
		never  = func(*fakeProcess) {}
		ls     = Request{Command: []string{"ls"}}
		is     = func(k fault.Kind) func(error) bool { return func(err error) bool { return fault.Is(err, k) } }
		left   = func(err error) bool { return errors.Is(err, context.Canceled) }
		itself = func(err error) bool { return err == nil }
	)
	for what, c := range map[string]struct {
		request Request
		after   func(*fakeProcess)
		refusal error
		leaves  time.Duration
		want    func(error) bool
		took    time.Duration
	}{
		"one that exits by itself": {ls, exits, nil, time.Hour, itself, time.Second},
		"one whose link is lost":   {ls, lost, nil, time.Hour, is(fault.Unavailable), time.Second},
		"one that takes too long":  {Request{Command: []string{"ls"}, Timeout: time.Minute}, never, nil, time.Hour, is(fault.Timeout), time.Minute},
		"one whose caller leaves":  {ls, never, nil, 2 * time.Second, left, 2 * time.Second},
		"one that is not started":  {ls, never, fault.New(fault.Conflict, "It is stopped."), time.Hour, is(fault.Conflict), 0},
		"one that asks too much":   {Request{}, never, nil, time.Hour, is(fault.Invalid), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []error
			p := newFakeProcess()
			s := New(Config{Starter: &fakeStarter{process: p, err: c.refusal}, Ended: func(took time.Duration, err error) {
				told = append(told, err)
				if took != c.took {
					t.Errorf("%s took %s, want %s", what, took, c.took)
				}
			}})
			timer := time.AfterFunc(time.Second, func() { c.after(p) })
			defer timer.Stop()
			ctx, cancel := context.WithTimeoutCause(t.Context(), c.leaves, context.Canceled)
			defer cancel()
			_, _ = s.Run(ctx, access.Handle{}, c.request)
			if len(told) != 1 || !c.want(told[0]) {
				t.Errorf("%s: told of %v", what, told)
			}
		})
	}
}
