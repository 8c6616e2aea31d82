package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"sandboxd/internal/fault"
)

// primary gives SQLite's result code without its extension, or 0 if err is not SQLite's.
func primary(err error) int { return extended(err) & 0xff }

func extended(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func busy(err error) bool {
	code := primary(err)
	return code == lib.SQLITE_BUSY || code == lib.SQLITE_LOCKED
}

// taken reports whether err says that a row with this primary key, or with this unique column, exists.
func taken(err error) bool { return takenID(err) || extended(err) == lib.SQLITE_CONSTRAINT_UNIQUE }

func takenID(err error) bool { return extended(err) == lib.SQLITE_CONSTRAINT_PRIMARYKEY }

// orphan reports whether err says that the row which a new row belongs to is not there.
func orphan(err error) bool { return extended(err) == lib.SQLITE_CONSTRAINT_FOREIGNKEY }

// fault classifies what went wrong with the file. ctx is the caller's: when it has ended, that is the error.
func (d *DB) fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, context.DeadlineExceeded) { // our own patience
		return d.unavailable(err, "The database %s does not answer in time. Try again in a moment.")
	}
	return d.classify(err)
}

func (d *DB) classify(err error) error {
	switch primary(err) {
	case lib.SQLITE_FULL:
		return d.full(err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return d.unavailable(err, "The database %s is in use by another program that does not let go of it. Try again in a moment.")
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		if d.aside {
			return d.unavailable(err, "The database %s was damaged. It was set aside, and a new one begun. Try again.")
		}
		return d.unavailable(err, "The database %s is damaged. Start sandboxd again: it keeps the file aside, and continues with what can "+
			"be read of it.")
	case lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN:
		if d.noSpace() {
			return d.full(err)
		}
		return d.unavailable(err, "The database %s cannot be read or written. Check the disk, and that sandboxd may use the file and its "+
			"folder.")
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return d.unavailable(err, "The database %s cannot be written. Check that sandboxd may write to the file and its folder, and that "+
			"the disk is not mounted read-only.")
	}
	return err
}

func (d *DB) full(err error) error {
	return d.unavailable(err, "The disk that holds %s is full: free some space and try again. Data stored before is intact.")
}

// unavailable classifies err. The message names the database where it has "%s"; the log has its path.
func (d *DB) unavailable(err error, message string) error {
	return fault.Wrap(fmt.Errorf("%s: %w", d.path, err), fault.Unavailable, message, d.name)
}

// noSpace reports whether the disk has no room for even a few pages. SQLite calls a log that cannot grow an I/O error.
func (d *DB) noSpace() bool {
	var s unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(d.path), &s); err != nil {
		return false
	}
	const enough = 64 << 10
	return s.Bavail*uint64(s.Bsize) < enough
}
