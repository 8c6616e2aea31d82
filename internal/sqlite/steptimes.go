package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// maxStepTimes is how many steps are known: some for each instruction of each template.
const maxStepTimes = 2000

// StepTimes keeps how long steps of work took. It implements pace.Store.
type StepTimes struct{ db *DB }

// Times gives the store of it in this database.
func (d *DB) Times() *StepTimes { return &StepTimes{d} }

// StepTimes implements pace.Store.
func (s *StepTimes) StepTimes(ctx context.Context) (map[string]time.Duration, error) {
	times := map[string]time.Duration{}
	err := s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT key, took FROM step_times`)
		if err != nil {
			return err
		}
		_, err = collect(rows, func(r row) (key string, err error) {
			var took int64
			err = r.Scan(&key, &took)
			times[key] = time.Duration(took) * time.Millisecond
			return key, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list times of steps: %w", err)
	}
	return times, nil
}

// PutStepTimes implements pace.Store.
func (s *StepTimes) PutStepTimes(ctx context.Context, times map[string]time.Duration) error {
	const put = `INSERT INTO step_times (key, took, put) VALUES (?,?,?) ON CONFLICT (key) DO UPDATE SET took = excluded.took, put = excluded.put`
	now := stamp(time.Now())
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for key, took := range times {
			if _, err := tx.ExecContext(ctx, put, key, took.Milliseconds(), now); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM step_times WHERE key NOT IN (SELECT key FROM step_times ORDER BY put DESC, key LIMIT ?)`, maxStepTimes)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep times of steps: %w", err)
	}
	return nil
}
