package backup

import (
	"cmp"
	"os"
	"slices"
	"time"

	"sandboxd/internal/fault"
)

// List gives the backups that are wanted, the newest first.
func (s *Service) List(wanted func(Backup) bool) []Backup {
	s.mu.Lock()
	var list []Backup
	for _, e := range s.all {
		if wanted(e.Backup) {
			list = append(list, e.Backup)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Backup) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Backup gives one. NotFound if there is none of that id.
func (s *Service) Backup(id string) (Backup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[id]; e != nil {
		return e.Backup, nil
	}
	return Backup{}, NotFound(id)
}

// NotFound says that there is no such backup, or none that may be seen.
func NotFound(id string) error {
	return fault.New(fault.NotFound, "There is no backup %.64q. It may have been deleted, or was too old.", id)
}

// ready gives a backup that is ready.
func (s *Service) ready(id string) (Backup, error) {
	b, err := s.Backup(id)
	switch {
	case err != nil:
	case b.State == Making:
		err = fault.New(fault.Conflict, "The backup is still being made. Try again when it is ready.")
	case b.State == Failed:
		err = fault.New(fault.Conflict, "There is nothing in this backup, because it failed.")
	}
	return b, err
}

// Open gives the file of a backup. The caller closes it; it can be read also when the backup is deleted meanwhile. NotFound, and
// Conflict of one that is not ready, or is in a repository: see Export.
func (s *Service) Open(id string) (*os.File, Backup, error) {
	b, err := s.ready(id)
	if err != nil {
		return nil, b, err
	}
	if b.Repository != "" {
		return nil, b, fault.New(fault.Conflict, "The backup is in the repository %s.", b.Repository)
	}
	f, err := os.Open(s.fileOf(id))
	if os.IsNotExist(err) {
		return nil, b, NotFound(id)
	}
	return f, b, fault.Wrap(err, fault.Unavailable, "The backup cannot be read: %v.", err)
}

// Delete removes a backup; one that is being made is cancelled, and remembered as failed. It blocks until that is done, for one in a
// repository up to some minutes. NotFound if there is none of that id, and kinds of the repository.
func (s *Service) Delete(id string) error {
	s.mu.Lock()
	e := s.all[id]
	if e == nil {
		s.mu.Unlock()
		return NotFound(id)
	}
	if e.State == Making {
		s.mu.Unlock()
		e.cancel(errCancelled)
		return nil
	}
	if e.State == Ready && e.Repository != "" {
		s.mu.Unlock()
		return stored{s}.delete(e.Repository, id)
	}
	if e.State == Ready {
		if err := ignoreMissing(os.Remove(s.fileOf(id))); err != nil {
			s.mu.Unlock()
			return s.unwritable(err)
		}
		s.used[e.Owner] -= e.Size
	}
	delete(s.all, id)
	s.mu.Unlock()
	s.bus.Publish(Change{Backup: e.Backup, Deleted: true})
	return nil
}

// SetExpires says until when a backup of a schedule is kept; the zero time says that its schedule decides. It is not kept over a restart.
// One that is gone, or that a person asked for, is left alone.
func (s *Service) SetExpires(id string, at time.Time) {
	s.mu.Lock()
	e := s.all[id]
	changed := e != nil && e.Schedule != "" && !e.Expires.Equal(at)
	if changed {
		e.Expires = at
	}
	s.mu.Unlock()
	if changed {
		s.publish(e)
	}
}

// forgetFailed drops the oldest of too many that have failed. It needs mu.
func (s *Service) forgetFailed() {
	var failed []*entry
	for _, e := range s.all {
		if e.State == Failed {
			failed = append(failed, e)
		}
	}
	if len(failed) <= keptFailed {
		return
	}
	oldest := slices.MinFunc(failed, func(a, b *entry) int { return a.Created.Compare(b.Created) })
	delete(s.all, oldest.ID)
}

// update changes a backup that is being made, and tells of it.
func (s *Service) update(e *entry, change func(*Backup)) {
	s.mu.Lock()
	change(&e.Backup)
	s.mu.Unlock()
	s.publish(e)
}

func (s *Service) publish(e *entry) {
	s.mu.Lock()
	b := e.Backup
	s.mu.Unlock()
	s.bus.Publish(Change{Backup: b})
}
