package link_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// connectFiles gives a session with a guest in this process that serves the files below a folder.
func connectFiles(t testing.TB) (*link.Session, string) {
	t.Helper()
	h := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	runHub(t, h)
	folder, err := h.Expect("box", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	runGuest(t, folder, guest.Config{Root: root})
	session, err := h.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return session, root
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func slurp(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFiles_AreWrittenReadAndTold(t *testing.T) {
	s, root := connectFiles(t)
	ctx := testContext(t)
	content := strings.Repeat("0123456789", 1<<20)
	w, err := s.FileWrite(ctx, wire.FilePut{Path: "/a/b", Size: int64(len(content)), Parents: true}, strings.NewReader(content))
	if err != nil || !w.Created || w.Entry.Size != int64(len(content)) {
		t.Fatalf("got %+v, %v", w, err)
	}
	if slurp(t, filepath.Join(root, "a/b")) != content {
		t.Error("another content has arrived")
	}
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, -1, content}, {5, 3, "567"}, {-2, -1, "89"}, {-2, 1, "8"}, {1 << 40, 5, ""}, {0, 0, ""}, {-1 << 40, 2, "01"}} {
		e, r, err := s.FileRead(ctx, "/a/b", c.offset, c.length)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		if err != nil || string(got) != c.want || e != w.Entry {
			t.Errorf("%d, %d: got %d bytes, %v, %+v", c.offset, c.length, len(got), err, e)
		}
	}
	e, err := s.FileStat(ctx, "/a/b")
	if err != nil || e != w.Entry {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := s.FileWrite(ctx, wire.FilePut{Path: "/a/b", Size: -1, IfMatch: `"other"`}, strings.NewReader("x")); !errors.Is(err, link.ErrFileChanged) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.FileRead(ctx, "/a", 0, -1); !errors.Is(err, link.ErrIsFolder) {
		t.Errorf("got %v", err)
	}
	if _, err := s.FileStat(ctx, "/no"); fault.KindOf(err) != fault.NotFound || !strings.Contains(fault.Message(err), "/no") {
		t.Errorf("got %v", err)
	}
	if _, err := s.FileStat(ctx, "/../no"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestFileWrite_AnErrorOfTheContentLeavesEverything(t *testing.T) {
	s, root := connectFiles(t)
	put(t, filepath.Join(root, "a"), "old")
	broken := errors.New("gone")
	_, err := s.FileWrite(testContext(t), wire.FilePut{Path: "/a", Size: -1}, io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), &failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	awaitNames(t, root, "a")
	if got := slurp(t, filepath.Join(root, "a")); got != "old" {
		t.Errorf("got %q", got)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// awaitNames waits until a folder holds these names and no others.
func awaitNames(t testing.TB, folder string, want ...string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var names []string
		entries, _ := os.ReadDir(folder)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if slices.Equal(names, want) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s holds %q, not %q", folder, names, want)
		}
	}
}

func TestFileList_ComesInPages(t *testing.T) {
	s, root := connectFiles(t)
	ctx := testContext(t)
	for _, name := range []string{"b", "A", "a", "c\n", "\xff", "<b>", "\u202e", ".h"} {
		put(t, filepath.Join(root, name), "")
	}
	for _, name := range []string{"z", "Y"} {
		os.Mkdir(filepath.Join(root, name), 0o755)
	}
	os.Symlink("z", filepath.Join(root, "l"))
	want := []string{"Y", "z", ".h", "<b>", "A", "a", "b", "c\n", "l", "\u202e", "\xff"}
	for _, limit := range []int{0, 1, 2, 3, 11} {
		var got []string
		var after string
		for {
			l, err := s.FileList(ctx, "/", after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range l.Entries {
				got = append(got, e.Name)
				if e.Name == "l" && (e.Target != "z" || e.TargetType != wire.TypeFolder || e.Type != wire.TypeLink) {
					t.Errorf("got %+v", e)
				}
			}
			if after = l.Next; after == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %q", limit, got)
		}
	}
}

func TestFiles_MoveCopyDeleteAndComeBack(t *testing.T) {
	s, root := connectFiles(t)
	ctx := testContext(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(root, "d/x"), "x")
	put(t, filepath.Join(root, "y"), "y")
	must(s.FileMkdir(ctx, "/e/f", true))
	must(s.FileCopy(ctx, []string{"/d", "/y"}, "/e/f", false))
	must(s.FileMove(ctx, []string{"/y"}, "/e/z", false))
	if err := s.FileMove(ctx, []string{"/e/z"}, "/e/f/y", false); fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
	must(s.FileMove(ctx, []string{"/e/z"}, "/e/f/y", true))
	awaitNames(t, filepath.Join(root, "e"), "f")
	awaitNames(t, filepath.Join(root, "e/f"), "d", "y")
	home, err := os.UserHomeDir()
	must(err)
	must(os.MkdirAll(filepath.Join(root, home), 0o755))
	gone, err := s.FileDelete(ctx, []string{"/e/f", "/d/x"}, false)
	if err != nil || len(gone) != 2 || gone[0].Path != "/e/f" {
		t.Fatalf("got %+v, %v", gone, err)
	}
	list, err := s.FileTrash(ctx)
	if err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v", list, err)
	}
	put(t, filepath.Join(root, "d/x"), "in the way")
	if err := s.FileRestore(ctx, []string{gone[1].ID}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
	must(s.FileRestore(ctx, []string{gone[0].ID}))
	awaitNames(t, filepath.Join(root, "e/f"), "d", "y")
	must(s.FileEmptyTrash(ctx, nil))
	if list, err := s.FileTrash(ctx); err != nil || len(list) != 0 {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := s.FileDelete(ctx, []string{"/e"}, true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "e")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestFiles_PackAndUnpackAreTheSameTree(t *testing.T) {
	s, root := connectFiles(t)
	ctx := testContext(t)
	long := strings.Repeat("n", 200)
	want := map[string]string{"a/b": "b", "a/big": strings.Repeat("z", 1<<20), "a/" + long + "/" + long: "deep", "a/\xff\n": "odd",
		"a/empty": "", "a/x/" + strings.Repeat("p", 90) + "/" + strings.Repeat("q", 80): "prefix"}
	for name, content := range want {
		put(t, filepath.Join(root, name), content)
	}
	os.Symlink("b", filepath.Join(root, "a/l"))
	r, err := s.FilePack(ctx, "/", []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := io.ReadAll(r)
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkTar(t, packed, len(want)+1)
	u, err := s.FileUnpack(ctx, "/new", false, bytes.NewReader(packed))
	if err != nil || u.Entries < int64(len(want)) {
		t.Fatalf("got %+v, %v", u, err)
	}
	for name, content := range want {
		if slurp(t, filepath.Join(root, "new", name)) != content {
			t.Errorf("%q differs", name)
		}
	}
	if target, err := os.Readlink(filepath.Join(root, "new/a/l")); target != "b" {
		t.Errorf("got %q, %v", target, err)
	}
}

// checkTar reads a tar with package tar, which insists on more than we do.
func checkTar(t *testing.T, b []byte, least int) {
	t.Helper()
	n := 0
	for archive := tar.NewReader(bytes.NewReader(b)); ; n++ {
		_, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < least {
		t.Errorf("%d entries", n)
	}
}

func TestFileSearch_FindsNamesAndContents(t *testing.T) {
	s, root := connectFiles(t)
	ctx := testContext(t)
	put(t, filepath.Join(root, "a/Needle.txt"), "one\ntwo needles\n")
	put(t, filepath.Join(root, "a/b/other"), "no\nNEEDLE here\n")
	find := func(search wire.Search) (found []string, more bool) {
		t.Helper()
		more, err := s.FileSearch(ctx, search, func(f wire.Found) error {
			found = append(found, f.Path+":"+f.Text[f.Start:f.End])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		return found, more
	}
	if got, more := find(wire.Search{Path: "/", Query: "needle", In: wire.SearchNames}); !slices.Equal(got, []string{"a/Needle.txt:"}) || more {
		t.Errorf("got %q", got)
	}
	if got, _ := find(wire.Search{Path: "/", Query: "*.txt", In: wire.SearchNames, Case: true}); !slices.Equal(got, []string{"a/Needle.txt:"}) {
		t.Errorf("got %q", got)
	}
	if got, _ := find(wire.Search{Path: "/a", Query: "needle", In: wire.SearchContent}); !slices.Equal(got, []string{"Needle.txt:needle", "b/other:NEEDLE"}) {
		t.Errorf("got %q", got)
	}
	if got, more := find(wire.Search{Path: "/", Query: "e", In: wire.SearchNames, Limit: 1}); len(got) != 1 || !more {
		t.Errorf("got %q, %v", got, more)
	}
	own := errors.New("enough")
	if _, err := s.FileSearch(ctx, wire.Search{Path: "/", Query: "e", In: wire.SearchNames}, func(wire.Found) error { return own }); !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
}

func TestFileWatch_TellsOfChangesAndEndsWithItsContext(t *testing.T) {
	s, root := connectFiles(t)
	put(t, filepath.Join(root, "a/x"), "")
	put(t, filepath.Join(root, "b/x"), "")
	ctx, cancel := context.WithCancel(testContext(t))
	news := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		done <- s.FileWatch(ctx, []string{"/a", "b", "/b", "/none"}, func(folder string) error { news <- folder; return nil })
	}()
	for range 4 {
		<-news
	}
	put(t, filepath.Join(root, "b/y"), "new")
	if got := <-news; got != "/b" {
		t.Errorf("got %q", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
