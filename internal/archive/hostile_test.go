package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

func socket(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

func create(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// below makes a folder in an open one and opens it.
func below(t *testing.T, dir *os.File, name string) *os.File {
	t.Helper()
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := openAt(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { f.Close() })
	return f
}

// made writes an archive of entries, each with its name as its content if it is a file.
func made(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Mode, h.Format = 0o755, tar.FormatPAX
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestExtract_RefusesWhatLeadsOut(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	create(t, outside+"/victim")
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	hard := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
	}
	folder := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name} }
	holes := file("sparse")
	holes.PAXRecords = map[string]string{recordData: "0:4 2:4"}
	beyond := file("sparse")
	beyond.PAXRecords = map[string]string{recordData: "0:4 9223372036854775807:9223372036854775807"}
	owner := file("owned")
	owner.Uid = 1<<32 - 1
	for name, c := range map[string]struct {
		entries []tar.Header
		want    error
	}{
		"up":                {[]tar.Header{file("../out")}, wire.ErrEntryUp},
		"up within":         {[]tar.Header{folder("a/"), file("a/../../out")}, wire.ErrEntryUp},
		"absolute":          {[]tar.Header{file(outside + "/out")}, wire.ErrEntryAbsolute},
		"below a link":      {[]tar.Header{link("a", outside), file("a/victim")}, ErrBelow},
		"folder on a link":  {[]tar.Header{link("a", outside), folder("a/")}, ErrBelow},
		"below a file":      {[]tar.Header{file("a"), file("a/b")}, ErrBelow},
		"hard link out":     {[]tar.Header{hard("a", "../victim")}, ErrTarget},
		"hard link by link": {[]tar.Header{link("a", outside), hard("b", "a/victim")}, ErrTarget},
		"hard link absent":  {[]tar.Header{hard("b", "nothing")}, ErrTarget},
		"hard link folder":  {[]tar.Header{folder("a/"), hard("b", "a")}, ErrTarget},
		"file on a folder":  {[]tar.Header{file("a/b"), file("a")}, ErrTwice},
		"root is no folder": {[]tar.Header{file(".")}, ErrTwice},
		"overlapping holes": {[]tar.Header{holes}, ErrHoles},
		"holes beyond":      {[]tar.Header{beyond}, ErrHoles},
		"owner":             {[]tar.Header{owner}, ErrOwner},
		"long name":         {[]tar.Header{file(strings.Repeat("n", 300))}, wire.ErrEntryName},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			b := made(t, c.entries...)
			_, err := Extract(t.Context(), tar.NewReader(bytes.NewReader(b)), open(t, to), Options{})
			var entry *EntryError
			if !errors.Is(err, c.want) || !errors.As(err, &entry) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if left, _ := os.ReadDir(outside); len(left) != 1 {
				t.Errorf("outside there are %d", len(left))
			}
			if st, err := os.Stat(outside + "/victim"); err != nil || st.Size() != 0 {
				t.Errorf("the file outside: %v", err)
			}
		})
	}
}

func TestExtract_TakesTheLaterOfTwo(t *testing.T) {
	t.Parallel()
	to, outside := t.TempDir(), create(t, t.TempDir()+"/victim")
	b := made(t,
		tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: outside}, tar.Header{Typeflag: tar.TypeReg, Name: "a"},
		tar.Header{Typeflag: tar.TypeReg, Name: "b"}, tar.Header{Typeflag: tar.TypeFifo, Name: "b"})
	if _, err := Extract(t.Context(), tar.NewReader(bytes.NewReader(b)), open(t, to), Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to + "/a"); err != nil || string(got) != "a" {
		t.Errorf("%q %v", got, err)
	}
	if st, err := os.Lstat(to + "/b"); err != nil || st.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v %v", st, err)
	}
	if got, err := os.ReadFile(outside); err != nil || len(got) != 0 {
		t.Errorf("%q %v", got, err)
	}
}

// TestExtract_FoldersKeepTheirTimes has entries of a folder that come after the archive has left it.
func TestExtract_FoldersKeepTheirTimes(t *testing.T) {
	t.Parallel()
	to := t.TempDir()
	b := made(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "a/", ModTime: time.Unix(1000, 0)}, tar.Header{Typeflag: tar.TypeReg, Name: "a/one"},
		tar.Header{Typeflag: tar.TypeReg, Name: "b"}, tar.Header{Typeflag: tar.TypeReg, Name: "a/two"})
	if _, err := Extract(t.Context(), tar.NewReader(bytes.NewReader(b)), open(t, to), Options{}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(to, "a")); err != nil || st.ModTime().Unix() != 1000 {
		t.Errorf("%v %v", st.ModTime(), err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte("not an archive"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parent := t.TempDir()
		if err := os.Mkdir(parent+"/in", 0o755); err != nil {
			t.Fatal(err)
		}
		_, extracted := Extract(t.Context(), tar.NewReader(bytes.NewReader(b)), open(t, parent+"/in"), Options{})
		_, checked := Check(t.Context(), tar.NewReader(bytes.NewReader(b)), Options{}, func(*tar.Header, io.Reader) error { return nil })
		if checked != nil && extracted == nil {
			t.Errorf("extracted what is refused: %v", checked)
		}
		if in, _ := os.ReadDir(parent); len(in) != 1 {
			t.Errorf("%d beside the folder", len(in))
		}
	})
}
