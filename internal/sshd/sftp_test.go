package sshd_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (w *world) sftp(c *ssh.Client) *sftp.Client {
	w.t.Helper()
	f, err := sftp.NewClient(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { f.Close() })
	return f
}

// folder is a folder of the sandbox, which here is this machine.
func (w *world) folder() string {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "sshd-")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSFTP_AFileComesAndGoesAsItIs(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	want := make([]byte, 9<<20+123)
	rand.Read(want)
	to, err := f.Create(path.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.ReadFrom(bytes.NewReader(want)); err != nil { // many pieces at once
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if content(t, filepath.Join(dir, "big")) != string(want) {
		t.Error("it has come as something else")
	}
	from, err := f.Open(path.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var got bytes.Buffer
	if _, err := from.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes have gone, %v", got.Len(), err)
	}
	for _, at := range []int64{5 << 20, 0, 9 << 20, 1 << 20} {
		piece := make([]byte, 100)
		if _, err := from.ReadAt(piece, at); err != nil || !bytes.Equal(piece, want[at:at+100]) {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if n, err := from.ReadAt(make([]byte, 10), 1<<40); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
}

// TestSFTP_NoFileIsReadInPiecesOfTwo has a file opened anew in the sandbox, as one is that was not read for a while.
func TestSFTP_NoFileIsReadInPiecesOfTwo(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	name := filepath.Join(dir, "log")
	if err := os.WriteFile(name, make([]byte, 6<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	from, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	piece := make([]byte, 100)
	if _, err := from.ReadAt(piece, 0); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.WriteString("more"); err != nil {
		t.Fatal(err)
	}
	if n, err := from.ReadAt(piece, 6<<20); string(piece[:n]) != "more" || err != io.EOF {
		t.Errorf("what was added: %q, %v", piece[:n], err)
	}
	if err := errors.Join(os.WriteFile(name+".new", make([]byte, 7<<20), 0o666), os.Rename(name+".new", name)); err != nil {
		t.Fatal(err)
	}
	if n, err := from.ReadAt(piece, 3<<20); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("of what has its name now: %d bytes, %v", n, err)
	}
	again, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n, err := again.ReadAt(piece, 3<<20); n != len(piece) {
		t.Errorf("opened again: %d bytes, %v", n, err)
	}
}

// TestSFTP_PiecesInAnyOrder writes as a network file system does.
func TestSFTP_PiecesInAnyOrder(t *testing.T) {
	type write struct {
		at   int64
		text string
	}
	w := newWorld(t)
	f := w.sftp(w.client())
	for name, c := range map[string]struct {
		before string
		flags  int
		writes []write
		want   string
	}{
		"in order":           {"old", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, []write{{0, "abc"}, {3, "def"}}, "abcdef"},
		"backwards":          {"old", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, []write{{6, "ghi"}, {3, "def"}, {0, "abc"}}, "abcdefghi"},
		"over what was":      {"0123456789", os.O_WRONLY, []write{{3, "xyz"}}, "012xyz6789"},
		"over twice":         {"0123456789", os.O_WRONLY, []write{{3, "xyz"}, {4, "!"}, {0, "?"}}, "?12x!z6789"},
		"behind the end":     {"012", os.O_WRONLY, []write{{5, "x"}}, "012\x00\x00x"},
		"a hole":             {"old", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, []write{{2, "x"}}, "\x00\x00x"},
		"at the end":         {"012", os.O_WRONLY | os.O_APPEND, []write{{0, "3"}, {0, "4"}}, "01234"},
		"nothing":            {"012", os.O_WRONLY, nil, "012"},
		"nothing, emptied":   {"012", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, nil, ""},
		"nothing, new":       {"", os.O_WRONLY | os.O_CREATE, nil, ""},
		"one over the other": {"", os.O_WRONLY | os.O_CREATE, []write{{2, "aaaa"}, {4, "bb"}, {0, "cc"}}, "ccaabb"},
	} {
		dir := w.folder()
		at := path.Join(dir, "file")
		if c.before != "" {
			if err := os.WriteFile(at, []byte(c.before), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		file, err := f.OpenFile(at, c.flags)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, p := range c.writes {
			if _, err := file.WriteAt([]byte(p.text), p.at); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := file.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := content(t, at); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: files are left: %v", name, entries)
		}
	}
}

func TestSFTP_ReadsWhatItHasWritten(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	file, err := f.OpenFile(path.Join(dir, "file"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3)
	for _, text := range []string{"abc", "xyz"} {
		if _, err := file.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := file.ReadAt(buf, 0); err != nil || string(buf) != text {
			t.Errorf("%q, %v", buf, err)
		}
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestSFTP_AFileIsThereWhileItIsWrittenAndDressedInTheEnd(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	at := path.Join(dir, "file")
	file, err := f.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if st, err := f.Stat(at); err != nil || st.Size() != 7 {
		t.Errorf("while it is written: %v, %v", st, err)
	}
	when := time.Unix(1_000_000_000, 0)
	if err := errors.Join(f.Chmod(at, 0o700), f.Chtimes(at, when, when)); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o700 || !st.ModTime().Equal(when) {
		t.Errorf("in the end: %v, %v", st, err)
	}
	if err := f.Truncate(at, 3); err != nil || content(t, at) != "con" {
		t.Errorf("cut: %v", err)
	}
	if err := f.Truncate(at, 5); err != nil || content(t, at) != "con\x00\x00" {
		t.Errorf("made longer: %v", err)
	}
	if err := f.Truncate(at, 1<<40); err == nil {
		t.Error("made a tebibyte longer")
	}
}

// TestSFTP_AClientThatIsLostLeavesTheOldFile cuts the connection in the middle of an upload.
func TestSFTP_AClientThatIsLostLeavesTheOldFile(t *testing.T) {
	w := newWorld(t)
	c, dir := w.client(), w.folder()
	at := filepath.Join(dir, "file")
	if err := os.WriteFile(at, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	f := w.sftp(c)
	file, err := f.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	w.until("nothing but the old file is there", func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == 1
	})
	if got := content(t, at); got != "old" {
		t.Errorf("it has %d bytes now", len(got))
	}
}

func TestSFTP_FoldersLinksAndNames(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	in := func(name string) string { return path.Join(dir, name) }
	strange := "new\nline \x1b[31m \xff"
	if err := os.WriteFile(in(strange), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Mkdir(in("sub")), f.Symlink(strange, in("link")), f.Rename(in(strange), in("plain")), f.Symlink("plain", in("good"))); err != nil {
		t.Fatal(err)
	}
	if to, err := f.ReadLink(in("link")); err != nil || to != strange {
		t.Errorf("%q, %v", to, err)
	}
	if st, err := f.Stat(in("good")); err != nil || !st.Mode().IsRegular() {
		t.Errorf("a link that is followed: %v, %v", st, err)
	}
	if st, err := f.Lstat(in("good")); err != nil || st.Mode().Type() != os.ModeSymlink {
		t.Errorf("a link: %v, %v", st, err)
	}
	if _, err := f.Stat(in("link")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
	if err := f.Rename(in("plain"), in("good")); err == nil {
		t.Error("a rename replaces what is there")
	}
	if err := f.PosixRename(in("plain"), in("sub")); err == nil {
		t.Error("a rename moves into a folder")
	}
	if err := errors.Join(f.Symlink("sub", in("to-sub")), f.PosixRename(in("plain"), in("to-sub")), f.Rename(in("to-sub"), in("plain"))); err != nil {
		t.Errorf("a rename over a link to a folder: %v", err)
	}
	if entries, err := os.ReadDir(in("sub")); err != nil || len(entries) != 0 {
		t.Errorf("a rename moves into a folder by a link: %v, %v", entries, err)
	}
	if err := f.Remove(in("sub")); err != nil { // the library tries both ways
		t.Errorf("an empty folder: %v", err)
	}
	if err := errors.Join(f.Mkdir(in("full")), f.Mkdir(in("full/inner"))); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveDirectory(in("full")); err == nil {
		t.Error("a folder that is not empty is removed")
	}
	if _, err := os.Stat(in("full/inner")); err != nil {
		t.Error(err)
	}
	var names []string
	list, err := f.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != "full good link plain" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSFTP_ALargeFolderIsListedWhole(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	for i := range 2345 {
		if err := os.WriteFile(filepath.Join(dir, strings.Repeat("n", 1+i%50)+"-"+time.Duration(i).String()), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := f.ReadDir(dir); err != nil || len(list) != 2345 {
		t.Errorf("%d entries, %v", len(list), err)
	}
}

func TestSFTP_OnlySoManyFilesAreOpen(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	open := 0
	for i := range 100 {
		if _, err := f.Create(path.Join(dir, time.Duration(i).String())); err != nil {
			break
		}
		open++
	}
	if open != 64 {
		t.Errorf("%d files are open", open)
	}
}
