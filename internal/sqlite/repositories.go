package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sandboxd/internal/repository"
)

// Repositories implements repository.Store.
type Repositories struct{ db *DB }

var _ repository.Store = (*Repositories)(nil)

// Repositories gives the store of backup repositories in this database.
func (d *DB) Repositories() *Repositories { return &Repositories{d} }

// List gives all, by name.
func (s *Repositories) List(ctx context.Context) (list []repository.Record, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT name, identity, place, secrets, kept, created FROM repositories ORDER BY name`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanRepository)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list repositories: %w", err)
	}
	return list, nil
}

func scanRepository(r row) (o repository.Record, err error) {
	var place []byte
	if err := r.Scan(&o.Name, &o.Identity, &place, &o.Secrets, &o.Kept, into{&o.Created, false}); err != nil {
		return o, err
	}
	if err := json.Unmarshal(place, &o.Place); err != nil {
		return o, fmt.Errorf("read the place of repository %s: %w", o.Name, err)
	}
	return o, nil
}

// Put stores a repository in place of one of that name.
func (s *Repositories) Put(ctx context.Context, r repository.Record) error {
	place, err := json.Marshal(r.Place)
	if err == nil {
		err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO repositories (name, identity, place, secrets, kept, created) VALUES (?, ?, ?, ?, ?, ?)`,
				r.Name, r.Identity, string(place), r.Secrets, r.Kept, stamp(r.Created))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("store repository %s: %w", r.Name, err)
	}
	return nil
}

// Keep stores the contents of a repository; NotFound if there is none of that name.
func (s *Repositories) Keep(ctx context.Context, name string, kept []byte) error {
	return s.change(ctx, name, `UPDATE repositories SET kept = ? WHERE name = ?`, kept, name)
}

// Delete removes a repository; NotFound if there is none of that name.
func (s *Repositories) Delete(ctx context.Context, name string) error {
	return s.change(ctx, name, `DELETE FROM repositories WHERE name = ?`, name)
}

func (s *Repositories) change(ctx context.Context, name, query string, values ...any) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, query, values...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return repository.NotFound(name)
	})
	if err != nil {
		return fmt.Errorf("change repository %s: %w", name, err)
	}
	return nil
}
