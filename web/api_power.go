package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Bounds of ?wait: at most long enough for a build, by default short enough for proxies in between.
const (
	defaultWait = 2 * time.Minute
	maxWait     = 30 * time.Minute
)

// acceptTime bounds the wait until a change of power is accepted, such as behind another operation. It is done all the same.
const acceptTime = 9 * time.Second

// waiting is what a request says about waiting for what it asks for.
type waiting struct {
	asked bool
	limit time.Duration
}

// waiting reads ?wait and ?timeout. The only values of wait are the word for what comes of the action, and "true".
func (r *request) waiting(word string) (waiting, error) {
	w := waiting{limit: defaultWait}
	switch r.query("wait") {
	case "", "false":
	case word, "true":
		w.asked = true
	default:
		return w, fault.Field("wait", "wait can only be %q here.", word)
	}
	text := r.query("timeout")
	if text == "" {
		return w, nil
	}
	limit, err := parseSpan(text)
	if err != nil || limit <= 0 || limit > maxWait {
		return w, fault.Field("timeout", "timeout must be more than 0 and at most %d seconds; texts such as \"90s\" are fine too.", int(maxWait.Seconds()))
	}
	w.limit = limit
	return w, nil
}

// await waits until box is settled and answers with status when it is then as wanted, else with the cause.
func (s *sandboxHandlers) await(ctx context.Context, w waiting, box sandbox.Sandbox, want sandbox.State, status int) (reply, error) {
	waitCtx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	now, err := s.cfg.Sandboxes.Wait(waitCtx, box.Ref())
	if err != nil {
		return reply{}, err
	}
	if now.State == want {
		ctx, cancel := context.WithTimeout(ctx, handlerTime)
		defer cancel()
		return s.sandboxReply(ctx, status, now)
	}
	if now.State == sandbox.Deleting && box.State != sandbox.Deleting {
		return reply{}, fault.New(fault.Gone, "%s is being deleted.", now.Name)
	}
	return reply{}, s.unwanted(now)
}

// sandboxFailed is the code of an answer that the sandbox has failed.
const sandboxFailed = "sandbox_failed"

// unwanted says why a sandbox is not as was wanted.
func (s *sandboxHandlers) unwanted(box sandbox.Sandbox) error {
	if box.State == sandbox.Failed {
		status := http.StatusConflict
		if box.Cause == fault.Unavailable || box.Cause == fault.Timeout { // it is not the request's fault
			status = kindStatus[box.Cause]
		}
		return &statusError{status, sandboxFailed, box.Name + " failed: " + box.Problem}
	}
	if box.State.Settled() {
		return fault.New(fault.Conflict, "%s is %s now, so waiting for something else is of no use.", box.Name, box.State)
	}
	if detail := s.cfg.Sandboxes.Progress(box.ID).Detail; detail != "" {
		return fault.New(fault.Unavailable, "%s is still %s. %s", box.Name, box.State, detail)
	}
	return fault.New(fault.Unavailable, "%s is still %s.", box.Name, box.State)
}

// change is what the Manager is asked to do with a sandbox.
type change func(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)

func (c change) of(ctx context.Context, h access.Handle) (sandbox.Sandbox, error) {
	return c(ctx, h.Ref())
}

// power makes the action that starts, stops or restarts a sandbox.
func (s *sandboxHandlers) power(do change, word string, want sandbox.State) func(context.Context, *request, none) (reply, error) {
	return func(ctx context.Context, r *request, _ none) (reply, error) {
		return s.accept(ctx, r, word, do.of, func(w waiting, box sandbox.Sandbox) (reply, error) {
			return s.await(ctx, w, box, want, http.StatusOK)
		})
	}
}

// apiDeleteSandbox accepts a delete (202), or waits until nothing of it is left (204).
func (s *sandboxHandlers) apiDeleteSandbox(ctx context.Context, r *request, _ none) (reply, error) {
	keep, err := r.boolQuery("keep_log")
	if err != nil {
		return reply{}, err
	}
	do := func(ctx context.Context, h access.Handle) (sandbox.Sandbox, error) {
		if err := keepLog(ctx, s.Server, h.Sandbox(), keep); err != nil {
			return sandbox.Sandbox{}, err
		}
		return s.cfg.Sandboxes.Delete(ctx, h.Ref())
	}
	return s.accept(ctx, r, "gone", do, func(w waiting, box sandbox.Sandbox) (reply, error) {
		return s.awaitGone(ctx, w, box)
	})
}

// accept asks for a change and answers that it is accepted (202), or as await does when the client waits for word.
func (s *sandboxHandlers) accept(
	ctx context.Context, r *request, word string, do func(context.Context, access.Handle) (sandbox.Sandbox, error),
	await func(waiting, sandbox.Sandbox) (reply, error),
) (reply, error) {
	w, err := r.waiting(word)
	if err != nil {
		return reply{}, err
	}
	accepting, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	h, err := named(accepting, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box, err := do(accepting, h)
	if err != nil {
		return reply{}, err
	}
	if w.asked {
		return await(w, box)
	}
	return s.sandboxReply(accepting, http.StatusAccepted, box)
}

func (s *sandboxHandlers) awaitGone(ctx context.Context, w waiting, box sandbox.Sandbox) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	now, err := s.cfg.Sandboxes.Wait(ctx, box.Ref())
	if fault.Is(err, fault.Gone) {
		return reply{status: http.StatusNoContent}, nil
	}
	if err != nil {
		return reply{}, err
	}
	return reply{}, s.unwanted(now)
}
