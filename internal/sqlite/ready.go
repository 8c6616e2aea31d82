package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

const readyEvery = 3 * time.Second

// readiness is what was found when it was last asked whether a database can be written.
type readiness struct {
	mu    sync.Mutex
	asked time.Time
	found error
}

// Ready asks whether the database can be written, at most every few seconds; in between it gives what it found last. Kind:
// Unavailable, such as for a full disk.
func (d *DB) Ready(ctx context.Context) error {
	d.ready.mu.Lock()
	asked, found := d.ready.asked, d.ready.found
	if time.Since(asked) >= readyEvery {
		d.ready.asked = time.Now()
	}
	d.ready.mu.Unlock()
	if time.Since(asked) < readyEvery {
		return found
	}
	err := d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO meta (key, value) VALUES ('ready', ?)`, time.Now().UTC().Format(time.RFC3339))
		return err
	})
	if ctx.Err() != nil { // which says nothing of the database
		return err
	}
	d.ready.mu.Lock()
	defer d.ready.mu.Unlock()
	d.ready.found = err
	return err
}
