//go:build e2e || bench

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// echoPort is where the echo service of the template "echo" listens.
const echoPort = "3000"

// echoManifest declares a service that comes back with its sandbox. Its program is in the home, which outlives a stop.
const echoManifest = `name: echo
title: Echo
description: A page, an upload, a WebSocket and an event stream for tests.
icon: box
image: debian:trixie-slim
profile: dev
size: {cpus: 1, memory: 256MiB, pids: 128, disk: 1GiB}
ports: [{port: 3000, title: Echo}]
services:
  - {name: echo, command: [/home/agent/echo], port: 3000, autostart: true}
`

// echoTemplates makes a folder with the template "echo", with lines added to its manifest, for --templates.
func echoTemplates(t testing.TB, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	writeTemplate(t, dir, "echo", echoManifest+strings.Join(lines, "\n")+"\n")
	return dir
}

func writeTemplate(t testing.TB, dir, name, manifest string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"template.yaml": manifest, "README.md": "# " + name + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// echoProgram builds the service's program.
func echoProgram(t testing.TB) string { return staticProgram(t, "echo") }

// staticProgram builds a program of testdata that runs in any image.
func staticProgram(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program %s: %v\n%s", name, err, out)
	}
	return path
}

// createEcho makes a sandbox whose echo service answers.
func (s *server) createEcho(name, program string) {
	s.t.Helper()
	s.createEchoAt(name, program, s.host(echoPort+"-"+name))
}

// createEchoAt is createEcho for a server that knows the service by another host.
func (s *server) createEchoAt(name, program, host string) {
	s.t.Helper()
	s.create(map[string]any{"name": name, "template": "echo"})
	engine(s.t, "cp", program, s.container(name)+":/home/agent/echo")
	client := straight(s.addr)
	s.until("the echo service of "+name+" answers", func() bool {
		_, err := firstByte(client, "http://"+host+"/small", s.token)
		return err == nil
	})
}

// container is the engine's name of a sandbox's container.
func (s *server) container(name string) string {
	s.t.Helper()
	return engine(s.t, "ps", "-a", "--filter", "label=sandboxd.instance="+s.instance(), "--filter", "label=sandboxd.name="+name, "--format", "{{.Names}}")
}

// port is the part of the address behind the colon.
func (s *server) port() string {
	_, port, _ := strings.Cut(s.addr, ":")
	return port
}

// host is the Host of a sandbox's host: sub is its name, or a port and its name.
func (s *server) host(sub string) string { return sub + ".localhost:" + s.port() }

// straight is a client that finds every host at one address, as a resolver that knows the domain would.
func straight(addr string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 256,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request asks a sandbox's host with the token.
func (s *server) request(method, sub, path string, header http.Header, body *os.File) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), callLimit)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.host(sub)+path, nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		info, err := body.Stat()
		if err != nil {
			return nil, err
		}
		req.Body, req.ContentLength = body, info.Size()
	}
	if header != nil {
		req.Header = header.Clone()
	}
	if req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	return straight(s.addr).Do(req)
}

// dialEcho opens the echo service's WebSocket by way of the server at addr.
func (s *server) dialEcho(addr, host string) *websocket.Conn {
	s.t.Helper()
	d := websocket.Dialer{NetDialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	conn, resp, err := d.DialContext(s.t.Context(), "ws://"+host+"/ws", http.Header{"Authorization": {"Bearer " + s.token}})
	if err != nil {
		status := ""
		if resp != nil {
			status = resp.Status
		}
		s.t.Fatalf("dial the WebSocket of %s: %v %s\n%s", host, err, status, s.tail())
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// echoes sends a text and wants it back.
func (s *server) echoes(conn *websocket.Conn, text string) {
	s.t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		s.t.Fatalf("send %q: %v", text, err)
	}
	_, got, err := conn.ReadMessage()
	if err != nil || string(got) != text {
		s.t.Fatalf("sent %q, got %q, %v\n%s", text, got, err, s.tail())
	}
}

// restBody is what the API says about a sandbox's rest.
type restBody struct {
	State       string
	FreezeAfter string `json:"freeze_after"`
	StopAfter   string `json:"stop_after"`
	FreezesAt   *time.Time
	StopsAt     *time.Time                      `json:"stops_at"`
	Because     []struct{ Kind, Detail string } `json:"awake_because"`
}

func (s *server) rest(name string) restBody {
	s.t.Helper()
	var out restBody
	s.call("GET", "/sandboxes/"+name, nil, &out)
	return out
}

// sleeps puts a sandbox to rest by hand, and waits until the engine has it so. What a browser still asks for may wake it
// in between; then it is put to rest again.
func (s *server) sleeps(name, state string) {
	s.t.Helper()
	body := map[string]any{"frozen": state == "frozen"}
	want := map[string]string{"frozen": "paused", "asleep": "exited"}[state]
	container := s.container(name)
	s.until(name+" is "+state, func() bool {
		status, text := s.raw("POST", "/sandboxes/"+name+"/sleep?wait="+state, body)
		if status != http.StatusOK && status != http.StatusConflict {
			s.t.Fatalf("sleep %s: %d %s", name, status, text)
		}
		return status == http.StatusOK && engine(s.t, "inspect", "-f", "{{.State.Status}}", container) == want
	})
}

// firstByte asks for something and gives how long its first byte took. All of it is read.
func firstByte(c *http.Client, url, token string) (time.Duration, error) {
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	began := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var one [1]byte
	if _, err := io.ReadFull(resp.Body, one[:]); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s, %w", resp.Status, err)
	}
	took := time.Since(began)
	_, err = io.Copy(io.Discard, resp.Body)
	return took, err
}

// address is a sandbox's address on its network, which is the same after each start.
func (s *server) address(name string) string {
	s.t.Helper()
	return engine(s.t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAMConfig.IPv4Address}}{{end}}", s.container(name))
}
