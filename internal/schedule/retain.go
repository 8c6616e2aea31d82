package schedule

import (
	"context"
	"fmt"
	"time"

	"sandboxd/internal/backup"
	"sandboxd/internal/cron"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Retain says which backups, made at these times, stay. The times are in order, the newest first. Days, weeks (ISO) and months are those
// of the zone.
func Retain(times []time.Time, k Keep, zone *time.Location) []bool {
	kept := make([]bool, len(times))
	for i := range times {
		kept[i] = i < max(k.Last, 1)
	}
	each := func(n int, nameOf func(time.Time) string) {
		last := ""
		for i, t := range times {
			name := nameOf(t.In(zone))
			if name == last {
				continue
			}
			if n--; n < 0 {
				return
			}
			last, kept[i] = name, true
		}
	}
	each(k.Daily, func(t time.Time) string { return t.Format(time.DateOnly) })
	each(k.Weekly, func(t time.Time) string {
		year, week := t.ISOWeek()
		return fmt.Sprint(year, "-", week)
	})
	each(k.Monthly, func(t time.Time) string { return t.Format("2006-01") })
	return kept
}

// retention deletes the backups of a Service.
type retention struct{ *Service }

// made gives the ready backups of a schedule of one sandbox, the newest first.
func (t retention) made(schedule, box string) []backup.Backup {
	return t.c.Backups.List(func(b backup.Backup) bool {
		return b.Schedule == schedule && b.SandboxID == box && b.State == backup.Ready
	})
}

// apply deletes the backups of a schedule that need not be kept, wherever they are, as the schedule says by now; of one that is deleted
// it deletes none. Those that cannot be reached are there all the same, and are left for the next run.
func (t retention) apply(ctx context.Context, id string, boxes []sandbox.Sandbox) {
	for _, box := range boxes {
		one, err := t.covering(ctx, id, box)
		if err != nil && !fault.Is(err, fault.NotFound) && ctx.Err() == nil {
			t.c.Log.Warn("backups of a schedule that need not be kept are left for its next run", "schedule", id, "error", err)
		}
		if err != nil {
			return
		}
		if one != nil {
			t.applyTo(*one, box)
		}
	}
}

// covering gives a schedule as it is now; nil when it does not cover that sandbox any more.
func (t retention) covering(ctx context.Context, id string, box sandbox.Sandbox) (*Schedule, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	one, err := t.Schedule(ctx, id)
	if err != nil {
		return nil, err
	}
	admin, err := t.c.Admin(ctx, one.Owner)
	if err != nil || !one.covers(box, admin) {
		return nil, err
	}
	return &one, nil
}

// applyTo is apply for one sandbox.
func (t retention) applyTo(one Schedule, box sandbox.Sandbox) {
	zone, err := cron.Zone(one.Zone)
	if err != nil {
		zone = time.UTC
	}
	list := t.made(one.ID, box.ID)
	times := make([]time.Time, len(list))
	for i, b := range list {
		times[i] = b.Created
	}
	for i, kept := range Retain(times, one.Keep, zone) {
		if kept || list[i].Unreachable != "" {
			continue
		}
		if err := t.c.Backups.Delete(list[i].ID); err != nil && !fault.Is(err, fault.NotFound) {
			t.c.Log.Warn("backup of a schedule cannot be deleted", "backup", list[i].ID, "sandbox", box.Name, "error", err)
		}
	}
}
