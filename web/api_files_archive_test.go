package web

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/files"
)

func TestArchive_IsJudgedAndCompleteOrCutOff(t *testing.T) {
	w := newFilesWorld(t)
	got := w.call("ada", "GET", labFiles+"?path=/home/agent&archive=tar", "").is(200)
	if h := got.Header(); h.Get("Content-Type") != "application/x-tar" || h.Get("Content-Disposition") != `attachment; filename="agent.tar"` {
		t.Errorf("%v", h)
	}
	r := tar.NewReader(got.Body)
	var names []string
	for h, err := r.Next(); err == nil; h, err = r.Next() {
		names = append(names, h.Name)
	}
	if d := cmp.Diff([]string{"notes.txt", "src/", "src/main.go"}, names); d != "" {
		t.Error(d)
	}
	one := w.call("ada", "GET", labFiles+"?path=~&archive=zip&name=src", "").is(200)
	if got := one.Header().Get("Content-Disposition"); got != `attachment; filename="src.zip"` {
		t.Errorf("one folder by its name is %s", got)
	}
	zipped := one.Body.Bytes()
	z, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil || len(z.File) != 3 {
		t.Fatalf("%v, %v", z, err)
	}
	w.call("ada", "GET", labFiles+"?path=~&archive=tar.zst", "").is(200)
	w.call("ada", "GET", labFiles+"?path=~&archive=rar", "").problem(400, "invalid", "archive")
	w.call("ada", "GET", labFiles+"?path=~&archive=tar&name=a/b", "").problem(400, "invalid", "name")
	w.call("ada", "GET", labFiles+"?path=~&archive=tar&name=..", "").problem(400, "invalid", "name")
}

// TestArchive_ABrokenOneDoesNotLookWhole for a client that goes by HTTP alone.
func TestArchive_ABrokenOneDoesNotLookWhole(t *testing.T) {
	for _, format := range files.Formats {
		w := newFilesWorld(t)
		noise := make([]byte, 1<<20) // more than what is kept back before the first byte goes out, however it is compressed
		rand.Read(noise)
		w.files.files["/home/agent/src/noise"] = string(noise)
		whole := w.files.pack()
		w.files.packed = whole[:len(whole)-1024-512] // cut in the last file's padding
		got := w.open(t.Context(), "ada", "GET", labFiles+"?path=~&archive="+string(format), "", "")
		n, err := io.Copy(io.Discard, got.Body)
		if got.StatusCode != 200 || err == nil {
			t.Errorf("%s: %d, %d bytes came and it looked whole", format, got.StatusCode, n)
		}
	}
}

func TestArchive_WhatFailsBeforeTheFirstByteIsAProblem(t *testing.T) {
	w := newFilesWorld(t)
	w.files.packed = []byte("this is no tar")
	w.call("ada", "GET", labFiles+"?path=~&archive=tar", "").problem(503, "unavailable", "")
	w.files.lie = func(verb string) error {
		if verb == "pack" {
			return fault.New(fault.NotFound, "There is no such folder.")
		}
		return nil
	}
	w.call("ada", "GET", labFiles+"?path=gone&archive=zip", "").problem(404, "not_found", "")
}

func TestFile_ThatIsCutOffDoesNotLookWhole(t *testing.T) {
	w := newFilesWorld(t)
	w.files.files["/home/agent/big"] = strings.Repeat("x", 1<<20)
	w.files.body = func(r io.Reader) io.ReadCloser {
		return io.NopCloser(io.MultiReader(io.LimitReader(r, 600<<10), iotestErr{fault.New(fault.Unavailable, "lost")}))
	}
	got := w.open(t.Context(), "ada", "GET", labFiles+"?path=big", "", "")
	if n, err := io.Copy(io.Discard, got.Body); err == nil || n > 600<<10 {
		t.Errorf("%d bytes, and it looked whole: %v", n, err)
	}
}

type iotestErr struct{ error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.error }

func TestExtract_TakesAnArchive(t *testing.T) {
	w := newFilesWorld(t)
	var b bytes.Buffer
	to := tar.NewWriter(&b)
	for _, name := range []string{"a", "./b/c"} {
		if err := errors.Join(to.WriteHeader(&tar.Header{Name: name, Size: 3, Mode: 0o644}), second(to.Write([]byte("abc")))); err != nil {
			t.Fatal(err)
		}
	}
	to.Close()
	got := w.call("ada", "PUT", labFiles+"?path=out&extract=tar", b.String(), "Content-Type", "application/x-tar").is(200).Body.String()
	if got != `{"entries":2,"bytes":6}`+"\n" || w.files.content("/home/agent/out/b/c") != "abc" {
		t.Errorf("got %s, %v", got, w.files.files)
	}
}
