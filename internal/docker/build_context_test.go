package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// folder makes a folder of files; a name that ends in / is a folder, a text that begins with -> is a link.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(text, "->"); link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents reads an archive: path to text, link target, or "" for a folder.
func contents(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	out := map[string]string{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := out[h.Name]; twice {
			t.Errorf("%s is there twice", h.Name)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s has an owner", h.Name)
		}
		out[h.Name] = string(text)
		if h.Typeflag == tar.TypeSymlink {
			out[h.Name] = "->" + h.Linkname
		}
	}
}

func TestWriteContext_HonoursIgnoreAndAddsExtra(t *testing.T) {
	dir := folder(t, map[string]string{
		"Dockerfile": "FROM x", ".dockerignore": "*\n!src\nsrc/secret\n", "left": "1", "src/kept": "2", "src/secret": "3",
		"src/link": "->../../../etc/passwd", "deep/left/file": "4", ".sandboxd/old": "5",
	})
	var out bytes.Buffer
	err := writeContext(&out, catalog.Build{Folder: dir, Extra: map[string][]byte{".sandboxd/ca/host.crt": []byte("ca"), "src/kept": []byte("new")}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Dockerfile": "FROM x", ".dockerignore": "*\n!src\nsrc/secret\n", "src/": "", "src/kept": "new",
		"src/link": "->../../../etc/passwd", ".sandboxd/ca/host.crt": "ca",
	}
	got := contents(t, &out)
	for _, dir := range []string{".sandboxd/", ".sandboxd/ca/", "deep/", "deep/left/"} {
		delete(got, dir) // folders do no harm
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWriteContext_RefusesWhatCannotBeSent(t *testing.T) {
	pipe := folder(t, map[string]string{"Dockerfile": "FROM x"})
	if err := syscall.Mkfifo(filepath.Join(pipe, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := folder(t, map[string]string{"Dockerfile": "FROM x", "large": ""})
	if err := os.Truncate(filepath.Join(large, "large"), maxContextBytes+1); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		pipe: "fifo", large: "large",
		folder(t, map[string]string{".dockerignore": "[\n"}): ".dockerignore",
		filepath.Join(pipe, "absent"):                        "absent",
	} {
		err := writeContext(io.Discard, catalog.Build{Folder: dir})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	for _, name := range []string{"../x", "/x", "", "a/../b", "."} {
		if err := writeContext(io.Discard, catalog.Build{Folder: pipe, Extra: map[string][]byte{name: nil}}); err == nil {
			t.Errorf("extra file %q is taken", name)
		}
	}
}

func TestWriteContext_ManyFilesAreRefused(t *testing.T) {
	a := &contextWriter{}
	var err error
	for range maxContextFiles + 1 {
		err = a.count("x", 0)
	}
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestUnreadable_IsTheTemplatesFault(t *testing.T) {
	err := unreadable(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "x") {
		t.Errorf("got %v", err)
	}
}
