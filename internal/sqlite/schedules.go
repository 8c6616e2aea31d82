package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/schedule"
)

// Schedules implements schedule.Store.
type Schedules struct{ db *DB }

var _ schedule.Store = (*Schedules)(nil)

// Schedules gives the store of schedules in this database.
func (d *DB) Schedules() *Schedules { return &Schedules{d} }

const (
	scheduleColumns = `id, owner, name, cron, zone, target, sandbox, template, repository, root, keep_last, keep_daily, keep_weekly, keep_monthly, test_cron, enabled, created, changed, next, next_test`
	runColumns      = `id, schedule, work, state, due, missed, began, ended, problem, items`
)

// Schedules gives all, the oldest first.
func (s *Schedules) Schedules(ctx context.Context) (list []schedule.Schedule, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+scheduleColumns+` FROM schedules ORDER BY created, id`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanSchedule)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return list, nil
}

func scanSchedule(r row) (o schedule.Schedule, err error) {
	return o, r.Scan(&o.ID, &o.Owner, &o.Name, &o.Cron, &o.Zone, &o.Target.Kind, &o.Target.SandboxID, &o.Target.Template, &o.Repository, &o.Root,
		&o.Keep.Last, &o.Keep.Daily, &o.Keep.Weekly, &o.Keep.Monthly, &o.TestCron, &o.Enabled, into{t: &o.Created}, into{t: &o.Changed},
		into{&o.Next, true}, into{&o.NextTest, true})
}

// Put adds a schedule, or changes the one with its id. NotFound when its owner is gone.
func (s *Schedules) Put(ctx context.Context, o schedule.Schedule) error {
	const put = `INSERT INTO schedules (` + scheduleColumns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET
		(name, cron, zone, target, sandbox, template, repository, root, keep_last, keep_daily, keep_weekly, keep_monthly, test_cron, enabled, changed, next, next_test) =
		(excluded.name, excluded.cron, excluded.zone, excluded.target, excluded.sandbox, excluded.template, excluded.repository, excluded.root, excluded.keep_last, excluded.keep_daily,
		excluded.keep_weekly, excluded.keep_monthly, excluded.test_cron, excluded.enabled, excluded.changed, excluded.next, excluded.next_test)`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, o.ID, o.Owner, o.Name, o.Cron, o.Zone, string(o.Target.Kind), o.Target.SandboxID, o.Target.Template, o.Repository, o.Root,
			o.Keep.Last, o.Keep.Daily, o.Keep.Weekly, o.Keep.Monthly, o.TestCron, o.Enabled, stamp(o.Created), stamp(o.Changed),
			stampOrNull(o.Next), stampOrNull(o.NextTest))
		return userGone(err)
	})
	if err != nil {
		return fmt.Errorf("keep schedule %s: %w", o.ID, err)
	}
	return nil
}

// Delete deletes one with its runs; none is no error.
func (s *Schedules) Delete(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM schedules WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete schedule %s: %w", id, err)
	}
	return nil
}

// Begin adds a run, and sets when its schedule's next work of that sort is due. See schedule.Store.
func (s *Schedules) Begin(ctx context.Context, r schedule.Run, next time.Time) error {
	column := "next"
	if r.Work == schedule.Tests {
		column = "next_test"
	}
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		values, err := runValues(r)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO schedule_runs (`+runColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?)`, values...); orphan(err) {
			return schedule.NotFound(r.Schedule)
		} else if err != nil {
			return err
		}
		if !next.IsZero() {
			if _, err := tx.ExecContext(ctx, `UPDATE schedules SET `+column+` = ? WHERE id = ?`, stamp(next), r.Schedule); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM schedule_runs WHERE schedule = ?1 AND number NOT IN
			(SELECT number FROM schedule_runs WHERE schedule = ?1 ORDER BY number DESC LIMIT ?2)`, r.Schedule, schedule.KeptRuns)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin run of schedule %s: %w", r.Schedule, err)
	}
	return nil
}

// PutRun changes a run. One that is gone stays so.
func (s *Schedules) PutRun(ctx context.Context, r schedule.Run) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		values, err := runValues(r)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE schedule_runs SET (`+runColumns+`) = (?,?,?,?,?,?,?,?,?,?) WHERE id = ?`, append(values, r.ID)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep run %s: %w", r.ID, err)
	}
	return nil
}

func runValues(r schedule.Run) ([]any, error) {
	items, err := json.Marshal(r.Items)
	if err != nil {
		return nil, fmt.Errorf("write items of run %s: %w", r.ID, err)
	}
	return []any{r.ID, r.Schedule, string(r.Work), string(r.State), stampOrNull(r.Due), r.Missed, stamp(r.Began), stampOrNull(r.Ended), r.Problem, string(items)}, nil
}

// Runs gives the newest runs of a schedule, the newest first.
func (s *Schedules) Runs(ctx context.Context, id string, limit int) (list []schedule.Run, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+runColumns+` FROM schedule_runs WHERE schedule = ? ORDER BY number DESC LIMIT ?`, id, max(limit, 0))
		if err != nil {
			return err
		}
		list, err = collect(rows, scanRun)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list runs of schedule %s: %w", id, err)
	}
	return list, nil
}

func scanRun(r row) (o schedule.Run, err error) {
	var items []byte
	err = r.Scan(&o.ID, &o.Schedule, &o.Work, &o.State, into{&o.Due, true}, &o.Missed, into{t: &o.Began}, into{&o.Ended, true}, &o.Problem, &items)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(items, &o.Items); err != nil {
		return o, fmt.Errorf("read items of run %s: %w", o.ID, errBadJSON)
	}
	return o, nil
}

// Unkept gives the backups that no schedule covers any more, and since when.
func (s *Schedules) Unkept(ctx context.Context) (map[string]time.Time, error) {
	unkept := map[string]time.Time{}
	err := s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT backup, since FROM schedule_unkept`)
		if err != nil {
			return err
		}
		_, err = collect(rows, func(r row) (at time.Time, err error) {
			var id string
			err = r.Scan(&id, into{t: &at})
			unkept[id] = at
			return at, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list backups without a schedule: %w", err)
	}
	return unkept, nil
}

// SetUnkept notes that one is covered by no schedule; the zero time takes it back.
func (s *Schedules) SetUnkept(ctx context.Context, backup string, since time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if since.IsZero() {
			_, err := tx.ExecContext(ctx, `DELETE FROM schedule_unkept WHERE backup = ?`, backup)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO schedule_unkept VALUES (?, ?)`, backup, stamp(since))
		return err
	})
	if err != nil {
		return fmt.Errorf("note backup %s without a schedule: %w", backup, err)
	}
	return nil
}
