package snapshot

import (
	"context"
	"errors"
	"maps"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// sweep deletes the snapshots of sandboxes that are gone, and removes from the engine what belongs to no snapshot and no sandbox. Only
// Run calls it. The order matters: a part that is listed has had its row by then, and a sandbox that a snapshot without a row was
// restored to, or cloned as, says so by the time that it is listed.
func (r *records) sweep(ctx context.Context) error {
	err := r.settle(ctx)
	copies, images, partsErr := r.Parts.Parts(ctx)
	memories, memoriesErr := r.memories(ctx)
	rows, gone, heads := r.rows()
	boxes, boxesErr := r.Sandboxes.All(ctx)
	if boxesErr != nil {
		return errors.Join(err, boxesErr)
	}
	err = errors.Join(err, r.forgetGone(ctx, boxes, gone, heads), partsErr, memoriesErr)
	for _, b := range boxes {
		if to := b.Revert.Snapshot; to != "" {
			rows[to] = true
		}
	}
	for _, id := range copies {
		if !rows[id] {
			if oneErr := r.Parts.RemoveCopy(ctx, id); !fault.Is(oneErr, fault.Conflict) { // in use: the next sweep removes it
				err = errors.Join(err, oneErr)
			}
		}
	}
	for _, id := range memories {
		if !rows[id] {
			err = errors.Join(err, r.Memories.RemoveCheckpoint(ctx, id))
		}
	}
	for _, id := range images {
		if !rows[id] && !isRoot(boxes, id) {
			err = errors.Join(err, r.Parts.RemoveImage(ctx, id))
		}
	}
	return err
}

// memories lists the snapshots of which memory is kept.
func (r *records) memories(ctx context.Context) ([]string, error) {
	if r.Memories == nil {
		return nil, nil
	}
	return r.Memories.Checkpoints(ctx)
}

// isRoot reports whether a sandbox is, or will be, made from the image of a snapshot.
func isRoot(boxes map[string]sandbox.Sandbox, id string) bool {
	for _, b := range boxes {
		if strings.HasSuffix(b.Root, id) || strings.HasSuffix(b.Revert.Root, id) {
			return true
		}
	}
	return false
}

// rows gives the snapshots whose parts must stay, the ids of the sandboxes that have some, and of those that have a head.
func (r *records) rows() (rows map[string]bool, of map[string]bool, heads []string) {
	rows, of = map[string]bool{}, map[string]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, e := range r.all {
		if of[e.SandboxID] = true; e.State != Failed {
			rows[id] = true
		}
	}
	for id := range r.owed.deletes {
		rows[id] = true
	}
	for id := range r.heads {
		heads = append(heads, id)
	}
	return rows, of, heads
}

// forgetGone forgets the sandboxes that are not there any more, of those that had snapshots or a head when that was looked up. One that
// the engine still has is only without a row, which the database may have lost: it can be adopted.
func (r *records) forgetGone(ctx context.Context, boxes map[string]sandbox.Sandbox, of map[string]bool, heads []string) error {
	for _, id := range heads {
		of[id] = true
	}
	maps.DeleteFunc(of, func(id string, _ bool) bool { _, there := boxes[id]; return there })
	if len(of) == 0 {
		return nil
	}
	kept, err := r.Sandboxes.OnEngine(ctx)
	if err != nil {
		return err
	}
	for id := range of {
		if !kept[id] {
			err = errors.Join(err, r.Forget(ctx, id))
		}
	}
	return err
}

// settle stores what the store has refused before.
func (r *records) settle(ctx context.Context) error {
	r.mu.Lock()
	left := r.owed
	r.owed = owed{deletes: map[string]bool{}, heads: map[string]bool{}}
	r.mu.Unlock()
	return r.write(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		for id := range left.deletes {
			oneErr := r.Store.Delete(ctx, id)
			r.note(oneErr, func(o *owed) { o.deletes[id] = true })
			err = errors.Join(err, oneErr)
		}
		for id := range left.heads {
			r.mu.Lock()
			head := r.heads[id]
			r.mu.Unlock()
			oneErr := r.Store.SetHead(ctx, id, head)
			r.note(oneErr, func(o *owed) { o.heads[id] = true })
			err = errors.Join(err, oneErr)
		}
		return err
	})
}

// note notes what is owed after an error.
func (r *records) note(err error, what func(*owed)) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	what(&r.owed)
}
