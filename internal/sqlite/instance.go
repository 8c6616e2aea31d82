package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sandboxd/internal/fault"
)

// InstanceFile is the name of the file beside the database that holds the instance too.
const InstanceFile = "instance"

var instancePattern = regexp.MustCompile(`^[0-9a-f]{8}$`)

// Instance gives the random name of this data folder, 8 hex digits, made once. What sandboxd makes on an engine
// carries it, so that two sandboxds on one engine tell theirs apart. It also stands in InstanceFile: a database without one
// takes that, so that our containers on the engine are still known as ours after the database was lost.
func (d *DB) Instance(ctx context.Context) (id string, err error) {
	file := filepath.Join(filepath.Dir(d.path), InstanceFile)
	kept, err := ReadInstance(file)
	if err != nil {
		return "", err
	}
	fresh := kept
	if fresh == "" {
		var b [4]byte
		rand.Read(b[:]) // never fails since Go 1.24
		fresh = hex.EncodeToString(b[:])
	}
	err = d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const insert = `INSERT INTO meta (key, value) VALUES ('instance', ?) ON CONFLICT DO NOTHING`
		if _, err := tx.ExecContext(ctx, insert, fresh); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = 'instance'`).Scan(&id)
	})
	if err != nil {
		return "", fmt.Errorf("name this data folder: %w", err)
	}
	if id == kept {
		return id, nil
	}
	return id, writeInstance(file, id)
}

// ReadInstance gives the instance that stands in file, "" when it has none.
func ReadInstance(file string) (string, error) {
	text, err := os.ReadFile(file)
	if id := strings.TrimSpace(string(text)); instancePattern.MatchString(id) {
		return id, nil
	}
	if os.IsNotExist(err) {
		err = nil
	}
	return "", fault.Wrap(err, fault.Unavailable, "The file %s cannot be read: %v.", file, err)
}

func writeInstance(file, id string) error {
	err := os.WriteFile(file+".new", []byte(id+"\n"), fileMode)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	return fault.Wrap(err, fault.Unavailable, "The file %s cannot be written: %v.", file, err)
}
