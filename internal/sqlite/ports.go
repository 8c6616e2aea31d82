package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Ports implements sandbox.PortStore.
type Ports struct{ db *DB }

// Ports gives the store of ports' rules and shares in this database.
func (d *DB) Ports() *Ports { return &Ports{d} }

// PutRule adds the rule of a port, or replaces it; NotFound when its sandbox is not there.
func (s *Ports) PutRule(ctx context.Context, r sandbox.PortRule) error {
	const put = `INSERT INTO port_rules (sandbox, port, visibility) VALUES (?,?,?)
		ON CONFLICT (sandbox, port) DO UPDATE SET visibility = excluded.visibility`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, r.SandboxID, r.Port, string(r.Visibility))
		return sandboxGone(err)
	})
	if err != nil {
		return fmt.Errorf("keep rule of port %d: %w", r.Port, err)
	}
	return nil
}

// DeleteRule makes a port private: its rule goes, and its shares with it. That of none is no error.
func (s *Ports) DeleteRule(ctx context.Context, sandboxID string, port int) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM port_rules WHERE sandbox = ? AND port = ?`, sandboxID, port)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete rule of port %d: %w", port, err)
	}
	return nil
}

// PutShare adds a share, and the rule Shared for a port that has none; NotFound when its sandbox is not there, Conflict
// when there is a share of that id.
func (s *Ports) PutShare(ctx context.Context, h sandbox.Share) error {
	const rule = `INSERT INTO port_rules (sandbox, port, visibility) VALUES (?,?,?) ON CONFLICT (sandbox, port) DO NOTHING`
	const put = `INSERT INTO shares (id, sandbox, port, hash, label, owner, created, expires) VALUES (?,?,?,?,?,?,?,?)`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, rule, h.SandboxID, h.Port, string(sandbox.Shared)); err != nil {
			return sandboxGone(err)
		}
		_, err := tx.ExecContext(ctx, put, h.ID, h.SandboxID, h.Port, h.Hash[:], h.Label, h.Owner, stamp(h.Created), stamp(h.Expires))
		if taken(err) {
			return fault.Wrap(err, fault.Conflict, "There is such a share already.")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep share %s: %w", h.ID, err)
	}
	return nil
}

// DeleteShare removes it; an absent one is no error. The port's rule stays.
func (s *Ports) DeleteShare(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM shares WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete share %s: %w", id, err)
	}
	return nil
}

// Rules gives all, by sandbox and port, and all shares, expired ones included, the oldest first.
func (s *Ports) Rules(ctx context.Context) (rules []sandbox.PortRule, shares []sandbox.Share, err error) {
	const allRules = `SELECT sandbox, port, visibility FROM port_rules ORDER BY sandbox, port`
	const allShares = `SELECT id, sandbox, port, hash, label, owner, created, expires FROM shares ORDER BY created, id`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, allRules)
		if err != nil {
			return err
		}
		if rules, err = collect(rows, scanRule); err != nil {
			return err
		}
		if rows, err = tx.QueryContext(ctx, allShares); err != nil {
			return err
		}
		shares, err = collect(rows, scanShare)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list rules of ports: %w", err)
	}
	return rules, shares, nil
}

func scanRule(r row) (p sandbox.PortRule, err error) {
	err = r.Scan(&p.SandboxID, &p.Port, &p.Visibility)
	return p, err
}

func scanShare(r row) (h sandbox.Share, err error) {
	var hash []byte
	err = r.Scan(&h.ID, &h.SandboxID, &h.Port, &hash, &h.Label, &h.Owner, into{t: &h.Created}, into{t: &h.Expires})
	copy(h.Hash[:], hash)
	return h, err
}

// sandboxGone says in words that a row's sandbox is not there; other errors it leaves alone.
func sandboxGone(err error) error {
	if orphan(err) {
		return fault.Wrap(err, fault.NotFound, "The sandbox has been deleted.")
	}
	return err
}
