package sshd_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/sshd"
)

// TestMemory_WhatComesTooEarlyIsBounded writes the beginnings of many files last, which are whole in the end.
func TestMemory_WhatComesTooEarlyIsBounded(t *testing.T) {
	const count, size, piece = 16, 4 << 20, 32 << 10
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	want := make([]byte, size)
	rand.Read(want)
	var open []*sftp.File
	for i := range count {
		file, err := f.Create(path.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, file)
	}
	most := 0
	for _, file := range open {
		for at := piece; at < size; at += piece {
			if _, err := file.WriteAt(want[at:at+piece], int64(at)); err != nil {
				t.Fatal(err)
			}
			most = max(most, w.server.Held())
		}
	}
	if most > sshd.MostHeld || most < size {
		t.Errorf("%d bytes were held", most)
	}
	for i, file := range open {
		if _, err := file.WriteAt(want[:piece], 0); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if content(t, filepath.Join(dir, strconv.Itoa(i))) != string(want) {
			t.Errorf("file %d is another", i)
		}
	}
	w.until("nothing is held", func() bool { return w.server.Held() == 0 })
}

// TestMemory_OfAClientThatIsLostIsGivenBack has pieces waiting in both directions.
func TestMemory_OfAClientThatIsLostIsGivenBack(t *testing.T) {
	w := newWorld(t)
	c, dir := w.client(), w.folder()
	f := w.sftp(c)
	if err := os.WriteFile(filepath.Join(dir, "there"), make([]byte, 4<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	to, err := f.Create(path.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	from, err := f.Open(path.Join(dir, "there"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadAt(make([]byte, 100), 0); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1 << 20, 2 << 20} {
		if _, err := to.WriteAt(make([]byte, 32<<10), at); err != nil {
			t.Fatal(err)
		}
	}
	if w.server.Held() < 2<<20 {
		t.Errorf("only %d bytes are counted", w.server.Held())
	}
	c.Close()
	w.until("nothing is held", func() bool { return w.server.Held() == 0 })
}

// TestMemory_ReadingGoesOnWithoutAny reads more files at once than there is memory for.
func TestMemory_ReadingGoesOnWithoutAny(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	want := make([]byte, 3<<20)
	rand.Read(want)
	if err := os.WriteFile(filepath.Join(dir, "big"), want, 0o666); err != nil {
		t.Fatal(err)
	}
	var open []*sftp.File
	for range 20 { // fewer than transfers of a sandbox
		file, err := f.Open(path.Join(dir, "big"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, file)
	}
	for _, file := range open {
		for _, at := range []int64{1 << 20, 2<<20 + 5, 2<<20 + 5 + 30_000, 0, int64(len(want)) - 30_000} {
			got := make([]byte, 30_000)
			if _, err := file.ReadAt(got, at); err != nil || !bytes.Equal(got, want[at:at+30_000]) {
				t.Fatalf("at %d: %v", at, err)
			}
		}
		if n, err := file.ReadAt(make([]byte, 10), int64(len(want))-5); n != 5 || err != io.EOF {
			t.Errorf("at the end: %d, %v", n, err)
		}
	}
	if got := w.server.Held(); got > 32<<20 {
		t.Errorf("%d bytes are held", got)
	}
}

func TestBounds_OpenFilesOfAConnection(t *testing.T) {
	w := newWorld(t)
	c, dir := w.client(), w.folder()
	one, two := w.sftp(c), w.sftp(c)
	open := 0
	for i := range 100 {
		if _, err := []*sftp.Client{one, two}[i%2].Create(path.Join(dir, strconv.Itoa(i))); err == nil {
			open++
		}
	}
	if open != 64 {
		t.Errorf("%d files are open", open)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	w.until("there is room again", func() bool { _, err := two.Create(path.Join(dir, "again")); return err == nil })
}

// TestBounds_OneSandboxLeavesRoomForOthers opens as much as one sandbox, and then one owner, may have.
func TestBounds_OneSandboxLeavesRoomForOthers(t *testing.T) {
	w := newWorld(t)
	open := func(id, owner string) (n int) {
		for range 5 {
			c := w.clientOf(w.another(id, owner))
			for range 100 {
				if _, err := c.NewSession(); err != nil {
					break
				}
				n++
			}
		}
		return n
	}
	if one, two, three, other := open("1", "ada"), open("2", "ada"), open("3", "ada"), open("4", "bob"); one != 150 || two != 150 || three != 0 || other != 150 {
		t.Errorf("%d, %d and %d channels of one, %d of another", one, two, three, other)
	}
}

func TestBounds_ConnectionsOfASandbox(t *testing.T) {
	w := newWorld(t)
	var last *ssh.Client
	for range 64 {
		last = w.client()
	}
	here, there := pair(t)
	defer here.Close()
	if err := w.server.Serve(t.Context(), w.lab.Handle(t), there); !fault.Is(err, fault.Limited) {
		t.Errorf("got %v", err)
	}
	w.clientOf(w.another("another", "bob"))
	last.Close()
	w.until("there is room again", func() bool {
		here, there := pair(t)
		defer here.Close()
		told := make(chan error, 1)
		go func() { told <- w.server.Serve(t.Context(), w.lab.Handle(t), there) }()
		io.WriteString(here, "no SSH\r\n\r\n")
		here.Close()
		return !fault.Is(<-told, fault.Limited)
	})
}

func TestBounds_SessionsOfSFTP(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	var open []*sftp.Client
	for range 30 {
		if f, err := sftp.NewClient(c); err == nil {
			open = append(open, f)
			w.t.Cleanup(func() { f.Close() })
		}
	}
	if len(open) != 16 {
		t.Fatalf("%d sessions are open", len(open))
	}
	open[0].Close()
	w.until("there is room again", func() bool { f, err := sftp.NewClient(c); return err == nil && f != nil })
}

// queued lets both ends of a pipe of a test speak at once.
type queued struct {
	net.Conn
	out  chan []byte
	end  chan struct{}
	once func()
}

func newQueued(c net.Conn) *queued {
	q := &queued{Conn: c, out: make(chan []byte, 1000), end: make(chan struct{})}
	q.once = sync.OnceFunc(func() { close(q.end); c.Close() })
	go func() {
		for {
			select {
			case p := <-q.out:
				if _, err := c.Write(p); err != nil {
					return
				}
			case <-q.end:
				return
			}
		}
	}()
	return q
}

// Write implements io.Writer.
func (q *queued) Write(p []byte) (int, error) {
	select {
	case q.out <- bytes.Clone(p):
		return len(p), nil
	case <-q.end:
		return 0, net.ErrClosed
	}
}

// Close implements io.Closer.
func (q *queued) Close() error { q.once(); return nil }

// TestSession_ThatDoesNotSayWhatItIsForIsEnded has one that says it in time, too.
func TestSession_ThatDoesNotSayWhatItIsForIsEnded(t *testing.T) {
	key, err := sshd.OpenHostKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- sshd.New(sshd.Config{Key: key}).Serve(t.Context(), accesstest.New("lab", nil).Handle(t), newQueued(there))
		}()
		conn, channels, requests, err := ssh.NewClientConn(newQueued(here), "lab", &ssh.ClientConfig{User: "x", HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(conn, channels, requests)
		s, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Setenv("A", "b"); err != nil {
			t.Error(err)
		}
		began := time.Now()
		for { // a client that looks whether its session is there
			<-time.After(time.Second)
			if _, err := s.SendRequest("window-change", true, nil); err != nil {
				break
			}
			if time.Since(began) > time.Hour {
				t.Fatal("it is there for ever")
			}
		}
		if took := time.Since(began); took < 59*time.Second || took > 62*time.Second {
			t.Errorf("ended after %v", took)
		}
		if _, err := client.NewSession(); err != nil {
			t.Errorf("the connection has ended, too: %v", err)
		}
		client.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestUse_AFileThatNobodyReadsIsNoUse has it read to its end, and then left open in its middle.
func TestUse_AFileThatNobodyReadsIsNoUse(t *testing.T) {
	w := newWorld(t)
	f, dir := w.sftp(w.client()), w.folder()
	want := make([]byte, 3<<20)
	rand.Read(want)
	if err := os.WriteFile(filepath.Join(dir, "big"), want, 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open(path.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := file.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("%d bytes, %v", got.Len(), err)
	}
	w.until("it is in use no more when it is read", func() bool { return w.kinds() == "" })
	piece := make([]byte, 1000)
	if _, err := file.ReadAt(piece, 0); err != nil || w.kinds() != "files:read big " {
		t.Errorf("%v, in use by %q", err, w.kinds())
	}
	w.until("it is in use no more when nobody reads", func() bool { return w.kinds() == "" && w.server.Held() == 0 })
	if _, err := file.ReadAt(piece, 2<<20); err != nil || !bytes.Equal(piece, want[2<<20:2<<20+1000]) {
		t.Errorf("later: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	w.until("it is in use no more in the end", func() bool { return w.kinds() == "" && w.server.Held() == 0 })
}
