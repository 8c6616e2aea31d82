package archive

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestCopy_MakesWhatIsThere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		from, to := t.TempDir(), t.TempDir()
		plant(t, from, seed, omitted{})
		_, wrote := pack(t, from, Options{})
		copied, err := Copy(t.Context(), open(t, from), open(t, to), Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := cmp.Diff(describe(t, from), describe(t, to)); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
		if d := cmp.Diff(wrote, copied); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

// TestCopy_KeepsHolesOfAnyNumberAndSize has more of both than an archive may have.
func TestCopy_KeepsHolesOfAnyNumberAndSize(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	f, err := os.Create(from + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range int64(maxExtents + 500) {
		if _, err := f.WriteAt([]byte("data"), i*3*4096); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	s, err := Copy(t.Context(), open(t, from), open(t, to), Options{})
	if err != nil || s.Files != 1 || s.Lost != nil {
		t.Fatalf("%+v %v", s, err)
	}
	var a, b unix.Stat_t
	if err := errors.Join(unix.Stat(from+"/file", &a), unix.Stat(to+"/file", &b)); err != nil {
		t.Fatal(err)
	}
	if a.Size != b.Size || b.Blocks > 2*a.Blocks {
		t.Errorf("%d bytes in %d blocks, and a copy of %d in %d", a.Size, a.Blocks, b.Size, b.Blocks)
	}
	one, two := make([]byte, maxExtents*4*4096), make([]byte, maxExtents*4*4096)
	copied := open(t, to+"/file")
	if _, err := f.ReadAt(one, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := copied.ReadAt(two, 0); err != nil || !slices.Equal(one, two) {
		t.Errorf("the content is another one (%v)", err)
	}
}

func TestCopy_LeavesOutWhatItShallSkipAndListsWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	socket(t, from+"/sock")
	for _, folder := range []string{from + "/skipped/in", from + "/a/skipped"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Copy(t.Context(), open(t, from), open(t, to), Options{Skip: "skipped"})
	if d := cmp.Diff(Stats{Folders: 2, Lost: []Loss{{"sock", "is a socket"}}}, s); err != nil || d != "" {
		t.Error(d, err)
	}
	if _, err := os.Stat(to + "/skipped"); err == nil {
		t.Error("it is not left out")
	}
}

func TestCopy_FollowsNoLinkThatIsInTheWay(t *testing.T) {
	t.Parallel()
	from, to, outside := t.TempDir(), t.TempDir(), create(t, t.TempDir()+"/victim")
	if err := os.WriteFile(from+"/file", []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, to+"/file"); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), open(t, from), open(t, to), Options{}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(outside); err != nil || st.Size() != 0 {
		t.Errorf("the file outside: %v", err)
	}
}

func TestCopy_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	f, err := os.Create(from + "/large")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 4*progressStep); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Copy(ctx, open(t, from), open(t, to), Options{Progress: func(Stats) { cancel() }})
	if !errors.Is(err, context.Canceled) || s.Bytes > 2*progressStep {
		t.Errorf("%+v %v", s, err)
	}
}

// TestCopy_ThePathOfAFolderEndsWithASlash has a folder whose path is as long as one may be.
func TestCopy_ThePathOfAFolderEndsWithASlash(t *testing.T) {
	for _, first := range []string{"d", "dd", "ddd"} { // 4095, 4096 and 4097 bytes in all
		from, to := t.TempDir(), t.TempDir()
		fd, err := unix.Open(from, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		for level := 0; err == nil && level <= 2047; level++ {
			name := "d"
			if level == 0 {
				name = first
			}
			above := fd
			if err = unix.Mkdirat(above, name, 0o755); err == nil {
				fd, err = unix.Openat(above, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			}
			unix.Close(above)
		}
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		source, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		target, err := os.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		stats, err := Copy(t.Context(), source, target, Options{})
		if err != nil || len(stats.Lost) > 1 || stats.Folders < 2046 {
			t.Errorf("%s: %d folders, lost %d, %.100v", first, stats.Folders, len(stats.Lost), err)
		}
		source.Close()
		target.Close()
	}
}
