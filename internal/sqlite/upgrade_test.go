package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandboxtest"
)

// withMigrations has this program know other steps until the test ends.
func withMigrations(t *testing.T, all []migration) {
	t.Helper()
	was := migrations
	migrations = all
	t.Cleanup(func() { migrations = was })
}

// nextly gives the steps of a newer program.
func nextly(script string) []migration {
	return append(slices.Clone(migrations), migration{version: newest() + 1, name: "next", script: script})
}

// filled makes a database of this program's version with a sandbox, as a server of version "1.0" left it.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sandboxd.db")
	d, err := Open(t.Context(), path)
	if err == nil {
		err = errors.Join(d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("lab", 0)), d.NoteProgram(t.Context(), "1.0"), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func upgradeAs(t *testing.T, path, program string) (log string, err error) {
	t.Helper()
	var out strings.Builder
	err = Upgrade(t.Context(), path, program, slog.New(slog.NewTextHandler(&out, nil)))
	return out.String(), err
}

func copiesOf(t *testing.T, path string) []Saved {
	t.Helper()
	all, err := savedIn(filepath.Join(filepath.Dir(path), UpgradeFolder))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUpgrade_KeepsACopyThatCanBeUsed(t *testing.T) {
	path := filled(t)
	if copies := copiesOf(t, path); len(copies) != 0 {
		t.Fatalf("copies without an upgrade: %v", copies)
	}
	had := newest()
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	if _, err := Open(t.Context(), path); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "sandboxd serve") {
		t.Errorf("a command on an older database: %v", err)
	}
	cut := filepath.Join(filepath.Dir(path), UpgradeFolder, "0001-1.0-20260101-000000.db"+partOf)
	if err := errors.Join(os.MkdirAll(filepath.Dir(cut), 0o700), os.WriteFile(cut, []byte("of one that was killed"), 0o600)); err != nil {
		t.Fatal(err)
	}
	log, err := upgradeAs(t, path, "2.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cut); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was cut off is left: %v", err)
	}
	copies := copiesOf(t, path)
	if len(copies) != 1 || copies[0].Version != had || copies[0].Program != "1.0" || !strings.Contains(log, copies[0].Path) {
		t.Fatalf("copies %+v; the log says %s", copies, log)
	}
	if st, err := os.Stat(copies[0].Path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	about, err := Inspect(t.Context(), path)
	if err != nil || about.Version != had+1 || about.Program != "2.0" {
		t.Errorf("%+v, %v", about, err)
	}
	if about, err = Inspect(t.Context(), copies[0].Path); err != nil || about.Version != had || about.Program != "1.0" {
		t.Errorf("the copy: %+v, %v", about, err)
	}
	if b, err := open(t, path).Sandboxes().ByName(t.Context(), "lab"); err != nil || b.Name != "lab" {
		t.Errorf("%+v, %v", b, err)
	}
	if again, err := upgradeAs(t, path, "2.1"); err != nil || again != "" || len(copiesOf(t, path)) != 1 {
		t.Errorf("at the next start: %v %s", err, again)
	}
}

func TestUpgrade_KeepsOneCopyOfEachOfTheLastVersions(t *testing.T) {
	path := filled(t)
	had := newest()
	for n := range 5 {
		withMigrations(t, nextly(fmt.Sprintf(`CREATE TABLE more%d (a)`, n)))
		if _, err := upgradeAs(t, path, fmt.Sprintf("v2.%d/β", n)); err != nil {
			t.Fatal(err)
		}
	}
	var versions []int
	for _, s := range copiesOf(t, path) {
		versions = append(versions, s.Version)
	}
	slices.Sort(versions)
	if !slices.Equal(versions, []int{had + 2, had + 3, had + 4}) {
		t.Errorf("copies of versions %v are kept, from %d on", versions, had)
	}
}

func TestUpgrade_OneThatFailsLeavesTheDatabaseAsItWas(t *testing.T) {
	path := filled(t)
	had := newest()
	good := migrations
	withMigrations(t, append(nextly(`CREATE TABLE more (a)`), migration{version: had + 2, name: "bad", script: `CREATE TABLE half (a); INSERT INTO nowhere VALUES (1);`}))
	for range 2 {
		_, err := upgradeAs(t, path, "2.0")
		copies := copiesOf(t, path)
		if !fault.Is(err, fault.Unavailable) || len(copies) != 1 {
			t.Fatalf("%v; copies %v", err, copies)
		}
		for _, part := range []string{"is as it was", "nowhere", "(1.0)", copies[0].Path} {
			if !strings.Contains(fault.Message(err), part) {
				t.Errorf("%q lacks %q", fault.Message(err), part)
			}
		}
	}
	migrations = good
	if about, err := Inspect(t.Context(), path); err != nil || about.Version != had || about.Program != "1.0" {
		t.Errorf("%+v, %v", about, err)
	}
	d := open(t, path)
	err := d.read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT 1 FROM sqlite_schema WHERE name IN ('more', 'half')`).Scan(new(int))
	})
	if err != sql.ErrNoRows {
		t.Errorf("a part of it is left: %v", err)
	}
}

func TestUpgrade_ADiskWithoutRoomIsSaidBeforeAnythingIsChanged(t *testing.T) {
	folder := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	path := filepath.Join(folder, "sandboxd.db")
	if err := copyFile(filled(t), path); err != nil {
		t.Fatal(err)
	}
	had := newest()
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	_, err := upgradeAs(t, path, "2.0")
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "no room for an upgrade") || !strings.Contains(fault.Message(err), "free") {
		t.Errorf("%v", err)
	}
	if about, err := Inspect(t.Context(), path); err != nil || about.Version != had || len(copiesOf(t, path)) != 0 {
		t.Errorf("%+v, %v", about, err)
	}
}

func TestOpen_ANewerDatabaseSaysWhoWroteItAndHowToGoBack(t *testing.T) {
	path := filled(t)
	older := migrations
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	if _, err := upgradeAs(t, path, "2.0-rc1"); err != nil {
		t.Fatal(err)
	}
	migrations = older
	wants := func(parts ...string) {
		t.Helper()
		_, err := Open(t.Context(), path)
		_, again := upgradeAs(t, path, "1.0")
		for _, err := range []error{err, again} {
			for _, part := range append(parts, path, "2.0-rc1") {
				if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), part) {
					t.Errorf("%q lacks %q", fault.Message(err), part)
				}
			}
		}
	}
	wants("sandboxd rollback --data " + filepath.Dir(path))
	if err := os.RemoveAll(filepath.Join(filepath.Dir(path), UpgradeFolder)); err != nil {
		t.Fatal(err)
	}
	wants("no copy from before that upgrade")
	if _, err := PlanRollback(t.Context(), path); !fault.Is(err, fault.NotFound) {
		t.Errorf("rollback without a copy: %v", err)
	}
}

func TestRollback_PutsTheCopyBackAndKeepsTheNewer(t *testing.T) {
	path := filled(t)
	if _, err := PlanRollback(t.Context(), path); !fault.Is(err, fault.Conflict) {
		t.Errorf("rollback of a database that can be used: %v", err)
	}
	older := migrations
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	if _, err := upgradeAs(t, path, "2.0"); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), path)
	if err == nil {
		err = errors.Join(d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("since", 1)), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	migrations = older
	plan, err := PlanRollback(t.Context(), path)
	if err != nil || plan.Unread != nil || !slices.Equal(plan.Sandboxes, []string{"since"}) || len(plan.Users) != 0 || plan.Newer.Program != "2.0" {
		t.Fatalf("%+v, %v", plan, err)
	}
	aside, err := plan.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if about, err := Inspect(t.Context(), aside); err != nil || about.Program != "2.0" {
		t.Errorf("kept aside: %+v, %v", about, err)
	}
	list, err := names(t.Context(), path, `SELECT name FROM sandboxes`)
	if err != nil || !slices.Equal(list, []string{"lab"}) {
		t.Errorf("%v, %v", list, err)
	}
	open(t, path)
	if copies := copiesOf(t, path); len(copies) != 1 {
		t.Errorf("the copy is gone: %v", copies)
	}
}

// TestRollback_TakesNoDamagedCopy has two copies: the newer one is damaged in several ways, and then the older one too.
func TestRollback_TakesNoDamagedCopy(t *testing.T) {
	path := filled(t)
	had, older := newest(), migrations
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	if _, err := upgradeAs(t, path, "2.0"); err != nil {
		t.Fatal(err)
	}
	migrations = older
	whole := copiesOf(t, path)[0]
	content, err := os.ReadFile(whole.Path)
	if err != nil {
		t.Fatal(err)
	}
	newer := Saved{Version: had, Program: "1.0", Made: whole.Made.Add(time.Second)}
	newer.Path = filepath.Join(filepath.Dir(whole.Path), newer.name())
	put := func(file string, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	noise := slices.Clone(content)
	copy(noise[len(noise)/2:], strings.Repeat("noise", 2000))
	other, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for says, damage := range map[string][]byte{
		"is damaged": noise, "is damaged (": content[:len(content)/2], "damaged (file is not": []byte(strings.Repeat("no database ", 1000)), "of version 0": {},
		fmt.Sprintf("of version %d", had+1): other,
	} {
		put(newer.Path, damage)
		plan, err := PlanRollback(t.Context(), path)
		if err != nil || plan.Copy.Path != whole.Path || len(plan.Damaged) != 1 || !strings.Contains(fault.Message(plan.Damaged[0]), says) {
			t.Errorf("%s: %+v, %v", says, plan, err)
		}
	}
	put(whole.Path, noise)
	if _, err := PlanRollback(t.Context(), path); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), whole.Path+" is damaged") {
		t.Errorf("no whole copy: %v", err)
	}
}

// TestRollback_TwiceInASecond goes back, and, since that was too far, does so again at once from the newer database.
func TestRollback_TwiceInASecond(t *testing.T) {
	path := filled(t)
	older := migrations
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	if _, err := upgradeAs(t, path, "2.0"); err != nil {
		t.Fatal(err)
	}
	migrations = older
	plan, err := PlanRollback(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for range 3 {
		aside, err := plan.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept[aside] = true
	}
	if _, err := os.Stat(path + ".back"); len(kept) != 3 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kept %v; left: %v", kept, err)
	}
}

func TestRollback_IsRefusedWhileTheDatabaseIsOpen(t *testing.T) {
	path := filled(t)
	older := migrations
	withMigrations(t, nextly(`CREATE TABLE more (a)`))
	if _, err := upgradeAs(t, path, "2.0"); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	migrations = older
	plan, err := PlanRollback(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Do(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "has it open") {
		t.Errorf("%v", err)
	}
	if about, err := Inspect(t.Context(), path); err != nil || about.Program != "2.0" {
		t.Errorf("%+v, %v", about, err)
	}
}

func TestCopy_IsOfOneMomentWhileOthersWrite(t *testing.T) {
	d := fresh(t)
	for n := range 50 {
		if err := d.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox(fmt.Sprintf("s%d", n), n)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for n := 50; ctx.Err() == nil; n++ {
			_ = d.Sandboxes().Insert(ctx, sandboxtest.Sandbox(fmt.Sprintf("s%d", n), n)) // while it can: only the copies count
		}
	}()
	for n := range 5 {
		to := filepath.Join(t.TempDir(), fmt.Sprintf("copy%d.db", n))
		if err := Copy(t.Context(), d.path, to); err != nil {
			t.Fatal(err)
		}
		if list, err := names(t.Context(), to, `SELECT name FROM sandboxes`); err != nil || len(list) < 50 {
			t.Errorf("%d sandboxes, %v", len(list), err)
		}
	}
	end()
	<-wrote
	if err := Copy(t.Context(), filepath.Join(t.TempDir(), "none.db"), filepath.Join(t.TempDir(), "copy.db")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("copy of nothing: %v", err)
	}
}
