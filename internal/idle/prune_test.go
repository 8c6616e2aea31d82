package idle

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// remembered counts the ids that a tracker remembers.
func (t *Tracker) remembered() int {
	n := 0
	t.each(func(string, *clock) { n++ })
	return n
}

func TestPrune_NamesOfNoSandboxAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := New()
		for i := range 1000 {
			tracker.Begin("scan-"+strconv.Itoa(i), Use{Kind: Web}).End()
		}
		asleep := tracker.Begin("asleep", Use{Kind: Web})
		asleep.End()
		tracker.note("awake")
		tracker.Begin("busy", Use{Kind: Exec})
		tracker.hold(Hold{ID: "1", SandboxID: "held", Expires: time.Now().Add(3 * time.Hour)})
		for range 3 {
			time.Sleep(30 * time.Minute)
			tracker.Heartbeat("asleep", "a page posts to one that is asleep")
		}
		tracker.prune()
		if got := tracker.remembered(); got != 4 {
			t.Errorf("%d names are remembered, want asleep, awake, busy and held", got)
		}
		time.Sleep(2 * time.Hour)
		tracker.setExisting(map[string]bool{})
		tracker.prune()
		if got := tracker.remembered(); got != 2 {
			t.Errorf("%d names are remembered, want busy, and held for an hour after its hold", got)
		}
	})
}
