package repository

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"sandboxd/internal/fault"
)

// Names gives those of all repositories, sorted.
func (s *Service) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.all))
	for name := range s.all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// List gives all repositories, by name.
func (s *Service) List() []Repository {
	list := []Repository{}
	for _, name := range s.Names() {
		if r, err := s.Repository(name); err == nil {
			list = append(list, r)
		}
	}
	return list
}

// Repository gives one. NotFound if there is none of that name.
func (s *Service) Repository(name string) (Repository, error) {
	k, err := s.known(name)
	if err != nil {
		return Repository{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.Repository, nil
}

// Contents gives what a repository had when it was last seen, and why it could not be reached since; "" if it was. NotFound if there is
// none of that name.
func (s *Service) Contents(name string) (Contents, string, error) {
	k, err := s.known(name)
	if err != nil {
		return Contents{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := k.contents
	c.Items = slices.Clone(c.Items)
	return c, k.Problem, nil
}

func (s *Service) known(name string) (*known, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.all[name]; k != nil {
		return k, nil
	}
	return nil, NotFound(name)
}

// NotFound says that there is no such repository.
func NotFound(name string) error {
	return fault.New(fault.NotFound, "There is no backup repository called %.50q.", name)
}

// use lets work use a repository, and notes whether it could be reached.
func (s *Service) use(ctx context.Context, name string, work func(ctx context.Context, k *known) error) error {
	k, err := s.known(name)
	if err != nil {
		return err
	}
	if k.broken != nil {
		return k.broken
	}
	leave, err := k.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer s.left(k, leave)
	err = work(ctx, k)
	if ctx.Err() == nil {
		s.reached(k, err)
	}
	return err
}

// left ends a use, and has what is to be given back given back soon: maintenance that was due meanwhile has given way.
func (s *Service) left(k *known, leave func()) {
	leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.dirty {
		return
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// reached notes why a repository could not be used, or that it could.
func (s *Service) reached(k *known, err error) {
	problem := ""
	if about := (ItemError{}); errors.As(err, &about) {
		err = nil
	}
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "" {
		problem = fault.Message(err)
	} else if err != nil {
		return
	}
	s.mu.Lock()
	changed := k.Problem != problem
	k.Problem = problem
	s.mu.Unlock()
	if changed {
		s.bus.Publish(Change{Name: k.Name})
	}
}

// Refresh looks what is in a repository now. Kinds as for Engine.
func (s *Service) Refresh(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return s.use(ctx, name, func(ctx context.Context, k *known) error {
		for {
			before := s.versionOf(k)
			c, err := s.Engine.List(ctx, k.access)
			if err != nil {
				return err
			}
			if s.versionOf(k) == before { // else something was saved or deleted meanwhile
				return s.keep(ctx, k, c)
			}
		}
	})
}

// Look asks a repository what it has, and remembers nothing of it. Kinds as for Engine.
func (s *Service) Look(ctx context.Context, name string) error {
	return s.use(ctx, name, func(ctx context.Context, k *known) error {
		_, err := s.Engine.List(ctx, k.access)
		return err
	})
}

func (s *Service) versionOf(k *known) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.version
}

// keep remembers what a repository has, also for the next start, and which of that is known to be damaged.
func (s *Service) keep(ctx context.Context, k *known, c Contents) error {
	c.Seen = time.Now().UTC()
	s.mu.Lock()
	c.Damaged = k.damaged
	k.note(c)
	s.mu.Unlock()
	s.bus.Publish(Change{Name: k.Name})
	key, err := s.Seal()
	if err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	sealed, err := key.Seal(k.Name, text)
	if err != nil {
		return err
	}
	return s.Store.Keep(ctx, k.Name, sealed)
}

// changed gives what a repository has after items were added or taken away.
func (s *Service) changed(k *known, change func([]Item) []Item) Contents {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := k.contents
	c.Items = change(slices.Clone(c.Items))
	return c
}

// Save stores what d writes. It waits for its turn: one at a time writes to a repository. Kinds as for Engine, and what d gives.
func (s *Service) Save(ctx context.Context, name string, d Draft) (item Item, err error) {
	release, err := s.writing.Acquire(ctx, name, 1, -1)
	if err != nil {
		return Item{}, context.Cause(ctx)
	}
	defer release()
	var own, failed error // of d: they say nothing of the repository
	write := d.Write
	d.Write = func(ctx context.Context, w io.Writer) (about []byte, err error) {
		about, own = write(ctx, w)
		return about, own
	}
	err = s.use(ctx, name, func(ctx context.Context, k *known) error {
		d.Whole = s.knowsDamage(k)
		if item, err = s.Engine.Save(ctx, k.access, d); err != nil {
			s.soil(k) // what was written so far is of no use
			if own != nil && errors.Is(err, own) {
				failed = err
				return nil
			}
			return err
		}
		c := s.changed(k, func(list []Item) []Item { return append(list, item) })
		c.Size += item.Added
		s.mu.Lock()
		k.Saved = time.Now().UTC()
		s.mu.Unlock()
		return s.keep(context.WithoutCancel(ctx), k, c)
	})
	return item, cmp.Or(failed, err)
}

// knowsDamage reports whether a backup may share pieces with one that is damaged.
func (s *Service) knowsDamage(k *known) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(k.damaged) > 0
}

// Read gives the stream of a backup. The caller closes it. Kinds as for Engine.
func (s *Service) Read(ctx context.Context, name, id string) (Stream, error) {
	k, err := s.known(name)
	if err == nil {
		err = k.broken
	}
	if err != nil {
		return nil, err
	}
	leave, err := k.gate.enter(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.Engine.Read(ctx, k.access, id)
	if ctx.Err() == nil {
		s.reached(k, err)
	}
	if err != nil {
		s.left(k, leave)
		return nil, err
	}
	return reading{r, func() { s.left(k, leave) }}, nil
}

// reading is a use of a repository until it is closed.
type reading struct {
	Stream
	leave func()
}

// Close implements Stream.
func (r reading) Close() error {
	defer r.leave()
	return r.Stream.Close()
}

// Delete removes backups from a repository, whose room is given back soon after. One that is not there is no error. Kinds as for Engine.
func (s *Service) Delete(ctx context.Context, name string, ids ...string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return s.use(ctx, name, func(ctx context.Context, k *known) error {
		if err := s.Engine.Delete(ctx, k.access, ids); err != nil {
			return err
		}
		c := s.changed(k, func(list []Item) []Item {
			return slices.DeleteFunc(list, func(i Item) bool { return slices.Contains(ids, i.ID) })
		})
		defer s.soil(k)
		return s.keep(ctx, k, c)
	})
}

// Check writes, reads and deletes a small piece, and with contents reads all backups, which can take hours. It returns when that is done
// or ctx ends. Conflict while another check runs; other kinds as for Engine.
func (s *Service) Check(ctx context.Context, name string, contents bool) (found Checked, err error) {
	k, release, err := s.checking(name)
	if err != nil {
		return found, err
	}
	defer release()
	return s.check(ctx, k, contents)
}

// BeginCheck begins what Check does, and returns. How far it is, and what was found, is in Repository.
func (s *Service) BeginCheck(name string, contents bool) error {
	k, release, err := s.checking(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		release()
		return fault.New(fault.Unavailable, "sandboxd is shutting down. Try again in a moment.")
	}
	s.works.Go(func() {
		defer release()
		if _, err := s.check(s.life, k, contents); err != nil {
			s.Log.Warn("check of a backup repository failed", "repository", name, "error", err)
		}
	})
	return nil
}

// checking begins a check.
func (s *Service) checking(name string) (k *known, release func(), err error) {
	if k, err = s.known(name); err != nil {
		return nil, nil, err
	}
	release, free := s.writing.Try("check "+name, 1)
	if !free {
		return nil, nil, fault.New(fault.Conflict, "The repository is being checked already.")
	}
	return k, release, nil
}

func (s *Service) check(ctx context.Context, k *known, contents bool) (found Checked, err error) {
	if !contents {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askLimit)
		defer cancel()
	}
	err = s.use(ctx, k.Name, func(ctx context.Context, k *known) error {
		s.doing(k, "checking")
		defer s.doing(k, "")
		found, err = s.Engine.Check(ctx, k.access, contents, func(p Progress) {
			s.mu.Lock()
			k.Done = p
			s.mu.Unlock()
			s.bus.Publish(Change{Name: k.Name})
		})
		if err != nil {
			return err
		}
		return s.keepDamaged(ctx, k, found)
	})
	s.mu.Lock()
	k.Done, k.Result, k.Failed = Progress{}, nil, ""
	if err == nil {
		k.Result = &found
	} else {
		k.Failed = fault.Message(err)
	}
	s.mu.Unlock()
	s.bus.Publish(Change{Name: k.Name})
	return found, err
}

// keepDamaged remembers which backups are damaged. Only a check that has read all of them takes that back.
func (s *Service) keepDamaged(ctx context.Context, k *known, found Checked) error {
	s.mu.Lock()
	before := k.damaged
	k.damaged = slices.Clone(found.Damaged)
	if !found.Read {
		k.damaged = append(k.damaged, before...)
	}
	changed := len(before)+len(k.damaged) > 0
	c := k.contents
	s.mu.Unlock()
	if !changed {
		return nil
	}
	return s.keep(ctx, k, c)
}
