package sshd_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"sandboxd/internal/guest"
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
		"at the end":         {"012", os.O_WRONLY | os.O_APPEND, []write{{3, "3"}, {4, "4"}}, "01234"},
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
	if err := errors.Join(f.Link(in("plain"), in("second")), f.PosixRename(in("second"), in("second2")), f.Remove(in("second2"))); err != nil {
		t.Errorf("a second name: %v", err)
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

func TestSFTP_AttributesOfFiles(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	at, when := path.Join(dir, "file"), time.Unix(1_000_000_000, 0)
	file, err := f.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Chmod(0o640), f.Chmod(at, 0o700), file.Truncate(5), f.Chtimes(at, when, when), file.Close()); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o700 || !st.ModTime().Equal(when) || content(t, at) != "conte" {
		t.Errorf("%v, %v", st, err)
	}
	if err := errors.Join(f.Truncate(at, 3), f.Truncate(at, 1<<30)); err != nil {
		t.Error(err)
	}
	if st, err := f.Stat(at); err != nil || st.Size() != 1<<30 {
		t.Errorf("made longer: %v, %v", st, err)
	}
	if fs, err := f.StatVFS(dir); err != nil || fs.TotalSpace() == 0 {
		t.Errorf("the file system: %+v, %v", fs, err)
	}
}

func TestSFTP_BeginsWhereCommandsDo(t *testing.T) {
	w := newWorld(t)
	f := w.sftp(w.client())
	if at, err := f.RealPath("."); at != w.home || err != nil {
		t.Errorf("%q, %v", at, err)
	}
	if err := f.Mkdir("folder"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.home, "folder")); err != nil {
		t.Error(err)
	}
}

// TestSFTP_OnATerminal has a client that asks for one first: it would change the bytes.
func TestSFTP_OnATerminal(t *testing.T) {
	w := newWorld(t)
	s := w.session(w.client())
	in, inErr := s.StdinPipe()
	out, outErr := s.StdoutPipe()
	if err := errors.Join(inErr, outErr, s.RequestPty("xterm", 24, 80, nil), s.RequestSubsystem("sftp")); err != nil {
		t.Fatal(err)
	}
	f, err := sftp.NewClientPipe(out, in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := path.Join(w.folder(), "file")
	file, err := f.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write([]byte("\x03\n\r\n"))
	if err := errors.Join(err, file.Close()); err != nil || content(t, at) != "\x03\n\r\n" {
		t.Errorf("%q, %v", content(t, at), err)
	}
}

// ofOurs is what the kernel says of a process that this one has started, after its name.
var ofOurs = regexp.MustCompile(fmt.Sprintf(`\) [^ ] %d `, os.Getpid()))

// servers are the SFTP servers that the guest runs, which is this process.
func servers(t *testing.T) (pids []int) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		pid, _ := strconv.Atoi(path.Base(path.Dir(p)))
		text, _ := os.ReadFile(p) // it may have ended
		status, _ := os.ReadFile(path.Join(path.Dir(p), "stat"))
		if strings.HasSuffix(string(text), "\x00"+guest.SFTPArgument+"\x00") && ofOurs.Match(status) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestSFTP_NothingRunsOnWithoutItsClient ends sessions as clients do: by closing them, and by being lost.
func TestSFTP_NothingRunsOnWithoutItsClient(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	w.sftp(c)
	f := w.sftp(c)
	w.until("two servers run", func() bool { return len(servers(t)) == 2 })
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	w.until("one server runs", func() bool { return len(servers(t)) == 1 })
	c.Close()
	w.until("none runs", func() bool { return len(servers(t)) == 0 })
}

// TestSFTP_WhatIsNoSFTPEndsTheSession sends what cannot be read, and reads what the server says of it.
func TestSFTP_WhatIsNoSFTPEndsTheSession(t *testing.T) {
	w := newWorld(t)
	for name, packet := range map[string]string{"a length": "\xff\xff\xff\xff", "a type": "\x00\x00\x00\x05\xfe\x00\x00\x00\x01", "nothing": "\x00\x00\x00\x00"} {
		s := w.session(w.client())
		in, inErr := s.StdinPipe()
		out, outErr := s.StdoutPipe()
		if err := errors.Join(inErr, outErr, s.RequestSubsystem("sftp")); err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, packet)
		if text := reader(out)(); text != "" {
			t.Errorf("%s: %q", name, text)
		}
		w.until("none runs after "+name, func() bool { return len(servers(t)) == 0 })
	}
}

// TestSFTP_WhoTakesNothingIsSentLittle has a client send as much as it can: to a server that stands still, and to one whose
// answers the client does not take.
func TestSFTP_WhoTakesNothingIsSentLittle(t *testing.T) {
	const most = 64 << 20
	hello := "\x00\x00\x00\x05\x01\x00\x00\x00\x03"
	open := "\x00\x00\x00\x1a\x03\x00\x00\x00\x01\x00\x00\x00\x09/dev/zero\x00\x00\x00\x01\x00\x00\x00\x00"
	read := "\x00\x00\x00\x16\x05\x00\x00\x00\x02\x00\x00\x00\x011\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00"
	for name, stops := range map[string]bool{"server": true, "client": false} {
		w := newWorld(t)
		s := w.session(w.client())
		in, inErr := s.StdinPipe()
		_, outErr := s.StdoutPipe()
		if err := errors.Join(inErr, outErr, s.RequestSubsystem("sftp")); err != nil {
			t.Fatal(err)
		}
		w.until("a server runs", func() bool { return len(servers(t)) == 1 })
		io.WriteString(in, hello+open)
		if pid := servers(t)[0]; stops {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		var sent atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for sent.Load() < most {
				n, err := io.WriteString(in, strings.Repeat(read, 1000))
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
		before := int64(-1)
		w.until("nothing more is sent to the "+name, func() bool {
			now := sent.Load()
			still := now == before && now > 0
			before = now
			return still
		})
		s.Close()
		<-done
		if got := sent.Load(); got >= most {
			t.Errorf("%s: %d bytes were taken", name, got)
		}
		w.until("none runs", func() bool { return len(servers(t)) == 0 })
	}
}

// TestUse_SFTPCountsByWhatGoesThroughIt looks at what is registered, as that of a shell does: a watch is no lease that lasts.
func TestUse_SFTPCountsByWhatGoesThroughIt(t *testing.T) {
	w := newWorld(t)
	f := w.sftp(w.client())
	if got := w.kinds(); got != "files:sftp " {
		t.Errorf("in use by %q", got)
	}
	asked := w.asked()
	if _, err := f.ReadDir("/"); err != nil || w.asked() == asked {
		t.Errorf("%v; a request has woken it: %v", err, w.asked() != asked)
	}
}
