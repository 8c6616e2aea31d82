package hostname

import (
	"net/netip"
	"slices"
	"strings"
)

// maxHops is how many addresses of a chain of proxies are looked at: more than any chain of ours has.
const maxHops = 32

// Client gives the address of the client. peer is the other end of the connection, as in http.Request.RemoteAddr; forwarded has the
// values of X-Forwarded-For, believed only as far as trusted proxies wrote them: the client is the last address that is not a trusted
// proxy's. The zero address means that peer is not an IP address, such as a unix socket's.
func Client(peer string, forwarded []string, trusted []netip.Prefix) netip.Addr {
	client := parseHop(peer)
	for hops := 0; hops < maxHops && client.IsValid() && isTrusted(client, trusted); hops++ {
		var hop string
		hop, forwarded = lastHop(forwarded)
		next := parseHop(hop)
		if !next.IsValid() {
			return client
		}
		client = next
	}
	return client
}

// lastHop takes the last address off a list that may be spread over several values.
func lastHop(forwarded []string) (hop string, rest []string) {
	for len(forwarded) > 0 {
		last := len(forwarded) - 1
		value := forwarded[last]
		comma := strings.LastIndexByte(value, ',')
		rest = forwarded[:last]
		if comma >= 0 {
			rest = append(slices.Clone(rest), value[:comma])
		}
		if hop = strings.TrimSpace(value[comma+1:]); hop != "" {
			return hop, rest
		}
		forwarded = rest
	}
	return "", nil
}

// parseHop reads an address with or without a port and brackets.
func parseHop(hop string) netip.Addr {
	if ap, err := netip.ParseAddrPort(hop); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		return p.Contains(addr)
	})
}
