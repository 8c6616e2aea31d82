package docker

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func TestParseSubnet(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "10.213.0.0/16": true, "192.168.7.0/24": true, "10.0.0.0/8": true,
		"10.213.0.1/16": false, "10.213.0.0/25": false, "10.0.0.0/7": false, "fd00::/16": false, "10.213.0.0": false, "x": false,
	} {
		if _, err := parseSubnet(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		} else if err != nil && fault.FieldOf(err) != "subnet" {
			t.Errorf("%q: no field in %v", text, err)
		}
	}
}

func TestCandidates_LeaveOutWhatIsTaken(t *testing.T) {
	taken := prefixes("10.213.128.0/24", "10.215.0.0/16", "172.17.0.0/16")
	got := candidates(netip.Prefix{}, netip.Prefix{}, taken)
	if want := prefixes("10.214.0.0/16", "10.216.0.0/16"); got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v", got[:2])
	}
	last := netip.MustParsePrefix("10.230.0.0/16")
	if got := candidates(netip.Prefix{}, last, taken); got[0] != last {
		t.Errorf("the last one is not tried first: %v", got[0])
	}
	if got := candidates(netip.Prefix{}, last, prefixes("10.0.0.0/8")); len(got) != 0 {
		t.Errorf("got %v although all is taken", got)
	}
	wanted := netip.MustParsePrefix("10.215.0.0/16")
	if got := candidates(wanted, last, taken); len(got) != 1 || got[0] != wanted {
		t.Errorf("a configured one must be the only one: %v", got)
	}
}

func TestParseRoutes(t *testing.T) {
	native := func(a string) string { // as the kernel prints it on this machine
		b := netip.MustParseAddr(a).As4()
		return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b[:]))
	}
	table := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	for _, r := range [][2]string{{"0.0.0.0", "0.0.0.0"}, {"172.17.0.0", "255.255.0.0"}, {"10.8.0.4", "255.255.255.252"}, {"10.0.0.0", "255.0.0.0"}} {
		table += fmt.Sprintf("eth0\t%s\t00000000\t0001\t0\t0\t0\t%s\t0\t0\t0\n", native(r[0]), native(r[1]))
	}
	got, err := parseRoutes(strings.NewReader(table + "short line\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := prefixes("172.17.0.0/16", "10.8.0.4/30", "10.0.0.0/8")
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := hostRoutes(); err != nil {
		t.Errorf("this host's: %v", err)
	}
}

func TestPlan_DividesWithoutOverlap(t *testing.T) {
	for _, subnet := range prefixes("10.213.0.0/16", "192.168.7.0/24", "10.0.0.0/8") {
		p := planFor(subnet)
		last := addOffset(p.first, p.count-1)
		if p.others.Contains(last) || p.others.Contains(p.first) || !p.others.Contains(last.Next()) {
			t.Errorf("%s: ours end at %s, others have %s", subnet, last, p.others)
		}
		if !subnet.Contains(last) || !subnet.Overlaps(p.others) || p.gateway.Compare(p.first) >= 0 || subnet.Addr() == p.gateway {
			t.Errorf("%s: %+v", subnet, p)
		}
	}
}

func TestPick_GoesRoundAndSkipsWhatIsUsed(t *testing.T) {
	p := planFor(netip.MustParsePrefix("192.168.7.0/24"))
	used := map[netip.Addr]bool{}
	cursor := p.count - 1
	var first netip.Addr
	for n := range p.count {
		a, ok := p.pick(&cursor, func(a netip.Addr) bool { return used[a] })
		if !ok || used[a] || !p.subnet.Contains(a) || p.others.Contains(a) || a == p.gateway {
			t.Fatalf("%d: got %s %t", n, a, ok)
		}
		if used[a] = true; n == 0 {
			first = a
		}
	}
	if a, ok := p.pick(&cursor, func(a netip.Addr) bool { return used[a] }); ok {
		t.Errorf("got %s although none is free", a)
	}
	delete(used, first)
	if a, ok := p.pick(&cursor, func(a netip.Addr) bool { return used[a] }); !ok || a != first {
		t.Errorf("got %s %t, want the one that is free", a, ok)
	}
}

func TestPick_DoesNotGiveAnAddressAgainSoon(t *testing.T) {
	p := planFor(netip.MustParsePrefix("10.213.0.0/16"))
	cursor := uint32(5)
	seen := map[netip.Addr]bool{}
	for range 1000 {
		a, _ := p.pick(&cursor, func(netip.Addr) bool { return false }) // each is given back at once
		if seen[a] {
			t.Fatalf("%s comes again", a)
		}
		seen[a] = true
	}
}

func FuzzParseRoutes(f *testing.F) {
	f.Add("eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
	f.Add(hex.EncodeToString([]byte{0, 1}))
	f.Fuzz(func(t *testing.T, table string) {
		got, err := parseRoutes(strings.NewReader(table))
		if err != nil {
			return
		}
		for _, p := range got {
			if !p.IsValid() || p != p.Masked() || p.Bits() == 0 {
				t.Errorf("got %v", p)
			}
		}
	})
}
