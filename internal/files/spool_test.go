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
	on := &spools{folder: t.TempDir(), most: 8 << 20}
	first, second := spool{of: on}, spool{of: on}
	defer second.close()
	if _, err := io.CopyN(&first, rand.Reader, 6<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(&second, rand.Reader, 6<<20); !fault.Is(err, fault.Limited) {
		t.Errorf("got %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	third := spool{of: on}
	defer third.close()
	if _, err := io.CopyN(&third, rand.Reader, 3<<20); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}
