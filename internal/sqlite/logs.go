package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync/atomic"

	"sandboxd/internal/logs"
)

// logsSchema: times are microseconds. A chunk's number grows with its bound, above which no line of it and of those before it is.
// Lines that do not fill a chunk yet are in tail, whose id is that of its last line; they are in no index.
const logsSchema = `
CREATE TABLE sources (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE chunks (number INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
	bound INTEGER NOT NULL, oldest INTEGER NOT NULL, lines INTEGER NOT NULL, text INTEGER NOT NULL, stored INTEGER NOT NULL) STRICT;
CREATE INDEX chunks_of ON chunks (source, last);
CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE tail (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, first INTEGER NOT NULL, oldest INTEGER NOT NULL,
	lines INTEGER NOT NULL, text INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE INDEX tail_of ON tail (source);
CREATE VIRTUAL TABLE words USING fts5(word, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_#@!'");
INSERT INTO words (words, rank) VALUES ('deletemerge', 40)` // percent: parts of the index with more of deleted chunks are written anew; with the usual 10 that is too often

const (
	chunkLines = 500
	chunkText  = 256 << 10 // bytes of its lines
	tailRows   = 16        // of one sandbox, before they become one
)

// Logs keeps the lines that sandboxes write, in a file of its own that may be deleted. It implements logs.Store.
type Logs struct {
	file replaceable
	last atomic.Int64 // ID of the last line
}

var _ logs.Store = (*Logs)(nil)

// OpenLogs opens the file, making it if it is not there. A damaged one is set aside. When that cannot be done now, such as on a full
// disk, calls are Unavailable until it can be. The caller must Close it.
func OpenLogs(ctx context.Context, path string, log *slog.Logger) *Logs {
	more := url.Values{"_auto_vacuum": {"incremental"}, "_pragma": {"journal_size_limit(67108864)"}}
	l := &Logs{file: replaceable{path: path, steps: []string{logsSchema, keptSchema}, more: more, log: log}}
	l.file.open(ctx)
	err := l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		last, err := lastLine(ctx, tx)
		l.last.Store(last)
		return err
	})
	if err != nil {
		log.Warn("it is not known which line of the logs is the last one", "error", err)
	}
	return l
}

// Close waits for running transactions and closes the file.
func (l *Logs) Close() error { return l.file.close() }

// Last implements logs.Store.
func (l *Logs) Last() logs.ID { return logs.ID(l.last.Load()) }

func lastLine(ctx context.Context, tx *sql.Tx) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT max(coalesce((SELECT id FROM tail ORDER BY id DESC LIMIT 1), 0),
		coalesce((SELECT bound FROM chunks ORDER BY number DESC LIMIT 1), 0))`).Scan(&id)
	return id, err
}

// Add implements logs.Store.
func (l *Logs) Add(ctx context.Context, lines []logs.Line) error {
	if len(lines) == 0 {
		return nil
	}
	err := l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		last, err := lastLine(ctx, tx)
		if err != nil {
			return err
		}
		lines := lines[startAfter(lines, last):]
		if len(lines) == 0 {
			return nil
		}
		a := &addition{ctx: ctx, tx: tx, bound: lines[len(lines)-1].ID}
		return a.add(lines)
	})
	if err == nil {
		l.last.Store(int64(lines[len(lines)-1].ID))
	}
	return err
}

// startAfter finds the first line above an ID.
func startAfter(lines []logs.Line, id int64) int {
	i, _ := slices.BinarySearchFunc(lines, logs.ID(id+1), func(l logs.Line, id logs.ID) int { return cmp.Compare(l.ID, id) })
	return i
}

// addition is a batch on its way into the file.
type addition struct {
	ctx    context.Context
	tx     *sql.Tx
	bound  logs.ID
	chunks []newChunk
}

// newChunk is a full one.
type newChunk struct {
	source int64
	lines  []logs.Line
}

func (a *addition) add(lines []logs.Line) error {
	by := map[string][]logs.Line{}
	for _, l := range lines {
		by[l.Sandbox] = append(by[l.Sandbox], l)
	}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		source, err := a.source(id)
		if err != nil {
			return err
		}
		if err := a.extend(source, id, by[id]); err != nil {
			return err
		}
	}
	slices.SortFunc(a.chunks, func(x, y newChunk) int { return cmp.Compare(x.lines[len(x.lines)-1].ID, y.lines[len(y.lines)-1].ID) })
	for _, c := range a.chunks {
		if err := a.chunk(c); err != nil {
			return err
		}
	}
	return nil
}

// source gives the number of a sandbox, making one if there is none.
func (a *addition) source(id string) (number int64, err error) {
	err = a.tx.QueryRowContext(a.ctx, `SELECT number FROM sources WHERE id = ?`, id).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = a.tx.QueryRowContext(a.ctx, `INSERT INTO sources (id) VALUES (?) RETURNING number`, id).Scan(&number)
	}
	return number, err
}

// extend puts lines behind the tail of a sandbox, and takes full chunks out of it.
func (a *addition) extend(source int64, id string, lines []logs.Line) error {
	var rows, count, text int
	err := a.tx.QueryRowContext(a.ctx, `SELECT count(*), coalesce(sum(lines), 0), coalesce(sum(text), 0) FROM tail WHERE source = ?`, source).Scan(&rows, &count, &text)
	if err != nil {
		return err
	}
	for _, l := range lines {
		text += len(l.Text)
	}
	full := count+len(lines) >= chunkLines || text >= chunkText
	if full || rows >= tailRows {
		if lines, err = a.takeTail(source, id, lines); err != nil {
			return err
		}
	}
	for full {
		var n int
		if n, full = fills(lines); full {
			a.chunks = append(a.chunks, newChunk{source, lines[:n]})
			lines = lines[n:]
		}
	}
	return a.tail(source, lines)
}

// fills tells how many lines make a full chunk, if there are enough.
func fills(lines []logs.Line) (n int, full bool) {
	text := 0
	for i, l := range lines {
		if text += len(l.Text); i+1 >= chunkLines || text >= chunkText {
			return i + 1, true
		}
	}
	return len(lines), false
}

// takeTail takes the tail of a sandbox out of the file, and gives it with lines behind. A part that cannot be read is left out.
func (a *addition) takeTail(source int64, id string, lines []logs.Line) (out []logs.Line, err error) {
	rows, err := a.tx.QueryContext(a.ctx, `SELECT body FROM tail WHERE source = ? ORDER BY id`, source)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var body sql.RawBytes
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if part, err := unpackLines(body, id); err == nil {
			out = append(out, part...)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	_, err = a.tx.ExecContext(a.ctx, `DELETE FROM tail WHERE source = ?`, source)
	return append(out, lines...), err
}

// tail puts lines that do not fill a chunk yet into the file.
func (a *addition) tail(source int64, lines []logs.Line) error {
	if len(lines) == 0 {
		return nil
	}
	s := sumOf(lines)
	_, err := a.tx.ExecContext(a.ctx, `INSERT INTO tail VALUES (?, ?, ?, ?, ?, ?, ?)`, s.last, source, s.first, s.oldest, len(lines), s.text, packLines(lines))
	return err
}

// chunk puts a full one into the file.
func (a *addition) chunk(c newChunk) error {
	body, index := packLines(c.lines), indexText(c.source, c.lines)
	s := sumOf(c.lines)
	var number int64
	err := a.tx.QueryRowContext(a.ctx, `INSERT INTO chunks (source, first, last, bound, oldest, lines, text, stored) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number`,
		c.source, s.first, s.last, a.bound, s.oldest, len(c.lines), s.text, storedSize(body, index)).Scan(&number)
	if err != nil {
		return err
	}
	if _, err := a.tx.ExecContext(a.ctx, `INSERT INTO bodies VALUES (?, ?)`, number, body); err != nil {
		return err
	}
	_, err = a.tx.ExecContext(a.ctx, `INSERT INTO words (rowid, word) VALUES (?, ?)`, number, index)
	return err
}

// lineSum is what a chunk's row tells of its lines.
type lineSum struct{ first, last, oldest, text int64 }

func sumOf(lines []logs.Line) lineSum {
	s := lineSum{first: int64(lines[0].ID), last: int64(lines[len(lines)-1].ID), oldest: lines[0].Time.UnixMicro()}
	for _, l := range lines {
		s.oldest = min(s.oldest, l.Time.UnixMicro())
		s.text += int64(len(l.Text))
	}
	return s
}
