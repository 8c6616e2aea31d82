package trials

import (
	"context"
	"errors"
	"slices"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// Keep makes the sandbox as one of the clones is, by the clone's id, and deletes the other clones then. A snapshot of what is replaced is
// taken first. It returns when that has begun. Kinds: NotFound, Conflict when an agent is working in the sandbox or in that clone, or
// something else is being done with the trial.
func (s *Service) Keep(ctx context.Context, id, clone string) (Trial, error) {
	boxes, err := s.c.Sandboxes.All(ctx)
	if err != nil {
		return Trial{}, err
	}
	t, err := s.change(ctx, id, func(t *Trial) error {
		switch {
		case t.State == Making:
			return fault.New(fault.Conflict, "The tries are still being made. Wait for that.")
		case t.State != Open:
			return fault.New(fault.Conflict, "A try is being kept already, or the tries are over.")
		case !slices.ContainsFunc(t.Clones, func(c Clone) bool { return c.Sandbox == clone && clone != "" }):
			return fault.Field("sandbox", "This sandbox is none of the tries.")
		case boxes[clone].ID == "":
			return fault.New(fault.NotFound, "This try was deleted.")
		}
		if err := errors.Join(s.idleIn(boxes[t.Sandbox]), s.idleIn(boxes[clone])); err != nil {
			return err
		}
		t.State, t.Kept, t.Problem = Keeping, clone, ""
		return nil
	})
	if err == nil {
		s.begin(id, s.keeping)
	}
	return t, err
}

// idleIn is a Conflict when an agent works in a sandbox.
func (s *Service) idleIn(box sandbox.Sandbox) error {
	if c, any := s.c.Doing.Of(box.ID); any && (c.State == chat.Working || c.State == chat.Asking) {
		return fault.New(fault.Conflict, "An agent is working in %s. Stop it first, or wait until it is done.", box.Name)
	}
	return nil
}

func (s *Service) keeping(ctx context.Context, id string) {
	t, err := s.Trial(id)
	if err != nil {
		return
	}
	boxes, err := s.c.Sandboxes.All(ctx)
	if err == nil {
		err = s.adopt(ctx, boxes[t.Sandbox], boxes[t.Kept])
	}
	switch {
	case err != nil && cutOff(ctx, err): // the next start of sandboxd says so
	case err != nil:
		s.c.Log.Warn("keep a try", "sandbox", t.Name, "error", err)
		s.reopen(ctx, id, "The try was not kept: "+fault.Message(err))
	default:
		s.note(ctx, id, func(t *Trial) { t.State = Deleting })
		s.deleting(ctx, id)
	}
}

// adopt makes a sandbox as a clone of it is.
func (s *Service) adopt(ctx context.Context, box, clone sandbox.Sandbox) error {
	if box.ID == "" || clone.ID == "" {
		return fault.New(fault.NotFound, "The sandbox, or the try, was deleted.")
	}
	snap, _, err := s.c.Snapshots.Begin(ctx, clone, snapshot.Ask{Kind: snapshot.Automatic, Note: "To keep this try"})
	if err == nil {
		snap, err = s.c.Snapshots.Wait(ctx, snap.ID)
	}
	if err == nil {
		_, err = s.c.Snapshots.RestoreOf(ctx, box, clone, snap.ID)
	}
	return err
}

// Cancel ends the turns of the agents in the clones, and deletes the clones. It returns when that has begun. Kinds: NotFound, Conflict when
// the trial is over, or a try is being kept.
func (s *Service) Cancel(ctx context.Context, id string) (Trial, error) {
	t, err := s.change(ctx, id, func(t *Trial) error {
		if t.State != Making && t.State != Open {
			return fault.New(fault.Conflict, "The tries are over, or one is being kept.")
		}
		t.State, t.Problem = Deleting, ""
		return nil
	})
	if err == nil {
		s.begin(id, s.deleting)
	}
	return t, err
}

// deleting deletes the clones that are not kept.
func (s *Service) deleting(ctx context.Context, id string) {
	t, err := s.Trial(id)
	if err != nil || t.State != Deleting {
		return
	}
	boxes, err := s.c.Sandboxes.All(ctx)
	errs := []error{err}
	for _, c := range t.Clones {
		if c.Sandbox == t.Kept && t.Kept != "" {
			continue
		}
		for _, b := range boxes {
			if b.ID == c.Sandbox || c.Sandbox == "" && s.made(t, c.Name, b) {
				errs = append(errs, s.remove(ctx, c, b))
			}
		}
	}
	err = errors.Join(errs...)
	if err != nil && cutOff(ctx, err) {
		return // the next start of sandboxd continues
	}
	s.note(ctx, id, func(t *Trial) {
		if t.State = Cancelled; t.Kept != "" {
			t.State = Kept
		}
		if err != nil {
			t.Problem = "Not all tries could be deleted: " + fault.Message(err)
		}
	})
}

// remove ends what the agent in a clone does, and deletes it.
func (s *Service) remove(ctx context.Context, c Clone, box sandbox.Sandbox) error {
	if c.Conversation != "" {
		if err := s.c.Chat.Cancel(ctx, c.Conversation); err != nil && !fault.Is(err, fault.NotFound) {
			s.c.Log.Warn("stop the agent of a try", "sandbox", c.Name, "error", err) // it ends with its sandbox
		}
	}
	_, err := s.c.Sandboxes.Delete(ctx, box.Ref())
	if fault.Is(err, fault.Gone) {
		err = nil
	}
	return err
}
