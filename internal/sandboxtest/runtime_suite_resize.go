package sandboxtest

import (
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// resizes changes the limits of one that runs, is frozen, and is stopped.
func resizes(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	check := func(what string, cpus float64, memory int64) {
		t.Helper()
		l := b.Limits
		l.CPUs, l.Memory = cpus, memory
		for range 2 {
			if err := r.Runtime.Resize(r.ctx, b.ID, l); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if got := r.Limits(t, b.ID); got.CPUs != cpus || got.Memory != memory || got.Pids != b.Limits.Pids {
			t.Errorf("%s: it has %+v", what, got)
		}
	}
	check("made", 0.5, b.Limits.Memory)
	r.start(b.ID)
	r.listens(b.ID)
	check("running, more", 1, 2*b.Limits.Memory)
	check("running, less", 0.75, b.Limits.Memory)
	r.kind(r.Runtime.Resize(r.ctx, b.ID, sandbox.Limits{CPUs: 1, Memory: 1, Pids: b.Limits.Pids}), fault.Conflict)
	if got := r.Limits(t, b.ID); got.CPUs != 0.75 || got.Memory != b.Limits.Memory {
		t.Errorf("after a refusal it has %+v", got)
	}
	r.Freeze(t, b.ID)
	check("frozen", 0.25, 3*b.Limits.Memory)
	r.stop(b.ID, time.Second)
	check("stopped", 1, 2*b.Limits.Memory)
	r.start(b.ID)
	if got := r.Limits(t, b.ID); got.CPUs != 1 || got.Memory != 2*b.Limits.Memory {
		t.Errorf("started again it has %+v", got)
	}
	r.kind(r.Runtime.Resize(r.ctx, sandbox.NewID(), b.Limits), fault.NotFound)
}
