package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// UpgradeFolder is the name of the folder beside the database that holds the copies made before upgrades.
const UpgradeFolder = "upgrade"

// keptCopies is how many versions of the database have a copy in UpgradeFolder; of one version there is the newest copy.
const keptCopies = 3

// copyTime is how the name of a copy says when it was made, in UTC.
const copyTime = "20060102-150405"

// The keys of meta that tell of the program, and of its backup.
const (
	metaProgram = "program"
	metaBackup  = "server_backup"
)

// Upgrade brings the database at path to this program's version, and notes program, such as "1.4.0", as NoteProgram does, if it had another one.
// Before that it makes a copy in UpgradeFolder. When anything fails, the database is as it was. No file, or an empty one, is
// left to Open. To be called by the one server of the file, before it opens it. It blocks for as long as a copy takes, and the migration, ten minutes at
// most. Kinds: Conflict if a newer program has written it, Unavailable if there is no room, or it cannot be used now.
func Upgrade(ctx context.Context, path, program string, log *slog.Logger) (err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d, err := connect(path)
	if err != nil {
		return fmt.Errorf("upgrade database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.upgrade(ctx, program, log); err != nil {
		return fmt.Errorf("upgrade database: %w", err)
	}
	return nil
}

func (d *DB) upgrade(ctx context.Context, program string, log *slog.Logger) error {
	if err := d.converge(ctx); err != nil {
		return d.fault(ctx, err)
	}
	var have int
	var from string
	err := d.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		have, err = version(ctx, tx)
		switch {
		case err != nil || have == 0:
			return err
		case have > newest():
			return d.newer(ctx, tx, have)
		case have == newest():
			return nil
		}
		from, err = programOf(ctx, tx)
		return err
	})
	if err != nil || have == 0 || have == newest() {
		return err
	}
	copied, err := d.copyBefore(ctx, have, from)
	if err != nil {
		return err
	}
	log.Info("the database is upgraded; a copy of it is kept", "from", have, "to", newest(), "copy", copied)
	err = d.migrate(ctx, newest(), func(ctx context.Context, tx *sql.Tx) error { return setMeta(ctx, tx, metaProgram, program) })
	return notUpgraded(err, fmt.Sprintf("The database %s cannot be upgraded from version %d to %d", d.path, have, newest()), from, copied)
}

// NoteProgram keeps which version of sandboxd serves the database, for an older one that finds it changed.
func (d *DB) NoteProgram(ctx context.Context, program string) error {
	return d.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return setMeta(ctx, tx, metaProgram, program) })
}

// notUpgraded says that all is as it was.
func notUpgraded(err error, what, from, copied string) error {
	why := fmt.Sprint(err)
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		why = known.Message
	}
	return fault.Wrap(err, fault.Unavailable, "%s, and is as it was: %s. The sandboxd from before (%s) can use it. A copy of it is %s.", what,
		strings.TrimSuffix(why, "."), cmp.Or(from, "an older one"), copied)
}

func setMeta(ctx context.Context, tx *sql.Tx, key, value string) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)`, key, value)
	return err
}

// querier is what a row can be asked of.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// metaOf gives a value of meta, "" for none.
func metaOf(ctx context.Context, q querier, key string) (value string, err error) {
	err = q.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}

// programOf gives the version of sandboxd that served the database last, "" if that is not known.
func programOf(ctx context.Context, q querier) (string, error) { return metaOf(ctx, q, metaProgram) }

// copyBefore makes the copy of a database that is to be migrated, and removes copies that are too old. from is the program that has written it.
func (d *DB) copyBefore(ctx context.Context, have int, from string) (path string, err error) {
	folder := filepath.Join(filepath.Dir(d.path), UpgradeFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", cannotCopy(d.path, err)
	}
	if err := removeParts(folder); err != nil {
		return "", cannotCopy(d.path, err)
	}
	size, err := sizeOf(d.path)
	if err != nil {
		return "", cannotCopy(d.path, err)
	}
	// The migration may write all of it once more, into the "-wal".
	if err := roomFor(folder, 3*size+copySpare, "an upgrade of the database"); err != nil {
		return "", cannotCopy(d.path, err)
	}
	now := Saved{Version: have, Program: cmp.Or(from, "unknown"), Made: time.Now().UTC().Truncate(time.Second)}
	now.Path = filepath.Join(folder, now.name())
	if err := Copy(ctx, d.path, now.Path+partOf); err != nil {
		return "", err
	}
	err = os.Rename(now.Path+partOf, now.Path)
	if err = errors.Join(err, flush(folder)); err != nil {
		return "", cannotCopy(d.path, err)
	}
	return now.Path, prune(folder, now)
}

// partOf ends the name of a copy that is being made.
const partOf = ".part"

// removeParts removes what is left of copies that were cut off.
func removeParts(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, "*"+partOf+"*")) // SQLite may have its own beside them
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// Saved is a copy that was made before an upgrade.
type Saved struct {
	Path    string
	Version int    // of the database
	Program string // that had written it, as far as a file name can tell it
	Made    time.Time
}

var (
	savedName   = regexp.MustCompile(`^(\d{4})-(.+)-(\d{8}-\d{6})\.db$`)
	unfitInName = regexp.MustCompile(`[^A-Za-z0-9._+-]+`)
)

func (s Saved) name() string {
	return fmt.Sprintf("%04d-%.60s-%s.db", s.Version, unfitInName.ReplaceAllString(s.Program, "_"), s.Made.Format(copyTime))
}

// savedIn lists the copies of a folder, the newest first.
func savedIn(folder string) (all []Saved, err error) {
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range found {
		part := savedName.FindStringSubmatch(f.Name())
		if part == nil {
			continue
		}
		version, versionErr := strconv.Atoi(part[1])
		made, timeErr := time.Parse(copyTime, part[3])
		if errors.Join(versionErr, timeErr) == nil {
			all = append(all, Saved{filepath.Join(folder, f.Name()), version, part[2], made})
		}
	}
	slices.SortStableFunc(all, func(a, b Saved) int { return cmp.Or(b.Made.Compare(a.Made), strings.Compare(b.Path, a.Path)) })
	return all, err
}

// prune keeps the newest copy of each of the last versions.
func prune(folder string, newest Saved) error {
	all, err := savedIn(folder)
	if err != nil {
		return err
	}
	kept := map[int]bool{newest.Version: true}
	for _, s := range all {
		if s.Path == newest.Path {
			continue
		}
		if !kept[s.Version] && len(kept) < keptCopies {
			kept[s.Version] = true
			continue
		}
		err = errors.Join(err, os.Remove(s.Path))
	}
	return fault.Wrap(err, fault.Unavailable, "Old copies of the database in %s cannot be removed: %v.", folder, err)
}

// newer says that the database is of a newer program, which has written version have, and how to go back.
func (d *DB) newer(ctx context.Context, q querier, have int) error {
	program, err := programOf(ctx, q)
	if err != nil {
		program = ""
	}
	return refusal(d.path, program, have)
}

func refusal(path, program string, have int) error {
	back := "There is no copy from before that upgrade; a server backup from before it can be restored (sandboxd restore --server)."
	if s, found := usable(path); found {
		back = fmt.Sprintf("Or go back to the database of %s UTC, from before that upgrade: sandboxd rollback --data %s", s.Made.Format("2006-01-02 15:04"), filepath.Dir(path))
	}
	if program != "" {
		program = ", " + program
	}
	return fault.New(fault.Conflict, "The database %s was written by a newer sandboxd%s (its version is %d, this program knows up to %d). Use that one. %s",
		path, program, have, newest(), back)
}

// usable gives the newest copy beside a database that this program can use, by its name.
func usable(path string) (s Saved, found bool) {
	all, err := allUsable(path)
	if err != nil || len(all) == 0 {
		return s, false
	}
	return all[0], true
}

// allUsable gives all of them, the newest first.
func allUsable(path string) ([]Saved, error) {
	all, err := savedIn(filepath.Join(filepath.Dir(path), UpgradeFolder))
	return slices.DeleteFunc(all, func(s Saved) bool { return s.Version > newest() }), err
}
