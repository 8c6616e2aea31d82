package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/seal"
	"sandboxd/internal/serverbackup"
	"sandboxd/internal/sqlite"
	"sandboxd/internal/template"
)

// TestDataEntries_KnowAllThatThisProgramNames reads the source for what is joined to the data folder's path.
func TestDataEntries_KnowAllThatThisProgramNames(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	joined := regexp.MustCompile(`filepath\.Join\((?:\w+\.)*(?:Data|data), ("?)([^")]+)"?\)`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range joined.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "" { // a constant
				continue
			}
			found++
			if _, known := entryOf(m[2]); !known {
				t.Errorf("%s: %q in the data folder is not in dataEntries: say whether a server backup has it", file, m[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d are found: the source is written in another way now", found)
	}
}

func TestDataEntries_SayWhatARestoreReplaces(t *testing.T) {
	for name, want := range map[string]bool{
		"sandboxd.db": true, "sandboxd.db-wal": true, "activity.db-shm": true, "instance": true, "secret.key": true, "prices.json": true, restoredFolder: true,
		ownFolder: true, "pool.img": false, "backups": false, "logs.db": false, "lock": false, "replaced-20261126-050000": false, "sandboxd.db.damaged-20261126-050000": false, "mine": false,
		stagingFolder: false, "server-restore.ready": false,
	} {
		if isServers(name) != want {
			t.Errorf("%s is replaced: %v", name, !want)
		}
	}
}

// site is a data folder that a server has used.
type site struct {
	t    *testing.T
	data string
}

func newSite(t *testing.T) *site {
	sealer.Work = 4
	t.Cleanup(func() { sealer.Work = 0 })
	s := &site{t, filepath.Join(t.TempDir(), "data")}
	db, err := openDatabase(t.Context(), &Config{Data: s.data})
	if err != nil {
		t.Fatal(err)
	}
	users := auth.New(db.Auth(), auth.Options{Cost: auth.Cost{Memory: 64, Passes: 1}})
	_, err = db.Instance(t.Context())
	err = errors.Join(err, users.Bootstrap(t.Context(), ""), db.Sandboxes().Insert(t.Context(), sandboxtest.Sandbox("lab", 0)), db.Close())
	if _, keyErr := seal.Open(keyFile(&Config{Data: s.data})); err != nil || keyErr != nil {
		t.Fatal(err, keyErr)
	}
	s.fetched("rust")
	s.write("history.db", "figures")
	s.write("mine", "not ours")
	return s
}

// fetched makes a template as one from git that needs a key.
func (s *site) fetched(name string) {
	s.t.Helper()
	key, err := seal.Open(keyFile(&Config{Data: s.data}))
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := key.Seal("template "+name, []byte("a deploy key"))
	db, dbErr := openDatabase(s.t.Context(), &Config{Data: s.data})
	if err := errors.Join(err, dbErr); err != nil {
		s.t.Fatal(err)
	}
	version := filepath.Join(s.data, ownFolder, ".versions", name+"-1")
	err = errors.Join(
		db.Templates().PutSource(s.t.Context(), template.Source{Template: name, URL: "ssh://git@git.lan/t.git", Secret: secret}), db.Close(),
		os.MkdirAll(version, 0o755), os.WriteFile(filepath.Join(version, "template.yaml"), []byte("name: "+name+"\n"), 0o644),
		os.WriteFile(filepath.Join(version, "setup.sh"), []byte("#!/bin/sh\n"), 0o755), os.Symlink(filepath.Join(".versions", name+"-1"), filepath.Join(s.data, ownFolder, name)))
	if err != nil {
		s.t.Fatal(err)
	}
}

// wantFetched wants what fetched has made to be there as a version, with the key.
func (s *site) wantFetched(name string) {
	s.t.Helper()
	c := &Config{Data: s.data}
	to, err := os.Readlink(filepath.Join(ownTemplates(c), name))
	st, statErr := os.Stat(filepath.Join(ownTemplates(c), name, "setup.sh"))
	if err := errors.Join(err, statErr); err != nil || filepath.Dir(to) != ".versions" || st.Mode().Perm() != 0o755 || s.read(ownFolder+"/"+name+"/template.yaml") != "name: "+name+"\n" {
		s.t.Errorf("template %s is %q, %v, %v", name, to, st, err)
	}
	db, err := openDatabase(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	sources, err := db.Templates().Sources(s.t.Context())
	key, keyErr := seal.Open(keyFile(c))
	if err := errors.Join(err, keyErr, db.Close()); err != nil || len(sources) != 1 {
		s.t.Fatal(sources, err)
	}
	if plain, err := key.Open("template "+name, sources[0].Secret); err != nil || string(plain) != "a deploy key" {
		s.t.Errorf("its key is %q, %v", plain, err)
	}
}

func (s *site) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.data, name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.data, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// run runs a command line, with the passphrase in a file.
func (s *site) run(phrase string, args ...string) (said string, err error) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "passphrase")
	if err := os.WriteFile(file, []byte(phrase+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	root := newRootCmd()
	var out, errs bytes.Buffer
	root.SetIn(strings.NewReader(""))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append(args, "--data", s.data, "--passphrase-file", file))
	err = root.ExecuteContext(s.t.Context())
	return errs.String(), err
}

const aPhrase = "a long passphrase"

func TestBackupServer_ComesBackInAnotherFolder(t *testing.T) {
	s := newSite(t)
	own := filepath.Join(t.TempDir(), "templates")
	if err := errors.Join(os.MkdirAll(filepath.Join(own, "mine"), 0o755), os.WriteFile(filepath.Join(own, "mine", "template.yaml"), []byte("name: mine\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "box"+serverBackupSuffix)
	said, err := s.run(aPhrase, "backup", "--server", file, "--templates", own, "--ca-file", ca)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"read back", "homes of sandboxes", "history.db: figures", "mine: it is not sandboxd's"} {
		if !strings.Contains(said, part) {
			t.Errorf("it lacks %q:\n%s", part, said)
		}
	}
	if left, err := os.ReadDir(filepath.Join(s.data, stagingFolder)); err == nil {
		t.Errorf("left: %v", left)
	}
	if f := lookServerBackup(t.Context(), &Config{Data: s.data}); f.Level != good || !strings.Contains(f.Saw, file) {
		t.Errorf("doctor says %+v", f)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := s.run(aPhrase, "backup", "--server", file); !fault.Is(err, fault.Conflict) {
		t.Errorf("over the same file: %v", err)
	}

	other := &site{t, filepath.Join(t.TempDir(), "other")}
	if said, err := other.run(aPhrase, "restore", "--server", "--check", file); err != nil || !strings.Contains(said, "is whole") {
		t.Errorf("check: %s %v", said, err)
	}
	said, err = other.run(aPhrase, "restore", "--server", file)
	if err != nil || !strings.Contains(said, filepath.Join(other.data, restoredFolder)) {
		t.Fatalf("%s %v", said, err)
	}
	for _, name := range []string{"instance", "secret.key"} {
		if s.read(name) != other.read(name) {
			t.Errorf("%s is another one", name)
		}
	}
	other.wantFetched("rust")
	if other.read("restored/templates-1/mine/template.yaml") != "name: mine\n" || other.read("restored/ca.pem") != "certificate" {
		t.Error("what came from outside differs")
	}
	had, err := sqlite.SandboxIDs(t.Context(), databasePath(&Config{Data: s.data}))
	ids, otherErr := sqlite.SandboxIDs(t.Context(), databasePath(&Config{Data: other.data}))
	if err := errors.Join(err, otherErr); err != nil || len(ids) != 1 || ids[0] != had[0] {
		t.Errorf("sandboxes %v, %v", ids, err)
	}
}

// threeBackups gives a whole backup of a site, one that was cut, and one of a newer sandboxd.
func (s *site) threeBackups() (file, cut, newer string) {
	s.t.Helper()
	dir := s.t.TempDir()
	file, cut, newer = filepath.Join(dir, "box.age"), filepath.Join(dir, "cut.age"), filepath.Join(dir, "newer.age")
	if _, err := s.run(aPhrase, "backup", "--server", file); err != nil {
		s.t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	var out bytes.Buffer
	_, err = serverbackup.Sealer{Work: 2}.Write(s.t.Context(), &out, aPhrase, serverbackup.Manifest{By: "9.9", Database: sqlite.Known() + 1}, s.t.TempDir())
	if err := errors.Join(err, os.WriteFile(cut, whole[:len(whole)-1], 0o600), os.WriteFile(newer, out.Bytes(), 0o600)); err != nil {
		s.t.Fatal(err)
	}
	return file, cut, newer
}

func TestRestoreServer_RefusesAndChangesNothing(t *testing.T) {
	s := newSite(t)
	file, cut, newer := s.threeBackups()
	before := s.read("sandboxd.db")
	for name, c := range map[string]struct {
		phrase string
		args   []string
		kind   fault.Kind
		says   string
	}{
		"a folder that was used":   {aPhrase, []string{file}, fault.Conflict, "--replace"},
		"another passphrase":       {"another passphrase", []string{file, "--replace"}, fault.Invalid, "passphrase"},
		"a file that was cut":      {aPhrase, []string{cut, "--replace"}, fault.Invalid, "not whole"},
		"a newer one":              {aPhrase, []string{newer, "--replace"}, fault.Conflict, "9.9"},
		"no file":                  {aPhrase, []string{file + "x", "--replace"}, fault.NotFound, "no file"},
		"a flag of the other kind": {aPhrase, []string{file, "--new"}, fault.Invalid, "--new"},
		"two files":                {aPhrase, []string{file, file}, fault.Invalid, "restore --server FILE"},
	} {
		if _, err := s.run(c.phrase, append([]string{"restore", "--server"}, c.args...)...); !fault.Is(err, c.kind) || !strings.Contains(fault.Message(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unlock, err := lockData(&Config{Data: s.data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(aPhrase, "restore", "--server", file, "--replace"); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "Another sandboxd") {
		t.Errorf("under a server: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if s.read("sandboxd.db") != before {
		t.Error("the database was changed")
	}
	if left, err := filepath.Glob(filepath.Join(s.data, "server-restore*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	s.write("instance", "ffffffff\n")
	if said, err := s.run(aPhrase, "restore", "--server", file, "--replace"); err != nil || !strings.Contains(said, serverbackup.ReplacedPrefix) {
		t.Errorf("replace: %s %v", said, err)
	}
	if s.read("instance") == "ffffffff\n" || s.read("history.db") != "figures" {
		t.Error("it was not replaced, or too much was")
	}
}

func TestBackupServer_RefusesWhatItCannotDo(t *testing.T) {
	s := newSite(t)
	for name, c := range map[string]struct {
		phrase string
		args   []string
		says   string
	}{
		"a short passphrase":       {"short", []string{filepath.Join(t.TempDir(), "f")}, "too short"},
		"a flag of the other kind": {aPhrase, []string{"--live"}, "--live"},
		"two files":                {aPhrase, []string{"a", "b"}, "backup --server"},
	} {
		if _, err := s.run(c.phrase, append([]string{"backup", "--server"}, c.args...)...); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unused := &site{t, t.TempDir()}
	if _, err := unused.run(aPhrase, "backup", "--server", filepath.Join(t.TempDir(), "f")); !fault.Is(err, fault.NotFound) {
		t.Errorf("of an unused folder: %v", err)
	}
	_, done, err := openStaging(s.data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(aPhrase, "backup", "--server", filepath.Join(t.TempDir(), "f")); !fault.Is(err, fault.Conflict) {
		t.Errorf("two at a time: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

// smallDisk gives a folder with a file system of its own of that size, as mount writes it.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	return folder
}

func TestBackupServer_AFullDiskAndAKilledOneLeaveNothing(t *testing.T) {
	s := newSite(t)
	staging := filepath.Join(s.data, stagingFolder)
	if err := os.MkdirAll(staging, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(stagingFolder, "sandboxd.db"), "of one that was killed")
	full := smallDisk(t, "4k")
	if _, err := s.run(aPhrase, "backup", "--server", full); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "no space left") {
		t.Errorf("on a full disk: %v", err)
	}
	if left, err := os.ReadDir(full); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(staging); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left in the data folder: %v", err)
	}
	if f := lookServerBackup(t.Context(), &Config{Data: s.data}); !strings.Contains(f.Saw, "no backup") {
		t.Errorf("doctor says %+v", f)
	}
}

func TestPassphrase_IsTakenFromTheEnvironmentAndNeverAskedWithoutATerminal(t *testing.T) {
	root := newRootCmd()
	root.SetIn(strings.NewReader("typed\n"))
	root.SetErr(io.Discard)
	t.Setenv(passphraseEnv, "")
	if _, err := passphrase(root, "", true); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), passphraseEnv) {
		t.Error(err)
	}
	t.Setenv(passphraseEnv, aPhrase)
	if got, err := passphrase(root, "", true); err != nil || got != aPhrase {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDoctor_TellsOfTheDatabase(t *testing.T) {
	s := newSite(t)
	c := &Config{Data: s.data}
	if f := lookDatabase(t.Context(), c); f.Level != good {
		t.Errorf("%+v", f)
	}
	if f := lookDatabase(t.Context(), &Config{Data: t.TempDir()}); f.Level != good || !strings.Contains(f.Saw, "no database") {
		t.Errorf("%+v", f)
	}
	if f := lookServerBackup(t.Context(), c); f.Level != good || !strings.Contains(f.Saw, "backup --server") {
		t.Errorf("%+v", f)
	}
	if !slices.ContainsFunc(checks, func(c check) bool { return c.name == "database" }) {
		t.Error("it is no check")
	}
}
