package sandboxtest

import (
	"context"
	"slices"

	"sandboxd/internal/fault"
)

// Memories is a sandbox.Checkpoints of the fake engine. Make it with MemoriesOf.
type Memories struct{ r *Runtime }

// MemoriesOf keeps the memory of the sandboxes of a runtime.
func MemoriesOf(r *Runtime) Memories { return Memories{r} }

// CheckpointSupport implements sandbox.Checkpoints.
func (c Memories) CheckpointSupport(context.Context) string { return "" }

// Checkpoint implements sandbox.Checkpoints.
func (c Memories) Checkpoint(ctx context.Context, id, snapshot string) (bytes int64, err error) {
	if err := c.r.engine.enter(ctx, OpCheckpoint); err != nil {
		return 0, err
	}
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	f := c.r.engine.boxes[c.r.key(id)]
	switch {
	case f == nil || !f.container:
		return 0, fault.New(fault.NotFound, "The fake engine does not have this sandbox's container.")
	case !f.running || !f.frozen:
		return 0, fault.New(fault.Conflict, "The sandbox is not frozen on the fake engine.")
	}
	c.r.engine.parts.memories[c.r.key(snapshot)] = f.memory
	return int64(len(f.memory)) + 1, nil
}

// StartFrom implements sandbox.Checkpoints.
func (c Memories) StartFrom(ctx context.Context, id, snapshot string) error {
	if err := c.r.engine.enter(ctx, OpStartFrom); err != nil {
		return err
	}
	memory, kept := c.memoryOf(snapshot)
	if !kept {
		return fault.New(fault.NotFound, "The fake engine has no memory for this snapshot.")
	}
	if _, begun, err := c.r.engine.start(c.r.key(id)); err != nil {
		return err
	} else if !begun {
		return fault.New(fault.Conflict, "The sandbox's processes run on the fake engine.")
	}
	c.PutMemory(id, memory)
	return nil
}

func (c Memories) memoryOf(snapshot string) (memory string, kept bool) {
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	memory, kept = c.r.engine.parts.memories[c.r.key(snapshot)]
	return memory, kept
}

// RemoveCheckpoint implements sandbox.Checkpoints.
func (c Memories) RemoveCheckpoint(ctx context.Context, snapshot string) error {
	if err := c.r.engine.enter(ctx, OpRemoveCheckpoint); err != nil {
		return err
	}
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	delete(c.r.engine.parts.memories, c.r.key(snapshot))
	return nil
}

// Checkpoints implements sandbox.Checkpoints.
func (c Memories) Checkpoints(ctx context.Context) (snapshots []string, err error) {
	if err := c.r.engine.enter(ctx, OpCheckpoints); err != nil {
		return nil, err
	}
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	for key := range c.r.engine.parts.memories {
		if key.instance == c.r.instance {
			snapshots = append(snapshots, key.id)
		}
	}
	slices.Sort(snapshots)
	return snapshots, nil
}

// PutMemory changes what the programs of a running sandbox remember, until its next start.
func (c Memories) PutMemory(id, memory string) {
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	if f := c.r.engine.boxes[c.r.key(id)]; f != nil {
		f.memory = memory
	}
}

// Memory is what the programs of a sandbox remember; "" when it does not run.
func (c Memories) Memory(id string) string {
	c.r.engine.mu.Lock()
	defer c.r.engine.mu.Unlock()
	f := c.r.engine.boxes[c.r.key(id)]
	if f == nil || !f.running {
		return ""
	}
	return f.memory
}
