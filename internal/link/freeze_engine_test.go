//go:build engine

package link_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// greeter is a program that answers every request with "hello".
const greeter = `use IO::Socket::INET; $s=IO::Socket::INET->new(LocalAddr=>"127.0.0.1",LocalPort=>8123,Listen=>50,ReuseAddr=>1) or die;
$|=1; print "up\n"; while($c=$s->accept){ while(<$c>){ last if /^\r?$/ } print $c "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"; close $c }`

// ask sends a request to the port of greeter.
func ask(t *testing.T, s *link.Session) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.DialPort(ctx, 8123)
	}}}
	r, err := http.NewRequestWithContext(testContext(t), http.MethodGet, "http://box/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// freezeTime is longer than sandboxd once let a guest be silent.
const freezeTime = 30 * time.Second

func TestContainer_EverythingGoesOnAfterAFreeze(t *testing.T) {
	b := startBox(t, wire.Setup{Name: "box", Services: []wire.Service{
		{Name: "steady", Command: []string{"sleep", "1000"}, Autostart: true}}}, nil)
	s := b.session(t)
	p, err := s.Exec(t.Context(), wire.ExecStart{Command: []string{"perl", "-e", greeter}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Next(); err != nil {
		t.Fatal(err)
	}
	ws := openTerminal(t, s)
	typed(t, ws, "echo awa''ke\n")
	read(t, ws, "awake\r\n")
	service := awaitService(t, s, "steady", isRunning)
	if status, body := ask(t, s); status != 200 || body != "hello" {
		t.Fatalf("got %d, %q", status, body)
	}
	ctx := testContext(t)
	if err := b.docker.ContainerPause(ctx, b.id); err != nil {
		t.Fatal(err)
	}
	typed(t, ws, "echo tha''wed\n")
	select {
	case <-s.Done():
		t.Fatal("the connection was given up")
	case <-time.After(freezeTime): // only time shows that it is kept
	}
	began := time.Now()
	if err := b.docker.ContainerUnpause(testContext(t), b.id); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, s); status != 200 || body != "hello" {
		t.Errorf("got %d, %q", status, body)
	}
	t.Logf("answered %v after the thaw began", time.Since(began))
	read(t, ws, "thawed\r\n")
	if st := awaitService(t, s, "steady", isRunning); st.PID != service.PID {
		t.Errorf("the service was restarted: %+v", st)
	}
	if r := run(t, s, sh("echo here")); r.stdout.String() != "here\n" {
		t.Errorf("got %q", r.stdout.String())
	}
}

func TestContainer_FindsAnotherHubAfterAFreeze(t *testing.T) {
	b := startBox(t, wire.Setup{}, nil)
	b.session(t)
	if err := b.docker.ContainerPause(testContext(t), b.id); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.openHub(t, wire.Setup{})
	began := time.Now()
	if err := b.docker.ContainerUnpause(testContext(t), b.id); err != nil {
		t.Fatal(err)
	}
	b.session(t)
	t.Logf("connected %v after the thaw began", time.Since(began))
}
