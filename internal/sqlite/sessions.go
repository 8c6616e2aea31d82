package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

const sessionColumns = `sessions.id, sessions.user, sessions.host, sessions.sandbox, coalesce(sessions.parent, ''), sessions.origin,
	sessions.stay, sessions.created, sessions.seen, sessions.expires`

// InsertSession adds n and drops the oldest beyond keep. See auth.SessionStore.
func (s *Accounts) InsertSession(ctx context.Context, key auth.Key, n auth.Session, keep int) error {
	const insert = `INSERT INTO sessions (id, key, user, host, sandbox, parent, origin, stay, created, seen, expires)
		VALUES (?,?,?,?,?,nullif(?, ''),?,?,?,?,?)`
	const trim = `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions
		WHERE user = ? AND parent IS nullif(?, '') AND host = ? AND id <> ? ORDER BY created DESC, id LIMIT -1 OFFSET ?)`
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert, n.ID, key[:], n.User, n.Host, n.SandboxID, n.Parent, n.From, n.Stay,
			stamp(n.Created), stamp(n.Seen), stamp(n.Expires))
		switch {
		case orphan(err):
			return fault.Wrap(err, fault.NotFound, "The user or the session that this one belongs to is gone.")
		case taken(err):
			return fault.Wrap(err, fault.Conflict, "There is such a session already.")
		case err != nil:
			return err
		}
		_, err = tx.ExecContext(ctx, trim, n.User, n.Parent, n.Host, n.ID, max(keep-1, 0))
		return err
	})
}

// SessionByKey finds a session and its user.
func (s *Accounts) SessionByKey(ctx context.Context, key auth.Key) (n auth.Session, a auth.Account, err error) {
	const find = `SELECT ` + sessionColumns + `, ` + userColumns + `
		FROM sessions JOIN users ON users.id = sessions.user WHERE key = ?`
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, find, key[:]).Scan(append(sessionTargets(&n), userTargets(&a)...)...)
		a.Claimed = a.Password != ""
		return noSession(err)
	})
	return n, a, err
}

// Session finds one by id.
func (s *Accounts) Session(ctx context.Context, id string) (n auth.Session, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		n, err = scanSession(tx.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, id))
		return noSession(err)
	})
	return n, err
}

// TouchSession notes its use. Touching a missing one is no error.
func (s *Accounts) TouchSession(ctx context.Context, id string, seen, expires time.Time) error {
	return s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sessions SET seen = ?, expires = ? WHERE id = ?`, stamp(seen), stamp(expires), id)
		return err
	})
}

// Sessions gives a user's sessions, newest first, host sessions included.
func (s *Accounts) Sessions(ctx context.Context, user string) (all []auth.Session, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE user = ? ORDER BY created DESC, id`, user)
		if err != nil {
			return err
		}
		all, err = collect(rows, scanSession)
		return err
	})
	return all, err
}

// DeleteSessions removes those that match with all their host sessions, and says how many matched.
func (s *Accounts) DeleteSessions(ctx context.Context, f auth.SessionFilter) (n int, err error) {
	where, args := whereSession(f)
	if where == "" {
		return 0, nil
	}
	err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sessions WHERE `+where, args...).Scan(&n); err != nil || n == 0 {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE `+where, args...)
		return err
	})
	return n, err
}

func whereSession(f auth.SessionFilter) (where string, args []any) {
	var all []string
	if f.ID != "" {
		all, args = append(all, `id = ?`), append(args, f.ID)
	}
	if f.User != "" {
		all, args = append(all, `user = ?`), append(args, f.User)
	}
	if !f.ExpiredBy.IsZero() {
		all, args = append(all, `expires <= ?`), append(args, stamp(f.ExpiredBy))
	}
	return strings.Join(all, ` AND `), args
}

func scanSession(r row) (n auth.Session, err error) {
	err = r.Scan(sessionTargets(&n)...)
	return n, err
}

// sessionTargets are where sessionColumns go.
func sessionTargets(n *auth.Session) []any {
	return []any{&n.ID, &n.User, &n.Host, &n.SandboxID, &n.Parent, &n.From, &n.Stay, into{t: &n.Created}, into{t: &n.Seen}, into{t: &n.Expires}}
}

func noSession(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.NotFound, "There is no such session.")
	}
	return err
}
