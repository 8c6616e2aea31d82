package sqlite

import (
	"context"
	"database/sql"
	"time"

	"sandboxd/internal/logs"
)

const keptSchema = `CREATE TABLE kept (id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, since INTEGER NOT NULL) STRICT`

// keptEmpty is how long a kept log stays that has no lines: some may be on their way to it.
const keptEmpty = time.Hour

// Keep implements logs.Store.
func (l *Logs) Keep(ctx context.Context, k logs.Kept) error {
	return l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)`, k.Sandbox, k.Name, k.Owner, k.Since.UnixMicro())
		return err
	})
}

// Unkeep implements logs.Store.
func (l *Logs) Unkeep(ctx context.Context, sandbox string) error {
	return l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM kept WHERE id = ?`, sandbox)
		return err
	})
}

// Kept implements logs.Store.
func (l *Logs) Kept(ctx context.Context) (all []logs.Kept, err error) {
	err = l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT id, name, owner, since FROM kept ORDER BY since DESC, id`)
		if err != nil {
			return err
		}
		all, err = collect(rows, func(r row) (k logs.Kept, err error) {
			var since int64
			err = r.Scan(&k.Sandbox, &k.Name, &k.Owner, &since)
			k.Since = time.UnixMicro(since).UTC()
			return k, err
		})
		return err
	})
	return all, err
}

// sweepKept forgets that logs are kept of which nothing is left.
func (l *Logs) sweepKept(ctx context.Context, now time.Time) error {
	return l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM kept WHERE since < ? AND id NOT IN (SELECT id FROM sources)`, now.Add(-keptEmpty).UnixMicro())
		return err
	})
}
