package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// opened opens a folder until the test ends.
func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func compared(t *testing.T, before, after, skip string) (found []string) {
	t.Helper()
	a := opened(t, before)
	b := opened(t, after)
	err := Compare(t.Context(), a, b, skip, func(d Difference) error {
		kind := ""
		if d.Kind == KindFolder {
			kind = "/"
		}
		found = append(found, fmt.Sprintf("%s %s%s %d", d.Change, d.Path, kind, d.Size))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

func TestCompare_TellsWhatDiffers(t *testing.T) {
	before, after := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	run := func(line string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", line, "sh", before, after)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	run(`mkdir -p "$1/same/deep" "$1/gone/deep" "$1/mode" "$1/turns"; cd "$1"; echo 1 > same/deep/file; echo 1 > gone/deep/file; echo 1 > changed
echo 1 > touched; echo 1 > turns/file; ln -s a link; ln -s a same-link; mkfifo pipe; mkdir skipped; echo 1 > skipped/file; cp -a "$1" "$2"`)
	if found := compared(t, before, after, "skipped"); len(found) > 0 {
		t.Errorf("of a copy: %q", found)
	}
	run(`cd "$2"; rm -rf gone turns; echo 23 > turns; mkdir -p new/deep; echo 1 > new/deep/file; echo 1234 > changed; touch -d 2001-01-01 touched
ln -sfn b link; chmod 700 mode; echo 2 > skipped/file; touch -d 2001-01-01 same; echo > "$(printf 'odd\377')"`)
	want := []string{
		"changed changed 5", "deleted gone/ 0", "deleted gone/deep/ 0", "deleted gone/deep/file 2", "changed link 0", "changed mode/ 0",
		"added new/ 0", "added new/deep/ 0", "added new/deep/file 2", "added odd\uFFFD 1", "changed touched 2",
		"deleted turns/ 0", "deleted turns/file 2", "added turns 3",
	}
	if found := compared(t, before, after, "skipped"); !slices.Equal(found, want) {
		t.Errorf("got  %q\nwant %q", found, want)
	}
}

func TestCompare_EndsWhenThereIsEnough(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	for i := range 10 {
		if err := os.WriteFile(filepath.Join(after, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := opened(t, before)
	b := opened(t, after)
	n := 0
	err := Compare(t.Context(), a, b, "", func(Difference) error {
		if n++; n == 3 {
			return ErrEnough
		}
		return nil
	})
	if !errors.Is(err, ErrEnough) || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestCompare_OfAFolderThatChangesMeanwhile(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	a := opened(t, before)
	b := opened(t, after)
	ctx, stop := context.WithCancel(t.Context())
	var churning sync.WaitGroup
	defer churning.Wait()
	defer stop()
	churning.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			name := filepath.Join(after, fmt.Sprint(n%4))
			if err := errors.Join(os.MkdirAll(name+"/a/b", 0o700), os.WriteFile(name+"/a/b/f", nil, 0o600), os.RemoveAll(name), os.Symlink("/", name), os.Remove(name)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3000 {
		if err := Compare(t.Context(), a, b, "", func(Difference) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}
