package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"sandboxd/internal/fault"
	"sandboxd/internal/lastview"
)

// Workspace keeps how people have arranged their pages, what they call a sandbox's terminals, and what a sandbox showed last.
// It implements web.Preferences, web.TabNames and lastview.Store.
type Workspace struct{ db *DB }

// Workspace gives the store of it in this database.
func (d *DB) Workspace() *Workspace { return &Workspace{d} }

// Preference gives a user's preference, or "".
func (s *Workspace) Preference(ctx context.Context, user, name string) (value string, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT value FROM preferences WHERE user = ? AND name = ?`, user, name).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read preference %s: %w", name, err)
	}
	return value, nil
}

// SetPreference keeps value instead of the old one; NotFound when the user is gone.
func (s *Workspace) SetPreference(ctx context.Context, user, name, value string) error {
	const put = `INSERT INTO preferences (user, name, value) VALUES (?,?,?) ON CONFLICT (user, name) DO UPDATE SET value = excluded.value`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, user, name, value)
		if orphan(err) {
			return fault.Wrap(err, fault.NotFound, "The user has been deleted.")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep preference %s: %w", name, err)
	}
	return nil
}

// TabNames gives the names of a sandbox's terminals, by tab. The map is the caller's.
func (s *Workspace) TabNames(ctx context.Context, sandboxID string) (map[string]string, error) {
	names := map[string]string{}
	err := s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT tab, name FROM terminal_names WHERE sandbox = ?`, sandboxID)
		if err != nil {
			return err
		}
		pairs, err := collect(rows, func(r row) (p [2]string, err error) { return p, r.Scan(&p[0], &p[1]) })
		for _, p := range pairs {
			names[p[0]] = p[1]
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list names of terminals: %w", err)
	}
	return names, nil
}

// NameTab calls a terminal so from now on; "" takes its name away. NotFound when the sandbox is gone.
func (s *Workspace) NameTab(ctx context.Context, sandboxID, tab, name string) error {
	const put = `INSERT INTO terminal_names (sandbox, tab, name) VALUES (?,?,?) ON CONFLICT (sandbox, tab) DO UPDATE SET name = excluded.name`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if name == "" {
			_, err := tx.ExecContext(ctx, `DELETE FROM terminal_names WHERE sandbox = ? AND tab = ?`, sandboxID, tab)
			return err
		}
		_, err := tx.ExecContext(ctx, put, sandboxID, tab, name)
		if orphan(err) {
			return fault.Wrap(err, fault.NotFound, "The sandbox has been deleted.")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("name terminal %s: %w", tab, err)
	}
	return nil
}

// KeepView implements lastview.Store.
func (s *Workspace) KeepView(ctx context.Context, sandboxID string, v lastview.View) error {
	const put = `INSERT INTO last_views (sandbox, view) VALUES (?,?) ON CONFLICT (sandbox) DO UPDATE SET view = excluded.view`
	text, err := json.Marshal(v)
	if err == nil {
		err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, put, sandboxID, string(text))
			if orphan(err) {
				return fault.Wrap(err, fault.NotFound, "The sandbox has been deleted.")
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the last view of %s: %w", sandboxID, err)
	}
	return nil
}

// LastView implements lastview.Store.
func (s *Workspace) LastView(ctx context.Context, sandboxID string) (v lastview.View, err error) {
	var text string
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT view FROM last_views WHERE sandbox = ?`, sandboxID).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			text = "{}"
			return nil
		}
		return err
	})
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		return lastview.View{}, fmt.Errorf("read the last view of %s: %w", sandboxID, err)
	}
	return v, nil
}
