// Package publicaddr tells addresses that everyone can reach over the Internet from those of private networks and of this host, and keeps
// connections to users' URLs from the latter: sandboxd's host can reach more than its users can.
//
// It resolves no names.
//
// Invariant: what Refuse lets through is public, whatever a name resolved to before.
package publicaddr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// ErrPrivate says that an address is not public.
var ErrPrivate = errors.New("the address is not public")

// reserved are networks that are not public, beside those that netip tells of. See IANA's registries of special-purpose addresses.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // behind a carrier's NAT
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays of 6to4
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // future use, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocols, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // the well-known prefix, behind which an IPv4 address stands
	global6 = netip.MustParsePrefix("2000::/3")     // all that IPv6 has given out
)

// Is reports whether everyone can reach an address over the Internet.
func Is(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		whole := a.As16()
		a = netip.AddrFrom4([4]byte(whole[12:]))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !global6.Contains(a) { // the first: loopback, link-local, multicast, unspecified
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Refuse is a net.Dialer's Control. It sees the very address that is connected to, so no second look at a name can slip by.
func Refuse(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address to connect to: %w", err)
	}
	if !Is(at.Addr()) || own(at.Addr()) {
		return ErrPrivate
	}
	return nil
}

// own reports whether an address is one of this host's, behind which may be what only its firewall keeps from others.
func own(a netip.Addr) bool {
	interfaces, err := net.InterfaceAddrs()
	for _, i := range interfaces {
		if p, ok := i.(*net.IPNet); ok {
			if mine, ok := netip.AddrFromSlice(p.IP); ok && mine.Unmap() == a.Unmap() {
				return true
			}
		}
	}
	return err != nil // it cannot be told
}

// LiterallyPrivate reports whether a host is private by what is written, so that it can be said before anything is sent. A host of a URL has no brackets here.
func LiterallyPrivate(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return !Is(a)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
