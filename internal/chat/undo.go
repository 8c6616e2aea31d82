package chat

import (
	"context"
	"encoding/json"
	"fmt"

	"sandboxd/internal/fault"
)

// Undo makes the sandbox's files what they were before a turn. That turn and those after it stay to be read, but the agent knows them no
// more. The files as they are now are kept for Redo. Kinds: NotFound, Conflict while a turn is under way.
func (s *Service) Undo(ctx context.Context, id string, turn int64) error {
	return s.restore(ctx, id, func(life context.Context, box string, items []Item) error {
		at, p, err := pointOf(items, turn)
		if err != nil {
			return err
		}
		if p.Snapshot == "" || items[at].Undone {
			return fault.New(fault.Conflict, "This turn cannot be undone.")
		}
		// Taking another one here could push out the very snapshot that is restored: only so many are kept.
		if p.Redo, err = s.c.Checkpoints.Restore(life, box, p.Snapshot); err != nil {
			return err
		}
		items[at].Data = encode(p)
		for i := range items {
			if items[i].Turn >= turn {
				items[i].Undone = true
			}
		}
		return nil
	})
}

// Redo takes an Undo back, while nothing was said since. Kinds as for Undo.
func (s *Service) Redo(ctx context.Context, id string, turn int64) error {
	return s.restore(ctx, id, func(life context.Context, box string, items []Item) error {
		at, p, err := pointOf(items, turn)
		if err != nil {
			return err
		}
		if p.Redo == "" || !items[at].Undone || !items[len(items)-1].Undone {
			return fault.New(fault.Conflict, "There is nothing to redo, or something was said since.")
		}
		if _, err := s.c.Checkpoints.Restore(life, box, p.Redo); err != nil {
			return err
		}
		p.Redo = ""
		items[at].Data = encode(p)
		for i := range items {
			if items[i].Turn >= turn {
				items[i].Undone = false
			}
		}
		return nil
	})
}

// pointOf finds the checkpoint of a turn.
func pointOf(items []Item, turn int64) (at int, p Point, err error) {
	for i, it := range items {
		if it.Turn == turn && it.Kind == Checkpoint {
			if err := json.Unmarshal(it.Data, &p); err != nil {
				return 0, p, fmt.Errorf("read checkpoint %d: %w", it.N, err)
			}
			return i, p, nil
		}
	}
	return 0, p, fault.New(fault.Conflict, "This turn changed nothing, or has no checkpoint.")
}

// restore lets f restore files and change items. No turn begins meanwhile; it is done to its end, also when its caller leaves.
func (s *Service) restore(ctx context.Context, id string, f func(life context.Context, box string, items []Item) error) error {
	l, done, err := s.use(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	var box string
	l.change(func(l *live) {
		if l.turn != nil || l.restoring {
			err = fault.New(fault.Conflict, "The agent is working. Stop it first.")
			return
		}
		if len(l.runs) > 0 {
			err = fault.New(fault.Conflict, "Code of this conversation is running. Stop it first.")
			return
		}
		l.restoring, box = true, l.c.Sandbox
	})
	if err != nil {
		return err
	}
	life := context.WithoutCancel(ctx)
	defer func() { // also for what was said meanwhile, when it did not succeed
		l.change(func(l *live) { l.restoring = false })
		if e := s.next(life, l); e != nil {
			s.c.Log.Warn("begin a turn", "conversation", id, "error", e)
		}
	}()
	if s.othersWork(l, box) {
		return fault.New(fault.Conflict, "The agent of another conversation is working in this sandbox. Stop it first.")
	}
	items, err := s.c.Store.Items(life, id, ItemQuery{})
	before := make([]bool, len(items))
	for i := range items {
		before[i] = items[i].Undone
	}
	if err == nil {
		err = f(life, box, items)
	}
	if err != nil {
		return err
	}
	l.change(func(l *live) {
		now := s.c.Now()
		l.header(now).become(Idle, now)
		for i, it := range items {
			if it.Undone != before[i] || it.Kind == Checkpoint {
				l.put(it)
			}
		}
	})
	return l.commit(life)
}

// othersWork reports whether a turn of another conversation is under way in a sandbox.
func (s *Service) othersWork(but *live, box string) bool {
	for _, l := range s.inMemory() {
		if l == but {
			continue
		}
		l.mu.Lock()
		works := (l.turn != nil || len(l.runs) > 0) && l.c.Sandbox == box
		l.mu.Unlock()
		if works {
			return true
		}
	}
	return false
}
