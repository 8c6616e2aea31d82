package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// LastUses keeps when sandboxes were used last. It implements lastuse.Store.
type LastUses struct{ db *DB }

// LastUses gives the store of it in this database.
func (d *DB) LastUses() *LastUses { return &LastUses{d} }

// LastUses implements lastuse.Store.
func (s *LastUses) LastUses(ctx context.Context) (map[string]time.Time, error) {
	type use struct {
		id string
		at time.Time
	}
	all := map[string]time.Time{}
	err := s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT sandbox, at FROM last_uses`)
		if err != nil {
			return err
		}
		list, err := collect(rows, func(r row) (u use, err error) { return u, r.Scan(&u.id, into{t: &u.at}) })
		for _, u := range list {
			all[u.id] = u.at
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read last uses: %w", err)
	}
	return all, nil
}

// PutLastUses implements lastuse.Store.
func (s *LastUses) PutLastUses(ctx context.Context, uses map[string]time.Time) error {
	const put = `INSERT INTO last_uses (sandbox, at) SELECT id, ? FROM sandboxes WHERE id = ?
		ON CONFLICT (sandbox) DO UPDATE SET at = excluded.at`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for id, at := range uses {
			if _, err := tx.ExecContext(ctx, put, stamp(at), id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep last uses: %w", err)
	}
	return nil
}
