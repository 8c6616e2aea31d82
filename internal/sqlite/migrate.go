package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// The files are named NNNN_what.sql, numbered from 1 without gaps. A file that was released is never changed.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration brings a database from version-1 to version.
type migration struct {
	version int
	name    string
	script  string
}

var migrations = mustLoad(migrationFiles)

// newest is the version that this program reads and writes.
func newest() int { return len(migrations) }

// mustLoad reads the embedded files; a wrong number is a mistake in this program and stops every test of it.
func mustLoad(files embed.FS) []migration {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		panic(err)
	}
	var all []migration
	for i, name := range names {
		script, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		number, title, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".sql"), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			panic(fmt.Sprintf("migration %s should have number %04d", name, i+1))
		}
		all = append(all, migration{version: i + 1, name: title, script: string(script)})
	}
	return all
}

// migrate brings the database to version target, which is newest except in tests. Each step and its row in the table
// of versions are one transaction, so that a crash between steps loses nothing; of several processes one does each step.
func (d *DB) migrate(ctx context.Context, target int) error {
	have, err := d.version(ctx)
	if err != nil {
		return err
	}
	if have > newest() {
		return fault.New(fault.Conflict, "The database %s was written by a newer sandboxd (its version is %d, this program "+
			"knows up to %d). Use the newer program, or another data folder.", d.path, have, newest())
	}
	for _, m := range migrations[have:max(have, target)] {
		if err := d.apply(ctx, m); err != nil {
			return fmt.Errorf("bring database to version %d (%s): %w", m.version, m.name, err)
		}
	}
	return nil
}

// version gives the version of the file, 0 for an empty one, and makes sure of the table of versions.
func (d *DB) version(ctx context.Context) (v int, err error) {
	err = d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const table = `CREATE TABLE IF NOT EXISTS migrations
			(version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied INTEGER NOT NULL) STRICT`
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return fmt.Errorf("make the table of versions: %w", err)
		}
		v, err = lastVersion(ctx, tx)
		return err
	})
	return v, err
}

func lastVersion(ctx context.Context, tx *sql.Tx) (v int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&v)
	if err != nil {
		return 0, fmt.Errorf("read version: %w", err)
	}
	return v, nil
}

func (d *DB) apply(ctx context.Context, m migration) error {
	return d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		have, err := lastVersion(ctx, tx)
		if err != nil || have >= m.version { // another process was quicker
			return err
		}
		if _, err := tx.ExecContext(ctx, m.script); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO migrations (version, name, applied) VALUES (?, ?, ?)`,
			m.version, m.name, stamp(time.Now()))
		return err
	})
}
