package web

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/socket"
	"sandboxd/internal/tunnel"
)

// fakeSSH says to whom it speaks, and gives back what it hears.
type fakeSSH struct{ ended chan error }

func (fakeSSH) HostKey() string { return "ssh-ed25519 AAAA" }

func (f fakeSSH) Serve(ctx context.Context, h access.Handle, conn net.Conn) error {
	defer conn.Close()
	_, _ = io.WriteString(conn, "SSH of "+h.Name()+" ")
	_, err := io.Copy(conn, conn)
	f.ended <- errors.Join(err, context.Cause(ctx))
	return nil
}

// fakeTunnels has nothing that listens.
type fakeTunnels struct{}

func (fakeTunnels) Dial(_ context.Context, _ access.Handle, port int) (*tunnel.Conn, error) {
	return nil, fault.New(fault.NotFound, "Nothing is listening on port %d in the sandbox.", port)
}

// remoteWorld is a world with SSH and tunnels.
func remoteWorld(t *testing.T) (*world, fakeSSH) {
	w := newWorld(t)
	f := fakeSSH{make(chan error, 1)}
	w.server.cfg.SSH, w.server.cfg.Tunnels = f, fakeTunnels{}
	w.box("ada", "lab")
	return w, f
}

func TestSSH_ItsBytesAreCarried(t *testing.T) {
	w, f := remoteWorld(t)
	conn, _, err := w.dial(w.serve(), "ada", "/api/v1/sandboxes/lab/ssh")
	if err != nil {
		t.Fatal(err)
	}
	c := socket.New(conn, time.Minute)
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("SSH of lab hello"))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "SSH of lab hello" {
		t.Errorf("%q, %v", got, err)
	}
	c.Close()
	if err := <-f.ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestRemote_WhoMayNotIsToldBeforeTheUpgrade(t *testing.T) {
	w, _ := remoteWorld(t)
	s := w.serve()
	w.tokens["narrow"] = w.token("ada", auth.NewToken{Name: "narrow", Sandbox: "other"})
	for _, path := range []string{"/ssh", "/ports/80/tunnel"} {
		for user, status := range map[string]int{"bob": 404, "narrow": 404, "nobody": 401} {
			if _, res, err := w.dial(s, user, "/api/v1/sandboxes/lab"+path); err == nil || res == nil || res.StatusCode != status {
				t.Errorf("%s as %s: %v, %+v", path, user, err, res)
			}
		}
		if _, res, err := w.dial(s, "ada", "/api/v1/sandboxes/lab"+path, "Origin", "https://evil.example"); err == nil || res == nil || res.StatusCode != 403 {
			t.Errorf("%s from a page: %v, %+v", path, err, res)
		}
		w.call("ada", "GET", "/api/v1/sandboxes/lab"+path, "").is(426)
	}
	for port, status := range map[string]int{"80": 404, "0x": 400} {
		if _, res, err := w.dial(s, "ada", "/api/v1/sandboxes/lab/ports/"+port+"/tunnel"); err == nil || res == nil || res.StatusCode != status {
			t.Errorf("port %s: %v, %+v", port, err, res)
		}
	}
	w.call("ada", "POST", "/api/v1/sandboxes/lab/stop?wait=stopped", "").is(200)
	for _, path := range []string{"/ssh", "/ports/80/tunnel"} {
		if _, res, err := w.dial(s, "ada", "/api/v1/sandboxes/lab"+path); err == nil || res == nil || res.StatusCode != 409 {
			t.Errorf("%s of a stopped one: %v, %+v", path, err, res)
		}
	}
}

func TestSSH_EndsWithTheToken(t *testing.T) {
	w, f := remoteWorld(t)
	w.server.check = 20 * time.Millisecond
	conn, _, err := w.dial(w.serve(), "ada", "/api/v1/sandboxes/lab/ssh")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := w.accounts.SetDisabled(t.Context(), w.ids["ada"], true); err != nil {
		t.Fatal(err)
	}
	if err := <-f.ended; err == nil {
		t.Error("it continues")
	}
}

func TestHostKey_IsToldToWhoHasAToken(t *testing.T) {
	w, _ := remoteWorld(t)
	var got hostKeyShape
	w.call("bob", "GET", "/api/v1/ssh/host-key", "").is(200).into(&got)
	if got.HostKey != "ssh-ed25519 AAAA" {
		t.Errorf("got %+v", got)
	}
	w.call("", "GET", "/api/v1/ssh/host-key", "").problem(401, "unauthenticated", "")
}
