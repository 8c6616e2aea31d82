package sandboxtest

import (
	"context"
	"errors"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Op is a method of sandbox.Runtime, sandbox.Freezer, sandbox.Snapshots, sandbox.Homes or sandbox.Home, to be troubled or counted.
type Op string

// The methods.
const (
	OpCreate Op = "create"
	OpStart  Op = "start"
	OpStop   Op = "stop"
	OpRemove Op = "remove"
	OpList   Op = "list"
	OpPing   Op = "ping"
	OpWatch  Op = "watch"
	OpFreeze Op = "freeze"
	OpThaw   Op = "thaw"
	OpUsage  Op = "usage"
	OpResize Op = "resize"

	OpOpenHome    Op = "open home"
	OpReadHome    Op = "read home"
	OpReplaceHome Op = "replace home"
	OpSettleHome  Op = "settle home"
	OpCopyOut     Op = "copy out"
	OpCopyIn      Op = "copy in"
	OpCompareHome Op = "compare home"

	OpRecreate    Op = "recreate"
	OpRemount     Op = "remount"
	OpCommit      Op = "commit"
	OpReadLayer   Op = "read-layer"
	OpMakeImage   Op = "make-image"
	OpRemoveCopy  Op = "remove copy"
	OpRemoveImage Op = "remove image"
	OpParts       Op = "parts"

	OpCheckpoint       Op = "checkpoint"
	OpStartFrom        Op = "start from"
	OpRemoveCheckpoint Op = "remove checkpoint"
	OpCheckpoints      Op = "checkpoints"
)

// Step is a point within a method at which CutAfter can end it.
type Step string

// The steps, in the order in which a sandbox meets them.
const (
	AfterVolume    Step = "volume"    // Create has made the volume, not yet the container
	AfterContainer Step = "container" // Create has made all, and does not come to say so
	AfterStart     Step = "start"     // Start has started it, and does not come to say so
	AfterFreeze    Step = "freeze"    // Freeze has frozen it, and does not come to say so
	AfterThaw      Step = "thaw"      // Thaw has thawed it, and does not come to say so
	AfterResize    Step = "resize"    // Resize has changed the limits, and does not come to say so
	AfterStop      Step = "stop"      // Stop has ended it, and does not come to say so
	AfterDestroy   Step = "destroy"   // Remove or Recreate has removed the container, and no more yet
	AfterUnpack    Step = "unpack"    // Replace or CopyIn has all of the new home, and the old one is still there
)

// ErrCut is what a method gives that CutAfter has ended: its caller has crashed, so nobody should see it.
var ErrCut = errors.New("cut off by the test")

// troubles is what a test has asked the fake engine to go wrong with. fakeEngine.mu guards it.
type troubles struct {
	failures map[Op][]error
	delays   map[Op]time.Duration
	cuts     map[Step]int
	noImage  map[string]bool
	hung     chan struct{} // open while the engine does not answer; nil when it does
	away     bool
}

func newTroubles() troubles {
	return troubles{failures: map[Op][]error{}, delays: map[Op]time.Duration{}, cuts: map[Step]int{}, noImage: map[string]bool{}}
}

// cut reports whether the method shall end here.
func (t *troubles) cut(s Step) bool {
	if t.cuts[s] == 0 {
		return false
	}
	t.cuts[s]--
	return true
}

// enter is the beginning of every method: it counts the call, and lets the trouble that is due happen.
func (e *fakeEngine) enter(ctx context.Context, op Op) error {
	e.mu.Lock()
	e.calls[op]++
	delay, hung := e.troubles.delays[op], e.troubles.hung
	e.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
			return late(ctx.Err())
		}
	}
	if delay > 0 {
		if err := wait(ctx, delay); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return late(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.troubles.away {
		return fault.New(fault.Unavailable, "The fake engine does not answer.")
	}
	return e.failure(op)
}

// failure takes the next failure of op, if there is one. The caller holds mu.
func (e *fakeEngine) failure(op Op) error {
	due := e.troubles.failures[op]
	if len(due) == 0 {
		return nil
	}
	e.troubles.failures[op] = due[1:]
	return due[0]
}

func (e *fakeEngine) cutAfter(s Step) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.troubles.cut(s) {
		return ErrCut
	}
	return nil
}

// Fail makes the next calls of op give errs, one each, and change nothing.
func (r *Runtime) Fail(op Op, errs ...error) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.troubles.failures[op] = append(r.engine.troubles.failures[op], errs...)
}

// MoveImage makes a reference name another image than it did.
func MoveImage(r *Runtime, image string) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	for _, f := range r.engine.boxes {
		if f.box.Image == image && f.container {
			f.moved = true
		}
	}
}

// Delay makes every call of op take d from now on.
func (r *Runtime) Delay(op Op, d time.Duration) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.troubles.delays[op] = d
}

// CutAfter makes the next method that comes to s end there with ErrCut, as if sandboxd had been killed.
func (r *Runtime) CutAfter(s Step) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.troubles.cuts[s]++
}

// NoImage makes the engine have no such image.
func (r *Runtime) NoImage(ref string) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.troubles.noImage[ref] = true
}

// Hang makes the engine take calls and not answer them, until resume is called. Open watches stay, silent.
func (r *Runtime) Hang() (resume func()) {
	hung := make(chan struct{})
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.troubles.hung = hung
	return func() {
		r.engine.mu.Lock()
		defer r.engine.mu.Unlock()
		r.engine.troubles.hung = nil
		close(hung)
	}
}

// Lose takes the engine away, and with it all watches, until back is called. Sandboxes keep running.
func (r *Runtime) Lose() (back func()) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.troubles.away = true
	for w := range r.engine.watchers {
		delete(r.engine.watchers, w)
		close(w.lost)
	}
	return func() {
		r.engine.mu.Lock()
		defer r.engine.mu.Unlock()
		r.engine.troubles.away = false
	}
}

// Exit ends a running sandbox from within.
func (r *Runtime) Exit(id string, code int, oom bool) { r.engine.end(r.key(id), code, oom) }

// Destroy removes a sandbox's container behind everybody's back; its volume stays.
func (r *Runtime) Destroy(id string) {
	r.engine.end(r.key(id), sandbox.ExitKilled, false)
	r.engine.destroy(r.key(id))
}

// Stray makes the container have another server's link folder, until it is remounted or made anew.
func Stray(r *Runtime, id string) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	r.engine.boxes[r.key(id)].strayed = true
}

// Deafen makes a sandbox ignore being asked to end, so that Stop takes its whole grace.
func (r *Runtime) Deafen(id string) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if f := r.engine.boxes[r.key(id)]; f != nil {
		f.deaf = true
	}
}

// Calls tells how often op has been called, by all instances.
func (r *Runtime) Calls(op Op) int {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	return r.engine.calls[op]
}

// Spec gives what a sandbox was made from; false when the engine has nothing of it.
func (r *Runtime) Spec(id string) (sandbox.ContainerSpec, bool) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	if f == nil {
		return sandbox.ContainerSpec{}, false
	}
	return f.box, true
}
