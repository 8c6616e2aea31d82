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

// migrateLimit bounds a migration as a whole.
const migrateLimit = 10 * time.Minute

// begin makes an empty database one of this program's version, and refuses any other version: only Upgrade changes that.
func (d *DB) begin(ctx context.Context) error {
	return d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		have, err := version(ctx, tx)
		switch {
		case err != nil:
			return err
		case have == 0:
			return steps(ctx, tx, migrations)
		case have > newest():
			return d.newer(ctx, tx, have)
		case have < newest():
			return fault.New(fault.Conflict, "The database %s is of an older sandboxd (its version is %d, this program's is %d). Start 'sandboxd serve' of this "+
				"program: it keeps a copy, and upgrades the database.", d.path, have, newest())
		}
		return nil
	})
}

// migrate brings the database to version target, which is newest except in tests and recoveries. All steps are one transaction, so that
// one that fails leaves the database as it was; so is then, unless it is nil.
func (d *DB) migrate(ctx context.Context, target int, then func(context.Context, *sql.Tx) error) error {
	return d.bounded(ctx, d.writer, nil, migrateLimit, func(ctx context.Context, tx *sql.Tx) error {
		have, err := version(ctx, tx)
		if err != nil {
			return err
		}
		if have > newest() {
			return d.newer(ctx, tx, have)
		}
		err = steps(ctx, tx, migrations[have:max(have, target)])
		if err == nil && then != nil {
			err = then(ctx, tx)
		}
		return err
	})
}

// version gives the version of the file, 0 for an empty one, and makes sure of the table of versions.
func version(ctx context.Context, tx *sql.Tx) (v int, err error) {
	const table = `CREATE TABLE IF NOT EXISTS migrations
		(version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied INTEGER NOT NULL) STRICT`
	if _, err := tx.ExecContext(ctx, table); err != nil {
		return 0, fmt.Errorf("make the table of versions: %w", err)
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&v)
	if err != nil {
		return 0, fmt.Errorf("read version: %w", err)
	}
	return v, nil
}

// steps takes the database through migrations, each with its row in the table of versions.
func steps(ctx context.Context, tx *sql.Tx, all []migration) error {
	for _, m := range all {
		_, err := tx.ExecContext(ctx, m.script)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO migrations (version, name, applied) VALUES (?, ?, ?)`, m.version, m.name, stamp(time.Now()))
		}
		if err != nil {
			return fmt.Errorf("bring database to version %d (%s): %w", m.version, m.name, err)
		}
	}
	return nil
}
