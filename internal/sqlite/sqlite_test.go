package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

func open(t testing.TB, path string) *DB {
	t.Helper()
	d, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func fresh(t testing.TB) *DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "sandboxd.db"))
}

func TestOpen_EveryConnectionHasThePragmas(t *testing.T) {
	d := fresh(t)
	for name, c := range map[string]struct {
		db   *sql.DB
		n    int
		only string
	}{"writer": {d.writer, 1, "0"}, "readers": {d.reader, readers, "1"}} {
		want := map[string]string{"busy_timeout": "5000", "journal_mode": "wal", "foreign_keys": "1", "synchronous": "1", "query_only": c.only}
		for range c.n {
			conn, err := c.db.Conn(t.Context()) // kept, so that the next is another one
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for pragma, value := range want {
				var got string
				if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != value {
					t.Errorf("%s: %s is %q (%v), want %q", name, pragma, got, err, value)
				}
			}
		}
		if got := c.db.Stats().MaxOpenConnections; got != c.n {
			t.Errorf("%s: at most %d connections, want %d", name, got, c.n)
		}
	}
}

func TestOpen_ReadersCannotWrite(t *testing.T) {
	d := fresh(t)
	err := d.read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM sandboxes`)
		return err
	})
	if err == nil {
		t.Error("a reader could delete")
	}
}

func TestOpen_OnlyTheOwnerMayReadTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "sandboxd.db")
	d := open(t, path)
	if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("a", 0)); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %s", filepath.Base(name), info.Mode())
			}
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder has mode %v (%v)", info.Mode(), err)
		}
	}
	check()
	for _, name := range []string{path, path + "-wal"} {
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(t, path) // a second time closes what was left open
	check()
}

func TestOpen_PathsMayHoldAnyCharacter(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "50%.db", "what?.db", "hash#.db", "ünï.db", "a&b=c.db", "plus+.db", "%41.db", "semi;colon.db"} {
		path := filepath.Join(dir, name)
		d := open(t, path)
		if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("a", 0)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: the file is not where it should be: %v", name, err)
		}
	}
}

func TestOpen_RelativePathStaysWhereItWas(t *testing.T) {
	t.Chdir(t.TempDir())
	open(t, "data/sandboxd.db")
	if _, err := os.Stat("data/sandboxd.db"); err != nil {
		t.Error(err)
	}
}

func TestOpen_WhatCannotBeMadeIsUnavailable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(file, "sandboxd.db"), t.TempDir()} {
		_, err := Open(t.Context(), path)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), path) {
			t.Errorf("open %s: %v", path, err)
		}
	}
}

func TestInstance_IsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	d := open(t, path)
	first, err := d.Instance(t.Context())
	if err != nil || len(first) != 8 || strings.Trim(first, "0123456789abcdef") != "" {
		t.Fatalf("instance %q, %v", first, err)
	}
	again, err := open(t, path).Instance(t.Context())
	if err != nil || again != first {
		t.Errorf("a second process got %q (%v), want %q", again, err, first)
	}
	other, err := fresh(t).Instance(t.Context())
	if err != nil || other == first {
		t.Errorf("another data folder got %q (%v) too", other, err)
	}
}

func TestWrite_GivesTheCommitsError(t *testing.T) {
	d := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := d.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ('lost', '')`)
		cancel() // between the last statement and the commit
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("write gives %v, want context.Canceled", err)
	}
	// A deferred constraint fails at the commit and nowhere else.
	err = d.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `PRAGMA defer_foreign_keys = on;
			INSERT INTO tokens (id, key, user, name, sandbox, prefix, created) VALUES ('lost', zeroblob(32), 'nobody', '', '', '', 1)`)
		if err != nil {
			t.Errorf("the statement failed before the commit: %v", err)
		}
		return nil
	})
	if !orphan(err) {
		t.Errorf("write gives %v, want the foreign key's error", err)
	}
	for _, count := range []string{`SELECT count(*) FROM meta WHERE key = 'lost'`, `SELECT count(*) FROM tokens`} {
		var n int
		if err := d.reader.QueryRowContext(t.Context(), count).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d (%v), want 0", count, n, err)
		}
	}
	if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("next", 0)); err != nil {
		t.Errorf("the next write fails: %v", err)
	}
}

func TestWrite_PanicLeavesTheWriterUsable(t *testing.T) {
	d := fresh(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = d.write(t.Context(), func(context.Context, *sql.Tx) error { panic("mistake") })
	}()
	if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("next", 0)); err != nil {
		t.Errorf("the next write fails: %v", err)
	}
}

func TestWrite_LockedFileIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	holder, d := open(t, path), open(t, path)
	if _, err := d.writer.ExecContext(t.Context(), `PRAGMA busy_timeout = 20`); err != nil {
		t.Fatal(err)
	}
	kept := sandboxtest.Sandbox("kept", 0)
	err := holder.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		err := d.Sandboxes().Insert(ctx, kept)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "in use by another program") {
			t.Errorf("insert into a locked file: %v", err)
		}
		if _, _, err := d.Sandboxes().List(ctx, sandbox.Filter{}); err != nil {
			t.Errorf("reading a locked file: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
		if err := d.Sandboxes().Insert(short, kept); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller with little time gets %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Sandboxes().Insert(t.Context(), kept); err != nil {
		t.Errorf("insert once it is free: %v", err)
	}
}

// A full disk is a small tmpfs where this may be mounted, and SQLite's own bound on the file's size everywhere.
func TestWrite_FullDiskIsUnavailableAndLosesNothing(t *testing.T) {
	t.Run("page limit", func(t *testing.T) {
		d := fresh(t)
		fillUp(t, d, func(full bool) {
			pages := 200
			if !full {
				pages = 10_000
			}
			if _, err := d.writer.ExecContext(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
				t.Fatal(err)
			}
		})
	})
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=700")
	if errors.Is(err, unix.EPERM) {
		return // only root may mount; the page limit has shown the same
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	t.Run("tmpfs", func(t *testing.T) {
		d := open(t, filepath.Join(dir, "sandboxd.db"))
		fillUp(t, d, func(full bool) {
			size := "size=1m"
			if !full {
				size = "size=8m"
			}
			if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, size); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("open on full tmpfs", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 16<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk does not fill: %v", err)
		}
		_, err := Open(t.Context(), filepath.Join(dir, "other.db"))
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "full") {
			t.Errorf("open on a full disk: %v", err)
		}
	})
}

// fillUp inserts until the disk is full, checks that all is still there, makes room, and inserts again.
func fillUp(t *testing.T, d *DB, limit func(full bool)) {
	t.Helper()
	limit(true)
	s, kept := d.Sandboxes(), 0
	var err error
	for ; err == nil && kept < 1000; kept++ {
		b := sandboxtest.Sandbox(fmt.Sprintf("s%d", kept), kept)
		b.Problem = strings.Repeat("x", 10_000)
		err = s.Insert(t.Context(), b)
	}
	kept--
	if !fault.Is(err, fault.Unavailable) || !strings.HasPrefix(fault.Message(err), "The disk that holds "+filepath.Base(d.path)+" is full: ") {
		t.Fatalf("after %d inserts: %v", kept, err)
	}
	for i := range kept {
		if _, err := s.ByName(t.Context(), fmt.Sprintf("s%d", i)); err != nil {
			t.Fatalf("while full: %v", err)
		}
	}
	limit(false)
	if err := s.Insert(t.Context(), sandboxtest.Sandbox("more", kept)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	list, total, err := s.List(t.Context(), sandbox.Filter{})
	if err != nil || total != kept+1 || len(list) != total {
		t.Errorf("%d sandboxes (%v), want %d", total, err, kept+1)
	}
	var healthy string
	if err := d.reader.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&healthy); err != nil || healthy != "ok" {
		t.Errorf("integrity check: %s (%v)", healthy, err)
	}
}

func TestDamagedFileIsUnavailable(t *testing.T) {
	damage := map[string]func([]byte){
		"header": func(b []byte) { copy(b, "This is not a database at all.") },
		"pages": func(b []byte) {
			for i := 4096; i < len(b); i++ {
				b[i] = 0xa5
			}
		},
	}
	for name, break_ := range damage {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sandboxd.db")
			writeSome(t, path)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			break_(b)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), path)
			if err == nil {
				defer d.Close()
				_, _, err = d.Sandboxes().List(t.Context(), sandbox.Filter{})
			}
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "is damaged") {
				t.Errorf("error is %v", err)
			}
			now, err := os.ReadFile(path)
			if err != nil || string(now) != string(b) {
				t.Errorf("the damaged file was changed: %v", err)
			}
		})
	}
}

func writeSome(t *testing.T, path string) {
	t.Helper()
	d, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox(fmt.Sprintf("s%d", i), i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is left over after closing: %v", err)
	}
}

const (
	envFile   = "SANDBOXD_TEST_FILE"
	envWriter = "SANDBOXD_TEST_WRITER"
	perWriter = 50
)

// TestMain lets the test binary be another process that writes to the same file.
func TestMain(m *testing.M) {
	if path := os.Getenv(envFile); path != "" {
		if err := otherProcess(path, os.Getenv(envWriter)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(envActivity); path != "" {
		fmt.Fprintln(os.Stderr, writeActivity(path))
		os.Exit(1) // it is to be killed
	}
	if path := os.Getenv(envLogs); path != "" {
		fmt.Fprintln(os.Stderr, writeLogs(path))
		os.Exit(1) // it is to be killed
	}
	os.Exit(m.Run())
}

func otherProcess(path, writer string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for i := range perWriter {
		if err := d.Sandboxes().Insert(ctx, sandboxtest.Sandbox(fmt.Sprintf("w%s-%d", writer, i), i)); err != nil {
			return err
		}
		if _, _, err := d.Sandboxes().List(ctx, sandbox.Filter{Limit: 3}); err != nil {
			return err
		}
	}
	return nil
}

// SQLite does not wait by itself in this case: see converge.
func TestOpen_WaitsForWhoMakesTheSameFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	other, err := sql.Open("sqlite", address(path, url.Values{"_journal_mode": {"DELETE"}}))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), `BEGIN IMMEDIATE; CREATE TABLE other (a)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	time.AfterFunc(50*time.Millisecond, func() {
		_, err := other.ExecContext(context.Background(), `COMMIT`)
		done <- err
	})
	d, err := Open(t.Context(), path)
	if commit := <-done; commit != nil {
		t.Fatal(commit)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpen_SeveralProcessesMakeAndShareOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd.db")
	const others = 4
	var running []*exec.Cmd
	for i := range others {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), envFile+"="+path, fmt.Sprintf("%s=%d", envWriter, i))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, c)
	}
	if err := otherProcess(path, "here"); err != nil {
		t.Error(err)
	}
	for _, c := range running {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	_, total, err := open(t, path).Sandboxes().List(t.Context(), sandbox.Filter{})
	if want := (others + 1) * perWriter; err != nil || total != want {
		t.Errorf("%d sandboxes (%v), want %d", total, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: error is %v, want one of kind %s", what, err, kind)
	}
}
