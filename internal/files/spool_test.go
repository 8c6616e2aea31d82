package files

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestSpool_KeepsInItsFolderAndSmall(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data", "spool")
	t.Setenv("TMPDIR", "/nowhere")
	on := &spools{folder: folder, most: 1 << 30}
	s := spool{of: on}
	var want bytes.Buffer
	for range 100_000 {
		line := []byte(strings.Repeat("node_modules/", 10) + rand.Text()[:4])
		want.Write(line)
		if _, err := s.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(int(s.file.Fd())))); err != nil || !strings.HasPrefix(path, folder) {
		t.Errorf("it is in %q, %v", path, err)
	}
	if names, err := os.ReadDir(folder); err != nil || len(names) > 0 {
		t.Errorf("left to be found: %v, %v", names, err)
	}
	var got bytes.Buffer
	if err := s.copyTo(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes of %d, %v", got.Len(), want.Len(), err)
	}
	if on.taken == 0 || on.taken > int64(want.Len()/4) {
		t.Errorf("%d bytes are on the disk for %d", on.taken, want.Len())
	}
	if err := errors.Join(s.close(), s.close()); err != nil || on.taken != 0 {
		t.Errorf("%d bytes are still taken, %v", on.taken, err)
	}
}

func TestSpool_AllTogetherTakeNoMoreThanTheirShare(t *testing.T) {
	on := &spools{folder: t.TempDir(), most: 16 << 20}
	var full []*spool
	for _, owner := range []string{"ada", "bob", "cyd", "dan"} {
		s := &spool{of: on, owner: owner}
		defer s.close()
		if _, err := io.CopyN(s, rand.Reader, 6<<20); !fault.Is(err, fault.Limited) {
			t.Errorf("more than %s may have: %v", owner, err)
		}
		full = append(full, s)
	}
	late := spool{of: on, owner: "eve"}
	defer late.close()
	if _, err := io.CopyN(&late, rand.Reader, 4<<20); !fault.Is(err, fault.Limited) {
		t.Errorf("more than there is: %v", err)
	}
	if err := errors.Join(late.close(), full[0].close()); err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{"ada", "eve"} {
		again := spool{of: on, owner: owner}
		if _, err := io.CopyN(&again, rand.Reader, 3<<20); err != nil {
			t.Errorf("when there is room again: %v", err)
		}
		if err := again.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSpool_OneOwnerLeavesRoomForOthers has archives of several sandboxes, none of which ends.
func TestSpool_OneOwnerLeavesRoomForOthers(t *testing.T) {
	on := &spools{folder: t.TempDir(), most: 16 << 20}
	for range 6 {
		s := &spool{of: on, owner: "mallory"}
		defer s.close()
		_, _ = io.CopyN(s, rand.Reader, 3<<20)
	}
	if on.taken > 4<<20 {
		t.Errorf("one has %d bytes", on.taken)
	}
	other := spool{of: on, owner: "ada"}
	defer other.close()
	if _, err := io.CopyN(&other, rand.Reader, 4<<20); err != nil {
		t.Errorf("another: %v", err)
	}
}

func TestPack_KeepsInTheShareOfTheSandboxesOwner(t *testing.T) {
	s := newOn(t, &liar{body: strings.NewReader("")})
	a, err := s.Pack(t.Context(), s.box, "/", nil, Zip)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.owner != "ann" {
		t.Errorf("it is %q's", a.owner)
	}
}
