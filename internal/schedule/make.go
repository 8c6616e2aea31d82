package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// backupMaker makes the backups of a Service.
type backupMaker struct{ *Service }

// make makes a backup for a schedule, and gives it also when that fails; its ID is "" when it was not begun.
func (m backupMaker) make(ctx context.Context, one Schedule, box sandbox.Sandbox) (backup.Backup, error) {
	b, release, err := m.begin(ctx, one, box)
	if err != nil {
		return backup.Backup{}, err
	}
	defer release()
	limited, cancel := context.WithTimeout(ctx, backupLimit)
	defer cancel()
	_, err = m.c.Backups.Wait(limited, b.ID)
	if limited.Err() == nil {
		return b, err
	}
	if ctx.Err() == nil {
		err = fault.New(fault.Timeout, "It was not made within %s, so it was cancelled.", hours(backupLimit))
	}
	return b, errors.Join(err, m.c.Backups.Delete(b.ID)) // nobody waits for it any more
}

// begin begins a backup when no other is being made of the same sandbox. Those of schedules have their turns in the order in which they
// asked. The caller calls release when it is made.
func (m backupMaker) begin(ctx context.Context, one Schedule, box sandbox.Sandbox) (b backup.Backup, release func(), err error) {
	limited, cancel := context.WithTimeout(ctx, backupLimit)
	defer cancel()
	release, err = m.turns.Acquire(limited, box.ID, 1, -1)
	for begun := false; err == nil && !begun; {
		if b, begun, err = m.c.Backups.Begin(box, backup.Options{Schedule: one.ID, Repository: one.Repository, Root: one.Root}); err == nil && !begun {
			_, _ = m.c.Backups.Wait(limited, b.ID) // how that ends is told to the one who asked for it
			err = limited.Err()
		}
	}
	if err == nil {
		return b, release, nil
	}
	if release != nil {
		release()
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = fault.New(fault.Timeout, "It waited %s for other backups of the same sandbox, which did not end.", hours(backupLimit))
	}
	return backup.Backup{}, nil, err
}

// hours writes a limit for people.
func hours(d time.Duration) string { return fmt.Sprintf("%d hours", int(d.Hours())) }
