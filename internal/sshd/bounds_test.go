package sshd_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
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
