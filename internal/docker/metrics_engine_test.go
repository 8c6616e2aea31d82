//go:build engine

package docker

import (
	"context"
	"math"
	"testing"
	"time"

	"sandboxd/internal/metrics"
)

// readOne gives the reading of one that runs.
func readOne(t *testing.T, s metrics.Source, id string) metrics.Reading {
	t.Helper()
	found, err := s.Read(t.Context(), []string{id, "0000000000000000"})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := found[id]
	if !ok || len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	return r
}

func TestSources_TellTheSameOfARealContainer(t *testing.T) {
	e := openTest(t)
	box := running(t, e, "serve")
	groups, why := NewGroups(e)
	if groups == nil {
		t.Fatal(why)
	}
	stats := NewStats(e)
	load := func() { // half a second of CPU, and some network through the loopback, which does not count
		if code, out := inside(t, e, box.ID, "", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/tmp/x bs=1M count=8 2>/dev/null"); code != 0 {
			t.Fatal(out)
		}
	}
	a, b := readOne(t, groups, box.ID), readOne(t, stats, box.ID)
	load()
	a2, b2 := readOne(t, groups, box.ID), readOne(t, stats, box.ID)
	used, told := (a2.CPU - a.CPU).Seconds(), (b2.CPU - b.CPU).Seconds()
	if used <= 0 || math.Abs(used-told) > 0.05*used+0.05 { // the readings are not of one moment
		t.Errorf("cgroup files tell %.3f s of CPU, the engine %.3f s", used, told)
	}
	if a2.MemoryLimit != box.Limits.Memory || b2.MemoryLimit != box.Limits.Memory {
		t.Errorf("limits %d and %d, want %d", a2.MemoryLimit, b2.MemoryLimit, box.Limits.Memory)
	}
	if a2.Processes < 1 || a2.Processes != b2.Processes {
		t.Errorf("processes %d and %d", a2.Processes, b2.Processes)
	}
	if a2.NetworkRx < a.NetworkRx || math.Abs(float64(a2.NetworkRx-b2.NetworkRx)) > 4096 {
		t.Errorf("received %d and %d", a2.NetworkRx, b2.NetworkRx)
	}
	if a2.Memory <= 0 || math.Abs(float64(a2.Memory-b2.Memory)) > 4<<20 {
		t.Errorf("memory %d and %d", a2.Memory, b2.Memory)
	}
}

func TestGroups_FollowARestartAndForgetWhatIsGone(t *testing.T) {
	e := openTest(t)
	box := running(t, e, "serve")
	groups, why := NewGroups(e)
	if groups == nil {
		t.Fatal(why)
	}
	before := readOne(t, groups, box.ID)
	if err := e.Stop(t.Context(), box.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	if found, err := groups.Read(t.Context(), []string{box.ID}); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v of a stopped one", found, err)
	}
	if err := e.Start(t.Context(), box.ID); err != nil {
		t.Fatal(err)
	}
	after := readOne(t, groups, box.ID)
	if !after.Time.After(before.Time) {
		t.Errorf("times %s, %s", before.Time, after.Time)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := groups.Read(ended, []string{box.ID}); err != nil {
		t.Errorf("one that was found before needs no engine: %v", err)
	}
}
