package docker

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"

	"sandboxd/internal/fault"
)

// The networks that are tried when none is configured: 10.213.0.0/16 to 10.254.0.0/16, which few others use.
const (
	firstAuto = 213
	lastAuto  = 254
)

// The sizes that a configured subnet may have, as prefix lengths.
const (
	largestSubnet  = 8
	smallestSubnet = 24
)

// guestShare is how much of a subnet is left to containers that others attach to our network: its last 1/2^guestShare.
const guestShare = 4

// parseSubnet reads a configured subnet; "" gives the zero Prefix, which means any.
func parseSubnet(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is4() || p != p.Masked() || p.Bits() < largestSubnet || p.Bits() > smallestSubnet || !p.Addr().IsPrivate() {
		return netip.Prefix{}, fault.Field("subnet", "The subnet %.40q must be a private IPv4 network between /%d and /%d, such as 10.213.0.0/16.",
			text, largestSubnet, smallestSubnet)
	}
	return p, nil
}

// candidates gives the subnets to try, best first: the configured one only, or last, which was ours before, and then
// the automatic ones. Those that overlap with networks in use are left out.
func candidates(wanted, last netip.Prefix, taken []netip.Prefix) []netip.Prefix {
	if wanted.IsValid() {
		return []netip.Prefix{wanted}
	}
	var all, free []netip.Prefix
	if last.IsValid() {
		all = append(all, last)
	}
	for n := firstAuto; n <= lastAuto; n++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, 0}), 16))
	}
	for _, p := range all {
		if !overlapsAny(p, taken) {
			free = append(free, p)
		}
	}
	return free
}

func overlapsAny(p netip.Prefix, others []netip.Prefix) bool {
	for _, o := range others {
		if p.Overlaps(o) {
			return true
		}
	}
	return false
}

// hostRoutes gives the networks that this host has routes to, other than the default route.
func hostRoutes() ([]netip.Prefix, error) {
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	defer f.Close()
	return parseRoutes(f)
}

// parseRoutes reads the kernel's table: a header, then lines of interface, destination, gateway, flags, three
// counters and mask, addresses as hexadecimal in the host's byte order.
func parseRoutes(r io.Reader) ([]netip.Prefix, error) {
	var out []netip.Prefix
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 {
			continue
		}
		dest, ok1 := hexAddr(fields[1])
		mask, ok2 := hexAddr(fields[7])
		if !ok1 || !ok2 {
			continue // the header
		}
		bits := 0
		for m := binary.BigEndian.Uint32(mask[:]); m&(1<<31) != 0; m <<= 1 {
			bits++
		}
		if bits > 0 {
			out = append(out, netip.PrefixFrom(netip.AddrFrom4(dest), bits).Masked())
		}
	}
	return out, lines.Err()
}

func hexAddr(text string) (out [4]byte, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return out, false
	}
	binary.BigEndian.PutUint32(out[:], binary.NativeEndian.Uint32(b))
	return out, true
}

// plan divides one subnet: the gateway first, then our fixed addresses, then the share of others.
type plan struct {
	subnet  netip.Prefix
	gateway netip.Addr
	others  netip.Prefix // from where the engine takes addresses by itself
	first   netip.Addr   // of ours
	count   uint32       // of ours
}

func planFor(subnet netip.Prefix) plan {
	size := uint32(1) << (32 - subnet.Bits())
	p := plan{subnet: subnet, gateway: subnet.Addr().Next()}
	share := size >> guestShare
	p.others = netip.PrefixFrom(addOffset(subnet.Addr(), size-share), subnet.Bits()+guestShare)
	p.first = p.gateway.Next()
	p.count = size - share - 2
	return p
}

func addOffset(a netip.Addr, n uint32) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
	return netip.AddrFrom4(b)
}

// pick gives a free address, going round from *cursor, so that the address of a sandbox that is gone stays unused for
// as long as possible: who still has it in mind reaches nobody rather than a stranger.
func (p plan) pick(cursor *uint32, used func(netip.Addr) bool) (netip.Addr, bool) {
	for range p.count {
		a := addOffset(p.first, *cursor%p.count)
		*cursor = (*cursor + 1) % p.count
		if !used(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// anywhere is a cursor to begin with after a start, when it is not known which addresses were used last.
func anywhere() uint32 { return rand.Uint32N(1 << 24) }
