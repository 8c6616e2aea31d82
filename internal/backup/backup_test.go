package backup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestBackup_IsMadeReadBackAndRestored(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.put(lab.ID, "a/file", "before")
	b := made(t, s, lab)
	if b.State != Ready || b.Stats.Files != 1 || b.Stats.Folders != 1 || b.Stats.Bytes != 6 || !b.Still || b.Template != "base" {
		t.Errorf("%+v", b)
	}
	if info, err := os.Stat(s.fileOf(b.ID)); err != nil || info.Size() != b.Size {
		t.Errorf("%d bytes, %v; told %d", info.Size(), err, b.Size)
	}
	boxes.put(lab.ID, "a/file", "after")
	boxes.put(lab.ID, "more", "x")
	a, err := s.Archive(b.ID)
	if err == nil {
		err = s.Restore(t.Context(), lab, a, true)
	}
	if err != nil || boxes.get(lab.ID, "a/file") != "before" || boxes.get(lab.ID, "more") != "" {
		t.Errorf("%v; the home has %q and %q", err, boxes.get(lab.ID, "a/file"), boxes.get(lab.ID, "more"))
	}
	list := s.List(func(Backup) bool { return true })
	if len(list) != 2 || list[1].ID != b.ID {
		t.Fatalf("%+v", list)
	}
	if a, err = s.Archive(list[0].ID); err == nil { // what was there before the restore
		err = s.Restore(t.Context(), lab, a, false)
	}
	if err != nil || boxes.get(lab.ID, "a/file") != "after" || boxes.get(lab.ID, "more") != "x" {
		t.Errorf("%v; the home has %q", err, boxes.get(lab.ID, "a/file"))
	}
}

func TestRestoreNew_TakesWhatTheArchiveSaysUnlessTold(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.put(lab.ID, "file", "text")
	b := made(t, s, lab)
	for _, c := range []struct {
		ask  sandbox.Request
		want sandbox.Spec
	}{
		{sandbox.Request{Name: "one", Owner: "bob"}, lab.Spec},
		{sandbox.Request{Name: "two", Owner: "bob", Template: "other"}, sandbox.Spec{Template: "other", Env: lab.Spec.Env, Limits: lab.Spec.Limits}},
	} {
		a, err := s.Archive(b.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.RestoreNew(t.Context(), c.ask, a)
		if d := cmp.Diff(c.want, got.Spec); err != nil || d != "" || got.Owner != "bob" || got.Label != "Lab" || boxes.get(got.ID, "file") != "text" {
			t.Errorf("%+v, %v\n%s", got, err, d)
		}
	}
}

func TestOpen_FindsWhatIsThereAndRemovesWhatIsHalf(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.put(lab.ID, "file", "text")
	b := made(t, s, lab)
	for _, name := range []string{"upload-1.part", "0123456789abcdef.tar.zst.part"} {
		if err := os.WriteFile(filepath.Join(s.Folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"note.txt": "mine", "ffffffffffffffff.tar.zst": "no archive", "empty.tar.zst": ""} {
		if err := os.WriteFile(filepath.Join(s.Folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := open(t, func(c *Config) { c.Folder = s.Folder })
	list := again.List(func(Backup) bool { return true })
	if len(list) != 1 || !cmp.Equal(list[0], b) {
		t.Errorf("found %+v, want %+v", list, b)
	}
	if again.used["ann"] != b.Size {
		t.Errorf("%d bytes are used, want %d", again.used["ann"], b.Size)
	}
	left, err := filepath.Glob(filepath.Join(s.Folder, "*"))
	if err != nil || len(left) != 4 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestDelete_CancelsWhatIsBeingMade(t *testing.T) {
	s, boxes := open(t, func(c *Config) { c.Failed = func(b Backup) { t.Errorf("told of %+v", b) } })
	boxes.hold = make(chan struct{})
	b, _, err := s.Begin(box("lab"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if same, begun, err := s.Begin(box("lab"), Options{}); err != nil || begun || same.ID != b.ID {
		t.Errorf("once more: %+v, %v", same, err)
	}
	if _, _, err := s.Open(b.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("opened: %v", err)
	}
	if err := s.Delete(b.ID); err != nil {
		t.Error(err)
	}
	got, err := s.Wait(t.Context(), b.ID)
	if !fault.Is(err, fault.Gone) || got.State != Failed || got.Problem == "" || s.used["ann"] != 0 {
		t.Errorf("%+v, %v, %d bytes used", got, err, s.used["ann"])
	}
	if err := s.Delete(b.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Backup(b.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.Folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestBackup_KeepsToItsQuotaAndItsTime(t *testing.T) {
	var told []Backup
	s, boxes := open(t, func(c *Config) {
		c.Quota, c.Failed = 300<<10, func(b Backup) { told = append(told, b) }
	})
	lab := box("lab")
	b := made(t, s, lab)
	boxes.put(lab.ID, "noise", noise(600<<10))
	next, _, err := s.Begin(lab, Options{})
	if err == nil {
		next, err = s.Wait(t.Context(), next.ID)
	}
	wantKind(t, "over the quota", err, fault.TooLarge)
	if len(told) != 1 || told[0].ID != next.ID || told[0].Problem == "" {
		t.Errorf("told of %+v", told)
	}
	if next.State != Failed || s.used["ann"] != b.Size {
		t.Errorf("%+v; %d bytes used, want %d", next, s.used["ann"], b.Size)
	}
	if _, err := s.Receive(t.Context(), "ann", strings.NewReader(noise(600<<10))); !fault.Is(err, fault.TooLarge) {
		t.Errorf("an upload: %v", err)
	}
	if s.used["ann"] != b.Size {
		t.Errorf("%d bytes used after the upload", s.used["ann"])
	}
	f, _, err := s.Open(b.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.dropExpired(b.Expires.Add(time.Second))
	if _, err := s.Backup(b.ID); !fault.Is(err, fault.NotFound) || s.used["ann"] != 0 {
		t.Errorf("%v, %d bytes used", err, s.used["ann"])
	}
	if text := make([]byte, 100); true {
		if _, err := f.ReadAt(text, 0); err != nil { // a download continues
			t.Error(err)
		}
	}
}

func TestRestore_OneAtATimeAndItCanBeCancelled(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.put(lab.ID, "file", "old")
	b := made(t, s, lab)
	boxes.hold = make(chan struct{}) // the backup before the restore waits
	first, err := s.Archive(b.ID)
	if err != nil {
		t.Fatal(err)
	}
	changes := s.Subscribe()
	defer changes.Close()
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.Restore(ctx, lab, first, true) }()
	<-changes.C // that backup has begun
	leave()
	if err := <-left; err != context.Canceled {
		t.Errorf("the caller who left: %v", err)
	}
	second, err := s.Archive(b.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, "another one", s.Restore(t.Context(), lab, second, false), fault.Conflict)
	if err := s.CancelRestore(lab.Ref()); err != nil {
		t.Error(err)
	}
	s.works.Wait()
	if s.Problem(lab.ID) != "The restore was cancelled. Nothing was changed." || boxes.get(lab.ID, "file") != "old" {
		t.Errorf("problem %q, file %q", s.Problem(lab.ID), boxes.get(lab.ID, "file"))
	}
	wantKind(t, "cancelled once more", s.CancelRestore(lab.Ref()), fault.NotFound)
}

func TestRestore_DoesNotBeginForOneWhoHasLeft(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	b := made(t, s, lab)
	boxes.put(lab.ID, "file", "new")
	a, err := s.Archive(b.ID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := s.Restore(ctx, lab, a, false); !errors.Is(err, context.Canceled) || boxes.get(lab.ID, "file") != "new" {
		t.Errorf("%v, file %q", err, boxes.get(lab.ID, "file"))
	}
}

func TestRun_EndsWhatIsUnderWay(t *testing.T) {
	boxes := &boxes{t: t, home: map[string]string{}, hold: make(chan struct{})}
	s, err := Open(Config{Folder: t.TempDir(), Sandboxes: boxes, Keep: time.Hour, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b, _, err := s.Begin(box("lab"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	if got, err := s.Backup(b.ID); err != nil || got.State != Failed {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := s.Begin(box("lab"), Options{}); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
}

func TestReceive_SaysThatAnUploadWasCutOff(t *testing.T) {
	s, _ := open(t, nil)
	_, err := s.Receive(t.Context(), "ann", &failing{bytes.NewReader(make([]byte, 5000))})
	wantKind(t, "cut off", err, fault.Invalid)
	if left, err := os.ReadDir(s.Folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
