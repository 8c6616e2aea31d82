package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
)

const (
	walkWindow = 4096 // chunks that the index is asked about at once: so a search without hits knows how far it came
	maxNamed   = 64   // sandboxes or services that the index is asked for; more are told apart by reading
)

// Walk implements logs.Store.
func (l *Logs) Walk(ctx context.Context, look logs.Look, see func(logs.Block) bool) error {
	return l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		w := &walk{ctx: ctx, tx: tx, look: look, see: see, skip: l.skip}
		if err := w.begin(); err != nil || len(w.sources) == 0 {
			return err
		}
		more, err := w.tail()
		for more && err == nil {
			more, err = w.window()
		}
		return err
	})
}

// skip tells of a chunk that cannot be read. The rest of the file can, or SQLite says so.
func (l *Logs) skip(number int64, err error) {
	l.file.log.Error("a chunk of log lines is damaged; its lines are lost", "database", l.file.path, "chunk", number, "error", err)
}

// walk is one under way.
type walk struct {
	ctx  context.Context
	tx   *sql.Tx
	look logs.Look
	see  func(logs.Block) bool
	skip func(number int64, err error)

	sources            map[int64]string // those in scope
	match              string           // what the index is asked for; "" for all
	high               int64            // the number of the newest chunk that is left
	before, since, end int64            // of look, as bounds that are always set
}

func (w *walk) begin() error {
	w.before, w.since, w.end = math.MaxInt64, 0, math.MaxInt64
	if w.look.Before != 0 {
		w.before = int64(w.look.Before)
	}
	if !w.look.Since.IsZero() {
		w.since = w.look.Since.UnixMicro()
	}
	if !w.look.Until.IsZero() {
		w.end = w.look.Until.UnixMicro()
	}
	if err := w.findSources(); err != nil {
		return err
	}
	w.match = w.expression()
	err := w.tx.QueryRowContext(w.ctx, `SELECT number FROM chunks WHERE first < ? AND oldest < ? ORDER BY number DESC LIMIT 1`, w.before, w.end).Scan(&w.high)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

func (w *walk) findSources() error {
	w.sources = map[int64]string{}
	rows, err := w.tx.QueryContext(w.ctx, `SELECT number, id FROM sources`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var id string
		if err := rows.Scan(&number, &id); err != nil {
			return err
		}
		if w.look.Scope.Has(id) {
			w.sources[number] = id
		}
	}
	return rows.Err()
}

// expression says in the language of FTS5 what a chunk must have. Words have no quotes.
func (w *walk) expression() string {
	var all, names []string
	if _, every := w.look.Scope.Sandboxes(); !every && len(w.sources) <= maxNamed {
		for number := range w.sources {
			names = append(names, sourceWord(number))
		}
		all = append(all, anyOf(names))
	}
	if n := len(w.look.Services); n > 0 && n <= maxNamed {
		names = nil
		for _, s := range w.look.Services {
			names = append(names, serviceWord(s))
		}
		all = append(all, anyOf(names))
	}
	if len(w.look.Levels) > 0 {
		names = nil
		for _, l := range w.look.Levels {
			names = append(names, levelWord(l))
		}
		all = append(all, anyOf(names))
	}
	for _, word := range w.look.Words {
		e := `"` + word.Text + `"`
		if word.Prefix {
			e += "*"
		}
		all = append(all, e)
	}
	return strings.Join(all, " AND ")
}

func anyOf(words []string) string { return `("` + strings.Join(words, `" OR "`) + `")` }

// tail shows the lines that are in no chunk yet.
func (w *walk) tail() (more bool, err error) {
	rows, err := w.tx.QueryContext(w.ctx, `SELECT id, source, first, oldest FROM tail WHERE id >= ? ORDER BY id DESC`, w.since)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, source, first, oldest int64
		if err := rows.Scan(&id, &source, &first, &oldest); err != nil {
			return false, err
		}
		if w.sources[source] == "" || first >= w.before || oldest >= w.end {
			continue
		}
		body := func() ([]logs.Line, error) { return w.lines(`SELECT body FROM tail WHERE id = ?`, id, source) }
		if !w.see(logs.Block{Bound: math.MaxInt64, Last: logs.ID(id), Lines: body}) {
			return false, nil
		}
	}
	return true, rows.Err()
}

// lines reads one row's. What cannot be unpacked has none.
func (w *walk) lines(query string, number, source int64) ([]logs.Line, error) {
	var body []byte
	if err := w.tx.QueryRowContext(w.ctx, query, number).Scan(&body); err != nil {
		return nil, err
	}
	lines, err := unpackLines(body, w.sources[source])
	if err != nil {
		w.skip(number, err)
	}
	return lines, nil
}

// window shows the newest chunks that are left, and tells how far it went.
func (w *walk) window() (more bool, err error) {
	var low, bound, newest int64
	err = w.tx.QueryRowContext(w.ctx, `SELECT min(number), max(bound), max(number) FROM
		(SELECT number, bound FROM chunks WHERE number <= ? ORDER BY number DESC LIMIT ?) HAVING count(*) > 0`, w.high, walkWindow).Scan(&low, &bound, &newest)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil || bound < w.since || !w.see(logs.Block{Bound: logs.ID(bound)}) {
		return false, err
	}
	w.high = low - 1
	query := `SELECT number, source, first, last, bound, oldest FROM chunks WHERE number BETWEEN ? AND ? ORDER BY number DESC`
	values := []any{low, newest}
	if w.match != "" {
		query = `SELECT number, source, first, last, bound, oldest FROM words CROSS JOIN chunks ON number = words.rowid
			WHERE words MATCH ? AND words.rowid BETWEEN ? AND ? ORDER BY words.rowid DESC`
		values = []any{w.match, low, newest}
	}
	rows, err := w.tx.QueryContext(w.ctx, query, values...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var number, source, first, last, bound, oldest int64
		if err := rows.Scan(&number, &source, &first, &last, &bound, &oldest); err != nil {
			return false, err
		}
		if w.sources[source] == "" || first >= w.before || oldest >= w.end || last < w.since {
			continue
		}
		body := func() ([]logs.Line, error) {
			return w.lines(`SELECT body FROM bodies WHERE number = ?`, number, source)
		}
		if !w.see(logs.Block{Bound: logs.ID(bound), Last: logs.ID(last), Lines: body}) {
			return false, nil
		}
	}
	return true, rows.Err()
}

// each reads the lines of a sandbox, from the rows of one query after those of the other, until see returns false.
func (w *walk) each(source int64, id logs.ID, see func([]logs.Line) bool, queries ...string) error {
	for _, query := range queries {
		more, err := w.eachOf(source, id, see, query)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (w *walk) eachOf(source int64, id logs.ID, see func([]logs.Line) bool, query string) (more bool, err error) {
	rows, err := w.tx.QueryContext(w.ctx, query, source, int64(id))
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var body sql.RawBytes
		if err := rows.Scan(&number, &body); err != nil {
			return false, err
		}
		lines, err := unpackLines(body, w.sources[source])
		if err != nil {
			w.skip(number, err)
		}
		if !see(lines) {
			return false, nil
		}
	}
	return true, rows.Err()
}

// Before implements logs.Store.
func (l *Logs) Before(ctx context.Context, sandbox string, id logs.ID, page logs.Page) (out []logs.Line, err error) {
	err = l.near(ctx, sandbox, func(w *walk, source int64) error {
		out = nil
		page := page
		return w.each(source, id, func(lines []logs.Line) bool {
			out = take(out, &page, slices.Backward(lines[:startAfter(lines, int64(id)-1)]))
			return !page.Full()
		},
			`SELECT id, body FROM tail WHERE source = ?1 AND first < ?2 ORDER BY id DESC`,
			`SELECT number, body FROM chunks JOIN bodies USING (number) WHERE source = ?1 AND first < ?2 AND
				last <= coalesce((SELECT min(last) FROM chunks WHERE source = ?1 AND last >= ?2), ?2) ORDER BY last DESC`)
	})
	slices.Reverse(out)
	return out, err
}

// take adds lines to those of a page, until that is full.
func take(out []logs.Line, page *logs.Page, lines iter.Seq2[int, logs.Line]) []logs.Line {
	for _, l := range lines {
		if page.Full() {
			break
		}
		page.Take(&l)
		out = append(out, alone(l))
	}
	return out
}

// alone is a line that does not keep those in memory that it was read with.
func alone(l logs.Line) logs.Line {
	l.Text = strings.Clone(l.Text)
	return l
}

// From implements logs.Store.
func (l *Logs) From(ctx context.Context, sandbox string, id logs.ID, page logs.Page) (out []logs.Line, err error) {
	err = l.near(ctx, sandbox, func(w *walk, source int64) error {
		out = nil
		page := page
		return w.each(source, id, func(lines []logs.Line) bool {
			out = take(out, &page, slices.All(lines[startAfter(lines, int64(id)-1):]))
			return !page.Full()
		},
			`SELECT number, body FROM chunks JOIN bodies USING (number) WHERE source = ?1 AND last >= ?2 ORDER BY last`,
			`SELECT id, body FROM tail WHERE source = ?1 AND id >= ?2 ORDER BY id`)
	})
	return out, err
}

// near runs f for one sandbox, if there are lines of it.
func (l *Logs) near(ctx context.Context, sandbox string, f func(w *walk, source int64) error) error {
	return l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		w := &walk{ctx: ctx, tx: tx, look: logs.Look{Scope: logs.Only(sandbox)}, skip: l.skip}
		if err := w.findSources(); err != nil {
			return err
		}
		for source := range w.sources {
			return f(w, source)
		}
		return nil
	})
}

// Line implements logs.Store.
func (l *Logs) Line(ctx context.Context, id logs.ID) (out logs.Line, err error) {
	err = l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		w := &walk{ctx: ctx, tx: tx, look: logs.Look{Scope: logs.All()}, skip: l.skip}
		if err := w.findSources(); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT source, body FROM tail WHERE first <= ?1 AND id >= ?1
			UNION ALL SELECT source, body FROM chunks JOIN bodies USING (number) WHERE first <= ?1 AND last >= ?1`, int64(id))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var source int64
			var body sql.RawBytes
			if err := rows.Scan(&source, &body); err != nil {
				return err
			}
			lines, _ := unpackLines(body, w.sources[source]) // a damaged one has none
			if at := startAfter(lines, int64(id)-1); at < len(lines) && lines[at].ID == id {
				out = lines[at]
				return nil
			}
		}
		return errors.Join(rows.Err(), fault.New(fault.NotFound, "There is no such log line. It may have been deleted, as old lines are."))
	})
	return out, err
}
