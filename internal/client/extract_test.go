package client

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// archive makes a tar of entries; content is a file's, or what a link leads to.
type entry struct {
	name    string
	kind    byte
	content string
}

func archive(t testing.TB, entries ...entry) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o4755, ModTime: time.Unix(1e9, 0)}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.content))
		} else {
			h.Linkname = e.content
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := io.WriteString(w, e.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// place is a folder to extract in, beside a file that must stay as it is.
func place(t testing.TB) (folder string, check func()) {
	t.Helper()
	base := t.TempDir()
	folder = filepath.Join(base, "to")
	for _, dir := range []string{folder, filepath.Join(base, "outside")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(base, "outside", "secret")
	if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder, func() {
		t.Helper()
		entries, err := os.ReadDir(base)
		if err != nil || len(entries) != 2 {
			t.Errorf("beside the folder: %v, %v", entries, err)
		}
		inside, _ := os.ReadDir(filepath.Join(base, "outside"))
		text, err := os.ReadFile(secret)
		if string(text) != "kept" || err != nil || len(inside) != 1 {
			t.Errorf("outside: %v, %q, %v", inside, text, err)
		}
	}
}

const (
	reg  = tar.TypeReg
	dir  = tar.TypeDir
	sym  = tar.TypeSymlink
	hard = tar.TypeLink
)

// TestExtract_NothingLeavesTheFolder is about a server that wants to write elsewhere.
func TestExtract_NothingLeavesTheFolder(t *testing.T) {
	for name, entries := range map[string][]entry{
		"up":                        {{"src/../../outside/new", reg, "x"}},
		"up at once":                {{"../outside/new", reg, "x"}},
		"absolute":                  {{"/tmp/absolute-of-a-test", reg, "x"}},
		"another name":              {{"other/file", reg, "x"}},
		"a longer name":             {{"srcx/file", reg, "x"}},
		"dots in the middle":        {{"src/./x", reg, "x"}},
		"through a link":            {{"src", dir, ""}, {"src/l", sym, "../../outside"}, {"src/l/new", reg, "x"}},
		"through an inner link":     {{"src", dir, ""}, {"src/in", dir, ""}, {"src/l", sym, "in"}, {"src/l/new", reg, "x"}},
		"over a link":               {{"src", dir, ""}, {"src/l", sym, "../../outside/secret"}, {"src/l", reg, "overwritten"}},
		"through the top":           {{"src", sym, "../outside"}, {"src/new", reg, "x"}},
		"over the top":              {{"src", sym, "../outside/secret"}, {"src", reg, "overwritten"}},
		"by a chain":                {{"src", dir, ""}, {"src/a", dir, ""}, {"src/a/b", sym, "../.."}, {"src/a/b/outside/new", reg, "x"}},
		"a hard link out":           {{"src", dir, ""}, {"src/h", hard, "../outside/secret"}, {"src/h", reg, "overwritten"}},
		"a hard link, absolute":     {{"src", dir, ""}, {"src/h", hard, "/etc/passwd"}},
		"a hard link to a link":     {{"src", dir, ""}, {"src/l", sym, "../../outside/secret"}, {"src/h", hard, "src/l"}, {"src/h", reg, "overwritten"}},
		"a device":                  {{"src", dir, ""}, {"src/null", tar.TypeChar, ""}},
		"a pipe":                    {{"src", tar.TypeFifo, ""}},
		"a folder over a link":      {{"src", dir, ""}, {"src/l", sym, "../../outside"}, {"src/l", dir, ""}, {"src/l/new", reg, "x"}},
		"a link over a folder":      {{"src", dir, ""}, {"src/d", dir, ""}, {"src/d/f", reg, "x"}, {"src/d", sym, "../../outside"}, {"src/d/new", reg, "x"}},
		"a mode for what is beside": {{"src/..", dir, ""}},
	} {
		for _, keep := range []bool{false, true} {
			folder, check := place(t)
			err := ExtractTree(archive(t, entries...), Extraction{Folder: folder, From: "src", As: "src", KeepLinks: keep})
			check()
			if err != nil && fault.KindOf(err) == fault.Internal {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := os.Stat("/tmp/absolute-of-a-test"); err == nil {
		t.Error("an absolute name was taken")
	}
}

// TestExtract_LinksThatWereThereAreNotFollowed extracts over a folder in which links lead out.
func TestExtract_LinksThatWereThereAreNotFollowed(t *testing.T) {
	for name, c := range map[string]struct{ link, entry string }{
		"the top itself": {"src", "src/new"}, "a folder in it": {"src/sub", "src/sub/new"}, "a file in it": {"src/secret", "src/secret"},
	} {
		folder, check := place(t)
		at := filepath.Join(folder, c.link)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(folder, "..", "outside")
		if c.link == "src/secret" {
			to = filepath.Join(to, "secret")
		}
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
		_ = ExtractTree(archive(t, entry{c.entry, reg, "overwritten"}), Extraction{Folder: folder, From: "src", As: "src"})
		t.Run(name, func(*testing.T) { check() })
	}
}

func TestExtract_MakesWhatIsThereAndNamesWhatIsLeftOut(t *testing.T) {
	folder, check := place(t)
	var skipped []string
	var bytesSeen int
	e := Extraction{Folder: folder, From: "src", As: "copy", Report: Report{
		Skipped: func(name, _ string) { skipped = append(skipped, name) }, Bytes: func(n int) { bytesSeen += n },
	}}
	err := ExtractTree(archive(t, entry{"src/", dir, ""}, entry{"src/a", reg, "first"}, entry{"src/sub/", dir, ""}, entry{"src/sub/b", reg, "second"},
		entry{"src/sub/l", sym, "../a"}, entry{"src/out", sym, "/etc/passwd"}, entry{"src/up", sym, "../x"}, entry{"src/twist", sym, "sub/../../x"},
		entry{"src/h", hard, "src/a"}, entry{"src/a", reg, "again"}), e)
	if err != nil {
		t.Fatal(err)
	}
	check()
	if !slices.Equal(skipped, []string{"out", "up", "twist"}) || bytesSeen != len("first"+"second"+"again") {
		t.Errorf("left out %q, %d bytes", skipped, bytesSeen)
	}
	for name, want := range map[string]string{"copy/a": "again", "copy/sub/b": "second", "copy/h": "first"} {
		st, err := os.Stat(filepath.Join(folder, name))
		text, readErr := os.ReadFile(filepath.Join(folder, name))
		if err != nil || readErr != nil || string(text) != want || st.Mode()&(os.ModeSetuid|0o111) != 0o111 || st.ModTime().Unix() != 1e9 {
			t.Errorf("%s: %v, %q, %v", name, st, text, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(folder, "copy/sub/l")); to != "../a" || err != nil {
		t.Errorf("%q, %v", to, err)
	}
	if st, err := os.Stat(filepath.Join(folder, "copy/sub")); err != nil || st.ModTime().Unix() != 1e9 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestExtract_ACutArchiveIsAnErrorAndLeavesTheOldFile(t *testing.T) {
	folder, check := place(t)
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	whole := archive(t, entry{"file", reg, strings.Repeat("x", 10_000)}).Bytes()
	for _, n := range []int{0, 100, 600, 5000} {
		err := ExtractTree(bytes.NewReader(whole[:n]), Extraction{Folder: folder, From: "file", As: "file"})
		if err == nil {
			t.Errorf("after %d bytes it is taken for whole", n)
		}
		entries, _ := os.ReadDir(folder)
		if text, err := os.ReadFile(filepath.Join(folder, "file")); string(text) != "old" || err != nil || len(entries) != 1 {
			t.Errorf("after %d bytes: %q, %v, %v", n, text, err, entries)
		}
	}
	check()
}

func FuzzExtract_StaysInside(f *testing.F) {
	f.Add("src/a", byte(reg), "x", "src/b", byte(sym), "../..")
	f.Add("src/l", byte(sym), "../../outside", "src/l/new", byte(reg), "x")
	f.Add("src/l", byte(hard), "src/../../outside/secret", "src/l", byte(reg), "x")
	f.Fuzz(func(t *testing.T, name1 string, kind1 byte, content1, name2 string, kind2 byte, content2 string) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range []entry{{name1, kind1, content1}, {name2, kind2, content2}, {name2 + "/new", reg, "x"}} {
			h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o755, Linkname: e.content}
			if e.kind == reg {
				h.Size, h.Linkname = int64(len(e.content)), ""
			}
			if w.WriteHeader(h) != nil {
				return
			}
			if e.kind == reg {
				_, _ = io.WriteString(w, e.content)
			}
		}
		_ = w.Flush()
		for _, keep := range []bool{false, true} {
			folder, check := place(t)
			_ = ExtractTree(bytes.NewReader(b.Bytes()), Extraction{Folder: folder, From: "src", As: "src", KeepLinks: keep})
			check()
		}
	})
}
