package catalog

import (
	"context"
	"errors"

	"sandboxd/internal/fault"
)

// errCancelled is in the error of what Cancel has ended.
var errCancelled = errors.New("cancelled")

// Cancel ends the build or pull of a template's image that is under way or in line, and with it what waits for that image: it fails with
// the name of the user who cancelled. What it had to build first ends too. It does not wait for the end. Conflict when there is nothing to
// cancel.
func (i *Images) Cancel(name, by string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.jobOf(name)
	if f == nil {
		return fault.New(fault.Conflict, "The image of the template %.64s is not being built.", name)
	}
	i.cancelJob(f, by)
	return nil
}

// Abandon ends the build or pull of t's image that was begun because something needed it, when nothing waits for it any more: what wanted it was
// cancelled by a user. Steps that have ended are found again by the next build.
func (i *Images) Abandon(t Template, by string) {
	r, err := i.recipeOf(t)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.jobs[r.ref]
	if f == nil || f.forced || f.order.Why != WhyUse || len(f.listeners) > 0 || f.wanted() {
		return
	}
	i.cancelJob(f, by)
}

// wanted reports whether another job waits for this one.
func (f *job) wanted() bool {
	for dependent := range f.dependents {
		if !dependent.ended {
			return true
		}
	}
	return false
}

// cancelJob ends a job for a user. It needs mu.
func (i *Images) cancelJob(f *job, by string) {
	why := fault.Wrap(errCancelled, fault.Unavailable, "The build was cancelled by %s.", by)
	if f.claimed {
		f.cancel(why)
	} else {
		i.conclude(f, why)
	}
}

// endOf says why a job was ended before its time: by Cancel, or with Run.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errCancelled) {
		return cause
	}
	return errEnding
}
