package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// replaceable is a database file of its own that sandboxd can do without: one that is found damaged, also while it is open,
// is set aside as "<path>.damaged-<time>", and a new one takes its place. One that cannot be opened, such as on a full disk, is tried
// again when it is used. Safe for concurrent use.
type replaceable struct {
	path  string
	steps []string   // of the schema: each turns one version into the next, from an empty file on; a file of a newer version is set aside too
	more  url.Values // pragmas of its writer
	log   *slog.Logger

	mu     sync.RWMutex // held while a file takes the place of another
	db     *DB          // nil while it cannot be opened
	failed error        // why
	tried  time.Time
	closed bool
}

const reopenEvery = 5 * time.Second

// open opens the file, or a new one in its place. When the disk lets it do neither, that is logged, and done later.
func (r *replaceable) open(ctx context.Context) {
	if err := r.again(ctx); err != nil {
		r.log.Error("a database cannot be opened; sandboxd runs without it and tries again", "database", r.path, "error", err)
	}
}

// again opens the file if it is not open, at most every few seconds. Kind: Unavailable.
func (r *replaceable) again(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.db != nil:
		return nil
	case r.closed:
		return errClosed
	case time.Since(r.tried) < reopenEvery:
		return r.failed
	}
	late := !r.tried.IsZero()
	r.failed, r.tried = r.reopen(ctx), time.Now()
	if r.failed == nil && late {
		r.log.Info("a database can be opened again", "database", r.path)
	}
	return r.failed
}

func (r *replaceable) reopen(ctx context.Context) (err error) {
	for range 2 {
		if r.db, err = r.connect(ctx); err == nil || !damaged(err) && !errors.Is(err, errOtherVersion) {
			break
		}
		r.log.Error("a database is damaged or of another version; keeping it aside and beginning a new one", "database", r.path, "error", err)
		if err := setAside(r.path); err != nil {
			return r.stuck(err)
		}
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", r.path, err)
	}
	return nil
}

var errOtherVersion = errors.New("it was written by another version of sandboxd")

func (r *replaceable) connect(ctx context.Context) (*DB, error) {
	d := &DB{path: r.path, name: filepath.Base(r.path), aside: true}
	if err := d.connect(r.more); err != nil {
		return nil, err
	}
	d.reader.SetMaxOpenConns(readers + 1) // for the search of the alerts
	d.reader.SetMaxIdleConns(1)           // it is read now and then, and each keeps its pages
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.prepare(ctx, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (r *replaceable) prepare(ctx context.Context, d *DB) error {
	if err := d.converge(ctx); err != nil {
		return d.fault(ctx, err)
	}
	err := d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var version, tables int
		if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
			return err
		}
		if version == len(r.steps) {
			return nil
		}
		if version < 0 || version > len(r.steps) || version == 0 && tables != 0 {
			return errOtherVersion
		}
		steps := strings.Join(r.steps[version:], ";\n")
		_, err := tx.ExecContext(ctx, steps+fmt.Sprintf(";\nPRAGMA user_version = %d", len(r.steps)))
		return err
	})
	return errors.Join(err, d.fault(ctx, d.reader.PingContext(ctx)))
}

// write runs change in a transaction; see DB.write.
func (r *replaceable) write(ctx context.Context, change func(ctx context.Context, tx *sql.Tx) error) error {
	return r.within(ctx, func(d *DB) error { return d.write(ctx, change) })
}

// read runs look in a transaction; see DB.read.
func (r *replaceable) read(ctx context.Context, look func(ctx context.Context, tx *sql.Tx) error) error {
	return r.within(ctx, func(d *DB) error { return d.read(ctx, look) })
}

func (r *replaceable) within(ctx context.Context, f func(d *DB) error) error {
	r.mu.RLock()
	d := r.db
	if d == nil {
		r.mu.RUnlock()
		if err := r.again(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		r.mu.RLock()
		d = r.db
	}
	err := errClosed
	if d != nil {
		err = f(d)
	}
	r.mu.RUnlock()
	if !damaged(err) {
		return err
	}
	return cmp.Or(r.replace(ctx, d), err)
}

// stuck is for a damaged file that cannot be moved.
func (r *replaceable) stuck(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The database %s is damaged, and cannot be set aside. An administrator can move it away.", filepath.Base(r.path))
}

var errClosed = fault.New(fault.Unavailable, "The database is closed.")

// replace puts a new file in the place of one that was found damaged while it was open.
func (r *replaceable) replace(ctx context.Context, found *DB) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db != found { // another call has done it
		return nil
	}
	r.log.Error("a database is damaged; keeping it aside and beginning a new one", "database", r.path)
	r.db, r.tried = nil, time.Time{}
	if err := found.Close(); err != nil {
		r.log.Warn("close of a damaged database", "database", r.path, "error", err)
	}
	if err := setAside(r.path); err != nil {
		return r.stuck(err)
	}
	r.failed, r.tried = r.reopen(context.WithoutCancel(ctx)), time.Now()
	return r.failed
}

// close closes the file.
func (r *replaceable) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.db == nil {
		return nil
	}
	d := r.db
	r.db = nil
	return d.Close()
}

// setAside moves a database away, with what belongs to it.
func setAside(path string) error {
	aside := path + asideSuffix + time.Now().UTC().Format("20060102-150405.000")
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+part, aside+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
