package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandboxd/internal/fault"
)

func TestPublic(t *testing.T) {
	for _, a := range []string{"8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"} {
		if !public(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8",
		"192.168.1.1", "198.18.0.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1",
		"64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "2002:7f00:1::1", "2002:808:808::1", "2001::1", "2001:db8::1", "100::1",
	} {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
}

// names answers each look at a name with the next address, by DNS.
func names(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	go func() {
		defer close(ended)
		for buffer := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // the test is over
			}
			var m dnsmessage.Message
			if err := m.Unpack(buffer[:n]); err != nil {
				t.Error(err)
				return
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA && len(answers) > 0 {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: netip.MustParseAddr(answers[0]).As4()}}}
				answers = answers[1:]
			}
			out, err := m.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := conn.WriteTo(out, from); err != nil {
				t.Error(err)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestSend_ANameThatChangesItsMindReachesNothing has a name that is public at the first look, and loopback when it is used.
func TestSend_ANameThatChangesItsMindReachesNothing(t *testing.T) {
	url, got := listen(t, http.StatusOK)
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	address := "http://rebind.example.com:" + port

	s := New(Config{})
	s.dialer.Resolver = names(t, "93.184.216.34", "127.0.0.1", "10.0.0.1")
	first, err := s.dialer.Resolver.LookupNetIP(t.Context(), "ip4", "rebind.example.com")
	if err != nil || len(first) != 1 || !public(first[0].Unmap()) {
		t.Fatalf("%v, %v", first, err)
	}
	for range 2 {
		err := s.Send(t.Context(), to(address), firing)
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(fault.Message(err), "--alert-private-addresses") || strings.Contains(fault.Message(err), "127.0.0.1") || len(got) != 0 {
			t.Errorf("%v, %d requests", err, len(got))
		}
	}

	s = New(Config{Private: true})
	s.dialer.Resolver = names(t, "127.0.0.1")
	if err := s.Send(t.Context(), to(address), firing); err != nil || len(got) != 1 {
		t.Errorf("allowed: %v, %d requests", err, len(got))
	}
}

func TestOwn_IsAnAddressOfThisHost(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "198.51.100.7": false, "2606:4700::1111": false} {
		if got := own(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
