//go:build engine

package link_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/wire"
)

// onBridge gives the container an address that the host reaches.
func onBridge(_ *container.Config, h *container.HostConfig) { h.NetworkMode = "bridge" }

// greeter is a program that answers every request with "hello".
const greeter = `use IO::Socket::INET; $s=IO::Socket::INET->new(LocalAddr=>"127.0.0.1",LocalPort=>8123,Listen=>50,ReuseAddr=>1) or die;
$|=1; print "up\n"; while($c=$s->accept){ while(<$c>){ last if /^\r?$/ } print $c "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"; close $c }`

// gateway gives the address of the container's gateway.
func (b *engineBox) gateway(t *testing.T) string {
	t.Helper()
	state, err := b.docker.ContainerInspect(testContext(t), b.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range state.NetworkSettings.Networks {
		return net.JoinHostPort(n.IPAddress, fmt.Sprint(wire.GatewayPort))
	}
	t.Fatal("the container has no address")
	return ""
}

// ask sends a request to the gateway; the first may come before it listens.
func ask(t *testing.T, client *http.Client, address, host, pass string) (int, string) {
	t.Helper()
	for late := time.Now().Add(patience); ; {
		r, err := http.NewRequestWithContext(testContext(t), http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if pass != "" {
			r.Header.Set(wire.PassHeader, pass)
		}
		res, err := client.Do(r)
		if err != nil && time.Now().Before(late) {
			continue
		}
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
}

func TestContainer_GatewayLetsInWhoHasAPass(t *testing.T) {
	for name, change := range map[string]func(*container.Config, *container.HostConfig){"dev": nil, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			b := startBox(t, wire.Setup{Name: "box"}, func(c *container.Config, h *container.HostConfig) {
				if change != nil {
					change(c, h)
				}
				onBridge(c, h)
			})
			s := b.session(t)
			p, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"perl", "-e", greeter}})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if _, err := p.Next(); err != nil {
				t.Fatal(err)
			}
			address, host := b.gateway(t), "8123-box.example.com"
			soon := time.Now().Add(wire.PassLife)
			pass := wire.NewPass(b.hub.GatewayKey(b.name), host, soon)
			client := &http.Client{}
			if status, body := ask(t, client, address, host, pass); status != 200 || body != "hello" {
				t.Errorf("got %d, %q", status, body)
			}
			for why, pass := range map[string]string{"no pass": "", "another host's": wire.NewPass(b.hub.GatewayKey(b.name), "8124-box.example.com", soon),
				"another sandbox's": wire.NewPass(b.hub.GatewayKey("other"), host, soon)} {
				if status, body := ask(t, client, address, host, pass); status != http.StatusForbidden || body != "" {
					t.Errorf("%s: %d, %q", why, status, body)
				}
			}
			if a, err := s.Activity(testContext(t)); err != nil || a.Direct.InFlight != 0 || a.Direct.Idle < 0 {
				t.Errorf("got %+v, %v", a, err)
			}
			// A neighbour that reaches the address all the same, as this program does that is no Traefik.
			knock := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d; printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' >&3; head -1 <&3`, wire.GatewayPort, host)
			if r := run(t, s, wire.ExecStart{Command: []string{"bash", "-c", knock}}); !strings.Contains(r.stdout.String(), "403") {
				t.Errorf("got %q, %q", r.stdout.String(), r.stderr.String())
			}
		})
	}
}

func TestContainer_OldPassesDieWithTheHub(t *testing.T) {
	b := startBox(t, wire.Setup{}, onBridge)
	b.session(t)
	host := "8123-box.example.com"
	pass := wire.NewPass(b.hub.GatewayKey(b.name), host, time.Now().Add(wire.PassLife))
	client := &http.Client{}
	if status, body := ask(t, client, b.gateway(t), host, pass); status != http.StatusBadGateway || body != "Nothing listens on port 8123 in box.\n" {
		t.Errorf("got %d, %q", status, body)
	}
	b.stop()
	b.openHub(t, wire.Setup{})
	b.session(t)
	if status, _ := ask(t, client, b.gateway(t), host, pass); status != http.StatusForbidden {
		t.Errorf("got %d", status)
	}
}

// freezeTime is longer than sandboxd once let a guest be silent.
const freezeTime = 30 * time.Second

func TestContainer_EverythingGoesOnAfterAFreeze(t *testing.T) {
	b := startBox(t, wire.Setup{Name: "box", Services: []wire.Service{
		{Name: "steady", Command: []string{"sleep", "1000"}, Autostart: true}}}, onBridge)
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
	host := "8123-box.example.com"
	kept := &http.Client{} // its connection is idle all through the freeze
	pass := func() string { return wire.NewPass(b.hub.GatewayKey(b.name), host, time.Now().Add(wire.PassLife)) }
	if status, _ := ask(t, kept, b.gateway(t), host, pass()); status != 200 {
		t.Fatalf("got %d", status)
	}
	ctx := testContext(t)
	if err := b.docker.ContainerPause(ctx, b.id); err != nil {
		t.Fatal(err)
	}
	typed(t, ws, "echo tha''wed\n")
	select {
	case <-s.Done():
		t.Fatal("the connection was given up")
	case <-time.After(freezeTime):
	}
	began := time.Now()
	if err := b.docker.ContainerUnpause(testContext(t), b.id); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, kept, b.gateway(t), host, pass()); status != 200 || body != "hello" {
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
	<-time.After(6 * time.Second) // so that the guest had a good connection, as it has in life
	b.openHub(t, wire.Setup{})
	began := time.Now()
	if err := b.docker.ContainerUnpause(testContext(t), b.id); err != nil {
		t.Fatal(err)
	}
	b.session(t)
	t.Logf("connected %v after the thaw began", time.Since(began))
	if d := time.Since(began); d > time.Second {
		t.Errorf("it took %v", d)
	}
}
