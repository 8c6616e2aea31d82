package backup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"os"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
)

// Archive is one that can be restored: it was checked to its end.
type Archive struct {
	Manifest *Manifest // nil of one that another program has made
	Stats    archive.Stats
	file     *os.File // nil for one in a repository
	open     func(ctx context.Context) (repository.Stream, error)
	prefix   string

	HomeOnly bool // its root file system, if it has one, is not restored
}

// Close gives up the file.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// content opens what is in it.
func (a *Archive) content(ctx context.Context) (content io.Reader, closeContent func(), err error) {
	if a.file == nil {
		s, err := a.open(ctx)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { s.Close() }, nil
	}
	return decompress(bufio.NewReaderSize(io.NewSectionReader(a.file, 0, math.MaxInt64), readAhead))
}

// Receive takes an archive in, and checks it. Invalid when it cannot be restored, Unavailable when there is no room for it. The caller
// closes it.
func (s *Service) Receive(ctx context.Context, owner string, from io.Reader) (*Archive, error) {
	f, err := s.unnamed(owner, func(io.Writer) error { return nil })
	if err != nil {
		return nil, err
	}
	upload := &entry{Backup: Backup{Owner: owner}}
	defer s.ungrow(upload)
	a, err := s.receive(ctx, f, upload, from)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

func (s *Service) receive(ctx context.Context, f *os.File, upload *entry, from io.Reader) (*Archive, error) {
	in := &source{from: from}
	if _, err := io.Copy(&bounded{file: f, may: func(n int64) error { return s.grow(upload, n) }, fail: s.unwritable}, in); err != nil {
		if in.err != nil {
			return nil, fault.Wrap(in.err, fault.Invalid, "The upload was cut off. Nothing was changed.")
		}
		return nil, s.unwritable(err)
	}
	release, err := s.places.Acquire(ctx, "check", atOnce, -1)
	if err != nil {
		return nil, err
	}
	defer release()
	got, err := check(ctx, f, s.Disk())
	if err != nil {
		return nil, err
	}
	if got.manifest != nil && !got.sealed {
		return nil, fault.New(fault.Invalid, "The backup is cut off: its end is missing.")
	}
	return &Archive{Manifest: got.manifest, Stats: got.stats, file: f, prefix: got.prefix}, nil
}

// ungrow takes back what grow has counted.
func (s *Service) ungrow(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[e.Owner] -= e.Size
}

// source remembers what has gone wrong with reading.
type source struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Archive gives a backup for restoring it. The caller closes it. Kinds as for Open.
func (s *Service) Archive(id string) (*Archive, error) {
	if b, err := s.ready(id); err == nil && b.Repository != "" {
		return stored{s}.archive(b)
	}
	f, b, err := s.Open(id)
	if err != nil {
		return nil, err
	}
	m, err := manifestIn(f)
	if err == nil && m == nil {
		err = fault.New(fault.Unavailable, "The backup is damaged: its manifest is missing.")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Archive{Manifest: m, Stats: b.Stats, file: f, prefix: homePrefix}, nil
}

// Restore makes the home of a sandbox, and its root file system if that is in it, what an archive says, and returns when that is done or
// ctx ends; then it continues. The sandbox's settings stay. saveFirst has the current home backed up, without which nothing is restored. It closes the archive. Conflict
// while another archive is being restored there; other kinds as for sandbox.Manager's.
func (s *Service) Restore(ctx context.Context, box sandbox.Sandbox, a *Archive, saveFirst bool) error {
	if err := a.rootFits(box.Spec.Template, box.Spec.Image); err != nil {
		return errors.Join(err, a.Close())
	}
	return s.detached(ctx, box.ID, a, func(ctx context.Context) error {
		if saveFirst {
			if err := s.saved(ctx, box, a.restoresRoot()); err != nil {
				return err
			}
		}
		if !a.restoresRoot() {
			return s.Sandboxes.Restore(ctx, box.Ref(), s.fill(a))
		}
		return roots{s}.withRootfs(ctx, box.Owner, a, func(root sandbox.Rootfs) error {
			return s.Sandboxes.RestoreWithRoot(ctx, box.Ref(), root, s.fill(a))
		})
	})
}

// saved makes a backup of a sandbox. When ctx ends so does that.
func (s *Service) saved(ctx context.Context, box sandbox.Sandbox, root bool) error {
	b, _, err := s.Begin(box, Options{Root: root})
	if err == nil {
		_, err = s.Wait(ctx, b.ID)
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), s.Delete(b.ID))
	}
	return err
}

// RestoreNew makes a new sandbox of an archive, and returns when it runs or ctx ends; then it continues. What r leaves open is as the
// archive's sandbox was, if it says that. It closes the archive. Invalid when neither says what it is made from.
func (s *Service) RestoreNew(ctx context.Context, r sandbox.Request, a *Archive) (sandbox.Sandbox, error) {
	r, from, err := request(r, a)
	if err == nil {
		err = a.rootFits(r.Template, r.Image)
	}
	if err != nil {
		return sandbox.Sandbox{}, errors.Join(err, a.Close())
	}
	from.Fill = s.fill(a)
	var made sandbox.Sandbox // for the work alone, until it has ended
	err = s.detached(ctx, "", a, func(ctx context.Context) (err error) {
		made, err = roots{s}.createFrom(ctx, r, from, a)
		return err
	})
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return made, nil
}

// CancelRestore cuts off what is being restored to a sandbox, whose home is then as it was. It does not wait. NotFound when nothing is.
func (s *Service) CancelRestore(ref sandbox.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel := s.restores[ref.ID()]
	if cancel == nil {
		return fault.New(fault.NotFound, "Nothing is being restored to %s.", ref.Name())
	}
	cancel(fault.New(fault.Gone, "The restore was cancelled. Nothing was changed."))
	return nil
}

// detached does work that ends with the Service, and waits for it until ctx ends. There is one at a time for an id that is not "". It
// closes the archive.
func (s *Service) detached(ctx context.Context, id string, a *Archive, work func(ctx context.Context) error) error {
	done, err := s.start(ctx, id, a, work)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts what detached waits for.
func (s *Service) start(ctx context.Context, id string, a *Archive, work func(ctx context.Context) error) (<-chan error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil: // the caller has left while the archive was checked
		return nil, context.Cause(ctx)
	case s.life.Err() != nil:
		return nil, errClosing
	case id != "" && s.restores[id] != nil:
		return nil, fault.New(fault.Conflict, "Another archive is being restored to it. Wait for that, or cancel it.")
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if id != "" {
		s.restores[id] = cancel
	}
	done := make(chan error, 1)
	s.works.Go(func() {
		defer cancel(nil)
		defer context.AfterFunc(s.life, func() { cancel(errClosing) })()
		err := causeOf(life, work(life))
		s.restored(id, errors.Join(err, a.Close()))
		done <- err
	})
	return done, nil
}

// request gives what a new sandbox of an archive is to be, where r leaves it open.
func request(r sandbox.Request, a *Archive) (sandbox.Request, sandbox.Origin, error) {
	var from sandbox.Origin
	if a.Manifest != nil {
		was := a.Manifest.Sandbox
		if r.Template == "" && r.Image == "" {
			r.Template, r.Image = was.Template, was.Image
		}
		r.Label = cmp.Or(r.Label, was.Label)
		if r.Env == nil {
			r.Env = was.Env
		}
		if r.Limits == (sandbox.Limits{}) {
			r.Limits = sandbox.Limits{CPUs: was.CPUs, Memory: was.Memory, Pids: was.Pids, Disk: was.Disk}
		}
		rest, err := was.rest()
		if err != nil {
			return r, from, err
		}
		r.Rest = r.Rest.Over(rest)
		from.Overrides = was.Overrides
	}
	if r.Template == "" && r.Image == "" {
		return r, from, fault.Field("template", "The archive does not say what it was made from. Name a template.")
	}
	return r, from, nil
}

func (w Settings) rest() (catalog.Rest, error) {
	freeze, err := catalog.ParseAfter("freeze_after", w.FreezeAfter)
	stop, err2 := catalog.ParseAfter("stop_after", w.StopAfter)
	return catalog.Rest{FreezeAfter: freeze, StopAfter: stop}, errors.Join(err, err2)
}

// fill fills a home.
func (s *Service) fill(a *Archive) func(context.Context, sandbox.Home) error {
	return func(ctx context.Context, h sandbox.Home) error {
		release, err := s.places.Acquire(ctx, "restore", atOnce, -1)
		if err != nil {
			return context.Cause(ctx)
		}
		defer release()
		content, closeContent, err := a.content(ctx)
		if err != nil {
			return err
		}
		defer closeContent()
		_, err = h.Replace(ctx, content, sandbox.Content{Prefix: a.prefix, Own: a.Manifest == nil}, func(archive.Stats) {})
		if err == nil {
			return nil
		}
		return unreadable(ctx, forPeople(err))
	}
}
