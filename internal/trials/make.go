package trials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// How a clone is waited for that was being made when sandboxd ended.
const (
	lookEvery = time.Second
	lookLimit = 10 * time.Minute
)

// Begin begins a trial of a sandbox: one snapshot, from which the clones are made, and a message to each. It returns when that is stored;
// the work continues. Kinds: Invalid names the field that is wrong, NotFound is of the agent, Conflict when the person has too many tries
// or no snapshot can be taken now, Unavailable when the host has no room. Nothing is made then.
func (s *Service) Begin(ctx context.Context, box sandbox.Sandbox, a Ask) (Trial, error) {
	a.Agent, a.Mode = cmp.Or(a.Agent, chat.OwnAgent), cmp.Or(a.Mode, chat.AskRisky)
	a.Text = strings.ToValidUTF8(a.Text, "\uFFFD")
	err := a.check()
	if err == nil {
		err = s.c.Chat.Check(chat.Conversation{Agent: a.Agent, Model: a.Model, Mode: a.Mode})
	}
	if err == nil {
		err = s.c.Room(ctx)
	}
	if err != nil {
		return Trial{}, err
	}
	boxes, err := s.c.Sandboxes.All(ctx)
	if err != nil {
		return Trial{}, err
	}
	if err := s.prune(ctx, boxes, box.ID); err != nil {
		return Trial{}, err
	}
	s.order.Lock() // what is counted, and which names are free, is so until it is stored
	defer s.order.Unlock()
	if has := s.clonesOf(a.Owner, boxes); has+a.Count > MostAtATime {
		return Trial{}, &fault.Error{Kind: fault.Conflict, Field: "n", Message: fmt.Sprintf(
			"You have %d tries already, and can have %d at a time. Keep one of them, or cancel them, or ask for fewer.", has, MostAtATime)}
	}
	snap, _, err := s.c.Snapshots.Begin(ctx, box, snapshot.Ask{Kind: snapshot.Automatic, Note: "Before trying it several times"})
	if err != nil {
		return Trial{}, err
	}
	t := Trial{
		ID: sandbox.NewID(), Sandbox: box.ID, Name: box.Name, Owner: a.Owner, Text: a.Text, Agent: a.Agent, Model: a.Model, Mode: a.Mode,
		State: Making, Snapshot: snap.ID, Created: s.c.Now().UTC().Truncate(time.Microsecond), Clones: s.names(box.Name, a.Count, boxes),
	}
	if err := s.c.Store.Put(ctx, t); err != nil {
		return Trial{}, err
	}
	s.know(t)
	s.bus.Publish(Change{t})
	s.begin(t.ID, s.making)
	return t, nil
}

// clonesOf counts the clones of a person that are there, or are about to be, in trials that are not over.
func (s *Service) clonesOf(owner string, boxes map[string]sandbox.Sandbox) (n int) {
	for _, t := range s.find(func(t Trial) bool { return t.Owner == owner && !t.State.Over() }) {
		for _, c := range t.Clones {
			if boxes[c.Sandbox].ID != "" || c.Sandbox == "" && c.Problem == "" {
				n++
			}
		}
	}
	return n
}

// names gives clones of a sandbox the first names that are free.
func (s *Service) names(of string, count int, boxes map[string]sandbox.Sandbox) (clones []Clone) {
	taken := map[string]bool{}
	for _, b := range boxes {
		taken[b.Name] = true
	}
	for _, t := range s.find(func(t Trial) bool { return !t.State.Over() }) {
		for _, c := range t.Clones {
			taken[c.Name] = true
		}
	}
	for n := 1; len(clones) < count; n++ {
		suffix := fmt.Sprintf("-try-%d", n)
		name := strings.TrimRight(of[:min(len(of), hostname.MaxName-len(suffix))], "-") + suffix
		if !taken[name] {
			clones = append(clones, Clone{Name: name})
		}
	}
	return clones
}

// making makes what there is not of a trial's clones yet.
func (s *Service) making(ctx context.Context, id string) {
	t, err := s.Trial(id)
	if err != nil || t.State != Making {
		return
	}
	boxes, err := s.c.Sandboxes.All(ctx)
	box := boxes[t.Sandbox]
	if err == nil && box.ID == "" {
		err = fault.New(fault.NotFound, "%s was deleted.", t.Name)
	}
	if err == nil {
		t, err = s.snapped(ctx, t, box)
	}
	if err == nil {
		err = s.makeAll(ctx, t, box, boxes)
	}
	if err != nil && cutOff(ctx, err) {
		return // the next start of sandboxd continues
	}
	s.note(ctx, id, func(t *Trial) {
		if t.State != Making {
			return
		}
		t.State = Failed
		for _, c := range t.Clones {
			if c.Sandbox != "" {
				t.State = Open
			}
		}
		if err != nil {
			t.Problem = fault.Message(err)
		} else if t.State == Failed {
			t.Problem = "No try could be made."
		}
	})
}

// makeAll makes the clones, side by side. An error says that the snapshot is gone, or that sandboxd ends.
func (s *Service) makeAll(ctx context.Context, t Trial, box sandbox.Sandbox, boxes map[string]sandbox.Sandbox) error {
	release, err := s.c.Snapshots.Hold(box, t.Snapshot) // turns in the sandbox take snapshots meanwhile, which push out older ones
	if err != nil {
		return err
	}
	defer release()
	var works sync.WaitGroup
	errs := make([]error, len(t.Clones))
	for i := range t.Clones {
		works.Go(func() { errs[i] = s.makeOne(ctx, t, i, box, boxes) })
	}
	works.Wait()
	return errors.Join(errs...)
}

// cutOff reports whether something has failed because sandboxd ends.
func cutOff(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, snapshot.ErrClosing) || errors.Is(err, sandbox.ErrClosing)
}

// snapped waits for the snapshot of a trial. One that an end of sandboxd has cut off is taken anew.
func (s *Service) snapped(ctx context.Context, t Trial, box sandbox.Sandbox) (Trial, error) {
	if _, err := s.c.Snapshots.Snapshot(t.Snapshot); fault.Is(err, fault.NotFound) {
		if _, err := s.settled(ctx, box.ID); err != nil {
			return t, err
		}
		snap, _, err := s.c.Snapshots.Begin(ctx, box, snapshot.Ask{Kind: snapshot.Automatic, Note: "Before trying it several times"})
		if err == nil {
			t, err = s.change(ctx, t.ID, func(t *Trial) error { t.Snapshot = snap.ID; return nil })
		}
		if err != nil {
			return t, err
		}
	}
	_, err := s.c.Snapshots.Wait(ctx, t.Snapshot)
	return t, err
}

// makeOne makes one clone, as far as it is not made, and sends it the message. What fails is noted; an error says that sandboxd ends.
func (s *Service) makeOne(ctx context.Context, t Trial, i int, box sandbox.Sandbox, boxes map[string]sandbox.Sandbox) error {
	c := t.Clones[i]
	for c.Problem == "" && !c.Sent {
		err := s.step(ctx, t, &c, box, boxes)
		if err != nil && cutOff(ctx, err) {
			return err
		}
		if err != nil {
			c.Problem = fault.Message(err)
			s.c.Log.Warn("make a try", "sandbox", c.Name, "error", err)
		}
		if now, stored := s.note(ctx, t.ID, func(t *Trial) { t.Clones[i] = c }); !stored || now.State != Making {
			return ctx.Err()
		}
	}
	return nil
}

// step does what is next for a clone.
func (s *Service) step(ctx context.Context, t Trial, c *Clone, box sandbox.Sandbox, boxes map[string]sandbox.Sandbox) (err error) {
	switch {
	case c.Sandbox == "":
		c.Sandbox, err = s.clone(ctx, t, c.Name, box, boxes)
	case c.Conversation == "":
		c.Conversation, err = s.converse(ctx, t, *c)
	default: // the same id again is one message
		_, err = s.c.Chat.Send(ctx, c.Conversation, chat.Queued{ID: t.ID, User: t.Owner, Text: t.Text})
		c.Sent = err == nil
	}
	return err
}

// clone makes the clone with a name, and gives its id.
func (s *Service) clone(ctx context.Context, t Trial, name string, box sandbox.Sandbox, boxes map[string]sandbox.Sandbox) (string, error) {
	for _, b := range boxes {
		if s.made(t, name, b) { // before a restart
			there, err := s.settled(ctx, b.ID)
			if err != nil {
				return "", err
			}
			if there {
				return b.ID, nil
			}
		}
	}
	made, err := s.c.Snapshots.Clone(ctx, box, snapshot.CloneAsk{Owner: t.Owner, Name: name, Count: 1, Snapshot: t.Snapshot})
	if err != nil {
		return "", err
	}
	return made[0].ID, nil
}

// made reports whether a sandbox is the clone with a name, of which it was not stored yet that it is made. A clone that a person has given that
// name is of another snapshot.
func (s *Service) made(t Trial, name string, b sandbox.Sandbox) bool {
	if b.Name != name || b.ClonedFrom != t.Name || b.Owner != t.Owner || b.Created.Before(t.Created) {
		return false
	}
	snap, err := s.c.Snapshots.Snapshot(t.Snapshot)
	return err == nil && b.Root == snap.Image
}

// settled waits until nothing is being done with a sandbox, and reports whether it is there.
func (s *Service) settled(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	for {
		boxes, err := s.c.Sandboxes.All(ctx)
		if b, there := boxes[id]; err != nil || !there || b.State.Settled() {
			return there, err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return false, fault.Wrap(ctx.Err(), fault.Timeout, "It took too long.")
		}
	}
}

// converse begins the conversation in a clone, and gives its id. One that is there was begun before a restart, as the clone is new.
func (s *Service) converse(ctx context.Context, t Trial, c Clone) (string, error) {
	list, err := s.c.Chat.List(ctx, c.Sandbox)
	if err != nil {
		return "", err
	}
	if len(list) > 0 {
		return list[0].ID, nil
	}
	made, err := s.c.Chat.Create(ctx, chat.Conversation{Sandbox: c.Sandbox, Owner: t.Owner, Agent: t.Agent, Model: t.Model, Mode: t.Mode})
	if err != nil {
		return "", err
	}
	return made.ID, nil
}
