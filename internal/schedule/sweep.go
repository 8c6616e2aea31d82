package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/sandbox"
)

// sweep ends schedules of sandboxes that are deleted, and has backups expire that no schedule covers any more.
func (s *Service) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	boxes, _, err := s.c.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return err
	}
	there := make(map[string]sandbox.Sandbox, len(boxes))
	for _, b := range boxes {
		there[b.ID] = b
	}
	all, err := s.c.Store.Schedules(ctx)
	if err != nil {
		return err
	}
	kept := map[string]func(boxID string) bool{}
	for _, one := range all {
		if _, ok := there[one.Target.SandboxID]; one.Target.Kind == One && one.Enabled && !ok {
			if _, err := s.Update(ctx, one.ID, func(c *Schedule) { c.Enabled = false }); err != nil {
				return err
			}
		}
		admin, err := s.c.Admin(ctx, one.Owner)
		if err != nil {
			return err
		}
		kept[one.ID] = func(id string) bool {
			b, ok := there[id]
			return ok && one.covers(b, admin)
		}
	}
	return s.expire(ctx, kept)
}

// expire has backups expire that are not kept.
func (s *Service) expire(ctx context.Context, kept map[string]func(boxID string) bool) error {
	unkept, err := s.c.Store.Unkept(ctx)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Round(0)
	list := s.c.Backups.List(func(b backup.Backup) bool { return b.Schedule != "" && b.State == backup.Ready })
	for _, b := range list {
		covers := kept[b.Schedule]
		since, noted := unkept[b.ID]
		switch covered := covers != nil && covers(b.SandboxID); {
		case covered && noted:
			err = errors.Join(err, s.c.Store.SetUnkept(ctx, b.ID, time.Time{}))
			fallthrough
		case covered:
			s.c.Backups.SetExpires(b.ID, time.Time{})
			continue
		case !noted:
			since = now
			err = errors.Join(err, s.c.Store.SetUnkept(ctx, b.ID, since))
		}
		s.c.Backups.SetExpires(b.ID, since.Add(s.c.Keep))
	}
	for id := range unkept {
		if !slices.ContainsFunc(list, func(b backup.Backup) bool { return b.ID == id }) {
			err = errors.Join(err, s.c.Store.SetUnkept(ctx, id, time.Time{}))
		}
	}
	return err
}
