package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Sandboxes implements sandbox.Store.
type Sandboxes struct{ db *DB }

// Sandboxes gives the store of sandboxes in this database.
func (d *DB) Sandboxes() *Sandboxes { return &Sandboxes{d} }

const sandboxColumns = `id, name, label, owner, template, image, cpus, memory, pids, env, state, problem, created, changed,
	freeze_after, stop_after, pooled, own, fingerprint, cut_off, root, cloned_from, revert, disk, base, resizing`

const sandboxOrder = ` ORDER BY created DESC, name LIMIT ? OFFSET ?`

// Insert adds a sandbox; Conflict if its name or id exists.
func (s *Sandboxes) Insert(ctx context.Context, b sandbox.Sandbox) error {
	const insert = `INSERT INTO sandboxes (` + sandboxColumns + `, search) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		values, err := sandboxValues(b)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, insert, values...)
		return sandboxTaken(err, b)
	})
	if err != nil {
		return fmt.Errorf("insert sandbox %s: %w", b.Name, err)
	}
	return nil
}

// Update replaces the row of b.ID; NotFound if there is none, Conflict if its new name is another's.
func (s *Sandboxes) Update(ctx context.Context, b sandbox.Sandbox) error {
	const update = `UPDATE sandboxes SET (` + sandboxColumns + `, search) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE id = ?`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		values, err := sandboxValues(b)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, update, append(values, b.ID)...)
		if err != nil {
			return sandboxTaken(err, b)
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return noSandbox(b.Name)
	})
	if err != nil {
		return fmt.Errorf("update sandbox %s: %w", b.Name, err)
	}
	return nil
}

// Delete removes the row, and the tokens that were limited to it. It leaves a tombstone, except for a pooled one, which nobody
// owned; deleting a missing one is no error.
func (s *Sandboxes) Delete(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := addTombstone(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM sandboxes WHERE id = ?`, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM tokens WHERE sandbox_id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete sandbox %s: %w", id, err)
	}
	return nil
}

// ByName finds one.
func (s *Sandboxes) ByName(ctx context.Context, name string) (b sandbox.Sandbox, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		b, err = scanSandbox(tx.QueryRowContext(ctx, `SELECT `+sandboxColumns+` FROM sandboxes WHERE name = ?`, name))
		if errors.Is(err, sql.ErrNoRows) {
			return noSandbox(name)
		}
		return err
	})
	if err != nil {
		return sandbox.Sandbox{}, fmt.Errorf("find sandbox %s: %w", name, err)
	}
	return b, nil
}

// List gives those that match, newest first (then by name), and how many match without Offset and Limit.
func (s *Sandboxes) List(ctx context.Context, f sandbox.Filter) (list []sandbox.Sandbox, total int, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if list, err = pageOfSandboxes(ctx, tx, f); err != nil {
			return err
		}
		if total = len(list); f.Offset <= 0 && f.Limit <= 0 {
			return nil
		}
		where, args := whereSandbox(f)
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM sandboxes`+where, args...).Scan(&total)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list sandboxes: %w", err)
	}
	return list, total, nil
}

func pageOfSandboxes(ctx context.Context, tx *sql.Tx, f sandbox.Filter) ([]sandbox.Sandbox, error) {
	where, args := whereSandbox(f)
	limit := f.Limit
	if limit <= 0 {
		limit = -1 // SQLite's word for no bound
	}
	rows, err := tx.QueryContext(ctx, `SELECT `+sandboxColumns+` FROM sandboxes`+where+sandboxOrder,
		append(args, limit, max(f.Offset, 0))...)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanSandbox)
}

// whereSandbox gives the conditions of a filter. The query is text to find, of any length: instr knows no wildcards and,
// unlike LIKE, no longest pattern.
func whereSandbox(f sandbox.Filter) (where string, args []any) {
	all := []string{`pooled = 0`}
	if f.Pooled {
		all[0] = `pooled = 1`
	}
	if f.Up { // in the words of the index sandboxes_up
		all = append(all, `state IN ('running', 'frozen')`)
	}
	if f.Owner != "" {
		all, args = append(all, `owner = ?`), append(args, f.Owner)
	}
	if f.State != "" {
		all, args = append(all, `state = ?`), append(args, string(f.State))
	}
	if f.Query != "" {
		all, args = append(all, `instr(search, ?) > 0`), append(args, strings.ToLower(f.Query))
	}
	return ` WHERE ` + strings.Join(all, ` AND `), args
}

// searchText is what a query is looked for in. The line feeds keep a query from matching across two fields.
func searchText(b sandbox.Sandbox) string {
	return strings.ToLower(strings.Join([]string{b.Name, b.Label, b.Spec.Template, b.Spec.Image}, "\n"))
}

func sandboxValues(b sandbox.Sandbox) ([]any, error) {
	env := ""
	if len(b.Spec.Env) > 0 {
		text, err := json.Marshal(b.Spec.Env)
		if err != nil {
			return nil, fmt.Errorf("write environment: %w", err)
		}
		env = string(text)
	}
	own, err := overridesText(b.Overrides)
	if err != nil {
		return nil, err
	}
	revert, err := revertText(b.Revert)
	if err != nil {
		return nil, err
	}
	l := b.Spec.Limits
	return []any{b.ID, b.Name, b.Label, b.Owner, b.Spec.Template, b.Spec.Image, l.CPUs, l.Memory, l.Pids, env,
		string(b.State), b.Problem, stamp(b.Created), stamp(b.Changed),
		int64(b.Rest.FreezeAfter), int64(b.Rest.StopAfter), b.Pooled, own, b.Fingerprint, string(b.CutOff),
		b.Root, b.ClonedFrom, revert, l.Disk, b.Base, b.Resizing, searchText(b)}, nil
}

// row is a *sql.Row or a *sql.Rows.
type row interface{ Scan(dest ...any) error }

func scanSandbox(r row) (b sandbox.Sandbox, err error) {
	var env, own, revert []byte
	l := &b.Spec.Limits
	err = r.Scan(&b.ID, &b.Name, &b.Label, &b.Owner, &b.Spec.Template, &b.Spec.Image, &l.CPUs, &l.Memory, &l.Pids, &env,
		&b.State, &b.Problem, into{t: &b.Created}, into{t: &b.Changed}, &b.Rest.FreezeAfter, &b.Rest.StopAfter, &b.Pooled, &own, &b.Fingerprint,
		&b.CutOff, &b.Root, &b.ClonedFrom, &revert, &l.Disk, &b.Base, &b.Resizing)
	if err != nil {
		return b, err
	}
	if len(env) > 0 {
		if err := json.Unmarshal(env, &b.Spec.Env); err != nil {
			return b, fmt.Errorf("read environment of %s: %w", b.Name, errBadJSON)
		}
	}
	if b.Overrides, err = overridesOf(b.Name, own); err != nil {
		return b, err
	}
	b.Revert, err = revertOf(b.Name, revert)
	return b, err
}

// errBadJSON stands for the decoder's own error, which would quote what may be a secret.
var errBadJSON = errors.New("not a JSON object of texts")

// collect reads all rows and closes them.
func collect[T any](rows *sql.Rows, scan func(row) (T, error)) (all []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func noSandbox(name string) error {
	return fault.New(fault.NotFound, "There is no sandbox %q.", name)
}

// sandboxTaken says in words that the name or the id exists; other errors it leaves alone.
func sandboxTaken(err error, b sandbox.Sandbox) error {
	switch {
	case takenID(err):
		return fault.Wrap(err, fault.Conflict, "There is a sandbox with the id %s already.", b.ID)
	case taken(err):
		return &fault.Error{Kind: fault.Conflict, Field: "name", Err: err,
			Message: fmt.Sprintf("There is a sandbox %q already. Choose another name.", b.Name)}
	}
	return err
}
