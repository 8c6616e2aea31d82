//go:build e2e

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/hostname"
)

// directBox is a container that carries a sandbox's labels and a stand-in for the guest's gateway.
type directBox struct {
	container string
	host      string // of its port 3000
}

// gatewayBinary builds the stand-in once.
var gatewayBinary = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join("..", "..", "artifacts"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "test-gateway")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "./testdata/gateway")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// newDirectBox starts a container with the labels of a sandbox, on a bridge of its own without traffic between containers.
func newDirectBox(t testing.TB, k *traefikProcess, name string) directBox {
	t.Helper()
	unique, _, _ := strings.Cut(k.domain, ".")
	network := "sbx-e2e-" + unique + "-" + name
	engine(t, "network", "create", "--opt", "com.docker.network.bridge.enable_icc=false", network)
	t.Cleanup(func() { engine(t, "network", "rm", network) })
	return newDirectBoxOn(t, k, name, network)
}

// newDirectBoxOn is newDirectBox on a network that is there, with options of the engine's for the container.
func newDirectBoxOn(t testing.TB, k *traefikProcess, name, network string, options ...string) directBox {
	t.Helper()
	gateway, err := gatewayBinary()
	if err != nil {
		t.Fatal(err)
	}
	unique, _, _ := strings.Cut(k.domain, ".")
	box := directBox{container: "sbx-e2e-" + unique + "-" + name}
	hosts, err := hostname.New(k.publicURL())
	if err != nil {
		t.Fatal(err)
	}
	hosts.Network = network
	box.host = hosts.Host(hostname.Target{Kind: hostname.Port, Name: name, Port: 3000})
	args := []string{"run", "-d", "--name", box.container, "--network", network, "--label", "sandboxd.instance=e2e-" + unique,
		"-v", gateway + ":/gateway:ro"}
	for key, value := range hosts.Labels(unique+name, name, []int{3000}) {
		args = append(args, "--label", key+"="+value)
	}
	args = append(append(args, options...), "debian:trixie-slim", "/gateway", ":7880")
	engine(t, args...)
	t.Cleanup(func() { engine(t, "rm", "-f", box.container) })
	return box
}

// direct waits until Traefik leads to the container.
func (b directBox) direct(k *traefikProcess) {
	k.t.Helper()
	client := k.client()
	k.until(startLimit, "the direct route is there", func() bool { return via(client, k.url(b.host, "/")) == "gateway" })
}

// authStandIn answers Traefik's forwardAuth in sandboxd's place.
type authStandIn struct {
	server *httptest.Server

	mu     sync.Mutex
	asked  []*http.Request
	answer http.HandlerFunc
}

func newAuthStandIn(t testing.TB, k *traefikProcess) *authStandIn {
	t.Helper()
	a := &authStandIn{answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Sandboxd-Pass", "pass") }}
	listener, err := net.Listen("tcp", k.auth)
	if err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked = append(a.asked, r)
		answer := a.answer
		a.mu.Unlock()
		answer(w, r)
	}))
	if err := a.server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	a.server.Listener = listener
	a.server.Start()
	t.Cleanup(a.server.Close)
	return a
}

// answers sets how it answers, and forgets who asked.
func (a *authStandIn) answers(answer http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked, a.answer = nil, answer
}

func (a *authStandIn) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}
