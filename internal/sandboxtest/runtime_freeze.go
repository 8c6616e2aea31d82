package sandboxtest

import (
	"context"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Freeze implements sandbox.Freezer.
func (r *Runtime) Freeze(ctx context.Context, id string) error {
	if err := r.engine.enter(ctx, OpFreeze); err != nil {
		return err
	}
	if err := r.engine.still(r.key(id), true); err != nil {
		return err
	}
	return r.engine.cutAfter(AfterFreeze)
}

// Pause implements sandbox.Freezer. It gives no memory back either way.
func (r *Runtime) Pause(ctx context.Context, id string) error { return r.Freeze(ctx, id) }

// Thaw implements sandbox.Freezer.
func (r *Runtime) Thaw(ctx context.Context, id string) error {
	if err := r.engine.enter(ctx, OpThaw); err != nil {
		return err
	}
	if err := r.engine.still(r.key(id), false); err != nil {
		return err
	}
	return r.engine.cutAfter(AfterThaw)
}

// Resize implements sandbox.Runtime.
func (r *Runtime) Resize(ctx context.Context, id string, l sandbox.Limits) error {
	if err := r.engine.enter(ctx, OpResize); err != nil {
		return err
	}
	if err := r.engine.resize(r.key(id), l); err != nil {
		return err
	}
	return r.engine.cutAfter(AfterResize)
}

// leastMemory is what programs hold at the least, in bytes.
const leastMemory = 4096

func (e *fakeEngine) resize(key boxKey, l sandbox.Limits) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.boxes[key]
	switch {
	case f == nil || !f.container:
		return fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	case f.running && max(f.usage.Memory, leastMemory) > l.Memory:
		return fault.New(fault.Conflict, "Its programs hold more memory than that.")
	}
	f.box.Limits.CPUs, f.box.Limits.Memory = l.CPUs, l.Memory
	return nil
}

// still freezes or thaws a running sandbox.
func (e *fakeEngine) still(key boxKey, frozen bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.boxes[key]
	switch {
	case f == nil || !f.container:
		return fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	case !f.running:
		return fault.New(fault.Conflict, "The sandbox's processes do not run on the fake engine.")
	case f.frozen == frozen:
		return nil
	}
	f.ran, f.since = f.awake(), time.Now()
	f.frozen = frozen
	e.tell(key, f)
	return nil
}

// awake is how long its processes had time to run since the last start. The caller holds mu.
func (f *fakeBox) awake() time.Duration {
	if !f.running || f.frozen {
		return f.ran
	}
	return f.ran + time.Since(f.since)
}

// Usage implements sandbox.Freezer. It is what the test has said with Use.
func (r *Runtime) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	if err := r.engine.enter(ctx, OpUsage); err != nil {
		return sandbox.Usage{}, err
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	f := r.engine.boxes[r.key(id)]
	if f == nil || !f.running {
		return sandbox.Usage{}, fault.New(fault.NotFound, "The sandbox's processes do not run on the fake engine.")
	}
	return f.usage, nil
}

// Use adds to what a running sandbox has used since its start; Memory is what it holds from now on.
func (r *Runtime) Use(id string, more sandbox.Usage) {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if f := r.engine.boxes[r.key(id)]; f != nil && f.running {
		f.usage.CPU += more.CPU
		f.usage.Network += more.Network
		f.usage.Disk += more.Disk
		f.usage.Memory = more.Memory
	}
}

// FreezeOutside freezes a running sandbox behind everybody's back.
func (r *Runtime) FreezeOutside(id string) { _ = r.engine.still(r.key(id), true) }
