package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

// historySchema: times and durations are microseconds. A row of points has the sums and the largest values of one bucket.
const historySchema = `
CREATE TABLE series (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE points (
	series INTEGER NOT NULL, tier INTEGER NOT NULL, time INTEGER NOT NULL, measured INTEGER NOT NULL,
	cpu INTEGER NOT NULL, throttled INTEGER NOT NULL, memory INTEGER NOT NULL, cache INTEGER NOT NULL, memory_limit INTEGER NOT NULL,
	network_rx INTEGER NOT NULL, network_tx INTEGER NOT NULL, disk_read INTEGER NOT NULL, disk_write INTEGER NOT NULL,
	processes INTEGER NOT NULL, oom_kills INTEGER NOT NULL,
	PRIMARY KEY (series, tier, time)) STRICT, WITHOUT ROWID;
CREATE TABLE changes (series INTEGER NOT NULL, time INTEGER NOT NULL, state TEXT NOT NULL, mark TEXT NOT NULL,
	PRIMARY KEY (series, time)) STRICT, WITHOUT ROWID;
CREATE TABLE last_batch (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL) STRICT;
INSERT INTO last_batch VALUES (1, 0)`

// History keeps what sandboxes and their host have used, in a file of its own that may be deleted. It implements
// metrics.Store. A row takes about 64 bytes.
type History struct{ file replaceable }

// OpenHistory opens the file, making it if it is not there. A damaged one is set aside. When that cannot be done now, such as on a
// full disk, calls are Unavailable until it can be. The caller must Close it.
func OpenHistory(ctx context.Context, path string, log *slog.Logger) *History {
	h := &History{file: replaceable{path: path, steps: []string{historySchema}, log: log}}
	h.file.open(ctx)
	return h
}

// Close waits for running transactions and closes the file.
func (h *History) Close() error { return h.file.close() }

// Last implements metrics.Store.
func (h *History) Last(ctx context.Context) (seq int64, err error) {
	err = h.file.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		seq, err = lastBatch(ctx, tx)
		return err
	})
	return seq, err
}

func lastBatch(ctx context.Context, tx *sql.Tx) (seq int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT seq FROM last_batch`).Scan(&seq)
	return seq, err
}

// Add implements metrics.Store.
func (h *History) Add(ctx context.Context, b metrics.Batch) error {
	return h.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		last, err := lastBatch(ctx, tx)
		if err != nil || b.Seq <= last {
			return err
		}
		add, err := newAdding(ctx, tx)
		if err != nil {
			return err
		}
		defer add.close()
		for _, r := range b.Rows {
			if err := add.row(ctx, r); err != nil {
				return err
			}
		}
		for _, c := range b.Changes {
			if err := add.change(ctx, c); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE last_batch SET seq = ?`, b.Seq)
		return err
	})
}

const addRow = `INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT DO UPDATE SET measured = measured + excluded.measured, cpu = cpu + excluded.cpu, throttled = throttled + excluded.throttled,
	memory = max(memory, excluded.memory), cache = max(cache, excluded.cache), memory_limit = max(memory_limit, excluded.memory_limit),
	network_rx = network_rx + excluded.network_rx, network_tx = network_tx + excluded.network_tx,
	disk_read = disk_read + excluded.disk_read, disk_write = disk_write + excluded.disk_write,
	processes = max(processes, excluded.processes), oom_kills = oom_kills + excluded.oom_kills`

// adding is a batch on its way into the file.
type adding struct {
	tx      *sql.Tx
	rows    *sql.Stmt
	numbers map[string]int64 // of series, by id
}

func newAdding(ctx context.Context, tx *sql.Tx) (*adding, error) {
	rows, err := tx.PrepareContext(ctx, addRow)
	return &adding{tx, rows, map[string]int64{}}, err
}

func (a *adding) close() { a.rows.Close() } // the transaction's end would do it too

// series gives the number of an id, making one if there is none.
func (a *adding) series(ctx context.Context, id string) (number int64, err error) {
	if n, ok := a.numbers[id]; ok {
		return n, nil
	}
	err = a.tx.QueryRowContext(ctx, `SELECT number FROM series WHERE id = ?`, id).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		err = a.tx.QueryRowContext(ctx, `INSERT INTO series (id) VALUES (?) RETURNING number`, id).Scan(&number)
	}
	a.numbers[id] = number
	return number, err
}

func (a *adding) row(ctx context.Context, r metrics.TierRow) error {
	n, err := a.series(ctx, r.ID)
	if err != nil {
		return err
	}
	p := r.Row
	_, err = a.rows.ExecContext(ctx, n, time.Duration(r.Tier).Microseconds(), stamp(p.Time), p.Measured.Microseconds(),
		p.CPU.Microseconds(), p.Throttled.Microseconds(), p.Memory, p.Cache, p.MemoryLimit,
		p.NetworkRx, p.NetworkTx, p.DiskRead, p.DiskWrite, p.Processes, p.OOMKills)
	return err
}

func (a *adding) change(ctx context.Context, c metrics.SandboxChange) error {
	n, err := a.series(ctx, c.ID)
	if err != nil {
		return err
	}
	if _, err := a.tx.ExecContext(ctx, `DELETE FROM changes WHERE series = ? AND time > ?`, n, stamp(c.Change.Time)); err != nil {
		return err
	}
	_, err = a.tx.ExecContext(ctx, `INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?)`, n, stamp(c.Change.Time), string(c.Change.State), string(c.Change.Mark))
	return err
}

// Rows implements metrics.Store.
func (h *History) Rows(ctx context.Context, id string, t metrics.Tier, since, until time.Time) (out []metrics.Row, seq int64, err error) {
	err = h.file.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if seq, err = lastBatch(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT time, measured, cpu, throttled, memory, cache, memory_limit, network_rx, network_tx,
			disk_read, disk_write, processes, oom_kills FROM points JOIN series ON number = series
			WHERE id = ? AND tier = ? AND time >= ? AND time < ? ORDER BY time`,
			id, time.Duration(t).Microseconds(), since.UnixMicro(), until.UnixMicro())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var at, measured, cpu, throttled int64
			var r metrics.Row
			err := rows.Scan(&at, &measured, &cpu, &throttled, &r.Memory, &r.Cache, &r.MemoryLimit, &r.NetworkRx, &r.NetworkTx,
				&r.DiskRead, &r.DiskWrite, &r.Processes, &r.OOMKills)
			if err != nil {
				return err
			}
			r.Time, r.Measured = time.UnixMicro(at).UTC(), time.Duration(measured)*time.Microsecond
			r.CPU, r.Throttled = time.Duration(cpu)*time.Microsecond, time.Duration(throttled)*time.Microsecond
			out = append(out, r)
		}
		return rows.Err()
	})
	return out, seq, err
}

// Changes implements metrics.Store.
func (h *History) Changes(ctx context.Context, id string, since, until time.Time) (out []metrics.Change, seq int64, err error) {
	err = h.file.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		if seq, err = lastBatch(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `WITH this AS (SELECT number FROM series WHERE id = ?)
			SELECT time, state, mark FROM changes WHERE series = (SELECT number FROM this) AND time < ?2 AND time >=
				coalesce((SELECT max(time) FROM changes WHERE series = (SELECT number FROM this) AND time < ?3), ?3) ORDER BY time`,
			id, until.UnixMicro(), since.UnixMicro())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var at int64
			var state, mark string
			if err := rows.Scan(&at, &state, &mark); err != nil {
				return err
			}
			out = append(out, metrics.Change{Time: time.UnixMicro(at).UTC(), State: sandbox.State(state), Mark: metrics.Mark(mark)})
		}
		return rows.Err()
	})
	return out, seq, err
}

// Sweep implements metrics.Store. It deletes series by series, so that none of its transactions is long. What is older than
// all points also goes from the changes, but for the last one, which tells the state that came of it, unless that is its deletion.
func (h *History) Sweep(ctx context.Context, now time.Time) error {
	numbers, err := h.numbers(ctx)
	for _, n := range numbers {
		if err != nil {
			break
		}
		err = h.file.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return sweepSeries(ctx, tx, n, now) })
	}
	return err
}

func (h *History) numbers(ctx context.Context) (out []int64, err error) {
	err = h.file.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT number FROM series`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int64
			if err := rows.Scan(&n); err != nil {
				return err
			}
			out = append(out, n)
		}
		return rows.Err()
	})
	return out, err
}

func sweepSeries(ctx context.Context, tx *sql.Tx, number int64, now time.Time) error {
	const deletePoints = `DELETE FROM points WHERE series = ? AND tier = ? AND time < ?`
	coarse := now.Add(-metrics.CoarseLife).UnixMicro()
	_, err := tx.ExecContext(ctx, deletePoints, number, time.Duration(metrics.Medium).Microseconds(), now.Add(-metrics.MediumLife-metrics.CoarseStep).UnixMicro())
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, deletePoints, number, time.Duration(metrics.Coarse).Microseconds(), coarse); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM changes WHERE series = ?1 AND (time < (SELECT max(time) FROM changes WHERE series = ?1 AND time < ?2)
		OR time < ?2 AND state = ?3)`, number, coarse, string(sandbox.Deleting))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM series WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM points WHERE series = ?1)
		AND NOT EXISTS (SELECT 1 FROM changes WHERE series = ?1)`, number)
	return err
}
