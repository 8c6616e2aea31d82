package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

// Alerts implements alert.Store; its methods on rules and channels, and those on deliveries, stand in files of their own.
type Alerts struct{ db *DB }

var _ alert.Store = (*Alerts)(nil)

// Alerts gives the store of alerts in this database.
func (d *DB) Alerts() *Alerts { return &Alerts{d} }

// stillOpen stands for the time at which an alert that fires was resolved.
const stillOpen = math.MaxInt64

const alertColumns = `id, rule, rule_name, owner, kind, sandbox_id, sandbox, sandbox_owner, template, part, text, since, fired, resolved, reminded, muted`

// Open gives those that fire.
func (s *Alerts) Open(ctx context.Context) (list []alert.Alert, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		list, err = alertsOf(ctx, tx, ` WHERE resolved = ?`, 1<<62, stillOpen)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list open alerts: %w", err)
	}
	return list, nil
}

// alertsOf gives the first ones of those that match, in the order of alert.Store's Find.
func alertsOf(ctx context.Context, tx *sql.Tx, where string, limit int, args ...any) ([]alert.Alert, error) {
	rows, err := tx.QueryContext(ctx, `SELECT `+alertColumns+` FROM alerts`+where+` ORDER BY resolved DESC, fired DESC, id DESC LIMIT ?`, append(args, limit)...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanAlert)
}

// PutAlerts keeps alerts and deliveries, all or none. See alert.Store.
func (s *Alerts) PutAlerts(ctx context.Context, alerts []alert.Alert, queue []alert.Delivery) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		put, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO alerts (`+alertColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`)
		if err != nil {
			return err
		}
		defer put.Close()
		for _, a := range alerts {
			if _, err := put.ExecContext(ctx, alertValues(a)...); err != nil {
				return err
			}
		}
		for _, d := range queue {
			if err := putQueued(ctx, tx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep alerts: %w", err)
	}
	return nil
}

func alertValues(a alert.Alert) []any {
	t := a.Target
	var resolved any = int64(stillOpen)
	if a.State == alert.Resolved {
		resolved = stamp(a.Resolved)
	}
	return []any{a.ID, a.RuleID, a.Rule, a.Owner, string(a.Kind), t.SandboxID, t.Sandbox, t.Owner, t.Template, t.Part, a.Text,
		stamp(a.Since), stamp(a.Fired), resolved, stampOrNull(a.Reminded), stampOrNull(a.Muted)}
}

func scanAlert(r row) (a alert.Alert, err error) {
	t := &a.Target
	var resolved int64
	err = r.Scan(&a.ID, &a.RuleID, &a.Rule, &a.Owner, &a.Kind, &t.SandboxID, &t.Sandbox, &t.Owner, &t.Template, &t.Part, &a.Text,
		into{t: &a.Since}, into{t: &a.Fired}, &resolved, into{&a.Reminded, true}, into{&a.Muted, true})
	if a.State = alert.Firing; resolved != stillOpen && err == nil {
		a.State = alert.Resolved
		err = into{t: &a.Resolved}.Scan(resolved)
	}
	return a, err
}

// Find gives a page. See alert.Store.
func (s *Alerts) Find(ctx context.Context, q alert.Query) (list []alert.Alert, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		where, args := whereAlert(q)
		if q.Before != "" {
			var resolved, fired int64
			err := tx.QueryRowContext(ctx, `SELECT resolved, fired FROM alerts WHERE id = ?`, q.Before).Scan(&resolved, &fired)
			if errors.Is(err, sql.ErrNoRows) {
				return fault.Field("before", "There is no such alert any more. Begin with the first page.")
			}
			if err != nil {
				return err
			}
			where = append(where, `(resolved, fired, id) < (?, ?, ?)`)
			args = append(args, resolved, fired, q.Before)
		}
		list, err = alertsOf(ctx, tx, ` WHERE `+strings.Join(where, ` AND `), cmp.Or(max(q.Limit, 0), alert.DefaultLimit), args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find alerts: %w", err)
	}
	return list, nil
}

// whereAlert says in SQL what alert.Scope's Has does, and what else is asked for.
func whereAlert(q alert.Query) (where []string, args []any) {
	add := func(condition string, more ...any) { where, args = append(where, condition), append(args, more...) }
	switch {
	case q.Scope.All:
		add(`TRUE`)
	case q.Scope.User != "":
		add(`(sandbox_owner = ? OR owner = ?)`, q.Scope.User, q.Scope.User)
	default:
		add(`FALSE`)
	}
	if q.Scope.SandboxID != "" {
		add(`sandbox_id = ?`, q.Scope.SandboxID)
	}
	if q.Sandbox != "" {
		add(`? IN (sandbox, sandbox_id)`, q.Sandbox)
	}
	switch q.State {
	case alert.Firing:
		add(`resolved = ?`, int64(stillOpen))
	case alert.Resolved:
		add(`resolved < ?`, int64(stillOpen))
	}
	return where, args
}

// Sweep deletes what has been over for long, and the oldest of too many. See alert.Store.
func (s *Alerts) Sweep(ctx context.Context) error {
	now := time.Now()
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, one := range []struct {
			text string
			args []any
		}{
			{`DELETE FROM alerts WHERE resolved < ?`, []any{stamp(now.Add(-alert.KeepAlerts))}},
			{`DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE resolved < ? ORDER BY resolved DESC, fired DESC, id DESC LIMIT -1 OFFSET ?)`,
				[]any{int64(stillOpen), alert.MaxAlerts}},
			{`DELETE FROM alert_deliveries WHERE next IS NULL AND created < ?`, []any{stamp(now.Add(-alert.KeepDeliveries))}},
			{`DELETE FROM alert_deliveries WHERE id IN (SELECT id FROM (SELECT id,
				row_number() OVER (PARTITION BY channel ORDER BY created DESC, id DESC) AS place FROM alert_deliveries WHERE next IS NULL) WHERE place > ?)`,
				[]any{alert.MaxDeliveries}},
		} {
			if _, err := tx.ExecContext(ctx, one.text, one.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep alerts: %w", err)
	}
	return nil
}
