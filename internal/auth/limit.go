package auth

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// Wrong passwords are what is limited: a right one gives its attempt back. The limit by address alone is wider,
// because an office may share one.
var (
	perName    = rule{burst: 5, every: 30 * time.Second} // guesses at one name from one address
	perAddress = rule{burst: 30, every: 2 * time.Second} // guesses from one address
)

const limiterMemory = 10_000 // addresses and names remembered; beyond that the oldest are forgotten

// rule allows burst attempts at once, and one more after every.
type rule struct {
	burst float64
	every time.Duration
}

// bucket counts attempts, and leaks one every rule.every.
type bucket struct {
	level float64
	at    time.Time
}

// attempt names a limited thing: guesses at name from an address, or all guesses from it when name is "".
type attempt struct{ from, name string }

func (a attempt) rule() rule {
	if a.name == "" {
		return perAddress
	}
	return perName
}

// limiter bounds wrong passwords by address, and by address and name.
type limiter struct {
	mu      sync.Mutex
	buckets map[attempt]bucket
}

func newLimiter() *limiter { return &limiter{buckets: map[attempt]bucket{}} }

// take counts one attempt before it is known whether it is right, so that many at once cannot slip through; the caller
// gives it back when it was. A Limited fault counts nothing.
func (l *limiter) take(from, name string) (giveBack func(), err error) {
	from = network(from)
	keys := []attempt{{from: from}, {from: from, name: name}}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var wait time.Duration // until both let one pass
	for _, k := range keys {
		r := k.rule()
		wait = max(wait, time.Duration((l.level(k, now)+1-r.burst)*float64(r.every)))
	}
	if wait > 0 {
		return nil, limited(wait, "Too many attempts to sign in.")
	}
	for _, k := range keys {
		l.add(k, 1, now)
	}
	return func() { l.giveBack(keys) }, nil
}

func (l *limiter) giveBack(keys []attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		l.add(k, -1, time.Now())
	}
}

func (l *limiter) level(k attempt, now time.Time) float64 {
	b := l.buckets[k]
	return max(b.level-float64(now.Sub(b.at))/float64(k.rule().every), 0)
}

func (l *limiter) add(k attempt, n float64, now time.Time) {
	level := max(l.level(k, now)+n, 0)
	if level == 0 {
		delete(l.buckets, k)
		return
	}
	if _, known := l.buckets[k]; !known && len(l.buckets) >= limiterMemory {
		l.forget(now)
	}
	l.buckets[k] = bucket{level: level, at: now}
}

// forget makes room, in large steps because it looks at everything: what has leaked empty goes, else the tenth that was
// used longest ago.
func (l *limiter) forget(now time.Time) {
	var left []attempt
	for k := range l.buckets {
		if l.level(k, now) == 0 {
			delete(l.buckets, k)
		} else {
			left = append(left, k)
		}
	}
	if len(left) < limiterMemory*9/10 {
		return
	}
	slices.SortFunc(left, func(a, b attempt) int { return l.buckets[a].at.Compare(l.buckets[b].at) })
	for _, k := range left[:limiterMemory/10] {
		delete(l.buckets, k)
	}
}

// network is what one customer usually has: an IPv4 address, or a /64 of IPv6. Other text stands for itself, bounded.
func network(from string) string {
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
