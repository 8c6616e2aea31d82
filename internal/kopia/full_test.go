package kopia_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
)

// TestSave_ToAFullDiskSaysSoAndKeepsWhatIsThere fills a disk, and then makes it larger.
func TestSave_ToAFullDiskSaysSoAndKeepsWhatIsThere(t *testing.T) {
	a := inFolder(t)
	err := unix.Mount("tmpfs", a.Place.Path, "tmpfs", 0, "size=40m,mode=700")
	if errors.Is(err, unix.EPERM) {
		return // only root may mount
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(a.Place.Path, 0); err != nil {
			t.Error(err)
		}
	})
	e := connected(t, a)
	small, large := repositorytest.Noise(8, 1<<20), repositorytest.Noise(9, 60<<20)
	saved(t, e, a, "small", small)
	for range 2 { // the second one finds it full
		_, err := e.Save(t.Context(), a, repositorytest.Draft("large", large))
		if wantKind(t, "too large", err, fault.Unavailable, ""); !strings.Contains(fault.Message(err), "not enough room") {
			t.Errorf("it says %q", fault.Message(err))
		}
	}
	if got, err := repositorytest.ReadAll(t.Context(), e, a, "small"); err != nil || !bytes.Equal(got, small) {
		t.Errorf("what was there: %d bytes, %v", len(got), err)
	}
	if got := repositorytest.IDs(t, e, a); !slices.Equal(got, []string{"small"}) {
		t.Errorf("listed: %v", got)
	}
	var item repository.ItemError
	if _, err := e.Save(t.Context(), a, repositorytest.Draft("large", large)); !errors.As(err, &item) {
		t.Errorf("the repository is told to be unusable: %v", err)
	}
	saved(t, e, a, "second", repositorytest.Noise(10, 1<<20))
	if err := e.Delete(t.Context(), a, []string{"second"}); err != nil {
		t.Errorf("deleting where the disk is full: %v", err)
	}
	if err := unix.Mount("tmpfs", a.Place.Path, "tmpfs", unix.MS_REMOUNT, "size=256m"); err != nil {
		t.Fatal(err)
	}
	saved(t, e, a, "large", large)
	if got, err := repositorytest.ReadAll(t.Context(), e, a, "large"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("with room again: %d bytes, %v", len(got), err)
	}
	if err := e.Maintain(t.Context(), a); err != nil {
		t.Error(err)
	}
	if found, err := e.Check(t.Context(), a, true, nil); err != nil || found.Backups != 2 || len(found.Damaged) > 0 {
		t.Errorf("checked: %+v, %v", found, err)
	}
}
