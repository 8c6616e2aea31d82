package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sandboxd/internal/fault"
	"sandboxd/internal/trials"
)

// Trials implements trials.Store.
type Trials struct{ db *DB }

var _ trials.Store = (*Trials)(nil)

// Trials gives the store of trials in this database.
func (d *DB) Trials() *Trials { return &Trials{d} }

const trialColumns = `id, sandbox, name, owner, body, agent, model, mode, state, problem, snapshot, kept, created, clones`

func scanTrial(r row) (t trials.Trial, err error) {
	var clones []byte
	err = r.Scan(&t.ID, &t.Sandbox, &t.Name, &t.Owner, &t.Text, &t.Agent, &t.Model, &t.Mode, &t.State, &t.Problem, &t.Snapshot, &t.Kept, into{&t.Created, false}, &clones)
	if err == nil {
		if err = json.Unmarshal(clones, &t.Clones); err != nil {
			err = fmt.Errorf("read clones of trial %s: %w", t.ID, err)
		}
	}
	return t, err
}

// Trials implements trials.Store.
func (s *Trials) Trials(ctx context.Context) (list []trials.Trial, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+trialColumns+` FROM trials ORDER BY created, id`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanTrial)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list trials: %w", err)
	}
	return list, nil
}

// Put implements trials.Store.
func (s *Trials) Put(ctx context.Context, t trials.Trial) error {
	clones, err := json.Marshal(t.Clones)
	if err != nil {
		return fmt.Errorf("write clones of trial %s: %w", t.ID, err)
	}
	err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO trials (`+trialColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			t.ID, t.Sandbox, t.Name, t.Owner, t.Text, t.Agent, t.Model, string(t.Mode), string(t.State), t.Problem, t.Snapshot, t.Kept, stamp(t.Created), string(clones))
		if orphan(err) {
			return fault.Wrap(err, fault.NotFound, "The sandbox, or its owner, is not there any more.")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("store trial %s: %w", t.ID, err)
	}
	return nil
}

// Delete implements trials.Store.
func (s *Trials) Delete(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM trials WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete trial %s: %w", id, err)
	}
	return nil
}
