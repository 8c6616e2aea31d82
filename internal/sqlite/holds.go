package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Holds implements sandbox.HoldStore.
type Holds struct{ db *DB }

// Holds gives the store of holds in this database.
func (d *DB) Holds() *Holds { return &Holds{d} }

// PutHold adds the hold, or replaces that of its id; NotFound when its sandbox is not there.
func (s *Holds) PutHold(ctx context.Context, h sandbox.Hold) error {
	const put = `INSERT INTO holds (id, sandbox, owner, reason, created, expires) VALUES (?,?,?,?,?,?) ON CONFLICT (id)
		DO UPDATE SET (sandbox, owner, reason, created, expires) =
			(excluded.sandbox, excluded.owner, excluded.reason, excluded.created, excluded.expires)`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, h.ID, h.SandboxID, h.Owner, h.Reason, stamp(h.Created), stamp(h.Expires))
		if orphan(err) {
			return fault.Wrap(err, fault.NotFound, "The sandbox has been deleted.")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep hold %s: %w", h.ID, err)
	}
	return nil
}

// DeleteHold removes it; an absent one is no error.
func (s *Holds) DeleteHold(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM holds WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete hold %s: %w", id, err)
	}
	return nil
}

// DeleteExpiredHolds removes those that have expired at that time. One that is renewed meanwhile stays.
func (s *Holds) DeleteExpiredHolds(ctx context.Context, at time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM holds WHERE expires <= ?`, stamp(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("delete expired holds: %w", err)
	}
	return nil
}

// Holds gives all, expired ones included, the oldest first.
func (s *Holds) Holds(ctx context.Context) (list []sandbox.Hold, err error) {
	const all = `SELECT id, sandbox, owner, reason, created, expires FROM holds ORDER BY created, id`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, all)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanHold)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return list, nil
}

func scanHold(r row) (h sandbox.Hold, err error) {
	err = r.Scan(&h.ID, &h.SandboxID, &h.Owner, &h.Reason, into{t: &h.Created}, into{t: &h.Expires})
	return h, err
}
