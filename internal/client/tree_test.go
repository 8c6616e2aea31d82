package client

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/fault"
)

func TestLanding_GoesByDockersRules(t *testing.T) {
	file, folder := SourceOf("dir/file", false), SourceOf("dir/tree", true)
	contents, root := SourceOf("dir/tree/.", true), SourceOf("/", true)
	for name, c := range map[string]struct {
		s    Source
		dst  string
		at   Kind
		want string // folder and name
		bad  bool
	}{
		"a file into a folder":                {file, "to", AFolder, "to file", false},
		"a file over a file":                  {file, "to/x", AFile, "to x", false},
		"a file to a new name":                {file, "to/x", Nothing, "to x", false},
		"a file to a folder that is missing":  {file, "to/", Nothing, "", true},
		"a file to a file as if a folder":     {file, "to/", AFile, "", true},
		"a folder into a folder":              {folder, "to", AFolder, "to tree", false},
		"a folder to a new name":              {folder, "to/x", Nothing, "to x", false},
		"a folder to a new name with a slash": {folder, "to/x/", Nothing, "to x", false},
		"a folder over a file":                {folder, "to", AFile, "", true},
		"contents into a folder":              {contents, "to", AFolder, "to ", false},
		"contents to a new name":              {contents, "to", Nothing, ". to", false},
		"contents over a file":                {contents, "to", AFile, "", true},
		"the root into a folder":              {root, "to", AFolder, "to ", false},
	} {
		l, err := LandingOf(c.s, c.s.Name, c.dst, c.at)
		if got := l.Folder + " " + l.Name; (err != nil) != c.bad || err == nil && got != c.want || err == nil && l.NeedsParent != (c.at == Nothing) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	if file.Folder != "dir" || contents.Folder != "dir/tree" || contents.Name != "" || root.Folder != "/" {
		t.Errorf("%+v, %+v, %+v", file, contents, root)
	}
}

func TestPackTree_IsWhatIsThere(t *testing.T) {
	at := filepath.Join(t.TempDir(), "tree")
	if err := os.MkdirAll(filepath.Join(at, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a": "first", "sub/b\xff": "second"} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(at, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(at, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	skipped := ""
	var b bytes.Buffer
	if err := PackTree(&b, at, "as", Report{Skipped: func(name, _ string) { skipped += name }}); err != nil || skipped != "as/pipe" {
		t.Fatalf("%v, left out %q", err, skipped)
	}
	got := map[string]string{}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%+v, %v", h, err)
		}
		got[h.Name] = string(text) + h.Linkname
	}
	want := map[string]string{"as/": "", "as/a": "first", "as/sub/": "", "as/sub/b\xff": "second", "as/link": "/etc/passwd"}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%q: %q", name, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
	if err := PackTree(io.Discard, filepath.Join(at, "missing"), "x", Report{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("what is missing: %v", err)
	}
}

func TestCopyTree_RenamesAndRefusesOtherNames(t *testing.T) {
	var b bytes.Buffer
	from := archive(t, entry{"src/", dir, ""}, entry{"src/a", reg, "x"}, entry{"src/h", hard, "src/a"}, entry{"src/l", sym, "a"})
	if err := CopyTree(&b, from, "src", "to", Report{}); err != nil {
		t.Fatal(err)
	}
	names := ""
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		names += h.Name + "=" + h.Linkname + " "
	}
	if names != "to/= to/a= to/h=to/a to/l=a " {
		t.Errorf("got %q", names)
	}
	for _, name := range []string{"../x", "/x", "src/../x", "other"} {
		if err := CopyTree(io.Discard, archive(t, entry{name, reg, "x"}), "src", "to", Report{}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLocal_ErrorsShowNoEscapes(t *testing.T) {
	_, err := os.Open("no\x1b[31m\nsuch")
	if got := fault.Message(local(err)); strings.ContainsAny(got, "\x1b\n") || !strings.Contains(got, "no such file") && !strings.Contains(got, "There is no such file") {
		t.Errorf("got %q", got)
	}
}
