package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sandboxd/internal/fault"
)

// ask sends a request, again when it failed before anything of its answer came and another try makes sense.
func (r *run) ask(ctx context.Context, q Request, take func(Chunk) error) (Finish, error) {
	for try := 1; ; try++ {
		began := false
		finish, err := r.Model.Stream(ctx, q, func(c Chunk) error {
			began = true
			return take(c)
		})
		if err == nil || ctx.Err() != nil || began || try >= r.tries(err) {
			return finish, err
		}
		wait := r.wait(err, try)
		if wait > r.Retry.Longest {
			return finish, err
		}
		r.notice("%s Trying again in %v (%d of %d).", fault.Message(err), wait.Round(100*time.Millisecond), try+1, r.tries(err))
		if !sleep(ctx, wait) {
			return finish, context.Cause(ctx)
		}
	}
}

// tries gives how often a request that fails so is sent in all.
func (r *run) tries(err error) int {
	var m *ModelError
	if !errors.As(err, &m) || m.Final {
		return 1
	}
	switch m.Code {
	case RateLimited, Overloaded, Unreachable:
		return r.Retry.Tries
	case NoAnswer, Broken, Silent: // of an answer that had not begun
		return min(2, r.Retry.Tries)
	}
	return 1
}

// wait gives how long to wait after a failed try: what the provider asks for, else longer each time, and not the same for all that wait.
func (r *run) wait(err error, try int) time.Duration {
	if asked := fault.RetryAfter(err); asked > 0 {
		return asked
	}
	wait := min(r.Retry.Base<<min(try-1, 20), r.Retry.Longest)
	return wait - rand.N(wait/4+1)
}

// sleep waits, and reports whether ctx lived as long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
