package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sandboxd/internal/update"
)

// Updates implements update.Store.
type Updates struct{ db *DB }

var _ update.Store = (*Updates)(nil)

// Updates gives the store of updates in this database.
func (d *DB) Updates() *Updates { return &Updates{d} }

const updateColumns = `id, template, sandbox, asker, force, max_failures, state, image, problem, began, ended, items`

// Put adds a run, or changes the one with its id. See update.Store.
func (u *Updates) Put(ctx context.Context, r update.Run) error {
	const put = `INSERT INTO updates (` + updateColumns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET
		(state, image, problem, ended, items) = (excluded.state, excluded.image, excluded.problem, excluded.ended, excluded.items)`
	err := u.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		items, err := json.Marshal(r.Items)
		if err != nil {
			return fmt.Errorf("write items: %w", err)
		}
		_, err = tx.ExecContext(ctx, put, r.ID, r.Template, r.SandboxID, r.By, r.Force, r.MaxFailures, string(r.State), r.Image, r.Problem,
			stamp(r.Began), stampOrNull(r.Ended), string(items))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM updates WHERE number NOT IN (SELECT number FROM updates ORDER BY number DESC LIMIT ?)`, update.KeptRuns)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep update %s: %w", r.ID, err)
	}
	return nil
}

// List gives all, the newest first.
func (u *Updates) List(ctx context.Context) (list []update.Run, err error) {
	err = u.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+updateColumns+` FROM updates ORDER BY number DESC`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanUpdate)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list updates: %w", err)
	}
	return list, nil
}

func scanUpdate(r row) (o update.Run, err error) {
	var items []byte
	err = r.Scan(&o.ID, &o.Template, &o.SandboxID, &o.By, &o.Force, &o.MaxFailures, &o.State, &o.Image, &o.Problem,
		into{t: &o.Began}, into{&o.Ended, true}, &items)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(items, &o.Items); err != nil {
		return o, fmt.Errorf("read items of update %s: %w", o.ID, errBadJSON)
	}
	return o, nil
}
