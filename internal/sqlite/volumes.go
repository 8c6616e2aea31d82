package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sandboxd/internal/fault"
	"sandboxd/internal/volume"
)

// Volumes implements volume.Store.
type Volumes struct{ db *DB }

var _ volume.Store = (*Volumes)(nil)

// Volumes gives the store of volumes in this database.
func (d *DB) Volumes() *Volumes { return &Volumes{d} }

const volumeColumns = `id, name, note, mode, everyone, templates, sandboxes, created, deleting`

// Volumes gives all, by name.
func (s *Volumes) Volumes(ctx context.Context) (list []volume.Volume, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+volumeColumns+` FROM volumes ORDER BY name, deleting, id`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanVolume)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	return list, nil
}

func scanVolume(r row) (v volume.Volume, err error) {
	var templates, sandboxes []byte
	if err := r.Scan(&v.ID, &v.Name, &v.Note, &v.Mode, &v.Grants.All, &templates, &sandboxes, into{t: &v.Created}, &v.Deleting); err != nil {
		return v, err
	}
	for text, to := range map[*[]byte]*[]string{&templates: &v.Grants.Templates, &sandboxes: &v.Grants.Sandboxes} {
		if err := json.Unmarshal(*text, to); err != nil {
			return v, fmt.Errorf("read who gets volume %s: %w", v.Name, err)
		}
		if len(*to) == 0 {
			*to = nil
		}
	}
	return v, nil
}

// Put adds a volume, or replaces the one with its id.
func (s *Volumes) Put(ctx context.Context, v volume.Volume) error {
	templates, sandboxes := list(v.Grants.Templates), list(v.Grants.Sandboxes)
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var taken bool
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM volumes WHERE name = ? AND id <> ? AND deleting = 0)`, v.Name, v.ID).Scan(&taken)
		if err == nil && taken && !v.Deleting {
			err = &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is a volume called " + v.Name + " already. Choose another name."}
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO volumes (`+volumeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				v.ID, v.Name, v.Note, string(v.Mode), v.Grants.All, templates, sandboxes, stamp(v.Created), v.Deleting)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("store volume %s: %w", v.Name, err)
	}
	return nil
}

// list gives a list of words as it is stored.
func list(words []string) string {
	if len(words) == 0 {
		return "[]"
	}
	text, err := json.Marshal(words)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(text)
}

// Remove removes the row of a volume.
func (s *Volumes) Remove(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM volumes WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove volume %s: %w", id, err)
	}
	return nil
}
