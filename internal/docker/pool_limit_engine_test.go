//go:build engine

package docker

import (
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func TestPool_ALimitIsChangedWhileTheSandboxRuns(t *testing.T) {
	plain := openTest(t)
	pool := testPool(t)
	e := openTest(t, withPool(pool), func(c *Config) { c.Instance = plain.c.Instance })
	b := running(t, e, "patient")
	fill := func(id string) (int, string) {
		return inside(t, e, id, "0", "head -c 50000000 /dev/zero > /home/agent/big && sync /home/agent/big")
	}
	must(t, e.LimitHome(t.Context(), b.ID, 20<<20))
	if code, out := fill(b.ID); code == 0 || !strings.Contains(out, "quota") {
		t.Errorf("limited: %d: %s", code, out)
	}
	must(t, e.LimitHome(t.Context(), b.ID, 0), e.LimitHome(t.Context(), b.ID, 0))
	if code, out := fill(b.ID); code != 0 {
		t.Errorf("its limit lifted: %d: %s", code, out)
	}
	if err := e.LimitHome(t.Context(), sandbox.NewID(), 20<<20); !fault.Is(err, fault.NotFound) {
		t.Errorf("of none: %v", err)
	}
	old := running(t, plain, "old")
	for _, engine := range []*Engine{plain, e} {
		if err := engine.LimitHome(t.Context(), old.ID, 20<<20); !fault.Is(err, fault.Conflict) {
			t.Errorf("of a plain volume: %v", err)
		}
	}
	stopped(t, e, old.ID)
	copyIn(t, e, old.ID, snapshotOf(t, e, old.ID))
	placeOf(t, e, old.ID, inNext)
	must(t, e.LimitHome(t.Context(), old.ID, 20<<20))
	if limit, err := pool.LimitOf(e.resource(old.ID) + partNext); err != nil || limit != 20<<20 {
		t.Errorf("the home that it will have is limited to %d (%v)", limit, err)
	}
}
