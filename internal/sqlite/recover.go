package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"

	lib "modernc.org/sqlite/lib"

	"sandboxd/internal/fault"
)

// asideSuffix and a time follow the name of the database in the name of a damaged one.
const asideSuffix = ".damaged-"

// asIs opens a file without changing it.
var asIs = url.Values{"mode": {"ro"}, "_journal_mode": nil, "_synchronous": nil}

// Recover replaces a damaged database by a new one that has every row that can still be read from either end of its
// table. The damaged file stays beside it, as "<path>.damaged-<time>". A healthy file, or none, is left alone. No other
// process may have the file open. If it is cut off, the next call loses no more rows than one would. Unavailable when the
// disk does not let it.
func Recover(ctx context.Context, path string, log *slog.Logger) error {
	whole, cutOff := os.Stat(path + ".recovered") // there if the last call was cut off between its renames
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if cutOff != nil {
			return nil
		}
		log.Warn("finishing a recovery of the database that was cut off", "database", path)
		return unavailable(path, rename(moves(path, whole)[1:]))
	}
	old, err := sql.Open("sqlite", address(path, asIs))
	if err != nil {
		return err
	}
	defer old.Close()
	var found string
	err = old.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found)
	if err == nil && found == "ok" || err != nil && !damaged(err) { // also what only Open can say
		if cutOff != nil {
			return nil
		}
		aside := moves(path, whole)[1][1] + "-recovered"
		log.Error("a database was put in place of one whose recovery was cut off; keeping it, and what was recovered aside",
			"database", path, "recovered_file", aside)
		return unavailable(path, os.Rename(path+".recovered", aside))
	}
	log.Error("the database is damaged; keeping what can be read of it", "database", path, "damaged_file", path+asideSuffix+"*", "found", found, "error", err)
	if err = salvage(ctx, old, path+".new", log); err == nil {
		if whole, err = os.Stat(path + ".new"); err == nil {
			err = rename(moves(path, whole))
		}
	}
	return unavailable(path, err)
}

func unavailable(path string, err error) error {
	return fault.Wrap(err, fault.Unavailable, "The database %s is damaged, and cannot be recovered from: %v. Bring it back from a copy, "+
		"or move it away to begin with an empty one.", path, err)
}

// moves are the renames that put whole, the finished new database, in place. The first says that it is whole. After the
// second the damaged one, which then loses its -wal, is never read again.
func moves(path string, whole fs.FileInfo) [][2]string {
	aside := path + asideSuffix + whole.ModTime().UTC().Format("20060102-150405") // the same after a crash
	return [][2]string{
		{path + ".new", path + ".recovered"}, {path, aside}, {path + "-wal", aside + "-wal"}, {path + "-shm", aside + "-shm"},
		{path + ".recovered", path},
	}
}

// rename makes the moves in order. Files that are not there are left out.
func rename(moves [][2]string) error {
	for _, m := range moves {
		if err := os.Rename(m[0], m[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SandboxIDs gives the ids that the database at path has, without changing it; none when there is no file.
func SandboxIDs(ctx context.Context, path string) ([]string, error) {
	return readIDs(ctx, path, `SELECT coalesce(group_concat(id), '') FROM sandboxes`)
}

// VolumeIDs is the same of volumes. A database of an earlier version has none.
func VolumeIDs(ctx context.Context, path string) ([]string, error) {
	known, err := readIDs(ctx, path, `SELECT count(*) FROM sqlite_schema WHERE name = 'volumes'`)
	if err != nil || len(known) == 0 || known[0] == "0" {
		return nil, err
	}
	return readIDs(ctx, path, `SELECT coalesce(group_concat(id), '') FROM volumes`)
}

// readIDs splits the word that a query gives.
func readIDs(ctx context.Context, path, query string) (ids []string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	d, err := openAsIs(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var all string
	err = d.QueryRowContext(ctx, query).Scan(&all)
	return strings.Split(all, ","), err
}

func damaged(err error) bool {
	return primary(err) == lib.SQLITE_CORRUPT || primary(err) == lib.SQLITE_NOTADB
}

// salvage makes a database at path from what can be read of old.
func salvage(ctx context.Context, old *sql.DB, path string, log *slog.Logger) (err error) {
	for _, part := range []string{"", "-wal", "-shm"} { // of an attempt that was cut off
		if err := os.Remove(path + part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	d, err := connect(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	version := newest()
	if err := old.QueryRowContext(ctx, `SELECT max(version) FROM migrations`).Scan(&version); err != nil {
		log.Error("the version of the damaged database cannot be read", "taken_for", version, "error", err)
	}
	if version > newest() {
		return fault.New(fault.Conflict, "it was written by a newer sandboxd")
	}
	if err := d.migrate(ctx, version, nil); err != nil {
		return err
	}
	var tables string // each after those that it refers to, with what its rows are stored by
	err = d.writer.QueryRowContext(ctx, `SELECT group_concat(name || iif(sql LIKE '%WITHOUT ROWID', ' 1', ' rowid'), ',' ORDER BY rowid)
		FROM sqlite_schema WHERE type = 'table' AND name <> 'migrations'`).Scan(&tables)
	if err != nil {
		return err
	}
	for _, t := range strings.Split(tables, ",") {
		name, order, _ := strings.Cut(t, " ")
		err := d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			kept := 0
			for _, direction := range []string{" ASC", " DESC", " DESC"} { // from the first on; where that breaks off, from the last back, and once more for rows that came before their parents
				n, err := copyRows(ctx, old, tx, name, order+direction)
				if kept += n; err == nil {
					break
				}
				log.Error("rows of the damaged database are lost", "table", name, "reading", direction, "error", err)
			}
			log.Warn("recovered a table", "table", name, "rows", kept)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	if err := d.migrate(ctx, newest(), nil); err != nil {
		return err
	}
	// All of it has to be in the file that is renamed. Close would move it there as well, but say nothing when the disk is full.
	var busy, frames, moved int
	err = d.writer.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = errors.New("the new database is in use")
	}
	return err
}

// copyRows copies the rows of a table until one cannot be read. One that belongs to a lost one, or makes no sense, is left out.
func copyRows(ctx context.Context, old *sql.DB, tx *sql.Tx, table, order string) (kept int, err error) {
	rows, err := old.QueryContext(ctx, "SELECT * FROM "+table+" ORDER BY "+order)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	insert := "INSERT OR IGNORE INTO " + table + " VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	var refused error
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return kept, err
		}
		done, err := tx.ExecContext(ctx, insert, values...)
		if err != nil {
			refused = err
			continue
		}
		n, _ := done.RowsAffected() // SQLite's never fails
		kept += int(n)
	}
	return kept, errors.Join(rows.Err(), refused)
}
