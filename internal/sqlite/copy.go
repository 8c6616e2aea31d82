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

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// copySpare is the room that a copy leaves on the disk, in bytes.
const copySpare = 16 << 20

// Copy makes a file at to that has what the database at from has at one moment, also while other processes use that. It was written to
// the disk and checked when there is no error; else there is none. to must not exist. It blocks for as long as reading and writing all of
// it takes. Unavailable when there is no room, or from cannot be read.
func Copy(ctx context.Context, from, to string) (err error) {
	if err := makeFile(to); err != nil { // so that nobody else may read it
		return cannotCopy(from, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(cannotCopy(from, err), os.Remove(to))
		}
	}()
	d, err := sql.Open("sqlite", address(from, url.Values{"mode": {"rw"}})) // it must be there
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return err
	}
	if err := flush(to); err != nil {
		return err
	}
	return checkCopy(ctx, d, to)
}

func cannotCopy(from string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The database %s cannot be copied: %v.", from, err)
}

// openAsIs opens a file without changing it.
func openAsIs(path string) (*sql.DB, error) {
	how := maps.Clone(asIs)
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		how.Set("immutable", "1") // it is not open anywhere; SQLite would make a "-wal"
	}
	return sql.Open("sqlite", address(path, how))
}

// flush has the disk keep a file.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkCopy reads all of a copy, and wants its tables to be those of the database that it is of.
func checkCopy(ctx context.Context, of *sql.DB, path string) error {
	d, err := openAsIs(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := integrity(ctx, d); err != nil {
		return fmt.Errorf("the copy is damaged: %w", err)
	}
	var want, have int
	const count = `SELECT count(*) FROM sqlite_schema`
	err = errors.Join(of.QueryRowContext(ctx, count).Scan(&want), d.QueryRowContext(ctx, count).Scan(&have))
	if err == nil && want != have {
		err = fmt.Errorf("the copy has %d tables and indexes instead of %d", have, want)
	}
	return err
}

// integrity reads all of a database, and gives what SQLite finds wrong with it.
func integrity(ctx context.Context, d *sql.DB) error {
	var found string
	err := d.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found)
	if err == nil && found != "ok" {
		err = errors.New(text.Excerpt(found, 200))
	}
	return err
}

// sizeOf gives what the files of a database take, in bytes.
func sizeOf(path string) (size int64, err error) {
	for _, part := range []string{"", "-wal"} {
		st, err := os.Stat(path + part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		size += st.Size()
	}
	return size, nil
}

// roomFor is Unavailable when the disk of a folder that is there has less than need bytes left, for what is to be done there.
func roomFor(folder string, need int64, what string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return err
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fault.New(fault.Unavailable, "There is no room for %s: the disk of %s has %s free, and %s are needed. Free some: 'docker system df' shows what "+
			"images and volumes take, and the folder 'backups' holds backups of sandboxes.", what, filepath.Dir(folder), text.Size(free), text.Size(need))
	}
	return nil
}
