package hostname

import (
	"net/netip"
	"strings"
	"testing"
)

func TestClient_IsTheLastAddressThatNoTrustedProxyHas(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("::ffff:192.0.2.0/120")}
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"203.0.113.9:5000", nil, "203.0.113.9"},
		{"203.0.113.9:5000", []string{"6.6.6.6"}, "203.0.113.9"}, // nobody trusts what a stranger writes
		{"127.0.0.1:5000", nil, "127.0.0.1"},
		{"127.0.0.1:5000", []string{"203.0.113.9"}, "203.0.113.9"},
		{"127.0.0.1:5000", []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9"},
		{"127.0.0.1:5000", []string{"6.6.6.6", "203.0.113.9, 10.1.2.3"}, "203.0.113.9"},
		{"127.0.0.1:5000", []string{"203.0.113.9", "10.1.2.3", ""}, "203.0.113.9"},
		{"127.0.0.1:5000", []string{"10.9.9.9, 10.1.2.3"}, "10.9.9.9"}, // all are ours: the first of them
		{"127.0.0.1:5000", []string{"6.6.6.6, unknown"}, "127.0.0.1"},
		{"127.0.0.1:5000", []string{"6.6.6.6, _hidden, 10.1.1.1"}, "10.1.1.1"},
		{"127.0.0.1:5000", []string{" , ,"}, "127.0.0.1"},
		{"[::1]:5000", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"[::1]:5000", []string{"2001:db8::1"}, "2001:db8::1"},
		{"[::ffff:127.0.0.1]:5000", []string{"203.0.113.9"}, "203.0.113.9"},
		{"192.0.2.7:5000", []string{"203.0.113.9"}, "203.0.113.9"},
		{"[fe80::1%eth0]:5000", nil, "fe80::1"},
		{"127.0.0.1:5000", []string{"6.6.6.6," + strings.Repeat("10.0.0.1,", 1000)}, "10.0.0.1"},
		{"@", []string{"203.0.113.9"}, "invalid IP"},
		{"", nil, "invalid IP"},
	} {
		if got := Client(c.peer, c.forwarded, trusted).String(); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

func TestClient_DoesNotChangeTheHeader(t *testing.T) {
	forwarded := []string{"203.0.113.9, 10.1.2.3", "10.0.0.1, 10.0.0.2"}
	Client("10.0.0.9:1", forwarded, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if forwarded[0] != "203.0.113.9, 10.1.2.3" || forwarded[1] != "10.0.0.1, 10.0.0.2" {
		t.Errorf("changed to %q", forwarded)
	}
}

func FuzzClient(f *testing.F) {
	f.Add("127.0.0.1:1", "6.6.6.6, 10.0.0.1")
	f.Add("[::1]:1", ",,[")
	f.Fuzz(func(_ *testing.T, peer, forwarded string) {
		Client(peer, []string{forwarded, forwarded}, []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")})
	})
}
