package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// About is what a database says of itself.
type About struct {
	Version int    // 0 for one that has none yet
	Program string // the version of sandboxd that served it last; "" if that is not known
	Backup  string // as NoteBackup was given it; "" for none
}

// Known is the newest version of a database that this program can use.
func Known() int { return newest() }

// Inspect reads what the database at path says of itself, of any version, without changing it. NotFound when there is none.
func Inspect(ctx context.Context, path string) (a About, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return a, fault.Wrap(err, fault.NotFound, "There is no database %s.", path)
	}
	d, err := openAsIs(path)
	if err != nil {
		return a, err
	}
	defer d.Close()
	var tables int
	err = d.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('migrations', 'meta')`).Scan(&tables)
	if err != nil || tables < 2 {
		return a, err
	}
	if err := d.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&a.Version); err != nil {
		return a, err
	}
	if a.Program, err = programOf(ctx, d); err != nil {
		return a, err
	}
	a.Backup, err = metaOf(ctx, d, metaBackup)
	return a, err
}

// Refusal gives the error with which Open refuses the database at path as newer, without opening it; nil when it is not.
func Refusal(ctx context.Context, path string) error {
	about, err := Inspect(ctx, path)
	if err != nil || about.Version <= newest() {
		return err
	}
	return refusal(path, about.Program, about.Version)
}

// NoteBackup keeps a text about the last backup of the server, which Inspect gives back.
func (d *DB) NoteBackup(ctx context.Context, about string) error {
	return d.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return setMeta(ctx, tx, metaBackup, about) })
}

// Rollback puts the database from before an upgrade in the place of one that a newer program has written.
type Rollback struct {
	Copy      Saved    // what would be the database
	Newer     About    // what is it now
	Sandboxes []string // names of those that only the newer one has
	Users     []string // likewise
	Unread    error    // why those two cannot be told; nil when they can
	Damaged   []error  // why newer copies are not taken, a sentence each
	path      string
}

// PlanRollback finds the newest whole copy, and what would be lost. It changes nothing, and reads all of the copy. Conflict when this program can use
// the database as it is, NotFound when there is no copy that it can use, Unavailable when all of those are damaged.
func PlanRollback(ctx context.Context, path string) (*Rollback, error) {
	about, err := Inspect(ctx, path)
	if err != nil {
		return nil, err
	}
	if about.Version <= newest() {
		return nil, fault.New(fault.Conflict, "This sandboxd can use the database %s as it is. To go back to an older one, run 'rollback' with the older sandboxd.", path)
	}
	all, err := allUsable(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The copies of the database cannot be listed: %v.", err)
	}
	if len(all) == 0 {
		return nil, fault.New(fault.NotFound, "The folder %s has no copy of the database that this sandboxd can use (up to version %d). Restore a server backup that is older instead: "+
			"sandboxd restore --server", filepath.Join(filepath.Dir(path), UpgradeFolder), newest())
	}
	r := &Rollback{Newer: about, path: path}
	for _, s := range all {
		err := s.check(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Damaged = append(r.Damaged, err)
			continue
		}
		r.Copy = s
		r.Sandboxes, r.Unread = onlyIn(ctx, path, s.Path, `SELECT name FROM sandboxes ORDER BY name`)
		if r.Unread == nil {
			r.Users, r.Unread = onlyIn(ctx, path, s.Path, `SELECT name FROM users ORDER BY name`)
		}
		return r, nil
	}
	return nil, fault.Wrap(errors.Join(r.Damaged...), fault.Unavailable, "%s Nothing was changed. Restore a server backup that is older instead: sandboxd restore --server",
		sentences(r.Damaged))
}

// check reads all of a copy. It gives a sentence that says why it cannot be used, nil when it can.
func (s Saved) check(ctx context.Context) error {
	err := wholeFile(ctx, s.Path)
	var about About
	if err == nil {
		about, err = Inspect(ctx, s.Path)
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "The copy %s is damaged (%s).", s.Path, text.Excerpt(err.Error(), 200))
	}
	if about.Version != s.Version {
		return fault.New(fault.Unavailable, "The copy %s is not what its name says: it is a database of version %d.", s.Path, about.Version)
	}
	return nil
}

// wholeFile reads all of a database, and gives what is wrong with it.
func wholeFile(ctx context.Context, path string) error {
	d, err := openAsIs(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return integrity(ctx, d)
}

func sentences(all []error) string {
	said := make([]string, len(all))
	for n, err := range all {
		said[n] = fault.Message(err)
	}
	return strings.Join(said, " ")
}

// onlyIn gives what a query finds in a database and not in another.
func onlyIn(ctx context.Context, path, other, query string) ([]string, error) {
	now, err := names(ctx, path, query)
	if err != nil {
		return nil, err
	}
	before, err := names(ctx, other, query)
	return slices.DeleteFunc(now, func(name string) bool { return slices.Contains(before, name) }), err
}

func names(ctx context.Context, path, query string) (all []string, err error) {
	d, err := openAsIs(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	rows, err := d.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	return all, rows.Err()
}

// Do puts the copy in place, and gives the name under which the newer database is kept beside it. No process may have the database open. When
// it fails or is cut off, the database is the newer one, whole; once it is not, it is the copy, whole. Unavailable when the disk does not let it.
func (r *Rollback) Do(ctx context.Context) (aside string, err error) {
	defer func() {
		err = fault.Wrap(err, fault.Unavailable, "The database %s cannot be put back: %v. It is as it was.", r.path, err)
	}()
	if err := emptyLog(ctx, r.path); err != nil {
		return "", err
	}
	next := r.path + ".back"
	if err := ignoreMissing(os.Remove(next)); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(next))) }()
	if err := copyFile(r.Copy.Path, next); err != nil {
		return "", err
	}
	if aside, err = linkAside(r.path); err != nil {
		return "", err
	}
	if err := os.Rename(next, r.path); err != nil {
		return "", errors.Join(err, os.Remove(aside))
	}
	return aside, flush(filepath.Dir(r.path))
}

// linkAside gives the database a second name, which says when that was; of several in one second the later ones have a number.
func linkAside(path string) (aside string, err error) {
	name := path + ".newer-" + time.Now().UTC().Format(copyTime)
	for n := 1; ; n++ {
		aside = name
		if n > 1 {
			aside += "-" + strconv.Itoa(n)
		}
		if err = os.Link(path, aside); !errors.Is(err, fs.ErrExist) {
			return aside, err
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// emptyLog moves all that a database has in its "-wal" into the file itself, and has SQLite remove that.
func emptyLog(ctx context.Context, path string) error {
	d, err := sql.Open("sqlite", address(path, nil))
	if err != nil {
		return err
	}
	var busy, frames, moved int
	err = d.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	if _, err := os.Stat(path + "-wal"); busy != 0 || !errors.Is(err, fs.ErrNotExist) {
		return errors.New("another program has it open")
	}
	return flush(path)
}

// copyFile copies a file, which must not be there, and has the disk keep it.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
