package auth

import (
	"net/netip"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/ratelimit"
)

// limiter bounds wrong passwords: a right one gives its attempt back. The limit by address alone is wider, because an
// office may share one.
type limiter struct {
	perName    ratelimit.Keyed // guesses at one name from one address
	perAddress ratelimit.Keyed // guesses from one address
}

func newLimiter() *limiter {
	return &limiter{ratelimit.Keyed{Burst: 5, Every: 30 * time.Second}, ratelimit.Keyed{Burst: 30, Every: 2 * time.Second}}
}

// take counts one attempt before it is known whether it is right, so that many at once cannot slip through; the caller
// gives it back when it was. A Limited fault counts nothing.
func (l *limiter) take(from, name string) (giveBack func(), err error) {
	from = Network(from)
	wait, giveAddress := l.perAddress.Take(from)
	waitName, giveName := l.perName.Take(from + "\x00" + name)
	giveBack = func() { giveAddress(); giveName() }
	if wait = max(wait, waitName); wait > 0 {
		giveBack()
		return nil, limited(wait, "Too many attempts to sign in.")
	}
	return giveBack, nil
}

// Network is what one customer usually has: an IPv4 address, or a /64 of IPv6. Other text stands for itself, bounded.
func Network(from string) string {
	addr, err := netip.ParseAddr(from)
	if err != nil {
		if ap, err := netip.ParseAddrPort(from); err == nil {
			addr = ap.Addr()
		} else {
			return from[:min(len(from), 64)]
		}
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// limited makes a Limited fault whose message says when to try again. The wait is rounded up to whole seconds.
func limited(wait time.Duration, message string) error {
	wait = max((wait + time.Second - 1).Truncate(time.Second), time.Second)
	unit := "seconds"
	if wait == time.Second {
		unit = "second"
	}
	return fault.Later(fault.Limited, wait, "%s Try again in %d %s.", message, int(wait.Seconds()), unit)
}
