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
	why := fault.Wrap(errCancelled, fault.Unavailable, "The build was cancelled by %s.", by)
	if f.claimed {
		f.cancel(why)
	} else {
		i.conclude(f, why)
	}
	return nil
}

// endOf says why a job was ended before its time: by Cancel, or with Run.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errCancelled) {
		return cause
	}
	return errEnding
}
