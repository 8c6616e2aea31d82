package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestZip_HasFilesFoldersLinksAndTimes(t *testing.T) {
	changed := time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC)
	in := []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "dir/", ModTime: changed}, {Typeflag: tar.TypeReg, Name: "dir/ü", ModTime: changed},
		{Typeflag: tar.TypeReg, Name: "raw\xff", ModTime: changed}, {Typeflag: tar.TypeReg, Name: `..\..\evil`, ModTime: changed},
		{Typeflag: tar.TypeReg, Name: "C:evil", ModTime: changed}, aLink("dir/link", "/anywhere"), aHard("x/hard", "dir/ü"),
	}
	for _, h := range in {
		h.Format = tar.FormatGNU // which takes names that are no UTF-8
	}
	var out bytes.Buffer
	if err := sent(bytes.NewReader(tarOf(t, in...)), Zip).Copy(&out); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.File {
		got[f.Name] = f.Mode().String() + " " + read(t, f)
		if f.Name == "dir/ü" && (!f.Modified.Equal(changed) || f.NonUTF8) {
			t.Errorf("changed %v, %v", f.Modified, f.NonUTF8)
		}
	}
	want := map[string]string{
		"dir/": "drw-r--r-- ", "dir/ü": "-rw-r--r-- dir/ü", "raw\xff": "-rw-r--r-- raw\xff", ".._.._evil": `-rw-r--r-- ..\..\evil`, "C_evil": "-rw-r--r-- C:evil",
		"dir/link": "Lrw-r--r-- /anywhere", "x/hard": "Lrwxrwxrwx ../dir/ü",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func read(t *testing.T, f *zip.File) string {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return string(b)
}

// behind reads zeros up to a place, and content from there on.
type behind struct {
	at      int64
	content []byte
}

func (b behind) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		switch at := off + int64(i) - b.at; {
		case at < 0:
			p[i] = 0
		case at >= int64(len(b.content)):
			return i, io.EOF
		default:
			p[i] = b.content[at]
		}
	}
	return len(p), nil
}

func TestZip_BeyondFourGibibytesAndManyEntries(t *testing.T) {
	const from, many = 5 << 30, 70_000
	var out bytes.Buffer
	z, err := newZipWriter(&out, &spool{of: &spools{folder: filepath.Join(t.TempDir(), "spool"), most: 8 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	z.at = from // as if so much stood before
	for i := range many {
		if err := z.add(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("empty/%d", i)}, strings.NewReader(""), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.add(&tar.Header{Typeflag: tar.TypeReg, Name: "big", Mode: 0o600}, strings.NewReader("content"), nil); err != nil {
		t.Fatal(err)
	}
	if z.spool.file == nil {
		t.Error("the end of the archive is kept in memory")
	}
	if err := errors.Join(z.end(), z.spool.close(), z.spool.close()); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(behind{from, out.Bytes()}, from+int64(out.Len()))
	if err != nil || len(r.File) != many+1 {
		t.Fatalf("%d entries, %v", len(r.File), err)
	}
	if got := read(t, r.File[many]); got != "content" || r.File[many].Mode() != 0o600 {
		t.Errorf("got %q, %v", got, r.File[many].Mode())
	}
	if got := read(t, r.File[17]); got != "" {
		t.Errorf("got %q", got)
	}
}
