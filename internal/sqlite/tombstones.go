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

// Tombstones are bounded in age and number: people look for them for weeks, not for years, and a program
// that makes and deletes thousands must not fill the file.
const (
	tombstoneLife = 30 * 24 * time.Hour
	maxTombstones = 10_000
)

// Tombstone gives the tombstone of the last deleted sandbox of that name; NotFound when there was none in the last 30 days.
func (s *Sandboxes) Tombstone(ctx context.Context, name string) (sandbox.Tombstone, error) {
	return s.tombstoneSince(ctx, name, time.Now().Add(-tombstoneLife))
}

func (s *Sandboxes) tombstoneSince(ctx context.Context, name string, earliest time.Time) (t sandbox.Tombstone, err error) {
	const find = `SELECT id, name, owner, deleted FROM tombstones WHERE name = ? AND deleted >= ?`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, find, name, stamp(earliest))
		err := row.Scan(&t.ID, &t.Name, &t.Owner, into{t: &t.Deleted})
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "No sandbox %q was deleted lately.", name)
		}
		return err
	})
	if err != nil {
		return sandbox.Tombstone{}, fmt.Errorf("find tombstone of %s: %w", name, err)
	}
	return t, nil
}

// addTombstone leaves a tombstone of a sandbox that is about to be deleted, if there is such a one, and clears away the oldest.
func addTombstone(ctx context.Context, tx *sql.Tx, id string) error {
	const insert = `INSERT INTO tombstones (id, name, owner, deleted) SELECT id, name, owner, ? FROM sandboxes WHERE id = ? AND pooled = 0
		ON CONFLICT (name) DO UPDATE SET id = excluded.id, owner = excluded.owner, deleted = excluded.deleted`
	now := time.Now()
	done, err := tx.ExecContext(ctx, insert, stamp(now), id)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM tombstones WHERE deleted < ?`, stamp(now.Add(-tombstoneLife))); err != nil {
		return err
	}
	const trim = `DELETE FROM tombstones WHERE name IN (SELECT name FROM tombstones ORDER BY deleted DESC LIMIT -1 OFFSET ?)`
	_, err = tx.ExecContext(ctx, trim, maxTombstones)
	return err
}
