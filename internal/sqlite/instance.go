package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
)

// Instance gives the random name of this data folder, 8 hex digits, made once. What sandboxd makes on an engine
// carries it, so that two sandboxds on one engine tell theirs apart.
func (d *DB) Instance(ctx context.Context) (id string, err error) {
	var b [4]byte
	rand.Read(b[:]) // never fails since Go 1.24
	err = d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const insert = `INSERT INTO meta (key, value) VALUES ('instance', ?) ON CONFLICT DO NOTHING`
		if _, err := tx.ExecContext(ctx, insert, hex.EncodeToString(b[:])); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = 'instance'`).Scan(&id)
	})
	if err != nil {
		return "", fmt.Errorf("name this data folder: %w", err)
	}
	return id, nil
}
