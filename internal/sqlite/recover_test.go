package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	at := leafOf(t, path, "sandboxes")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[at:], strings.Repeat("\xa5", 4096))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
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
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[leafOf(t, path, "sessions"):], strings.Repeat("\xa5", 4096))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
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
