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
	"sandboxd/internal/publicaddr"
)

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
	if err != nil || len(first) != 1 || !publicaddr.Is(first[0].Unmap()) {
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
