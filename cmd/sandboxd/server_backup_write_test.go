package main

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/serverbackup"
)

// runOut is run, for what is written to standard output.
func (s *site) runOut(phrase string, args ...string) (out []byte, said string, err error) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "passphrase")
	if err := os.WriteFile(file, []byte(phrase), 0o600); err != nil {
		s.t.Fatal(err)
	}
	root := newRootCmd()
	var stdout, errs bytes.Buffer
	root.SetIn(strings.NewReader(""))
	root.SetOut(&stdout)
	root.SetErr(&errs)
	root.SetArgs(append(args, "--data", s.data, "--passphrase-file", file))
	err = root.ExecuteContext(s.t.Context())
	return stdout.Bytes(), errs.String(), err
}

func TestBackupServer_ToStandardOutputIsReadAsItIsWritten(t *testing.T) {
	s := newSite(t)
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, "latin-\xe4"), []byte("umlaut"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, err := s.runOut(aPhrase, "backup", "--server", "-", "--templates", own)
	if err != nil || !strings.Contains(said, "read as it was written") {
		t.Fatalf("%s %v", said, err)
	}
	for _, part := range []string{"homes of sandboxes:", "volumes:", "snapshots of sandboxes"} {
		if !strings.Contains(said, part) {
			t.Errorf("it lacks %q:\n%s", part, said)
		}
	}
	to := t.TempDir()
	if _, err := serverbackup.Extract(t.Context(), bytes.NewReader(out), aPhrase, to, func(serverbackup.Manifest) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, restoredFolder, "templates-1", "latin-\xe4")); err != nil || string(got) != "umlaut" {
		t.Errorf("%q, %v", got, err)
	}
}

// spoiling changes a file when something is written to it.
type spoiling struct {
	t    *testing.T
	file string
}

func (s spoiling) Write(b []byte) (int, error) {
	f, err := os.OpenFile(s.file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("spoiled"), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Error(err)
	}
	return len(b), nil
}

func TestWriteRead_TellsThatWhatIsWrittenIsNoWholeBackup(t *testing.T) {
	sealer.Work = 2
	t.Cleanup(func() { sealer.Work = 0 })
	folder := t.TempDir()
	noise := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for _, name := range []string{"first", "last"} {
		if err := os.WriteFile(filepath.Join(folder, name), noise, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := writeRead(t.Context(), spoiling{t, filepath.Join(folder, "last")}, aPhrase, serverbackup.Manifest{}, folder)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "Do not keep it") {
		t.Error(err)
	}
	gone := fault.New(fault.Unavailable, "Standard output takes no more.")
	if _, _, err := writeRead(t.Context(), failing{gone}, aPhrase, serverbackup.Manifest{}, folder); !errors.Is(err, gone) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestBackupServer_RefusesPassphrasesOfTwoLinesAndOfSpaces(t *testing.T) {
	s := newSite(t)
	for phrase, says := range map[string]string{"one passphrase\nand more": "more than one line", strings.Repeat(" ", 20): "spaces only"} {
		if _, err := s.run(phrase, "backup", "--server", filepath.Join(t.TempDir(), "f")); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), says) {
			t.Errorf("%q: %v", phrase, err)
		}
	}
}

func TestDropStaging_RemovesWhatAKilledBackupHasLeftAndNoOther(t *testing.T) {
	data := t.TempDir()
	folder, done, err := openStaging(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "sandboxd.db"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dropStaging(data); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "sandboxd.db")); err != nil {
		t.Errorf("one under way is gone: %v", err)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "sandboxd.db"), []byte("rows"), 0o600), dropStaging(data), dropStaging(data)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}
