//go:build engine

package link_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// keptWorldOf is a container's guest.
func keptWorldOf(t testing.TB, b *engineBox) *keptWorld {
	first := true
	return &keptWorld{box: b.name, open: func() (*link.Hub, func()) {
		if !first {
			b.openHub(t, wire.Setup{})
		}
		first = false
		return b.hub, b.stop
	}}
}

// mostResident gives the most memory that the guest has ever had, in MiB. It is the parent of its commands.
func (b *engineBox) mostResident(t *testing.T) float64 {
	t.Helper()
	r := run(t, b.session(t), sh("grep VmHWM /proc/$PPID/status"))
	f := strings.Fields(r.stdout.String())
	if len(f) != 3 {
		t.Fatalf("got %q, %q", r.stdout.String(), r.stderr.String())
	}
	kib, err := strconv.Atoi(f[1])
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}

// mostKept is what a guest may have that keeps a program which writes much, in MiB.
const mostKept = 16

func TestContainer_KeptProcessOutlivesSandboxd(t *testing.T) {
	b := startBox(t, wire.Setup{}, nil)
	w := keptWorldOf(t, b)
	w.start()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	pourThrough(ctx, t, w, 20<<20, 30, 5)
	most := b.mostResident(t)
	t.Logf("guest: at most %.1f MiB resident", most)
	if most > mostKept {
		t.Errorf("the guest had %.1f MiB", most)
	}
}

func TestContainer_KeptProcessThatNobodyReadsTakesDiskAndNoMemory(t *testing.T) {
	b := startBox(t, wire.Setup{}, nil)
	s := b.session(t)
	for i := range 4 {
		if err := s.StartKept(testContext(t), keptStart(strconv.Itoa(i), "yes 'a line of some length that is written again and again'")); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx := testContext(t); !allFull(t, s); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("they are not held up")
		}
	}
	if most := b.mostResident(t); most > mostKept {
		t.Errorf("the guest had %.1f MiB", most)
	}
}

// allFull says whether all kept processes have written as much as is kept.
func allFull(t *testing.T, s *link.Session) bool {
	t.Helper()
	all, err := s.ListKept(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Last < wire.MaxKeptOutput {
			return false
		}
	}
	return true
}
