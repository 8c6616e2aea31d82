//go:build e2e

package main

import (
	endian "encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// outsideName is a name that only the test's own server knows, and where that leads.
const outsideName = "only.outside.example."

var outsideAddress = [4]byte{192, 0, 2, 77}

// TestResolver_KnowsTheOutsideAndNoNeighbour looks for the neighbours of a sandbox by name and by address.
func TestResolver_KnowsTheOutsideAndNoNeighbour(t *testing.T) {
	server := nameServer(t)
	s := newServer(t, "--prebuild", "", "--dns", server)
	s.create(map[string]any{"name": "victim", "image": "debian:trixie-slim"})
	s.create(map[string]any{"name": "attacker", "image": "debian:trixie-slim"})
	engine(t, "cp", staticProgram(t, "ask"), s.container("attacker")+":/home/agent/ask")
	victim := engine(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", s.container("victim"))
	id := engine(t, "inspect", "-f", "{{.Id}}", s.container("victim"))[:12]

	run := func(command string) string {
		t.Helper()
		return strings.TrimSpace(s.exec("attacker", map[string]any{"command": command, "timeout": 60}).Stdout)
	}
	for _, protocol := range []string{"udp", "tcp"} {
		for _, resolver := range []string{"127.0.0.11", server} {
			for _, question := range []string{"ptr " + victim, "a " + s.container("victim"), "a " + id, "a victim"} {
				if got := run("/home/agent/ask " + protocol + " " + resolver + " " + question); got != "none" {
					t.Errorf("%s at %s by %s: %s", question, resolver, protocol, got)
				}
			}
		}
		if got := run("/home/agent/ask " + protocol + " " + server + " a " + outsideName); got != "[192.0.2.77]" {
			t.Errorf("the outside by %s: %s", protocol, got)
		}
	}
	if got := run("getent hosts " + outsideName); !strings.HasPrefix(got, "192.0.2.77") {
		t.Errorf("the C library: %q", got)
	}
	if got := run("getent hosts $(hostname)"); !strings.Contains(got, "attacker") {
		t.Errorf("its own name: %q", got)
	}
	if got := run("getent hosts localhost"); got == "" {
		t.Error("it does not know localhost")
	}
	if got := run("began=$(date +%s%N); getent hosts no.such.example; echo $((($(date +%s%N) - began) / 1000000000))"); got != "0" {
		t.Errorf("a name that there is none of takes %s s", got)
	}
	if got := run("cat /proc/[2-9]*/status | grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' | awk '{print $2}' | sort -u"); got == "" || grants(got, 12) {
		t.Errorf("what the guest closed the resolver with is still there:\n%s", got)
	}
	if got := run("cat /proc/1/mem 2>&1 | head -c 1; echo x >> /etc/resolv.conf && echo written"); strings.Contains(got, "written") {
		t.Errorf("the list of all sandboxes can be changed: %s", got)
	}
}

// TestResolver_IsThereAfterAWakeToo stops a sandbox and starts it: its network is made anew.
func TestResolver_IsThereAfterAWakeToo(t *testing.T) {
	server := nameServer(t)
	s := newServer(t, "--prebuild", "", "--dns", server)
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	engine(t, "cp", staticProgram(t, "ask"), s.container("lab")+":/home/agent/ask")
	for range 2 {
		if got := s.exec("lab", map[string]any{"command": "/home/agent/ask udp 127.0.0.11 a " + s.container("lab")}); got.Stdout != "none\n" {
			t.Errorf("the engine's resolver answers: %+v", got)
		}
		if got := s.exec("lab", map[string]any{"command": "getent hosts " + outsideName}); !strings.HasPrefix(got.Stdout, "192.0.2.77") {
			t.Errorf("the outside: %+v", got)
		}
		if status, body := s.raw("POST", "/sandboxes/lab/sleep?wait=asleep", map[string]any{}); status != 200 {
			t.Fatalf("sleep: %d %s", status, body)
		}
	}
}

// grants tells whether one of the masks, a line each, has the capability.
func grants(masks string, capability uint) bool {
	for line := range strings.Lines(masks) {
		var mask uint64
		for _, c := range strings.TrimSpace(line) {
			mask = mask<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
		}
		if mask&(1<<capability) != 0 {
			return true
		}
	}
	return false
}

// nameServer is a DNS server on an address of this host, which a sandbox reaches because it is told of it. It knows one name.
func nameServer(t *testing.T) string {
	t.Helper()
	address := hostAddresses(t)[0]
	packets, err := net.ListenPacket("udp4", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := net.Listen("tcp4", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close(); stream.Close() })
	go func() {
		var question [512]byte
		for {
			n, from, err := packets.ReadFrom(question[:])
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if answer := answer(question[:n]); answer != nil {
				packets.WriteTo(answer, from)
			}
		}
	}()
	go func() {
		for {
			c, err := stream.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(time.Minute))
				var size [2]byte
				for {
					if _, err := io.ReadFull(c, size[:]); err != nil {
						return
					}
					question := make([]byte, endian.BigEndian.Uint16(size[:]))
					if _, err := io.ReadFull(c, question); err != nil {
						return
					}
					answer := answer(question)
					c.Write(append(endian.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
				}
			}()
		}
	}()
	return address
}

// answer answers a question: nil when it is none.
func answer(question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	q := m.Questions[0]
	switch {
	case q.Name.String() != outsideName:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: outsideAddress},
		}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}
