package publicaddr

import (
	"net/netip"
	"testing"
)

func TestIs_TellsPublicAddressesFromOthers(t *testing.T) {
	for _, a := range []string{"8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"} {
		if !Is(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8",
		"192.168.1.1", "198.18.0.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1",
		"64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "2002:7f00:1::1", "2002:808:808::1", "2001::1", "2001:db8::1", "100::1",
	} {
		if Is(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
}

func TestOwn_IsAnAddressOfThisHost(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "198.51.100.7": false, "2606:4700::1111": false} {
		if got := own(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
