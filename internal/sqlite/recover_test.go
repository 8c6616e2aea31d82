package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// damagedFile makes a database with sandboxes and an instance, and damages the file.
func damagedFile(t *testing.T, sandboxes int, damage func([]byte)) (path, instance string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sandboxd.db")
	d, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if instance, err = d.Instance(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range sandboxes {
		if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox(fmt.Sprintf("s%04d", i), i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damage(b)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, instance
}

// leafOf gives where the middle one of the pages that hold rows of a table begins.
func leafOf(t *testing.T, path, table string) int {
	t.Helper()
	d, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var page int
	err = d.reader.QueryRowContext(t.Context(), `SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'
		ORDER BY path LIMIT 1 OFFSET (SELECT count(*) / 2 FROM dbstat WHERE name = ? AND pagetype = 'leaf')`, table, table).Scan(&page)
	if err != nil {
		t.Fatal(err)
	}
	return (page - 1) * 4096
}

// damagePage overwrites the middle one of the pages that hold rows of a table, and gives the file as it is then.
func damagePage(t *testing.T, path, table string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[leafOf(t, path, table):], strings.Repeat("\xa5", 4096))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func recovered(t *testing.T, path, instance string) (boxes []sandbox.Sandbox, log string) {
	t.Helper()
	var out strings.Builder
	if err := Recover(t.Context(), path, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if id, err := d.Instance(t.Context()); err != nil || id != instance {
		t.Errorf("instance %q (%v), want %q", id, err, instance)
	}
	boxes, _, err := d.Sandboxes().List(t.Context(), sandbox.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var healthy string
	if err := d.reader.QueryRowContext(context.Background(), `PRAGMA integrity_check`).Scan(&healthy); err != nil || healthy != "ok" {
		t.Errorf("integrity check: %s (%v)", healthy, err)
	}
	return boxes, out.String()
}

func TestRecover_KeepsAllButTheRowsOfADamagedPage(t *testing.T) {
	const all = 400
	path, instance := damagedFile(t, all, func([]byte) {})
	b := damagePage(t, path, "sandboxes")
	boxes, log := recovered(t, path, instance)
	if len(boxes) < all-30 || len(boxes) == all {
		t.Errorf("%d of %d sandboxes are kept", len(boxes), all)
	}
	if !strings.Contains(log, "rows of the damaged database are lost\" table=sandboxes") {
		t.Errorf("the log does not say what was lost: %s", log)
	}
	aside, err := filepath.Glob(path + ".damaged-*")
	if err != nil || len(aside) == 0 {
		t.Fatalf("kept aside: %q (%v)", aside, err)
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != string(b) {
		t.Errorf("the damaged file was changed: %v", err)
	}
}

func TestRecover_FileThatIsNoDatabaseGivesAnEmptyOneOfTheSameInstance(t *testing.T) {
	path, instance := damagedFile(t, 3, func(b []byte) { copy(b, "This is not a database at all.") })
	if boxes, _ := recovered(t, path, instance); len(boxes) != 0 {
		t.Errorf("%d sandboxes came out of nothing", len(boxes))
	}
}

func TestRecover_LeavesHealthyFilesAlone(t *testing.T) {
	path, instance := damagedFile(t, 3, func([]byte) {})
	if boxes, log := recovered(t, path, instance); len(boxes) != 3 || log != "" {
		t.Errorf("%d sandboxes, log: %s", len(boxes), log)
	}
	none := filepath.Join(t.TempDir(), "sandboxd.db")
	if err := Recover(t.Context(), none, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("it has made a file")
	}
}

// A file of an older version is brought up to date on the way.
func TestRecover_OlderVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	makeVersion(t, path, 6)
	damagePage(t, path, "sessions")
	if err := Recover(t.Context(), path, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	samples[1](t, open(t, path))
	samples[3](t, open(t, path))
}

func TestInstance_OutlivesTheDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	first, err := open(t, path).Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(filepath.Dir(path), "other.db")
	if again, err := open(t, moved).Instance(t.Context()); err != nil || again != first {
		t.Errorf("an empty database in the same folder got %q (%v), want %q", again, err, first)
	}
	file := filepath.Join(filepath.Dir(path), InstanceFile)
	if err := os.Remove(file); err != nil { // as a version left it that knew no such file
		t.Fatal(err)
	}
	if again, err := open(t, path).Instance(t.Context()); err != nil || again != first {
		t.Errorf("without the file: %q (%v), want %q", again, err, first)
	}
	if kept, err := ReadInstance(file); err != nil || kept != first {
		t.Errorf("the file holds %q (%v), want %q", kept, err, first)
	}
}

// A crash between any two renames must not cost the rows that only the WAL has.
func TestRecover_CutOffBetweenItsRenamesKeepsTheRowsOfTheWAL(t *testing.T) {
	const before, late = 40, 50
	source, instance := damagedFile(t, before, func([]byte) {})
	main := damagePage(t, source, "sessions")
	d, err := connect(source)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() // not sooner: it would move the rows into the database
	for i := range late {
		if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox(fmt.Sprintf("late%04d", i), 1000+i)); err != nil {
			t.Fatal(err)
		}
	}
	wal, err := os.ReadFile(source + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for cut := range 6 {
		t.Run(fmt.Sprintf("after %d", cut), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sandboxd.db")
			if err := errors.Join(os.WriteFile(path, main, 0o600), os.WriteFile(path+"-wal", wal, 0o600)); err != nil {
				t.Fatal(err)
			}
			old, err := sql.Open("sqlite", address(path, asIs))
			if err != nil {
				t.Fatal(err)
			}
			err = salvage(t.Context(), old, path+".new", slog.New(slog.DiscardHandler))
			if err := errors.Join(err, old.Close()); err != nil {
				t.Fatal(err)
			}
			whole, err := os.Stat(path + ".new")
			if err != nil {
				t.Fatal(err)
			}
			if err := rename(moves(path, whole)[:cut]); err != nil {
				t.Fatal(err)
			}
			if boxes, _ := recovered(t, path, instance); len(boxes) != before+late {
				t.Errorf("%d of %d sandboxes are kept", len(boxes), before+late)
			}
			aside, err := filepath.Glob(path + asideSuffix + "*")
			if err != nil || len(aside) < 2 || aside[1] != aside[0]+"-wal" && aside[1] != aside[0]+"-shm" {
				t.Errorf("kept aside: %q (%v)", aside, err)
			}
			left, err := filepath.Glob(path + ".[nr]e*")
			if err != nil || len(left) > 0 {
				t.Errorf("left: %q (%v)", left, err)
			}
		})
	}
}

// A row can stand before the one that it refers to in the table that is read backwards.
func TestRecover_KeepsTheHostSessionsOfSessionsThatItKeeps(t *testing.T) {
	const all, last = 600, 100 // sessions; of so many of them, the last, there are host sessions
	path, instance := damagedFile(t, 1, func([]byte) {})
	d := open(t, path)
	err := d.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO users (id, name, role, password, disabled, created) VALUES ('u', 'u', 'admin', '', 0, 0)`)
		for i := range all + last {
			parent := sql.NullString{String: fmt.Sprint("s", i-last), Valid: i >= all}
			_, e := tx.ExecContext(ctx, `INSERT INTO sessions (id, key, user, parent, host, origin, created, seen, expires) VALUES (?, randomblob(32), 'u', ?, '', '', 0, 0, 0)`,
				fmt.Sprint("s", i), parent)
			err = errors.Join(err, e)
		}
		return err
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	damagePage(t, path, "sessions")
	recovered(t, path, instance)
	var parents, children int
	err = open(t, path).reader.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE parent IS NULL), count(parent) FROM sessions`).Scan(&parents, &children)
	if err != nil || parents == all || parents < all-100 || children != last {
		t.Errorf("%d of %d sessions and %d of %d host sessions are kept (%v)", parents, all, children, last, err)
	}
}

// A database that is written to after the recovery was cut off, and before the next, is newer than what that has saved.
func TestRecover_CutOffBeforeTheDamagedFileIsMovedBeginsAgain(t *testing.T) {
	path, instance := damagedFile(t, 40, func([]byte) {})
	main, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".recovered", main, 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if err := errors.Join(d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("newer", 1000)), d.Close()); err != nil {
		t.Fatal(err)
	}
	damagePage(t, path, "sessions")
	if boxes, _ := recovered(t, path, instance); len(boxes) != 41 {
		t.Errorf("%d of 41 sandboxes are kept", len(boxes))
	}
}

// A disk that fills up while the rows are moved must not be taken for a recovery.
func TestRecover_OnADiskThatIsTooSmallKeepsTheDamagedFile(t *testing.T) {
	source, _ := damagedFile(t, 1500, func([]byte) {})
	main := damagePage(t, source, "sessions")
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", len(main)*13/5))
	if errors.Is(err, unix.EPERM) {
		return // only root may mount
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "sandboxd.db")
	if err := os.WriteFile(path, main, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), path, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("recovered on a disk without room")
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, main) {
		t.Errorf("the damaged file is changed (%v)", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), path, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if _, total, err := d.Sandboxes().List(t.Context(), sandbox.Filter{Limit: 1}); err != nil || total != 1500 {
		t.Errorf("with room: %d of 1500 sandboxes, %v", total, err)
	}
}

// A database that was put in place after a recovery had been cut off is newer than what that has saved.
func TestRecover_ADatabasePutInPlaceMeanwhileIsKept(t *testing.T) {
	path, _ := damagedFile(t, 40, func([]byte) {})
	for _, suffix := range []string{".recovered", asideSuffix} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.Stat(path + ".recovered")
	if err != nil {
		t.Fatal(err)
	}
	aside := moves(path, whole)[1][1]
	if err := errors.Join(os.Rename(path+asideSuffix, aside), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("newer", 1)); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), path, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	boxes, _, err := open(t, path).Sandboxes().List(t.Context(), sandbox.Filter{Limit: 100})
	if err != nil || len(boxes) != 1 || boxes[0].Name != "newer" {
		t.Errorf("%d sandboxes, %v", len(boxes), err)
	}
	for _, name := range []string{aside, aside + "-recovered"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
