package backup

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

var (
	errCancelled = fault.New(fault.Gone, "The backup was cancelled.")
	errClosing   = fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")
)

// Options say how a backup is made.
type Options struct {
	Live       bool   // a running sandbox is not frozen meanwhile: what its programs write at that time may be in it by half
	Schedule   string // id of the schedule that asks for it, which then decides how long it is kept; "" for none
	Repository string // its name; "" for the folder
	Root       bool   // what was changed of the root file system is in it, too; not with Live
}

// Begin starts a backup of a sandbox, which continues when the caller leaves, and gives it. One that is being made already is given
// instead, and begun is false. Conflict if that goes to another place, unless a schedule asks. Invalid when there is no such repository.
func (s *Service) Begin(box sandbox.Sandbox, o Options) (b Backup, begun bool, err error) {
	if err := (stored{s}).checkPlace(o.Repository); err != nil {
		return Backup{}, false, err
	}
	if o.Root && o.Live {
		return Backup{}, false, fault.Field("root", "The root file system can only be read while the sandbox is frozen. Choose one: with it, or without freezing the sandbox.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return Backup{}, false, errClosing
	}
	for _, e := range s.all {
		if e.SandboxID == box.ID && e.State == Making {
			if e.Repository != o.Repository && o.Schedule == "" {
				return Backup{}, false, fault.New(fault.Conflict, "A backup of %s is being made in another place. Wait for that, or cancel it.", box.Name)
			}
			if o.Root && !e.Root && o.Schedule == "" {
				return Backup{}, false, fault.New(fault.Conflict, "A backup of %s without its root file system is being made. Wait for that, or cancel it.", box.Name)
			}
			return e.Backup, false, nil
		}
	}
	now := time.Now().UTC()
	ctx, cancel := context.WithCancelCause(s.life)
	e := &entry{cancel: cancel, done: make(chan struct{}), Backup: Backup{
		ID: sandbox.NewID(), SandboxID: box.ID, Sandbox: box.Name, Owner: box.Owner, Template: cmp.Or(box.Spec.Template, box.Spec.Image),
		Created: now, State: Making, Schedule: o.Schedule, Expires: s.expires(now, o.Schedule), Repository: o.Repository, Root: o.Root,
	}}
	s.all[e.ID] = e
	s.works.Go(func() {
		defer cancel(nil)
		s.made(e, causeOf(ctx, s.make(ctx, e, box.Ref(), o.Live)))
	})
	s.bus.Publish(Change{Backup: e.Backup})
	return e.Backup, true, nil
}

// causeOf puts why ctx has ended before an error that came of that.
func causeOf(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return errors.Join(context.Cause(ctx), err)
}

// Wait blocks until a backup is made, and gives it. The error says why it failed, or that ctx has ended.
func (s *Service) Wait(ctx context.Context, id string) (Backup, error) {
	s.mu.Lock()
	e := s.all[id]
	s.mu.Unlock()
	if e == nil {
		return Backup{}, NotFound(id)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Backup{}, fault.Wrap(ctx.Err(), fault.Timeout, "The backup is still being made. Ask for it later.")
		}
		return Backup{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.State == Failed {
		return e.Backup, fault.New(e.kind, "%s", e.Problem)
	}
	return e.Backup, nil
}

// made stores how the making of a backup has ended.
func (s *Service) made(e *entry, err error) {
	if err != nil {
		err = errors.Join(err, ignoreMissing(os.Remove(s.partOf(e.ID))))
		s.Log.Warn("backup failed", "sandbox", e.Sandbox, "error", err)
	}
	s.mu.Lock()
	e.Checking = false
	if err == nil {
		e.State = Ready
	} else {
		s.used[e.Owner] -= e.Size
		e.State, e.Size, e.Problem, e.kind = Failed, 0, fault.Message(err), fault.KindOf(err)
		s.forgetFailed()
	}
	b := e.Backup
	s.mu.Unlock()
	if err != nil && s.Failed != nil && !errors.Is(err, errCancelled) {
		s.Failed(b)
	}
	close(e.done)
	s.publish(e)
}

// make makes a backup: it writes a file, reads that back, and gives it its name. One in a repository is made there.
func (s *Service) make(ctx context.Context, e *entry, ref sandbox.Ref, live bool) error {
	if e.Repository != "" {
		return stored{s}.store(ctx, e, ref, live)
	}
	release, err := s.places.Acquire(ctx, "make", atOnce, -1)
	if err != nil {
		return context.Cause(ctx)
	}
	defer release()
	f, err := os.OpenFile(s.partOf(e.ID), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return s.unwritable(err)
	}
	defer f.Close()
	if err := s.write(ctx, e, f, ref, live); err != nil {
		return err
	}
	s.update(e, func(b *Backup) { b.Checking = true })
	got, err := check(ctx, f, 0)
	if err != nil {
		return notAsWritten(err)
	}
	if got.manifest == nil || got.manifest.ID != e.ID || !same(got.stats, e.Stats) {
		return notAsWritten(errors.New("it has another content"))
	}
	if err := errors.Join(s.grow(e, int64(sealSize)), seal(f, got.sum)); err != nil {
		return s.unwritable(err)
	}
	if err := errors.Join(f.Sync(), os.Rename(s.partOf(e.ID), s.fileOf(e.ID)), syncFolder(s.Folder)); err != nil {
		return s.unwritable(err)
	}
	return nil
}

// write writes the file, but for its seal.
func (s *Service) write(ctx context.Context, e *entry, f *os.File, ref sandbox.Ref, live bool) error {
	out := &bounded{file: f, may: func(n int64) error { return s.grow(e, n) }, fail: s.unwritable}
	return s.Sandboxes.Capture(ctx, ref, live, func(ctx context.Context, c sandbox.Capture) error {
		m := manifestOf(c, e, s.Version)
		root, err := roots{s}.rootFor(ctx, e, c, m)
		if err != nil {
			return err
		}
		defer root.Close()
		w, err := newWriter(out, m)
		if err != nil {
			return s.unwritable(err)
		}
		stats, err := roots{s}.entries(ctx, e, c, m, root, w)
		if err == nil {
			m.note(stats)
			err = w.close(m)
		} else {
			err = errors.Join(err, w.zstd.Close())
		}
		s.update(e, func(b *Backup) { b.Stats, b.Still = stats, c.Still })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.unwritable(err)
	})
}

// notAsWritten is why a backup is not offered that is not what was written.
func notAsWritten(err error) error {
	return fault.Wrap(err, fault.Internal, "What was written is not what is read back, so it is not kept. The disk of the data folder may be broken.")
}

// same reports whether two say the same of a tree.
func same(a, b archive.Stats) bool {
	return a.Files == b.Files && a.Folders == b.Folders && a.Bytes == b.Bytes
}
