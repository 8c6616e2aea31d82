package backup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// scheduled is a backup of lab that a schedule asked for.
func scheduled(t *testing.T, s *Service) Backup {
	t.Helper()
	b, _, err := s.Begin(box("lab"), Options{Schedule: "nightly"})
	if err == nil {
		b, err = s.Wait(t.Context(), b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSchedule_SaysHowLongItsBackupsAreKept(t *testing.T) {
	s, boxes := open(t, nil)
	b, other := scheduled(t, s), made(t, s, box("other"))
	if b.Schedule != "nightly" || !b.Expires.IsZero() {
		t.Errorf("made %+v", b)
	}
	again, err := Open(Config{Folder: s.Folder, Sandboxes: boxes, Version: "test", Keep: time.Hour, Disk: s.Disk, Log: s.Log})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := again.Backup(b.ID); err != nil || now.Schedule != "nightly" || !now.Expires.IsZero() {
		t.Errorf("after a restart %+v, %v", now, err)
	}
	s.dropExpired(time.Now().AddDate(1, 0, 0))
	if _, err := s.Backup(b.ID); err != nil {
		t.Errorf("after a year: %v", err)
	}
	if _, err := s.Backup(other.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that a person made, after a year: %v", err)
	}
	at := time.Now().Add(time.Minute)
	s.SetExpires(b.ID, at)
	s.SetExpires("none", at)
	s.dropExpired(at.Add(time.Second))
	if _, err := s.Backup(b.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("after it expired: %v", err)
	}
}

func TestTestRestore_ComparesWhatWasRestored(t *testing.T) {
	s, boxes := open(t, nil)
	boxes.put("00000000000000aa", "src/main.go", "package main")
	boxes.put("00000000000000aa", "notes", strings.Repeat("text ", 1000))
	if err := os.Symlink("notes", filepath.Join(boxes.folder("00000000000000aa"), "link")); err != nil {
		t.Fatal(err)
	}
	b := scheduled(t, s)
	if err := NewTester(s).TestRestore(t.Context(), b.ID, "restore-test-1"); err != nil {
		t.Fatal(err)
	}
	got := boxes.made[0]
	if got.Name != "restore-test-1" || got.Owner != "ann" || len(got.Spec.Env) != 1 || !OfTest(got) || !got.Overrides.HasServices || len(got.Overrides.Services) != 0 || *got.Overrides.IDE {
		t.Errorf("made %+v", got)
	}
	for name, alter := range map[string]func(home string) error{
		"content": func(home string) error {
			return os.WriteFile(filepath.Join(home, "notes"), []byte(strings.Repeat("texT ", 1000)), 0o644)
		},
		"mode":    func(home string) error { return os.Chmod(filepath.Join(home, "notes"), 0o600) },
		"missing": func(home string) error { return os.Remove(filepath.Join(home, "link")) },
		"more":    func(home string) error { return os.WriteFile(filepath.Join(home, "more"), nil, 0o644) },
		"renamed": func(home string) error { return os.Rename(filepath.Join(home, "src"), filepath.Join(home, "srC")) },
	} {
		boxes.alter = func(home string) {
			if err := alter(home); err != nil {
				t.Error(err)
			}
		}
		err := NewTester(s).TestRestore(t.Context(), b.ID, "restore-test-"+name)
		wantKind(t, name, err, fault.Internal)
		if !slices.Contains(boxes.deleted, "restore-test-"+name) {
			t.Errorf("%s: the sandbox of the test is left", name)
		}
	}
}

func TestTestRestore_FindsADamagedBackup(t *testing.T) {
	s, boxes := open(t, nil)
	boxes.put("00000000000000aa", "notes", strings.Repeat("text ", 100_000))
	b := scheduled(t, s)
	f, err := os.OpenFile(s.fileOf(b.ID), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("rotten"), b.Size-60); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "damaged", NewTester(s).TestRestore(t.Context(), b.ID, "restore-test-1"), fault.Invalid)
	if len(boxes.made) != 0 {
		t.Error("a sandbox was made of it")
	}
	wantKind(t, "none", NewTester(s).TestRestore(t.Context(), "none", "restore-test-1"), fault.NotFound)
}
