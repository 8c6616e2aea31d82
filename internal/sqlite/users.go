package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// Accounts implements auth.Store; its methods on sessions and tokens stand in files of their own.
type Accounts struct{ db *DB }

// Auth gives the store of users, sessions and tokens in this database.
func (d *DB) Auth() *Accounts { return &Accounts{d} }

const userColumns = `users.id, users.name, users.role, users.password, users.disabled, users.created`

// InsertUser adds a user; Conflict if the name or id exists.
func (s *Accounts) InsertUser(ctx context.Context, a auth.Account) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO users (id, name, role, password, disabled, created) VALUES (?,?,?,?,?,?)`,
			a.ID, a.Name, string(a.Role), a.Password, a.Disabled, stamp(a.Created))
		return userTaken(err, a)
	})
	if err != nil {
		return fmt.Errorf("insert user %s: %w", a.Name, err)
	}
	return nil
}

// ChangeUser lets change edit a user in one transaction. See auth.UserStore.
func (s *Accounts) ChangeUser(ctx context.Context, id string, change func(a *auth.Account, admins int) error) error {
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		a, admins, err := userAndAdmins(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := change(&a, admins); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE users SET name = ?, role = ?, password = ?, disabled = ? WHERE id = ?`,
			a.Name, string(a.Role), a.Password, a.Disabled, id)
		return userTaken(err, a)
	})
}

// DeleteUser removes a user with all sessions and tokens, if allow agrees. See auth.UserStore.
func (s *Accounts) DeleteUser(ctx context.Context, id string, allow func(a auth.Account, admins int) error) error {
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		a, admins, err := userAndAdmins(ctx, tx, id)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := allow(a, admins); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM users WHERE id = ?`, id)
		return err
	})
}

// userAndAdmins gives a user and how many others can administer.
func userAndAdmins(ctx context.Context, tx *sql.Tx, id string) (a auth.Account, admins int, err error) {
	a, err = oneUser(ctx, tx, `users.id = ?`, id)
	if err != nil {
		return a, 0, err
	}
	const others = `SELECT count(*) FROM users WHERE id <> ? AND role = ? AND password <> '' AND NOT disabled`
	err = tx.QueryRowContext(ctx, others, id, string(auth.Admin)).Scan(&admins)
	return a, admins, err
}

// User finds one by id.
func (s *Accounts) User(ctx context.Context, id string) (auth.Account, error) {
	return s.user(ctx, `users.id = ?`, id)
}

// UserByName finds one by name.
func (s *Accounts) UserByName(ctx context.Context, name string) (auth.Account, error) {
	return s.user(ctx, `users.name = ?`, name)
}

func (s *Accounts) user(ctx context.Context, where, arg string) (a auth.Account, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		a, err = oneUser(ctx, tx, where, arg)
		return err
	})
	return a, err
}

func oneUser(ctx context.Context, tx *sql.Tx, where, arg string) (auth.Account, error) {
	a, err := scanUser(tx.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users WHERE `+where, arg))
	if errors.Is(err, sql.ErrNoRows) {
		return a, fault.New(fault.NotFound, "There is no user %q.", arg)
	}
	return a, err
}

// Users gives all, oldest first.
func (s *Accounts) Users(ctx context.Context) (all []auth.Account, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+userColumns+` FROM users ORDER BY created, name`)
		if err != nil {
			return err
		}
		all, err = collect(rows, scanUser)
		return err
	})
	return all, err
}

func scanUser(r row) (a auth.Account, err error) {
	err = r.Scan(userTargets(&a)...)
	a.Claimed = a.Password != ""
	return a, err
}

// userTargets are where userColumns go; Claimed is then to be set from the password.
func userTargets(a *auth.Account) []any {
	return []any{&a.ID, &a.Name, &a.Role, &a.Password, &a.Disabled, into{t: &a.Created}}
}

func userTaken(err error, a auth.Account) error {
	if !taken(err) {
		return err
	}
	return fault.Wrap(err, fault.Conflict, "A user named %q already exists.", a.Name)
}
