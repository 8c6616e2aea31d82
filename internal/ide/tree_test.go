package ide

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// entry is one entry of a test's archive.
type entry struct {
	name, text, link string
	kind             byte
	mode             int64
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.text))}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func from(b []byte) func(func(io.Reader) error) error {
	return func(take func(io.Reader) error) error { return take(bytes.NewReader(b)) }
}

var folder = entry{name: "ide/", kind: tar.TypeDir, mode: 0o755}

// names lists everything below a folder, what begins with a dot included.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." && rel != lockFile {
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPut_MakesAVersionWithoutItsOwners(t *testing.T) {
	tr := tree{filepath.Join(t.TempDir(), "ide")}
	b := archive(t, folder, entry{name: "ide/lib/", kind: tar.TypeDir, mode: 0o700}, entry{name: "ide/lib/node", text: "program", mode: 0o4755},
		entry{name: "ide/out/deep/file", text: "text", mode: 0o600}, entry{name: "ide/lib/link", kind: tar.TypeSymlink, link: "../out/deep/file"})
	if err := tr.put("v1", from(archive(t, folder, entry{name: "ide/out/", kind: tar.TypeDir}, entry{name: "ide/out/deep/", kind: tar.TypeDir}))); err != nil {
		t.Fatal(err)
	}
	if !tr.has("v1") || tr.has("v2") || tr.has("") {
		t.Error("has what it has not, or the other way round")
	}
	if err := tr.put("v2", from(b)); err == nil {
		t.Error("a file in a folder that was not told is taken") // an engine tells all of them
	}
	b = archive(t, folder, entry{name: "ide/lib/", kind: tar.TypeDir, mode: 0o700}, entry{name: "ide/lib/node", text: "program", mode: 0o4755},
		entry{name: "ide/out/", kind: tar.TypeDir}, entry{name: "ide/out/file", text: "text", mode: 0o600},
		entry{name: "ide/lib/link", kind: tar.TypeSymlink, link: "../out/file"})
	if err := tr.put("v2", from(b)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o755, "lib": fs.ModeDir | 0o755, "lib/node": 0o755, "out/file": 0o644} {
		info, err := os.Stat(filepath.Join(tr.folder, "v2", name))
		if err != nil || info.Mode() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(tr.folder, "v2/lib/link")); string(text) != "text" {
		t.Errorf("through the link: %q, %v", text, err)
	}
	if err := tr.put("v2", from(b)); err != nil { // another one was quicker
		t.Errorf("again: %v", err)
	}
}

func TestPut_LeavesNothingOfWhatBreaksOff(t *testing.T) {
	good := archive(t, folder, entry{name: "ide/a", text: strings.Repeat("x", 10_000)}, entry{name: "ide/b", text: "y"})
	broken := errors.New("the engine has hung up")
	for what, c := range map[string]struct {
		from func(func(io.Reader) error) error
		is   error
	}{
		"cut in a file":     {from(good[:4000]), io.ErrUnexpectedEOF},
		"no archive":        {from([]byte(strings.Repeat("nonsense", 1000))), tar.ErrHeader},
		"an engine's error": {func(take func(io.Reader) error) error { return errors.Join(take(bytes.NewReader(good)), broken) }, broken},
		"no space": {func(take func(io.Reader) error) error {
			return fmt.Errorf("write: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
		}, syscall.ENOSPC},
	} {
		tr := tree{t.TempDir()}
		err := tr.put("v1", c.from)
		if !errors.Is(err, c.is) || tr.has("v1") {
			t.Errorf("%s: %v", what, err)
		}
		if c.is == syscall.ENOSPC && !strings.Contains(fault.Message(err), "no space left") {
			t.Errorf("%s: %q", what, fault.Message(err))
		}
		if left := names(t, tr.folder); len(left) > 0 {
			t.Errorf("%s leaves %q", what, left)
		}
	}
}

func TestPut_NothingGetsOutOfTheFolder(t *testing.T) {
	for what, bad := range map[string][]entry{
		"a parent":               {{name: "ide/../../out", text: "x"}},
		"a parent behind a name": {{name: "ide/a/../../../out", text: "x"}},
		"absolute":               {{name: "/ide/out", text: "x"}},
		"an absolute link":       {{name: "ide/l", kind: tar.TypeSymlink, link: "/etc"}},
		"a link out":             {{name: "ide/l", kind: tar.TypeSymlink, link: "../../out"}},
		"a link to the parent":   {{name: "ide/l", kind: tar.TypeSymlink, link: ".."}},
		"through a link":         {{name: "ide/l", kind: tar.TypeSymlink, link: "d"}, {name: "ide/l/out", text: "x"}},
		"over a link":            {{name: "ide/l", kind: tar.TypeSymlink, link: "d"}, {name: "ide/l", text: "x"}},
		"a hard link":            {{name: "ide/l", kind: tar.TypeLink, link: "/etc/passwd"}},
		"a device":               {{name: "ide/dev", kind: tar.TypeChar}},
		"a pipe":                 {{name: "ide/pipe", kind: tar.TypeFifo}},
		"twice":                  {{name: "ide/a", text: "x"}, {name: "ide/a", text: "y"}},
		"another folder":         {{name: "other/a", text: "x"}},
	} {
		outer := t.TempDir()
		tr := tree{filepath.Join(outer, "ide")}
		if err := tr.put("v1", from(archive(t, append([]entry{folder}, bad...)...))); err == nil {
			t.Errorf("%s was taken", what)
		}
		if left := names(t, outer); len(left) > 2 { // the folder and its lock
			t.Errorf("%s leaves %q", what, left)
		}
	}
}

func TestExtract_IsBounded(t *testing.T) {
	many := []entry{folder}
	for range maxEntries {
		many = append(many, folder)
	}
	if err := extract(t.TempDir(), bytes.NewReader(archive(t, many...))); !errors.Is(err, errArchive) {
		t.Errorf("too many: %v", err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "ide/huge", Size: maxBytes + 1, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if err := extract(t.TempDir(), &b); !errors.Is(err, errArchive) {
		t.Errorf("too large: %v", err)
	}
}

func TestClean_RemovesWhatBrokeOffUnlessAnotherIsAtWork(t *testing.T) {
	tr := tree{t.TempDir()}
	for _, name := range []string{newPrefix + "1/lib", oldPrefix + "v0", "v1/lib"} {
		if err := os.MkdirAll(filepath.Join(tr.folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := tr.lock(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.clean(); err != nil || len(names(t, tr.folder)) != 5 {
		t.Errorf("while another is at work: %v, %q", err, names(t, tr.folder))
	}
	unlock()
	if err := tr.clean(); err != nil || strings.Join(names(t, tr.folder), " ") != "v1 v1/lib" {
		t.Errorf("%v, %q", err, names(t, tr.folder))
	}
}

func TestVersions_TheNewestIsFirst(t *testing.T) {
	tr := tree{t.TempDir()}
	for i, name := range []string{"old", "new", "middle", newPrefix + "x"} {
		dir := filepath.Join(tr.folder, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64([]int{100, 300, 200, 400}[i]), 0)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tr.versions()
	if err != nil || strings.Join(got, " ") != "new middle old" {
		t.Errorf("%q, %v", got, err)
	}
	if err := tr.remove("middle"); err != nil || tr.has("middle") {
		t.Errorf("after its removal: %v", err)
	}
}
