package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// What is kept of deleted sandboxes is bounded both ways: people look for them for weeks, not for years, and a program
// that makes and deletes thousands must not fill the file.
const (
	graveLife = 30 * 24 * time.Hour
	maxGraves = 10_000
)

// Grave gives what is known of the last deleted sandbox of that name; NotFound when there was none in the last 30 days.
func (s *Sandboxes) Grave(ctx context.Context, name string) (sandbox.Grave, error) {
	return s.graveSince(ctx, name, time.Now().Add(-graveLife))
}

func (s *Sandboxes) graveSince(ctx context.Context, name string, earliest time.Time) (g sandbox.Grave, err error) {
	const find = `SELECT name, owner, deleted FROM graves WHERE name = ? AND deleted >= ?`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, find, name, stamp(earliest))
		err := row.Scan(&g.Name, &g.Owner, into{t: &g.Deleted})
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "No sandbox %q was deleted lately.", name)
		}
		return err
	})
	if err != nil {
		return sandbox.Grave{}, fmt.Errorf("find grave of %s: %w", name, err)
	}
	return g, nil
}

// bury leaves a grave of a sandbox that is about to be deleted, if there is such a one, and clears away the oldest.
func bury(ctx context.Context, tx *sql.Tx, id string) error {
	const dig = `INSERT INTO graves (name, owner, deleted) SELECT name, owner, ? FROM sandboxes WHERE id = ? AND pooled = 0
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, deleted = excluded.deleted`
	now := time.Now()
	done, err := tx.ExecContext(ctx, dig, stamp(now), id)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM graves WHERE deleted < ?`, stamp(now.Add(-graveLife))); err != nil {
		return err
	}
	const crowd = `DELETE FROM graves WHERE name IN (SELECT name FROM graves ORDER BY deleted DESC LIMIT -1 OFFSET ?)`
	_, err = tx.ExecContext(ctx, crowd, maxGraves)
	return err
}
