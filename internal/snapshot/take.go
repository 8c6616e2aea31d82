package snapshot

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Begin starts a snapshot of a sandbox, which continues when the caller leaves, and gives it once it is stored that it is being made.
// One of the same name, note and kind that is being made already is given instead, begun false. Invalid names the field that is wrong;
// Conflict when another one is being made, the sandbox is being restored, or has too many; other kinds as for Store.
func (s *Service) Begin(ctx context.Context, box sandbox.Sandbox, a Ask) (snap Snapshot, begun bool, err error) {
	if a, err = a.checked(); err == nil && a.Memory {
		err = s.keepsMemory(ctx, box)
	}
	if err != nil {
		return snap, false, err
	}
	s.mu.Lock()
	if s.restoring[box.ID] {
		s.mu.Unlock()
		return snap, false, fault.New(fault.Conflict, "%s is being restored. Wait for that.", box.Name)
	}
	e, begun, err := s.reserve(ctx, box, a)
	s.mu.Unlock()
	if err == nil {
		err = e.wait(ctx, e.inserted)
	}
	if err != nil {
		return snap, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.stored {
		return snap, false, e.err
	}
	return e.Snapshot, begun, nil
}

// MemorySupport says in a sentence why the memory of sandboxes cannot be kept on this host; "" when it can.
func (r *records) MemorySupport(ctx context.Context) string {
	if r.Memories == nil {
		return "The engine cannot keep it."
	}
	return r.Memories.CheckpointSupport(ctx)
}

// keepsMemory is a Conflict when the memory of a sandbox cannot be kept.
func (r *records) keepsMemory(ctx context.Context, box sandbox.Sandbox) error {
	if why := r.MemorySupport(ctx); why != "" {
		return &fault.Error{Kind: fault.Conflict, Field: "memory", Message: "The memory of sandboxes cannot be kept on this host: " + why}
	}
	if box.State == sandbox.Stopped || box.State == sandbox.Failed || box.State.Sleeps() {
		return &fault.Error{Kind: fault.Conflict, Field: "memory", Message: box.Name + " does not run, so nothing is in its memory. Start it, or leave the memory out."}
	}
	return nil
}

// checked gives a as it is kept, or says what is wrong with it.
func (a Ask) checked() (Ask, error) {
	a.Kind = cmp.Or(a.Kind, Manual)
	if a.Kind != Manual && a.Kind != Automatic {
		return a, fault.Field("kind", "The kind of a snapshot is %q or %q.", Manual, Automatic)
	}
	var err error
	a.Name, a.Note, err = checkText(a.Name, a.Note)
	return a, err
}

// checkText gives a name and a note as they are kept, or says what is wrong with them.
func checkText(name, note string) (string, string, error) {
	name, note = text.Trim(name), text.Trim(strings.ReplaceAll(note, "\r\n", "\n"))
	switch {
	case !utf8.ValidString(name):
		return "", "", fault.Field("name", "The name is not valid UTF-8 text.")
	case utf8.RuneCountInString(name) > MaxName:
		return "", "", fault.Field("name", "The name is longer than %d characters. Shorten it.", MaxName)
	case text.Unprintable(name):
		return "", "", fault.Field("name", "The name has a character that cannot be shown (a line break, a control or a direction mark). Remove it.")
	case !utf8.ValidString(note):
		return "", "", fault.Field("note", "The note is not valid UTF-8 text.")
	case utf8.RuneCountInString(note) > MaxNote:
		return "", "", fault.Field("note", "The note is longer than %d characters. Shorten it.", MaxNote)
	case text.Unprintable(strings.NewReplacer("\n", " ", "\t", " ").Replace(note)):
		return "", "", fault.Field("note", "The note has a character that cannot be shown (a control or a direction mark). Remove it.")
	}
	return name, note, nil
}

// errBusy is in the Conflict of one who asks for another snapshot than the one that is being made.
var errBusy = errors.New("another snapshot of it is being made")

// reserve starts a snapshot, or gives the one that is being made: with errBusy when that is another one. It needs mu.
func (s *Service) reserve(ctx context.Context, box sandbox.Sandbox, a Ask) (e *entry, begun bool, err error) {
	if err := s.open(ctx); err != nil {
		return nil, false, err
	}
	count := 0
	for _, e := range s.all {
		switch {
		case e.SandboxID != box.ID || e.forgotten || e.State == Failed:
		case e.State == Making && e.Kind != Passing && (Ask{e.Name, e.Note, e.Kind, e.memory}) == a:
			return e, false, nil
		case e.State == Making:
			return e, false, fault.Wrap(errBusy, fault.Conflict, "Another snapshot of %s is being made. Wait for that.", box.Name)
		case e.Kind == Manual:
			count++
		}
	}
	if count >= s.Most && a.Kind == Manual {
		return nil, false, fault.New(fault.Conflict, "%s has %d snapshots, which is the most there can be. Delete some.", box.Name, count)
	}
	life, cancel := s.beyond(ctx)
	e = &entry{cancel: cancel, memory: a.Memory, inserted: make(chan struct{}), done: make(chan struct{}), Snapshot: Snapshot{
		ID: sandbox.NewID(), SandboxID: box.ID, Owner: box.Owner, Name: a.Name, Note: a.Note, Kind: a.Kind,
		Created: time.Now().UTC().Truncate(time.Microsecond), State: Making, Origin: originOf(box),
	}}
	s.all[e.ID] = e
	s.works.Go(func() {
		defer cancel(nil)
		s.make(life, e, box)
	})
	return e, true, nil
}

func originOf(b sandbox.Sandbox) Origin {
	return Origin{
		Name: b.Name, Label: b.Label, Spec: b.Spec, Overrides: b.Overrides,
		Rest: RestTimes{FreezeAfter: time.Duration(b.Rest.FreezeAfter), StopAfter: time.Duration(b.Rest.StopAfter)},
	}
}

// make makes a snapshot that was reserved: the row first, then the parts.
func (s *Service) make(ctx context.Context, e *entry, box sandbox.Sandbox) {
	s.mu.Lock()
	row := e.Snapshot
	s.mu.Unlock()
	err := s.write(ctx, func(ctx context.Context) error { return s.Store.Insert(ctx, row) })
	if err != nil {
		s.fail(context.WithoutCancel(ctx), e, causeOf(ctx, err))
		close(e.inserted)
		close(e.done)
		return
	}
	s.mu.Lock()
	e.stored = true
	s.mu.Unlock()
	s.announce(e)
	close(e.inserted)
	taken, err := s.take(ctx, row.ID, box.Ref(), e.memory)
	if err == nil {
		err = s.finish(context.WithoutCancel(ctx), e, taken)
	}
	if err != nil {
		err = causeOf(ctx, err)
		s.Log.Warn("snapshot failed", "sandbox", box.Name, "error", err)
		s.fail(context.WithoutCancel(ctx), e, err)
		if asked := row.Kind == Manual || row.Kind == Automatic; asked && !errors.Is(err, errCancelled) {
			s.Failed(box, err)
		}
	}
	close(e.done)
	s.announce(e)
	if err := s.prune(context.WithoutCancel(ctx), row.SandboxID); err != nil {
		s.Log.Warn("old snapshots are not deleted yet", "sandbox", box.Name, "error", err)
	}
}

// take has the Manager take the parts, when its turn comes.
func (s *Service) take(ctx context.Context, id string, ref sandbox.Ref, memory bool) (sandbox.Taken, error) {
	release, err := s.places.Acquire(ctx, "take", takenAtOnce, -1)
	if err != nil {
		return sandbox.Taken{}, err
	}
	defer release()
	return s.Sandboxes.Snapshot(ctx, ref, id, memory)
}

// finish stores that a snapshot is ready, and that its sandbox is based on it.
func (s *Service) finish(ctx context.Context, e *entry, taken sandbox.Taken) error {
	return s.write(ctx, func(ctx context.Context) error {
		s.mu.Lock()
		row, forgotten, head := e.Snapshot, e.forgotten, s.heads[e.SandboxID]
		s.mu.Unlock()
		if forgotten {
			return errCancelled
		}
		row.State, row.Stats, row.Still, row.Took = Ready, taken.Stats, taken.Still, taken.Took
		row.Memory, row.Image, row.Origin, row.Parent = taken.Memory, taken.Image, originOf(taken.Sandbox), head.Snapshot
		row.Origin.Base = taken.Base
		if err := s.Store.Update(ctx, row); err != nil {
			return err
		}
		s.mu.Lock()
		e.Snapshot = row
		s.mu.Unlock()
		if row.Kind != Passing {
			head.Snapshot = row.ID
			s.keepHead(ctx, row.SandboxID, head)
		}
		return nil
	})
}

// fail removes the row of a snapshot that could not be made. One that a person has asked for stays listed, as failed.
func (s *Service) fail(ctx context.Context, e *entry, err error) {
	deleteErr := s.write(ctx, func(ctx context.Context) error { return s.Store.Delete(ctx, e.ID) })
	s.mu.Lock()
	if deleteErr != nil {
		s.owed.deletes[e.ID] = true
	}
	e.State, e.Problem, e.err = Failed, fault.Message(err), fault.Wrap(err, fault.KindOf(err), "%s", fault.Message(err))
	if e.forgotten || !e.stored || e.Kind == Safety || e.Kind == Passing {
		delete(s.all, e.ID)
	}
	s.forgetFailed()
	s.mu.Unlock()
	s.Nudge()
}

// Wait blocks until a snapshot is made, and gives it. The error says why it failed, or that ctx has ended.
func (s *Service) Wait(ctx context.Context, id string) (Snapshot, error) {
	s.mu.Lock()
	e := s.all[id]
	s.mu.Unlock()
	if e == nil {
		return Snapshot{}, NotFound(id)
	}
	return s.await(ctx, e)
}

func (s *Service) await(ctx context.Context, e *entry) (Snapshot, error) {
	if err := e.wait(ctx, e.done); errors.Is(err, context.DeadlineExceeded) {
		return Snapshot{}, fault.Wrap(err, fault.Timeout, "The snapshot is still being taken. Ask for it later.")
	} else if err != nil {
		return Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.Snapshot, e.err
}

// wait blocks until one of the entry's channels is closed, or ctx ends. A snapshot of before the start of sandboxd has none.
func (e *entry) wait(ctx context.Context, c chan struct{}) error {
	if c == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Take takes a snapshot as Begin does, but after another one of the sandbox that is being made, and returns when it is made, or ctx ends;
// then it continues. Kinds as for Begin and Wait.
func (s *Service) Take(ctx context.Context, box sandbox.Sandbox, a Ask) (Snapshot, error) {
	for {
		snap, _, err := s.Begin(ctx, box, a)
		if err == nil {
			return s.Wait(ctx, snap.ID)
		}
		if !errors.Is(err, errBusy) {
			return Snapshot{}, err
		}
		if e := s.madeOf(box.ID); e != nil {
			err = e.wait(ctx, e.done)
		} else { // it has just ended
			err = ctx.Err()
		}
		if err != nil {
			return Snapshot{}, err
		}
	}
}

// madeOf gives the snapshot of a sandbox that is being made, if there is one.
func (s *Service) madeOf(sandboxID string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e.SandboxID == sandboxID && e.State == Making && !e.forgotten {
			return e
		}
	}
	return nil
}

// taken takes a snapshot for a restore or a clone, after another one that is being made already. When ctx ends so does that. It is in
// use: the caller releases it.
func (s *Service) taken(ctx context.Context, box sandbox.Sandbox, kind Kind) (Snapshot, error) {
	for {
		s.mu.Lock()
		e, begun, err := s.reserve(ctx, box, Ask{Kind: kind})
		if begun {
			e.uses++
		}
		s.mu.Unlock()
		switch {
		case begun:
			snap, err := s.await(ctx, e)
			if ctx.Err() != nil {
				e.cancel(context.Cause(ctx))
				<-e.done // its life ends with the same cause
				snap, err = s.await(context.WithoutCancel(ctx), e)
			}
			return snap, err
		case err != nil && !errors.Is(err, errBusy):
			return Snapshot{}, err
		}
		if err := e.wait(ctx, e.done); err != nil {
			return Snapshot{}, err
		}
	}
}
