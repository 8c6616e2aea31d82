package backup

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sandboxd/internal/archive"
	"sandboxd/internal/event"
	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/sandbox"
)

// In a repository a backup is the archive's entries of the home as a stream, not compressed by us, so that an unchanged home gives the
// same bytes; the manifest is kept beside it.

// Repositories keep streams in other places than the folder. Implemented by repository.Service.
type Repositories interface {
	Repository(name string) (repository.Repository, error)
	Names() []string
	// Contents gives what one had when it was last reached, and why it cannot be reached now.
	Contents(name string) (c repository.Contents, problem string, err error)
	Save(ctx context.Context, name string, d repository.Draft) (repository.Item, error)
	Read(ctx context.Context, name, id string) (repository.Stream, error)
	Delete(ctx context.Context, name string, ids ...string) error
	Subscribe() *event.Subscription[repository.Change]
}

// stored is the part of a Service that works on backups in repositories.
type stored struct{ *Service }

// store makes a backup in a repository, which reads back what is new of it. What was read of the home is judged on its way as if it were
// to be restored.
func (s stored) store(ctx context.Context, e *entry, ref sandbox.Ref, live bool) error {
	item, err := s.Repositories.Save(ctx, e.Repository, repository.Draft{
		ID: e.ID, Title: "Backup of " + e.Sandbox,
		Write: func(ctx context.Context, w io.Writer) (about []byte, err error) {
			about, err = s.stream(ctx, e, w, ref, live)
			s.update(e, func(b *Backup) { b.Checking = err == nil })
			return about, err
		},
		Progress: func(p repository.Progress) error {
			defer s.publish(e)
			return s.charge(e, p.Added-e.Size)
		},
	})
	if err != nil {
		return forPeople(err)
	}
	s.update(e, func(b *Backup) { // it is there, whatever the quota says
		s.used[b.Owner] += item.Added - b.Size
		b.Size = item.Added
	})
	return nil
}

// forPeople leaves out of an error what is for admins.
func forPeople(err error) error {
	var place repository.PlaceError
	if errors.As(err, &place) {
		return fault.Wrap(err, fault.KindOf(err), "%s", place.Public)
	}
	return err
}

// read opens the stream of a backup.
func (s stored) read(ctx context.Context, b Backup) (repository.Stream, error) {
	stream, err := s.Repositories.Read(ctx, b.Repository, b.ID)
	return stream, forPeople(err)
}

// stream writes the home of a sandbox, and gives the manifest.
func (s stored) stream(ctx context.Context, e *entry, w io.Writer, ref sandbox.Ref, live bool) (about []byte, err error) {
	err = s.Sandboxes.Capture(ctx, ref, live, func(ctx context.Context, c sandbox.Capture) error {
		m := manifestOf(c, e, s.Version)
		root, err := roots(s).rootFor(ctx, e, c, m)
		if err != nil {
			return err
		}
		defer root.Close()
		judge := newJudge(ctx, m)
		out := bufio.NewWriterSize(io.MultiWriter(w, judge.in), readAhead)
		stats, err := roots(s).entries(ctx, e, c, m, root, out)
		s.update(e, func(b *Backup) { b.Stats, b.Still = stats, c.Still })
		if err == nil {
			_, err = out.Write(make([]byte, endSize))
		}
		if err == nil {
			err = out.Flush()
		}
		found, judged := judge.end(err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case judged != nil || !same(found, stats):
			return fault.Wrap(errors.Join(judged, errors.New("it has another content")), fault.Internal, "The archive of the home could not be restored, so it is not kept.")
		}
		m.note(stats)
		about, err = m.text()
		return err
	})
	return about, err
}

// judge reads a stream as a restore would.
type judge struct {
	in    *io.PipeWriter
	done  chan struct{}
	stats archive.Stats
	err   error
}

func newJudge(ctx context.Context, m *Manifest) *judge {
	from, in := io.Pipe()
	j := &judge{in: in, done: make(chan struct{})}
	go func() {
		defer close(j.done)
		j.stats, j.err = checkEntries(ctx, tar.NewReader(bufio.NewReaderSize(from, readAhead)), homePrefix, m, 0)
		_, _ = io.Copy(io.Discard, from) // it does not hold up the one who writes
	}()
	return j
}

// end says that the stream has ended, and gives the judgement.
func (j *judge) end(why error) (archive.Stats, error) {
	j.in.CloseWithError(why)
	<-j.done
	return j.stats, j.err
}

// loadAll takes in what all repositories have.
func (s stored) loadAll() {
	if s.Repositories == nil {
		return
	}
	known := map[string]bool{}
	for _, name := range s.Repositories.Names() {
		known[name] = true
		s.load(name)
	}
	for _, b := range s.List(func(b Backup) bool { return b.Repository != "" && !known[b.Repository] }) {
		s.load(b.Repository)
	}
}

// load makes the list what a repository has: all that was seen there last. Those of one that is forgotten are left out.
func (s stored) load(name string) {
	c, problem, err := s.Repositories.Contents(name)
	if err != nil {
		c, problem = repository.Contents{}, ""
	}
	there := map[string]*entry{}
	for _, item := range c.Items {
		e, err := s.entryOf(name, item)
		if err != nil {
			s.Log.Warn("what is in a repository is no backup", "repository", name, "id", item.ID, "error", err)
			continue
		}
		e.Unreachable = problem
		there[item.ID] = e
	}
	var changes []Change
	s.mu.Lock()
	for id, e := range s.all {
		if e.Repository == name && e.State == Ready && there[id] == nil {
			delete(s.all, id)
			s.used[e.Owner] -= e.Size
			changes = append(changes, Change{Backup: e.Backup, Deleted: true})
		}
	}
	for id, e := range there {
		switch old := s.all[id]; {
		case old == nil:
			s.all[id] = e
			s.used[e.Owner] += e.Size
			changes = append(changes, Change{Backup: e.Backup})
		case old.State == Ready && old.Unreachable != problem:
			old.Unreachable = problem
			changes = append(changes, Change{Backup: old.Backup})
		}
	}
	s.mu.Unlock()
	for _, change := range changes {
		s.bus.Publish(change)
	}
}

// entryOf makes a backup of what a repository says of it.
func (s stored) entryOf(name string, item repository.Item) (*entry, error) {
	m, err := parseManifest(item.About)
	if err != nil {
		return nil, err
	}
	if m == nil || m.ID != item.ID {
		return nil, errors.New("it has another id or no manifest")
	}
	e := s.readyEntry(m)
	e.Repository, e.Size = name, item.Added
	if r, err := s.Repositories.Repository(name); err == nil && m.Schedule == "" && r.Created.After(m.Made) { // such as one of a server that was lost
		e.Expires = s.expires(r.Created, "")
	}
	return e, nil
}

// readyEntry is a backup that is ready.
func (c *Config) readyEntry(m *Manifest) *entry {
	e := &entry{done: make(chan struct{}), cancel: func(error) {}}
	close(e.done)
	e.Backup = Backup{
		ID: m.ID, SandboxID: m.Sandbox.ID, Sandbox: m.Sandbox.Name, Owner: m.Sandbox.Owner, Template: cmp.Or(m.Sandbox.Template, m.Sandbox.Image),
		Created: m.Made, State: Ready, Stats: m.Home, Still: m.Consistent, Root: m.Root != nil, Schedule: m.Schedule, Expires: c.expires(m.Made, m.Schedule),
	}
	return e
}

// follow keeps the list up to date, until ctx ends.
func (s stored) follow(ctx context.Context) {
	for s.Repositories != nil && ctx.Err() == nil {
		changes := s.Repositories.Subscribe()
		s.loadAll()
		for open := true; open; {
			select {
			case c, more := <-changes.C:
				if open = more; open {
					s.load(c.Name)
				}
			case <-ctx.Done():
				open = false
			}
		}
		changes.Close()
	}
}

// manifest gives the manifest of a backup in a repository.
func (s stored) manifest(b Backup) (*Manifest, error) {
	c, _, err := s.Repositories.Contents(b.Repository)
	if err != nil {
		return nil, err
	}
	for _, item := range c.Items {
		if item.ID == b.ID {
			return parseManifest(item.About)
		}
	}
	return nil, NotFound(b.ID)
}

// Export writes a backup that is in a repository as the file that it would be in the folder. It blocks until all is written. Of an error
// in the middle the file has no seal, by which it is known to be cut off. Kinds as for Open, and those of the repository.
func (s *Service) Export(ctx context.Context, id string, to io.Writer) error {
	b, err := s.ready(id)
	if err != nil {
		return err
	}
	m, err := stored{s}.manifest(b)
	if err != nil {
		return err
	}
	from, err := stored{s}.read(ctx, b)
	if err != nil {
		return err
	}
	defer from.Close()
	return export(to, m, from)
}

// text gives the manifest as it is stored.
func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	if len(text) > maxManifest {
		return nil, errors.New("the manifest is too large")
	}
	return text, nil
}

// delete removes a backup from a repository.
func (s stored) delete(name, id string) error {
	if err := s.Repositories.Delete(s.life, name, id); err != nil {
		return forPeople(err)
	}
	s.load(name)
	return nil
}

// archive gives a backup for restoring it.
func (s stored) archive(b Backup) (*Archive, error) {
	m, err := s.manifest(b)
	if err != nil {
		return nil, err
	}
	return &Archive{Manifest: m, Stats: b.Stats, prefix: homePrefix, open: func(ctx context.Context) (repository.Stream, error) {
		return s.read(ctx, b)
	}}, nil
}

// checkPlace is Invalid unless backups can be in the repository of that name.
func (s stored) checkPlace(name string) error {
	if name == "" {
		return nil
	}
	if s.Repositories != nil {
		if _, err := s.Repositories.Repository(name); !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return fault.Field("repository", "There is no backup repository called %.50q.", name)
}
