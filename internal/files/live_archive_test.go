package files_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/fault"
	"sandboxd/internal/files"
)

func TestPack_AndUnpackGiveTheSameTree(t *testing.T) {
	p := live(t)
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	p.put("/src/a/b/c.txt", "hello")
	p.put("/src/empty", "")
	p.put("/src/noise", string(noise))
	p.put("/src/with\nnewline \u202e<b>", "odd")
	if err := errors.Join(os.Symlink("a/b/c.txt", filepath.Join(p.root, "src/l")), os.Symlink("../noise", filepath.Join(p.root, "src/a/up")),
		p.Mkdir(p.ctx(), p.box, "/src/hollow", false)); err != nil {
		t.Fatal(err)
	}
	want := tree(t, filepath.Join(p.root, "src"))
	for _, f := range []files.Format{files.Tar, files.TarZstd} {
		var b bytes.Buffer
		p.pack("/src", nil, f, &b)
		made, err := p.Unpack(p.ctx(), p.box, files.Unpacking{Folder: "/out-" + string(f)}, &b)
		if err != nil || made.Entries != 9 || made.Bytes != 1<<20+8 {
			t.Errorf("%s: %+v, %v", f, made, err)
		}
		if d := cmp.Diff(want, tree(t, filepath.Join(p.root, "out-"+string(f)))); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
	var b bytes.Buffer
	p.pack("/src", []string{"a", "noise"}, files.Zip, &b)
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if d := cmp.Diff([]string{"a/", "a/b/", "a/b/c.txt", "a/up", "noise"}, names); d != "" {
		t.Error(d)
	}
	if _, err := p.Pack(p.ctx(), p.box, "/src", []string{"missing"}, files.Tar); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

func (p *place) pack(folder string, names []string, f files.Format, to io.Writer) {
	p.t.Helper()
	a, err := p.Pack(p.ctx(), p.box, folder, names, f)
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Close()
	if err := a.Copy(to); err != nil {
		p.t.Fatal(err)
	}
}

// TestUnpack_NothingLandsOutside whatever an archive says, and whatever links wait in the folder.
func TestUnpack_NothingLandsOutside(t *testing.T) {
	p := live(t)
	p.put("/outside/secret", "kept")
	before := tree(t, filepath.Join(p.root, "outside"))
	if err := errors.Join(p.Mkdir(p.ctx(), p.box, "/in", false), os.Symlink("/outside", filepath.Join(p.root, "in/trap")), os.Symlink("/outside/secret", filepath.Join(p.root, "in/secret"))); err != nil {
		t.Fatal(err)
	}
	h := func(kind byte, name, to string) tar.Header {
		return tar.Header{Typeflag: kind, Name: name, Linkname: to, Mode: 0o644, Size: map[byte]int64{tar.TypeReg: 4}[kind]}
	}
	for i, entries := range [][]tar.Header{
		{h(tar.TypeReg, "trap/secret", "")}, {h(tar.TypeReg, "trap/new", "")}, {h(tar.TypeDir, "trap/dir", "")}, {h(tar.TypeReg, "secret", "")},
		{h(tar.TypeReg, "../outside/new", "")}, {h(tar.TypeReg, "/outside/new", "")}, {h(tar.TypeSymlink, "l", "../outside"), h(tar.TypeReg, "l/new", "")},
		{h(tar.TypeSymlink, "l", "/outside"), h(tar.TypeReg, "l/new", "")}, {h(tar.TypeLink, "l", "trap/secret"), h(tar.TypeReg, "l", "")},
		{h(tar.TypeLink, "l", "secret")}, {h(tar.TypeLink, "l", "../outside/secret")}, {h(tar.TypeSymlink, "trap/l", "x")}, {h(tar.TypeReg, "a/../../outside/new", "")},
		{h(tar.TypeSymlink, "x", "."), h(tar.TypeSymlink, "x/y", ".."), h(tar.TypeReg, "x/y/outside/new", "")}, {h(tar.TypeFifo, "f", "")}, {h(tar.TypeChar, "c", "")},
	} {
		for _, keep := range []bool{false, true} {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, e := range entries {
				if err := w.WriteHeader(&e); err != nil {
					t.Fatal(err)
				}
				if e.Size > 0 {
					if _, err := io.WriteString(w, "evil"); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.Close()
			_, err := p.Unpack(p.ctx(), p.box, files.Unpacking{Folder: "/in", KeepLinks: keep}, &b)
			if err != nil && !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Conflict) {
				t.Errorf("archive %d: %v", i, err)
			}
			if d := cmp.Diff(before, tree(t, filepath.Join(p.root, "outside"))); d != "" {
				t.Fatalf("archive %d, links kept %v: %s", i, keep, d)
			}
		}
	}
}

func TestUnpack_AClientThatLeavesEndsIt(t *testing.T) {
	p := live(t)
	broken := errors.New("the client has left")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "whole", Size: 4, Mode: 0o644}), second(io.WriteString(w, "true")), w.WriteHeader(&tar.Header{Name: "half", Size: 1 << 20, Mode: 0o644})); err != nil {
		t.Fatal(err)
	}
	_, err := p.Unpack(p.ctx(), p.box, files.Unpacking{Folder: "/in"}, io.MultiReader(&b, failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	p.until("what was half is gone", func() bool {
		got := tree(t, p.root)
		return len(got) <= 2 && got["in/half"] == ""
	})
	if s := p.lab.Status(); len(s.Because) != 0 {
		t.Errorf("still in use: %+v", s.Because)
	}
}

func second[T any](_ T, err error) error { return err }

func TestUnpack_TakesZstdOfItsOwn(t *testing.T) {
	p := live(t)
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "./d/f", Size: 4, Mode: 0o755}), second(io.WriteString(w, "true")), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	made, err := p.Unpack(p.ctx(), p.box, files.Unpacking{Folder: "new/folder", Coding: "zstd"}, &b)
	if err != nil || made.Entries != 1 || made.Bytes != 4 {
		t.Errorf("%+v, %v", made, err)
	}
	if e, err := p.Stat(p.ctx(), p.box, "new/folder/d/f"); err != nil || e.Mode != 0o755 {
		t.Errorf("%+v, %v", e, err)
	}
}
