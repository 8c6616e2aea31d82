//go:build e2e

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// metadata is where clouds tell a machine its secrets.
const metadata = "169.254.169.254"

// TestNeighbour_NothingIsReachedThatThePolicyForbids scans, from inside a sandbox, a neighbour, this host on each of its
// addresses, and a metadata service that is really there.
func TestNeighbour_NothingIsReachedThatThePolicyForbids(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.createEcho("victim", echoProgram(t))
	s.create(map[string]any{"name": "attacker", "image": "debian:trixie-slim"})
	s.exec("victim", map[string]any{"command": "(/home/agent/echo 0.0.0.0:8888 >/dev/null 2>&1 &)"})
	scanner := staticProgram(t, "scan")
	engine(t, "cp", scanner, s.container("attacker")+":/home/agent/scan")
	engine(t, "cp", echoProgram(t), s.container("attacker")+":/home/agent/echo")
	s.exec("attacker", map[string]any{"command": "(/home/agent/echo 127.0.0.1:8888 >/dev/null 2>&1 &)"})
	service := hostService(t)
	cloud(t)

	scan := func(targets ...string) []string {
		t.Helper()
		out := s.exec("attacker", map[string]any{"command": append([]string{"/home/agent/scan", "1s"}, targets...), "timeout": 600})
		lines := strings.Split(strings.TrimSpace(out.Stdout), "\n")
		if out.ExitCode != 0 || lines[len(lines)-1] != "done" {
			t.Fatalf("the scan did not end well: %+v", out)
		}
		return lines[:len(lines)-1]
	}
	address := func(name, field string) string {
		return engine(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{."+field+"}}{{end}}", s.container(name))
	}

	victim := address("victim", "IPAddress")
	wanted := []string{victim + ":3000", victim + ":8888", victim + ":22", victim + ":80", victim + ":1-1024", victim + ":2900-3100"}
	if open := scan(wanted...); len(open) != 0 {
		t.Errorf("of its neighbour it reaches %v", open)
	}
	for _, host := range slices.Concat([]string{address("attacker", "Gateway")}, hostAddresses(t)) {
		if open := scan(host+":"+service, host+":1-65535"); len(open) != 0 {
			t.Errorf("of this host, at %s, it reaches %v", host, open)
		}
	}
	if open := scan(metadata+":80", metadata+":443"); len(open) != 0 {
		t.Errorf("of the cloud it reaches %v", open)
	}
	// That the scanner finds what is open, and that the two services are there for who may reach them.
	if open := scan("127.0.0.1:8888", "127.0.0.1:1-65535"); !slices.ContainsFunc(open, func(line string) bool {
		return strings.HasPrefix(line, "open 127.0.0.1:8888 ") && strings.Contains(line, " 200 ")
	}) {
		t.Errorf("its own server: %v", open)
	}
	for _, there := range []string{"127.0.0.1:" + service, metadata + ":80"} {
		resp, err := http.Get("http://" + there)
		if err != nil {
			t.Fatalf("the test's own service at %s is not there: %v", there, err)
		}
		resp.Body.Close()
	}
	if name := engine(t, "run", "--rm", "-v", scanner+":/scan:ro", "debian:trixie-slim", "/scan", "1s", metadata+":80"); !strings.Contains(name, "open") {
		t.Errorf("a container without a policy does not reach the metadata service either, so the test shows nothing: %s", name)
	}
}

// hostService serves on all addresses of this host, as careless services do, and gives the port.
func hostService(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// hostAddresses gives the IPv4 addresses of this host, without loopback and the bridges of networks, which come and go beside this
// test: the one that matters is the gateway.
func hostAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil || strings.HasPrefix(i.Name, "br-") {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
				out = append(out, n.IP.String())
			}
		}
	}
	return out
}

// cloud makes a metadata service behind this host: in a network namespace of its own, with a route to it.
func cloud(t *testing.T) {
	t.Helper()
	space := fmt.Sprintf("sbxcloud%d", os.Getpid())
	here, there := fmt.Sprintf("sbxc%da", os.Getpid()%1e6), fmt.Sprintf("sbxc%db", os.Getpid()%1e6)
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	run("netns", "add", space)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", space).Run() })
	run("link", "add", here, "type", "veth", "peer", "name", there)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", here).Run() })
	run("link", "set", there, "netns", space)
	run("addr", "add", "198.18.255.1/30", "dev", here)
	run("link", "set", here, "up")
	run("-n", space, "addr", "add", "198.18.255.2/30", "dev", there)
	run("-n", space, "addr", "add", metadata+"/32", "dev", "lo")
	run("-n", space, "link", "set", "lo", "up")
	run("-n", space, "link", "set", there, "up")
	run("-n", space, "route", "add", "default", "via", "198.18.255.1")
	run("route", "replace", metadata+"/32", "via", "198.18.255.2")
	serve := exec.Command("nsenter", "--net=/var/run/netns/"+space, echoProgram(t), metadata+":80")
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	for deadline := time.Now().Add(eventLimit); ; {
		c, err := net.DialTimeout("tcp", metadata+":80", time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metadata service does not answer: %v", err)
		}
	}
}
