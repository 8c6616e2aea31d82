// Package sqlite keeps what must outlive the process: sandboxes, their ports' rules, users, sessions and tokens, in one SQLite file.
//
// It decides nothing: the domain knows which states a sandbox may have and who may do what. No SQL and no driver's word
// leaves it.
//
// Invariant: what write has reported as done is in the file, whole; what it has reported as failed is not in it at all.
// All changes go through the one writer connection, in transactions that begin by taking the write lock; all reads go
// through connections that cannot write.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	readers  = 4                // connections; each keeps about 2 MiB of pages
	busyWait = 5 * time.Second  // for another process, such as the command line, to let go of the file
	patience = 10 * time.Second // for a transaction as a whole: its turn, the lock, and the work
	fileMode = 0o600            // env values and password hashes are nobody else's business
)

// DB is an open database file. All methods are safe for concurrent use, and several processes may have the same file
// open.
type DB struct {
	path   string
	name   string  // in messages: the path for who starts sandboxd, then that of the file alone, for all users
	aside  bool    // a damaged one is replaced at once
	writer *sql.DB // one connection
	reader *sql.DB
	ready  readiness
}

// Open opens the file, making it with its folder if it is not there. Kinds: Conflict if a program of another version has written it,
// newer or older (see Upgrade), Unavailable if it cannot be used now. The caller must Close it.
func Open(ctx context.Context, path string) (*DB, error) {
	d, err := connect(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := d.prepare(ctx); err != nil {
		return nil, fmt.Errorf("open database: %w", errors.Join(err, d.Close()))
	}
	d.name = filepath.Base(d.path)
	return d, nil
}

// connect makes the file and both handles, without using them yet.
func connect(path string) (*DB, error) {
	d := &DB{path: path}
	return d, d.connect(nil)
}

// connect makes the file and both handles. more are pragmas for the writer.
func (d *DB) connect(more url.Values) (err error) {
	if d.path, err = filepath.Abs(d.path); err != nil {
		return fmt.Errorf("find path: %w", err)
	}
	if d.name == "" {
		d.name = d.path
	}
	if err := makeFile(d.path); err != nil {
		return d.unavailable(err, "The database %s cannot be made or used: check that sandboxd may write to its folder, and that the disk "+
			"is not full.")
	}
	own := url.Values{"_txlock": {"immediate"}}
	maps.Copy(own, more)
	if d.writer, err = sql.Open("sqlite", address(d.path, own)); err != nil {
		return fmt.Errorf("make writer: %w", err)
	}
	if d.reader, err = sql.Open("sqlite", address(d.path, url.Values{"_query_only": {"on"}})); err != nil {
		return fmt.Errorf("make readers: %w", errors.Join(err, d.writer.Close()))
	}
	d.writer.SetMaxOpenConns(1)
	d.reader.SetMaxOpenConns(readers)
	d.reader.SetMaxIdleConns(readers)
	return nil
}

// prepare connects for the first time, writer first: it turns the file to WAL, which readers then find.
func (d *DB) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.converge(ctx); err != nil {
		return d.fault(ctx, err)
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	return d.fault(ctx, d.reader.PingContext(ctx))
}

// converge connects the writer. Turning a new file to WAL fails at once while another process does the same (SQLite
// calls that a deadlock and does not wait), so it is tried again.
func (d *DB) converge(ctx context.Context) error {
	for {
		err := d.writer.PingContext(ctx)
		if err == nil || !busy(err) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// Close waits for running transactions and closes the file.
func (d *DB) Close() error {
	err := errors.Join(d.reader.Close(), d.writer.Close()) // the writer last: it empties the log into the file
	if err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// makeFile makes the file if there is none, and makes sure that others cannot read it. It never opens a file that is
// there: closing it would drop the locks that this process holds on it.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		had, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if had.Mode().Perm()&^fileMode == 0 {
			continue
		}
		if err := os.Chmod(name, fileMode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// address is the data source of a connection: pragmas stand in it so that every connection has them. The driver sets
// the busy timeout first and query_only last.
func address(path string, more url.Values) string {
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(busyWait.Milliseconds())},
		"_journal_mode": {"WAL"},
		"_foreign_keys": {"on"},
		"_synchronous":  {"NORMAL"}, // a power cut may take the last moments, never the file's health
		"_dqs":          {"0"},
	}
	for k, v := range more {
		q[k] = v
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}
	return u.String()
}

// write runs change in a transaction that holds the write lock, and gives the commit's error: nil means that it is
// kept. change must not call the DB, which would wait for itself.
func (d *DB) write(ctx context.Context, change func(ctx context.Context, tx *sql.Tx) error) error {
	return d.within(ctx, d.writer, nil, change)
}

// read runs look in a transaction that sees one state of everything.
func (d *DB) read(ctx context.Context, look func(ctx context.Context, tx *sql.Tx) error) error {
	return d.within(ctx, d.reader, &sql.TxOptions{ReadOnly: true}, look)
}

func (d *DB) within(ctx context.Context, db *sql.DB, o *sql.TxOptions, f func(context.Context, *sql.Tx) error) (err error) {
	return d.bounded(ctx, db, o, patience, f)
}

func (d *DB) bounded(ctx context.Context, db *sql.DB, o *sql.TxOptions, limit time.Duration, f func(context.Context, *sql.Tx) error) (err error) {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tx, err := db.BeginTx(inner, o)
	if err != nil {
		return d.fault(ctx, err)
	}
	defer func() {
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
			err = errors.Join(err, d.fault(ctx, back))
		}
	}()
	if err := f(inner, tx); err != nil {
		return d.fault(ctx, err)
	}
	return d.fault(ctx, tx.Commit())
}
