package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"sandboxd/internal/logs"
)

const (
	deleteChunks = 128  // in one transaction, so that lines are written in between
	mergePages   = 250  // of the index, written anew in one transaction
	freePages    = 1024 // given back to the disk in one transaction
	freeSpare    = 512  // pages that are kept for lines to come
)

// Delete implements logs.Store.
func (l *Logs) Delete(ctx context.Context, sandbox string) error {
	for more := true; more; {
		err := l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			var source int64
			err := tx.QueryRowContext(ctx, `SELECT number FROM sources WHERE id = ?`, sandbox).Scan(&source)
			if errors.Is(err, sql.ErrNoRows) {
				more = false
				return nil
			}
			if err != nil {
				return err
			}
			numbers, err := chunkNumbers(ctx, tx, `SELECT number, stored FROM chunks WHERE source = ? ORDER BY last LIMIT ?`, source, deleteChunks)
			if err != nil {
				return err
			}
			if len(numbers) > 0 {
				return dropChunks(ctx, tx, numbers)
			}
			more = false
			if _, err := tx.ExecContext(ctx, `DELETE FROM tail WHERE source = ?`, source); err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, `DELETE FROM sources WHERE number = ?`, source)
			return err
		})
		if err != nil {
			return err
		}
	}
	return l.Unkeep(ctx, sandbox)
}

// sized is a chunk by its number, with what it takes.
type sized struct{ number, stored int64 }

func chunkNumbers(ctx context.Context, tx *sql.Tx, query string, values ...any) (out []sized, err error) {
	rows, err := tx.QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s sized
		if err := rows.Scan(&s.number, &s.stored); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func dropChunks(ctx context.Context, tx *sql.Tx, chunks []sized) error {
	for _, statement := range []string{`DELETE FROM words WHERE rowid = ?`, `DELETE FROM bodies WHERE number = ?`, `DELETE FROM chunks WHERE number = ?`} {
		prepared, err := tx.PrepareContext(ctx, statement)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			if _, err := prepared.ExecContext(ctx, c.number); err != nil {
				return errors.Join(err, prepared.Close())
			}
		}
		if err := prepared.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements logs.Store.
func (l *Logs) Sweep(ctx context.Context, limits logs.Limits, now time.Time) error {
	if limits.Age > 0 {
		if err := l.sweepAge(ctx, now.Add(-limits.Age).UnixMicro()); err != nil {
			return err
		}
	}
	if limits.Sandbox > 0 {
		over, err := l.largeSources(ctx, limits.Sandbox)
		for _, o := range over {
			if err != nil {
				break
			}
			err = l.dropOldest(ctx, o.stored-limits.Sandbox, `SELECT number, stored FROM chunks WHERE source = ? ORDER BY last LIMIT ?`, o.number, deleteChunks)
		}
		if err != nil {
			return err
		}
	}
	if limits.Total > 0 {
		var total int64
		err := l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, `SELECT coalesce(sum(stored), 0) FROM chunks`).Scan(&total)
		})
		if err != nil {
			return err
		}
		if err := l.dropOldest(ctx, total-limits.Total, `SELECT number, stored FROM chunks ORDER BY number LIMIT ?`, deleteChunks); err != nil {
			return err
		}
	}
	if err := l.sweepKept(ctx, now); err != nil {
		return err
	}
	return l.giveBack(ctx)
}

// sweepAge deletes what came before a time.
func (l *Logs) sweepAge(ctx context.Context, before int64) error {
	for n := deleteChunks; n == deleteChunks; {
		err := l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			old, err := chunkNumbers(ctx, tx, `SELECT number, stored FROM chunks WHERE last < ? ORDER BY number LIMIT ?`, before, deleteChunks)
			if err != nil {
				return err
			}
			n = len(old)
			return dropChunks(ctx, tx, old)
		})
		if err != nil {
			return err
		}
	}
	return l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM tail WHERE id < ?`, before); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM sources WHERE number NOT IN (SELECT source FROM chunks UNION SELECT source FROM tail)`)
		return err
	})
}

// largeSources gives the sandboxes that take more than limit.
func (l *Logs) largeSources(ctx context.Context, limit int64) (out []sized, err error) {
	err = l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		out, err = chunkNumbers(ctx, tx, `SELECT source, sum(stored) FROM chunks GROUP BY source HAVING sum(stored) > ?`, limit)
		return err
	})
	return out, err
}

// dropOldest deletes the chunks that query gives, which are the oldest, until excess bytes are gone.
func (l *Logs) dropOldest(ctx context.Context, excess int64, query string, values ...any) error {
	for excess > 0 {
		err := l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			oldest, err := chunkNumbers(ctx, tx, query, values...)
			if err != nil {
				return err
			}
			n := 0
			for n < len(oldest) && excess > 0 {
				excess -= oldest[n].stored
				n++
			}
			if n == 0 {
				excess = 0
			}
			return dropChunks(ctx, tx, oldest[:n])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// giveBack lets the index forget what was deleted, and gives free pages back to the disk, but for a spare.
func (l *Logs) giveBack(ctx context.Context) error {
	for more := true; more; {
		err := l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			more, err = mergeIndex(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	for more := true; more; {
		err := l.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			var free, all int64
			if err := tx.QueryRowContext(ctx, `SELECT f.freelist_count, p.page_count FROM pragma_freelist_count f, pragma_page_count p`).Scan(&free, &all); err != nil {
				return err
			}
			if more = free > freeSpare+all/16; !more {
				return nil
			}
			return vacuumPages(ctx, tx, freePages)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeIndex writes a part of the index anew, and reports whether there is more to do. SQLite says so by counting a second change.
func mergeIndex(ctx context.Context, tx *sql.Tx) (more bool, err error) {
	var before, after int
	if err := tx.QueryRowContext(ctx, `SELECT total_changes()`).Scan(&before); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO words (words, rank) VALUES ('merge', ?)`, mergePages); err != nil {
		return false, err
	}
	err = tx.QueryRowContext(ctx, `SELECT total_changes()`).Scan(&after)
	return after-before >= 2, err
}

// vacuumPages gives pages back: one for each row that the statement gives.
func vacuumPages(ctx context.Context, tx *sql.Tx, n int) error {
	rows, err := tx.QueryContext(ctx, `PRAGMA incremental_vacuum(`+strconv.Itoa(n)+`)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// Usage implements logs.Store.
func (l *Logs) Usage(ctx context.Context) (each []logs.Use, disk int64, err error) {
	err = l.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		each = nil
		rows, err := tx.QueryContext(ctx, `SELECT sources.id, sum(lines), sum(text), sum(stored), min(oldest), max(last) FROM sources JOIN
			(SELECT source, lines, text, stored, oldest, last FROM chunks UNION ALL SELECT source, lines, text, length(body), oldest, tail.id FROM tail)
			ON source = sources.number GROUP BY sources.id ORDER BY sources.id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var u logs.Use
			var oldest, newest int64
			if err := rows.Scan(&u.Sandbox, &u.Lines, &u.Text, &u.Stored, &oldest, &newest); err != nil {
				return err
			}
			u.Oldest, u.Newest = time.UnixMicro(oldest).UTC(), time.UnixMicro(newest).UTC()
			each = append(each, u)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, 0, err
	}
	for _, part := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(l.file.path + part)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		if err == nil {
			disk += info.Size()
		}
	}
	return each, disk, nil
}
