package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostileBox is a server with a sandbox whose links are named as is good and lead where is not.
type hostileBox struct {
	links    map[string]string // targets by path
	unpacked []string          // names of what came, with the folder
}

func (b *hostileBox) kind(p string) string {
	switch {
	case b.links[p] != "":
		return "link"
	case strings.HasSuffix(p, "evil"), strings.HasSuffix(p, "dst"), p == "/":
		return "folder"
	case strings.HasSuffix(p, ".bashrc"):
		return "file"
	}
	return ""
}

// ServeHTTP implements http.Handler: as much of the API as copies need.
func (b *hostileBox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := path.Clean(q.Get("path"))
	switch {
	case !strings.HasSuffix(r.URL.Path, "/files"):
		io.WriteString(w, `{"name":"lab"}`)
	case q.Has("extract"):
		for in := tar.NewReader(r.Body); ; {
			h, err := in.Next()
			if err != nil {
				break
			}
			b.unpacked = append(b.unpacked, path.Join(p, h.Name))
		}
		io.WriteString(w, `{}`)
	case q.Has("archive"):
		b.pack(tar.NewWriter(w), path.Join(p, q.Get("name")), q.Get("name"))
	case b.kind(p) == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		json.NewEncoder(w).Encode(map[string]string{"type": b.kind(p), "target": b.links[p], "target_type": "folder"})
	}
}

func (b *hostileBox) pack(out *tar.Writer, at, name string) {
	if b.kind(at) != "folder" {
		out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 4})
		io.WriteString(out, "evil")
	} else {
		out.WriteHeader(&tar.Header{Name: path.Join(name, ".ssh") + "/", Typeflag: tar.TypeDir, Mode: 0o755})
		out.WriteHeader(&tar.Header{Name: path.Join(name, ".ssh/authorized_keys"), Typeflag: tar.TypeReg, Mode: 0o644, Size: 4})
		io.WriteString(out, "evil")
	}
	out.Close()
}

func newHostileBox(t *testing.T) *hostileBox {
	t.Helper()
	homeless(t)
	b := &hostileBox{links: map[string]string{
		"/data/results": "/home/agent/evil/.", "/data/notes.txt": "/x/.bashrc", "/data/up": "../evil/./", "/data/root": "/",
	}}
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	return b
}

// tree lists what is below a folder.
func tree(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(at string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(root, at); rel != "." {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestCopy_TheSandboxNamesNothingHere has links that would have what they lead to land under its own name, or as contents.
func TestCopy_TheSandboxNamesNothingHere(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"lab:/data/results/"}, []string{"results", "results/.ssh", "results/.ssh/authorized_keys"}},
		{[]string{"-L", "lab:/data/results"}, []string{"results", "results/.ssh", "results/.ssh/authorized_keys"}},
		{[]string{"lab:/data/up/"}, []string{"up", "up/.ssh", "up/.ssh/authorized_keys"}},
		{[]string{"lab:/data/root/"}, []string{"root", "root/.ssh", "root/.ssh/authorized_keys"}},
		{[]string{"-L", "lab:/data/notes.txt"}, []string{"notes.txt"}},
		{[]string{"lab:/data/results/."}, []string{".ssh", ".ssh/authorized_keys"}}, // as the caller wants it
	} {
		b := newHostileBox(t)
		to := t.TempDir()
		if out, err := anywhere(t, slices.Concat([]string{"cp"}, c.args, []string{to})...); err != nil {
			t.Errorf("%q: %v, %s", c.args, err, out)
		}
		if got := tree(t, to); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.args, got)
		}
		if out, err := anywhere(t, slices.Concat([]string{"cp"}, c.args, []string{"web:/dst"})...); err != nil {
			t.Errorf("%q: %v, %s", c.args, err, out)
		}
		for _, name := range b.unpacked {
			if !slices.Contains(c.want, strings.TrimPrefix(name, "/dst/")) {
				t.Errorf("%q, across: %q", c.args, b.unpacked)
			}
		}
		if len(b.unpacked) == 0 {
			t.Errorf("%q, across: nothing has come", c.args)
		}
	}
}

func TestCopy_AnArchiveHasTheNameThatWasTyped(t *testing.T) {
	newHostileBox(t)
	names := func(args ...string) (names []string) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		usual := os.Stdout
		os.Stdout = w
		defer func() { os.Stdout = usual }()
		if out, err := anywhere(t, slices.Concat([]string{"cp"}, args, []string{"-"})...); err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for in := tar.NewReader(bytes.NewReader(text)); ; {
			h, err := in.Next()
			if err != nil {
				return names
			}
			names = append(names, h.Name)
		}
	}
	if got := names("-L", "lab:/data/notes.txt"); !slices.Equal(got, []string{"notes.txt"}) {
		t.Errorf("got %q", got)
	}
	if got := names("lab:/data/results/"); !slices.Equal(got, []string{"results/.ssh/", "results/.ssh/authorized_keys"}) {
		t.Errorf("got %q", got)
	}
}

// TestCopy_AnUploadHasTheNameThatWasTyped follows a link of this machine.
func TestCopy_AnUploadHasTheNameThatWasTyped(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-L", "data"}, []string{"/dst/data", "/dst/data/key"}},
		{[]string{"data/"}, []string{"/dst/data", "/dst/data/key"}},
		{[]string{"data/."}, []string{"/dst/key"}},
		{[]string{"data"}, []string{"/dst/data"}},
	} {
		b := newHostileBox(t)
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, ".ssh"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".ssh/key"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(".ssh", filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		if out, err := anywhere(t, slices.Concat([]string{"cp"}, c.args, []string{"lab:/dst"})...); err != nil {
			t.Errorf("%q: %v, %s", c.args, err, out)
		}
		if !slices.Equal(b.unpacked, c.want) {
			t.Errorf("%q: %q", c.args, b.unpacked)
		}
	}
}
