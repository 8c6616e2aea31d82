package sshd_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/guest"
	guestsftp "sandboxd/internal/guest/sftp"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sshd"
	"sandboxd/internal/tunnel"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

// TestMain is also what the guest makes of its own program, which here is this one, for SFTP.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == guest.SFTPArgument {
		os.Exit(guestsftp.Main())
	}
	os.Exit(m.Run())
}

// world is a server over a real link to a real guest, which is this very process.
type world struct {
	t      *testing.T
	server *sshd.Server
	lab    *accesstest.Sandbox
	home   string
	links  access.Links
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir()}
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	for _, id := range []string{"box", "another"} {
		w.guest(hub, id)
	}
	w.links = access.FromHub(hub)
	w.lab = accesstest.Linked("lab", "box", w.links)
	key, err := sshd.OpenHostKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	w.server = sshd.New(sshd.Config{Key: key, Ports: tunnel.New(), Log: slog.New(slog.DiscardHandler)})
	accesstest.Run(t, hub.Run)
	return w
}

func (w *world) guest(hub *link.Hub, id string) {
	w.t.Helper()
	folder, err := hub.Expect(id, wire.Setup{Name: "lab"})
	if err != nil {
		w.t.Fatal(err)
	}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: w.home, Passwd: accesstest.Passwd(w.t, w.home), Version: "test"})
	accesstest.Run(w.t, g.Run)
}

// pair is a connection with both its ends. Both may speak at once, which both do first in SSH.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return here, there
}

// connect serves a connection and gives its other end.
func (w *world) connect() net.Conn {
	w.t.Helper()
	return w.connectTo(w.lab.Handle(w.t))
}

func (w *world) connectTo(h access.Handle) net.Conn {
	w.t.Helper()
	here, there := pair(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = w.server.Serve(ctx, h, there) })
	w.t.Cleanup(func() { here.Close(); cancel(); serving.Wait() })
	return here
}

// another gives the handle of another sandbox called lab.
func (w *world) another(id, owner string) access.Handle {
	w.t.Helper()
	s := accesstest.Linked("lab", id, w.links)
	s.Change(func(row *sandbox.Sandbox) { row.Owner = owner })
	return s.Handle(w.t)
}

// asked tells how often the sandbox was asked to be awake.
func (w *world) asked() int {
	n, _ := w.lab.Awakes()
	return n
}

// replace deletes the sandbox, and gives its name to another.
func (w *world) replace() { w.lab.Change(func(row *sandbox.Sandbox) { row.ID = "another" }) }

// client makes the SSH handshake, as a library that others use does.
func (w *world) client() *ssh.Client {
	w.t.Helper()
	return w.clientOf(w.lab.Handle(w.t))
}

func (w *world) clientOf(h access.Handle) *ssh.Client {
	w.t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(w.server.HostKey()))
	if err != nil {
		w.t.Fatal(err)
	}
	c, channels, requests, err := ssh.NewClientConn(w.connectTo(h), "lab", &ssh.ClientConfig{User: "any", HostKeyCallback: ssh.FixedHostKey(key)})
	if err != nil {
		w.t.Fatal(err)
	}
	client := ssh.NewClient(c, channels, requests)
	w.t.Cleanup(func() { client.Close() })
	return client
}

func (w *world) session(c *ssh.Client) *ssh.Session {
	w.t.Helper()
	s, err := c.NewSession()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	return s
}

func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !cond(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("it was not so that %s", what)
		}
	}
}

// kinds are the kinds of use that the sandbox is in now.
func (w *world) kinds() (text string) {
	for _, r := range w.lab.Status().Because {
		text += string(r.Kind) + ":" + r.Detail + " "
	}
	return text
}

// reader reads to the end, and gives it later.
func reader(r io.Reader) func() string {
	out := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(r)
		out <- string(text)
	}()
	return func() string { return <-out }
}

func exitOf(err error) int {
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		return exit.ExitStatus()
	}
	if err != nil {
		return -1
	}
	return 0
}
