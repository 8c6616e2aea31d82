package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

const tokenColumns = `tokens.id, tokens.user, tokens.name, tokens.sandbox, tokens.sandbox_id, tokens.models, tokens.prefix, tokens.created, tokens.used, tokens.expires`

// InsertToken adds one. NotFound if its user is not there.
func (s *Accounts) InsertToken(ctx context.Context, key auth.Key, t auth.Token) error {
	const insert = `INSERT INTO tokens (id, key, user, name, sandbox, sandbox_id, models, prefix, created, used, expires) VALUES (?,?,?,?,?,?,?,?,?,?,?)`
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert, t.ID, key[:], t.User, t.Name, t.Sandbox, t.SandboxID, t.Models, t.Prefix,
			stamp(t.Created), stampOrNull(t.LastUsed), stampOrNull(t.Expires))
		switch {
		case orphan(err):
			return fault.Wrap(err, fault.NotFound, "The token's user is gone.")
		case taken(err):
			return fault.Wrap(err, fault.Conflict, "There is such a token already.")
		}
		return err
	})
}

// TokenByKey finds a token and its user.
func (s *Accounts) TokenByKey(ctx context.Context, key auth.Key) (t auth.Token, a auth.Account, err error) {
	const find = `SELECT ` + tokenColumns + `, ` + userColumns + `
		FROM tokens JOIN users ON users.id = tokens.user WHERE key = ?`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, find, key[:]).Scan(append(tokenTargets(&t), userTargets(&a)...)...)
		a.Claimed = a.Password != ""
		if errors.Is(err, sql.ErrNoRows) {
			return noToken()
		}
		return err
	})
	return t, a, err
}

// TouchToken notes its use. Touching a missing one is no error.
func (s *Accounts) TouchToken(ctx context.Context, id string, used time.Time) error {
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE tokens SET used = ? WHERE id = ?`, stamp(used), id)
		return err
	})
}

// Tokens gives a user's tokens, newest first; of all users if user is "".
func (s *Accounts) Tokens(ctx context.Context, user string) (all []auth.Token, err error) {
	const list = `SELECT ` + tokenColumns + ` FROM tokens WHERE ?1 = '' OR user = ?1 ORDER BY created DESC, id`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, list, user)
		if err != nil {
			return err
		}
		all, err = collect(rows, scanToken)
		return err
	})
	return all, err
}

// DeleteToken removes a token of that user; of any user if user is "". NotFound if there is none.
func (s *Accounts) DeleteToken(ctx context.Context, user, id string) error {
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `DELETE FROM tokens WHERE id = ?1 AND (?2 = '' OR user = ?2)`, id, user)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return noToken()
	})
}

func scanToken(r row) (t auth.Token, err error) {
	err = r.Scan(tokenTargets(&t)...)
	return t, err
}

// tokenTargets are where tokenColumns go.
func tokenTargets(t *auth.Token) []any {
	return []any{&t.ID, &t.User, &t.Name, &t.Sandbox, &t.SandboxID, &t.Models, &t.Prefix, into{t: &t.Created},
		into{t: &t.LastUsed, null: true}, into{t: &t.Expires, null: true}}
}

func noToken() error { return fault.New(fault.NotFound, "There is no such token.") }
