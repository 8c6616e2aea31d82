package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

// Snapshots implements snapshot.Store.
type Snapshots struct{ db *DB }

var _ snapshot.Store = (*Snapshots)(nil)

// Snapshots gives the store of snapshots in this database.
func (d *DB) Snapshots() *Snapshots { return &Snapshots{d} }

const snapshotColumns = `id, sandbox, owner, name, note, parent, kind, created, state, problem, stats, still, took, image, origin, memory`

// Insert adds a snapshot; Conflict if its id exists.
func (s *Snapshots) Insert(ctx context.Context, p snapshot.Snapshot) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		values, err := snapshotValues(p)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO snapshots (`+snapshotColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, values...)
		if takenID(err) {
			return fault.Wrap(err, fault.Conflict, "There is a snapshot with the id %s already.", p.ID)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("insert snapshot %s: %w", p.ID, err)
	}
	return nil
}

// Update replaces the row of p.ID; NotFound if there is none.
func (s *Snapshots) Update(ctx context.Context, p snapshot.Snapshot) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		values, err := snapshotValues(p)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `UPDATE snapshots SET (`+snapshotColumns+`) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE id = ?`, append(values, p.ID)...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return snapshot.NotFound(p.ID)
	})
	if err != nil {
		return fmt.Errorf("update snapshot %s: %w", p.ID, err)
	}
	return nil
}

// Delete removes one, and gives those that came after it, and the sandboxes that are based on it, its parent. See snapshot.Store.
func (s *Snapshots) Delete(ctx context.Context, id string) error {
	const parent = `coalesce((SELECT parent FROM snapshots WHERE id = ?1), '')`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, change := range []string{
			`UPDATE snapshots SET parent = ` + parent + ` WHERE parent = ?1`,
			`UPDATE snapshot_heads SET undo = '', snapshot = ` + parent + ` WHERE snapshot = ?1`,
			`UPDATE snapshot_heads SET undo = '' WHERE undo = ?1`,
			`DELETE FROM snapshot_heads WHERE snapshot = '' AND undo = ''`,
			`DELETE FROM snapshots WHERE id = ?1`,
		} {
			if _, err := tx.ExecContext(ctx, change, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete snapshot %s: %w", id, err)
	}
	return nil
}

// List gives all, in no order.
func (s *Snapshots) List(ctx context.Context) (list []snapshot.Snapshot, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+snapshotColumns+` FROM snapshots`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanSnapshot)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	return list, nil
}

// Heads gives those of all sandboxes that have one, by the sandbox's id.
func (s *Snapshots) Heads(ctx context.Context) (map[string]snapshot.Head, error) {
	heads := map[string]snapshot.Head{}
	err := s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT sandbox, snapshot, undo FROM snapshot_heads`)
		if err != nil {
			return err
		}
		_, err = collect(rows, func(r row) (h snapshot.Head, err error) {
			var of string
			err = r.Scan(&of, &h.Snapshot, &h.Undo)
			heads[of] = h
			return h, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list heads of sandboxes: %w", err)
	}
	return heads, nil
}

// SetHead changes that of a sandbox; the zero value removes it.
func (s *Snapshots) SetHead(ctx context.Context, sandboxID string, h snapshot.Head) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if h == (snapshot.Head{}) {
			_, err := tx.ExecContext(ctx, `DELETE FROM snapshot_heads WHERE sandbox = ?`, sandboxID)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO snapshot_heads (sandbox, snapshot, undo) VALUES (?,?,?)`, sandboxID, h.Snapshot, h.Undo)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep head of %s: %w", sandboxID, err)
	}
	return nil
}

// originRow is snapshot.Origin as it is kept. Durations are nanoseconds.
type originRow struct {
	Name        string            `json:"name"`
	Label       string            `json:"label,omitempty"`
	Template    string            `json:"template,omitempty"`
	Image       string            `json:"image,omitempty"`
	CPUs        float64           `json:"cpus,omitempty"`
	Memory      int64             `json:"memory,omitempty"`
	Pids        int64             `json:"pids,omitempty"`
	Disk        int64             `json:"disk,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Overrides   sandbox.Overrides `json:"overrides"`
	Base        string            `json:"base,omitempty"`
	FreezeAfter time.Duration     `json:"freeze_after,omitempty"`
	StopAfter   time.Duration     `json:"stop_after,omitempty"`
}

func snapshotValues(p snapshot.Snapshot) ([]any, error) {
	o := p.Origin
	origin, err := json.Marshal(originRow{
		Name: o.Name, Label: o.Label, Template: o.Spec.Template, Image: o.Spec.Image, CPUs: o.Spec.Limits.CPUs, Memory: o.Spec.Limits.Memory,
		Pids: o.Spec.Limits.Pids, Disk: o.Spec.Limits.Disk, Env: o.Spec.Env, Overrides: o.Overrides, FreezeAfter: o.Rest.FreezeAfter, StopAfter: o.Rest.StopAfter,
		Base: o.Base,
	})
	if err != nil {
		return nil, fmt.Errorf("write what a snapshot is of: %w", err)
	}
	stats, err := json.Marshal(p.Stats)
	if err != nil {
		return nil, fmt.Errorf("write what is in a snapshot: %w", err)
	}
	return []any{p.ID, p.SandboxID, p.Owner, p.Name, p.Note, p.Parent, string(p.Kind), stamp(p.Created), string(p.State), p.Problem,
		string(stats), p.Still, int64(p.Took), p.Image, string(origin), p.Memory}, nil
}

func scanSnapshot(r row) (p snapshot.Snapshot, err error) {
	var stats, origin []byte
	err = r.Scan(&p.ID, &p.SandboxID, &p.Owner, &p.Name, &p.Note, &p.Parent, &p.Kind, into{t: &p.Created}, &p.State, &p.Problem,
		&stats, &p.Still, &p.Took, &p.Image, &origin, &p.Memory)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(stats, &p.Stats); err != nil {
		return p, fmt.Errorf("read what is in snapshot %s: %w", p.ID, errBadJSON)
	}
	var o originRow
	if err := json.Unmarshal(origin, &o); err != nil {
		return p, fmt.Errorf("read what snapshot %s is of: %w", p.ID, errBadJSON)
	}
	p.Origin = snapshot.Origin{
		Name: o.Name, Label: o.Label, Overrides: o.Overrides, Base: o.Base, Rest: snapshot.RestTimes{FreezeAfter: o.FreezeAfter, StopAfter: o.StopAfter},
		Spec: sandbox.Spec{Template: o.Template, Image: o.Image, Env: o.Env, Limits: sandbox.Limits{CPUs: o.CPUs, Memory: o.Memory, Pids: o.Pids, Disk: o.Disk}},
	}
	return p, nil
}
