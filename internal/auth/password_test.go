package auth

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func TestHasher_HashesAreSaltedAndVerify(t *testing.T) {
	h := newHasher(Cost{})
	one, err1 := h.make(t.Context(), "a good password")
	two, err2 := h.make(t.Context(), "a good password")
	if err := errors.Join(err1, err2); err != nil || one == two || !strings.HasPrefix(one, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%s, %s, %v", one, two, err)
	}
	for _, c := range []struct {
		hash, password string
		want           bool
	}{
		{one, "a good password", true}, {two, "a good password", true}, {one, "A good password", false}, {one, "", false},
		{"", "a good password", false}, {"", "", false},
	} {
		if got, err := h.verify(t.Context(), c.hash, c.password); err != nil || got != c.want {
			t.Errorf("%q against %.40q: %v, %v", c.password, c.hash, got, err)
		}
	}
}

// The first hash is a test vector of the reference implementation.
func TestHasher_ReadsHashesOfOtherCosts(t *testing.T) {
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	h := newHasher(Cost{Memory: 32, Passes: 1})
	if ok, err := h.verify(t.Context(), reference, "password"); err != nil || !ok {
		t.Errorf("the reference's hash: %v, %v", ok, err)
	}
	old, err := h.make(t.Context(), "a good password")
	if err != nil {
		t.Fatal(err)
	}
	dearer := newHasher(Cost{Memory: 64, Passes: 2})
	if ok, err := dearer.verify(t.Context(), old, "a good password"); err != nil || !ok {
		t.Errorf("a hash of another cost: %v, %v", ok, err)
	}
}

func TestHasher_DamagedHashIsAnErrorAndCostsNothing(t *testing.T) {
	h := newHasher(Cost{Memory: 32, Passes: 1})
	good := format(h.cost, make([]byte, 16), make([]byte, 32))
	for _, bad := range []string{"x", "$", "plain password", good[1:], good + "$", strings.Replace(good, "argon2id", "argon2i", 1),
		strings.Replace(good, "v=19", "v=16", 1), strings.Replace(good, "m=32", "m=4000000000", 1), strings.Replace(good, "m=32", "m=0", 1),
		strings.Replace(good, "t=1", "t=100000", 1), strings.Replace(good, "t=1", "t=0", 1), strings.Replace(good, "p=1", "p=4", 1),
		good[:len(good)-2], strings.Replace(good, "$AAAA", "$!!!!", 1)} {
		if ok, err := h.verify(t.Context(), bad, "x"); ok || !errors.Is(err, errBadHash) {
			t.Errorf("%q: %v, %v", bad, ok, err)
		}
	}
}

func TestHasher_UnknownUsersCostTheSame(t *testing.T) {
	h := newHasher(Cost{})
	cost, salt, sum, err := parseHash(h.decoy)
	if err != nil || cost != recommended || len(salt) != saltLength || len(sum) != hashLength {
		t.Errorf("the decoy costs %+v (%v), want %+v", cost, err, recommended)
	}
}

func TestHasher_FewAtATime(t *testing.T) {
	h := newHasher(Cost{Memory: 1024, Passes: 1})
	if want := min(max(runtime.GOMAXPROCS(0)/2, 1), maxParallel); cap(h.turns) != want {
		t.Errorf("%d at a time, want %d", cap(h.turns), want)
	}
	for range cap(h.turns) {
		h.turns <- struct{}{} // all places are taken
	}
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	errs := make(chan error, maxWaiting+10)
	for range cap(errs) {
		wg.Go(func() { _, err := h.make(ctx, "x"); errs <- err })
	}
	for range 10 { // the ten beyond the queue are told so at once
		err := <-errs
		if wait := fault.RetryAfter(err); !fault.Is(err, fault.Limited) || wait != busyRetry {
			t.Errorf("beyond the queue: %v", err)
		}
	}
	leave()
	wg.Wait()
	for range maxWaiting {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("who left the queue: %v", err)
		}
	}
	if n := h.waiting.Load(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	<-h.turns
	if _, err := h.make(t.Context(), "x"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestEncode62_IsANumberOfFixedWidth(t *testing.T) {
	var zero, full [secretBytes]byte
	for i := range full {
		full[i] = 0xff
	}
	for _, b := range [][secretBytes]byte{zero, full, {31: 61}, {31: 62}, {0: 1}} {
		s := encode62(b)
		n := new(big.Int)
		for _, c := range s {
			n.Add(n.Mul(n, big.NewInt(62)), big.NewInt(int64(strings.IndexRune(base62, c))))
		}
		if len(s) != secretLength || n.Cmp(new(big.Int).SetBytes(b[:])) != 0 || !plausible(s) {
			t.Errorf("%x is written as %s", b, s)
		}
	}
}

func TestSecrets_Differ(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		for _, s := range []string{newSecret(), newID()} {
			if seen[s] {
				t.Fatalf("%s twice", s)
			}
			seen[s] = true
		}
	}
}

func TestTouches_MemoryIsBounded(t *testing.T) {
	u, now := newTouches(), time.Now()
	for i := range touchMemory*2 + 1 {
		u.due(fmt.Sprint(i), now)
	}
	if len(u.last) > touchMemory {
		t.Errorf("%d remembered", len(u.last))
	}
}

func TestNetwork_IsWhatOneCustomerHas(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "192.0.2.7:51234": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "[2001:db8:1:2::9]:443": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
		"::1": "::/64", "unix": "unix", "": "", strings.Repeat("x", 100): strings.Repeat("x", 64),
	} {
		if got := Network(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func FuzzUserName(f *testing.F) {
	for _, s := range []string{"ada", "A.B-c_9", "", "é", "a b", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := NormalName(s)
		if NormalName(n) != n && CheckUserName(n) == nil {
			t.Errorf("%q is not normal", n)
		}
		if CheckUserName(n) == nil && (len(n) == 0 || len(n) > maxUserName || strings.ContainsAny(n, " /\\\n\x00\"'<>")) {
			t.Errorf("%q was taken", n)
		}
	})
}

func FuzzParseHash(f *testing.F) {
	f.Add(format(recommended, make([]byte, 16), make([]byte, 32)))
	f.Add("$argon2id$v=19$m=1,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, s string) {
		c, salt, sum, err := parseHash(s)
		if err == nil && (c.Memory == 0 || c.Memory > maxMemory || c.Passes == 0 || c.Passes > maxPasses || len(salt) < 8 || len(sum) != hashLength) {
			t.Errorf("%q was taken", s)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	h := newHasher(Cost{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.verify(b.Context(), "", "a wrong password"); err != nil {
			b.Fatal(err)
		}
	}
}
