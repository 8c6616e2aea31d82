package archive

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// mounted makes a file system in a file and mounts it. ok is false where that cannot be done, which it logs.
func mounted(t *testing.T, make string, size int64) (at string, ok bool) {
	t.Helper()
	file := create(t, filepath.Join(t.TempDir(), "disk"))
	at = t.TempDir()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{make, "-q", file}, {"mount", "-o", "loop", file, at}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Logf("not tested here: %s: %v %s", command[0], err, out)
			return "", false
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return at, true
}

// used is how many bytes a file system has in use, all being on the disk.
func used(t *testing.T, at string) int64 {
	t.Helper()
	f := open(t, at)
	var st unix.Statfs_t
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

func TestCopy_SharesBlocksWhereTheFileSystemCan(t *testing.T) {
	for _, tool := range []string{"mkfs.btrfs", "mkfs.xfs"} {
		t.Run(tool, func(t *testing.T) {
			at, ok := mounted(t, tool, 512<<20)
			if !ok {
				return // only root may mount
			}
			from, to := at+"/from", at+"/to"
			for _, folder := range []string{from, to} {
				if err := os.Mkdir(folder, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			plant(t, from, 7, omitted{})
			const large = 100 << 20
			b := make([]byte, large)
			random := rand.NewChaCha8([32]byte{})
			random.Read(b)
			if err := os.WriteFile(from+"/large", b, 0o600); err != nil {
				t.Fatal(err)
			}
			before := used(t, at)
			s, err := Copy(t.Context(), open(t, from), open(t, to), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(describe(t, from), describe(t, to)); d != "" {
				t.Error(d)
			}
			if took := used(t, at) - before; s.Bytes < large || took > large/10 {
				t.Errorf("a copy of %d bytes takes %d", s.Bytes, took)
			}
		})
	}
}
