package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/activity"
)

// activitySchema: times are microseconds. The indexes that begin with whom an entry is about hold all that is filtered by most often.
const activitySchema = `
CREATE TABLE entries (
	id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, user_id TEXT NOT NULL, user TEXT NOT NULL, token TEXT NOT NULL, via TEXT NOT NULL,
	origin TEXT NOT NULL, action TEXT NOT NULL, sandbox_id TEXT NOT NULL, sandbox TEXT NOT NULL, owner TEXT NOT NULL, object TEXT NOT NULL,
	outcome TEXT NOT NULL, problem TEXT NOT NULL, request TEXT NOT NULL, count INTEGER NOT NULL,
	noun TEXT NOT NULL AS (substr(action, 1, instr(action, '.')))) STRICT;
CREATE INDEX by_time ON entries (time);
CREATE INDEX by_user_id ON entries (user_id, id, action, via, outcome) WHERE user_id <> '';
CREATE INDEX by_owner ON entries (owner, id, action, via, outcome) WHERE owner <> '';
CREATE INDEX by_user ON entries (user) WHERE user <> '';
CREATE INDEX by_sandbox_id ON entries (sandbox_id) WHERE sandbox_id <> '';
CREATE INDEX by_sandbox ON entries (sandbox) WHERE sandbox <> '';
CREATE INDEX by_outcome ON entries (outcome) WHERE outcome <> 'done';
CREATE INDEX by_via ON entries (via) WHERE via NOT IN ('page', 'api');
CREATE INDEX by_action ON entries (action);
CREATE INDEX by_noun ON entries (noun);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'an entry is never changed'); END`

const entryColumns = `id, time, user_id, user, token, via, origin, action, sandbox_id, sandbox, owner, object, outcome, problem, request, count`

// timeSlack is how far the times of entries may be out of the order of their IDs: what is summed up comes late. What a clock that was
// set back has put further apart, a search by time may miss.
const timeSlack = time.Hour

const sweepRows = 5000 // deleted at once

// Activity keeps who did what, in a file of its own. It implements activity.Store.
type Activity struct{ file replaceable }

var _ activity.Store = (*Activity)(nil)

// OpenActivity opens the file, making it if it is not there. A damaged one is set aside. When that cannot be done now, such as on a
// full disk, calls are Unavailable until it can be. The caller must Close it.
func OpenActivity(ctx context.Context, path string, log *slog.Logger) *Activity {
	a := &Activity{file: replaceable{path: path, steps: []string{activitySchema}, log: log}}
	a.file.open(ctx)
	return a
}

// Close waits for running transactions and closes the file.
func (a *Activity) Close() error { return a.file.close() }

// Last implements activity.Store.
func (a *Activity) Last(ctx context.Context) (last activity.ID, err error) {
	err = a.file.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		last, err = lastEntry(ctx, tx)
		return err
	})
	return last, err
}

// lastEntry asks for what SQLite itself keeps of a column that is AUTOINCREMENT, also when all rows are deleted.
func lastEntry(ctx context.Context, tx *sql.Tx) (last activity.ID, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entries'), 0)`).Scan(&last)
	return last, err
}

// Add implements activity.Store.
func (a *Activity) Add(ctx context.Context, entries []activity.Entry) error {
	return a.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		last, err := lastEntry(ctx, tx)
		if err != nil {
			return err
		}
		add, err := tx.PrepareContext(ctx, `INSERT INTO entries (`+entryColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer add.Close()
		for _, e := range entries {
			if e.ID <= last {
				continue
			}
			_, err := add.ExecContext(ctx, e.ID, stamp(e.Time), e.UserID, e.User, e.Token, string(e.Via), e.From, string(e.Action),
				e.SandboxID, e.Sandbox, e.Owner, e.Object, string(e.Outcome), e.Problem, e.Request, e.Count)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Sweep implements activity.Store.
func (a *Activity) Sweep(ctx context.Context, before time.Time, most int) (deleted int, err error) {
	for _, old := range []struct {
		where string
		value any
	}{
		{`SELECT id FROM entries WHERE time < ? ORDER BY time LIMIT ?`, before.UnixMicro()},
		{`SELECT id FROM entries WHERE id <= (SELECT id FROM entries ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?`, most},
	} {
		for n := int64(sweepRows); n == sweepRows; {
			err := a.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
				result, err := tx.ExecContext(ctx, `DELETE FROM entries WHERE id IN (`+old.where+`)`, old.value, sweepRows)
				if err != nil {
					return err
				}
				n, err = result.RowsAffected()
				return err
			})
			if err != nil {
				return deleted, err
			}
			deleted += int(n)
		}
	}
	return deleted, nil
}

// Find implements activity.Store.
func (a *Activity) Find(ctx context.Context, q activity.Query) (out []activity.Entry, err error) {
	err = a.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out = nil
		text, values, err := findEntries(ctx, tx, q)
		if err != nil || text == "" {
			return err
		}
		rows, err := tx.QueryContext(ctx, text, values...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			e, err := scanEntry(rows)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return rows.Err()
	})
	return out, err
}

func scanEntry(rows *sql.Rows) (e activity.Entry, err error) {
	var at int64
	err = rows.Scan(&e.ID, &at, &e.UserID, &e.User, &e.Token, &e.Via, &e.From, &e.Action, &e.SandboxID, &e.Sandbox, &e.Owner, &e.Object,
		&e.Outcome, &e.Problem, &e.Request, &e.Count)
	e.Time = time.UnixMicro(at).UTC()
	return e, err
}

// condition is a part of a WHERE.
type condition struct {
	index  string // that finds what meets it; "" for none that helps
	text   string
	values []any
}

// findEntries gives the statement that finds what q asks for, or "" when there is nothing. Each way to meet its conditions is a search
// of its own by the best index in the order of IDs, so that none sorts what it has found, and each ends with the page.
func findEntries(ctx context.Context, tx *sql.Tx, q activity.Query) (text string, values []any, err error) {
	shared, err := sharedConditions(ctx, tx, q)
	if err != nil {
		return "", nil, err
	}
	var ways []string
	limit := cmp.Or(q.Limit, activity.DefaultLimit)
	for _, box := range sandboxConditions(q) {
		for _, reader := range scopeConditions(q.Scope) {
			all := append([]condition{box, reader}, shared...)
			by, err := bestIndex(ctx, tx, all)
			if err != nil {
				return "", nil, err
			}
			way, more := searchBy(by, all)
			ways, values = append(ways, way), append(append(values, more...), limit)
		}
	}
	if len(ways) == 0 {
		return "", nil, nil
	}
	text = `SELECT ` + entryColumns + ` FROM entries WHERE id IN (` + strings.Join(ways, " UNION ") + `) ORDER BY id DESC LIMIT ?`
	return text, append(values, limit), nil
}

// countMost is how many entries are counted at most to find out which condition fewest meet.
const countMost = 10_000

// bestIndex gives the index of the condition that fewest entries meet, as a part of a statement. The first one wins among those that
// very many meet.
func bestIndex(ctx context.Context, tx *sql.Tx, all []condition) (best string, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(c condition) bool { return c.index == "" })
	if len(all) == 0 {
		return "NOT INDEXED", nil
	}
	best, least := "INDEXED BY "+all[0].index, countMost
	for _, c := range all {
		if len(all) == 1 {
			break
		}
		var n int
		by := "INDEXED BY " + c.index
		text := `SELECT count(*) FROM (SELECT 1 FROM entries ` + by + ` WHERE ` + c.text + ` LIMIT ?)`
		if err := tx.QueryRowContext(ctx, text, append(slices.Clone(c.values), least)...).Scan(&n); err != nil {
			return "", err
		}
		if n < least {
			best, least = by, n
		}
	}
	return best, nil
}

// searchBy gives the search for what meets all conditions, by an index.
func searchBy(by string, all []condition) (text string, values []any) {
	var where []string
	for _, c := range all {
		if c.text != "" {
			where, values = append(where, c.text), append(values, c.values...)
		}
	}
	text = `SELECT id FROM (SELECT id FROM entries ` + by
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, " AND ")
	}
	return text + ` ORDER BY id DESC LIMIT ?)`, values
}

// sandboxConditions are the ways in which an entry is about the sandbox that is asked for.
func sandboxConditions(q activity.Query) []condition {
	if q.Sandbox == "" {
		return []condition{{}}
	}
	return []condition{
		{"by_sandbox_id", `sandbox_id <> '' AND sandbox_id = ?`, []any{q.Sandbox}},
		{"by_sandbox", `sandbox <> '' AND sandbox = ?`, []any{q.Sandbox}},
	}
}

// scopeConditions are the ways in which a reader may see an entry; none for the zero Scope.
func scopeConditions(s activity.Scope) (out []condition) {
	var only condition
	if s.SandboxID != "" {
		only = condition{"by_sandbox_id", `sandbox_id <> '' AND sandbox_id = ?`, []any{s.SandboxID}}
	}
	if s.All {
		return []condition{only}
	}
	if s.User == "" {
		return nil
	}
	for _, column := range []string{"user_id", "owner"} {
		mine := condition{"by_" + column, column + ` <> '' AND ` + column + ` = ?`, []any{s.User}}
		if only.text != "" {
			mine = condition{only.index, mine.text + " AND " + only.text, append(mine.values, only.values...)}
		}
		out = append(out, mine)
	}
	return out
}

// sharedConditions are those that hold in every way.
func sharedConditions(ctx context.Context, tx *sql.Tx, q activity.Query) (out []condition, err error) {
	add := func(wanted bool, c condition) {
		if wanted {
			out = append(out, c)
		}
	}
	rare := q.Via != activity.Page && q.Via != activity.API
	add(q.User != "", condition{"by_user", `user <> '' AND user = ?`, []any{q.User}})
	add(q.Outcome != "" && q.Outcome != activity.Done, condition{"by_outcome", `outcome <> 'done' AND outcome = ?`, []any{string(q.Outcome)}})
	add(q.Outcome == activity.Done, condition{"", `outcome = 'done'`, nil})
	add(q.Via != "" && rare, condition{"by_via", `via NOT IN ('page', 'api') AND via = ?`, []any{string(q.Via)}})
	add(q.Via != "" && !rare, condition{"", `via = ?`, []any{string(q.Via)}})
	if strings.HasSuffix(q.Action, ".") {
		out = append(out, condition{"by_noun", `action > ? AND action < ? AND noun = ?`, []any{q.Action, q.Action + "\U0010ffff", q.Action}}) // other indexes have the action
	} else {
		add(q.Action != "", condition{"by_action", `action = ?`, []any{q.Action}})
	}
	add(q.Before != 0, condition{"", `id < ?`, []any{q.Before}})
	if !q.Since.IsZero() {
		out = append(out, condition{"", `time >= ?`, []any{q.Since.UnixMicro()}})
		first, err := entryAt(ctx, tx, q.Since.Add(-timeSlack))
		if err != nil {
			return nil, err
		}
		out = append(out, condition{"", `id >= ?`, []any{first}})
	}
	if !q.Until.IsZero() {
		out = append(out, condition{"", `time < ?`, []any{q.Until.UnixMicro()}})
		first, err := entryAt(ctx, tx, q.Until.Add(timeSlack))
		if err != nil {
			return nil, err
		}
		out = append(out, condition{"", `id < ?`, []any{first}})
	}
	if q.Text != "" {
		like := `%` + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Text) + `%`
		out = append(out, condition{"", `(sandbox LIKE ? ESCAPE '\' OR user LIKE ? ESCAPE '\' OR object LIKE ? ESCAPE '\' OR problem LIKE ? ESCAPE '\')`,
			[]any{like, like, like, like}})
	}
	return out, nil
}

// entryAt gives the ID of the first entry from a time on, or one above all when there is none.
func entryAt(ctx context.Context, tx *sql.Tx, at time.Time) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce((SELECT id FROM entries WHERE time >= ? ORDER BY time, id LIMIT 1), 9223372036854775807)`, at.UnixMicro()).Scan(&id)
	return id, err
}
