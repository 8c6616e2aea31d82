package tools

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestDesks_AreForgottenADayAfterTheirLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		s.desk(Seat{Key: "left"})
		used, busy := s.desk(Seat{Key: "used"}), s.desk(Seat{Key: "busy"})
		busy.add(&command{done: make(chan struct{})})
		time.Sleep(deskKept)
		if s.desk(Seat{Key: "used"}) != used {
			t.Error("one that is used was forgotten")
		}
		time.Sleep(time.Second)
		s.desk(Seat{Key: "new"})
		if got := slices.Sorted(maps.Keys(s.desks)); !slices.Equal(got, []string{" busy", " new", " used"}) {
			t.Errorf("there are %q", got)
		}
	})
}
