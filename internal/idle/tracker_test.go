package idle_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/event"
	"sandboxd/internal/idle"
)

// ago gives a status's Idle as how long ago that was.
func ago(t *testing.T, s idle.Status) time.Duration {
	t.Helper()
	if len(s.Because) > 0 {
		t.Fatalf("in use by %v", s.Because)
	}
	return time.Since(s.Idle)
}

func TestBegin_InUseUntilItsEndHoweverQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, began := idle.New(), time.Now()
		lease := tracker.Begin(box, command)
		time.Sleep(72 * time.Hour)
		want := []idle.Reason{{Kind: idle.Exec, Detail: "make test", Since: began}}
		if diff := cmp.Diff(want, tracker.Status(box).Because); diff != "" {
			t.Errorf("reasons differ (-want +got):\n%s", diff)
		}
		lease.End()
		time.Sleep(time.Minute)
		lease.End()
		lease.Touch(false)
		if got := ago(t, tracker.Status(box)); got != time.Minute {
			t.Errorf("idle for %s, want 1m since the first End", got)
		}
	})
}

func TestBegin_AModelCallCountsUntilItsEndAndAttendsNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, began := idle.New(), time.Now()
		tracker.Touch(box, command)
		time.Sleep(idle.Attention)
		lease := tracker.Begin(box, idle.Use{Kind: idle.Model, Detail: "best"})
		time.Sleep(time.Hour)
		want := []idle.Reason{{Kind: idle.Model, Detail: "best", Since: began.Add(idle.Attention)}}
		if diff := cmp.Diff(want, tracker.Status(box).Because); diff != "" {
			t.Errorf("reasons differ (-want +got):\n%s", diff)
		}
		lease.End()
		time.Sleep(time.Minute)
		if got := ago(t, tracker.Status(box)); got != time.Minute {
			t.Errorf("idle for %s, want since the call's end", got)
		}
		if tracker.Counts(box) {
			t.Error("a page that has been forgotten counts again because of a call")
		}
	})
}

func TestWatch_InUseOnlyAroundItsTouches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		lease := tracker.Watch(box, terminal)
		time.Sleep(idle.Pulse - 1)
		if got := tracker.Status(box); len(got.Because) != 1 || !got.Idle.IsZero() {
			t.Errorf("opening it is no use: %+v", got)
		}
		time.Sleep(time.Hour)
		if got := ago(t, tracker.Status(box)); got != time.Hour+idle.Pulse-1 {
			t.Errorf("idle for %s, want since it was opened", got)
		}
		lease.Touch(false)
		lease.End()
		if got := ago(t, tracker.Status(box)); got != 0 {
			t.Errorf("idle for %s, want since the touch", got)
		}
		time.Sleep(time.Minute)
		if got := ago(t, tracker.Status(box)); got != time.Minute {
			t.Errorf("idle for %s, want since the touch", got)
		}
	})
}

func TestUnattended_CountsForAnHourAfterAttendedUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		page := idle.Use{Kind: idle.Web, Detail: "GET /poll", Unattended: true}
		tracker.Touch(box, page) // nothing was attended yet: it counts from when the box was first seen
		time.Sleep(idle.Attention)
		if !tracker.Counts(box) {
			t.Error("it does not count within the hour since the box was first seen")
		}
		time.Sleep(time.Nanosecond)
		tracker.Touch(box, page)
		if got := ago(t, tracker.Status(box)); tracker.Counts(box) || got != idle.Attention+1 {
			t.Errorf("it counts after the hour: idle for %s", got)
		}
		tracker.Touch(box, idle.Use{Kind: idle.Web, Detail: "GET /"})
		poll := tracker.Begin(box, page)
		time.Sleep(idle.Attention)
		if got := tracker.Status(box).Because; len(got) != 1 {
			t.Errorf("reasons after an hour are %v, want the open poll", got)
		}
		time.Sleep(time.Hour)
		if got := ago(t, tracker.Status(box)); got != time.Hour {
			t.Errorf("idle for %s, want since the hour was over", got)
		}
		poll.End()
		if got := ago(t, tracker.Status(box)); got != time.Hour {
			t.Errorf("idle for %s after its end, want since the hour was over", got)
		}
	})
}

func TestUnattended_WorkAndHoldsMakeNoPageAttended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for range 8 {
			tracker.Touch(box, idle.Use{Kind: idle.Work, Detail: "2.0 cores"})
			time.Sleep(10 * time.Minute)
		}
		if tracker.Counts(box) {
			t.Error("a page counts because something works")
		}
		if got := ago(t, tracker.Status(box)); got != 10*time.Minute {
			t.Errorf("idle for %s, want since the last work", got)
		}
	})
}

func TestReset_StartsAfreshAndIsNotAttended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		tracker.Touch(box, idle.Use{Kind: idle.Files})
		time.Sleep(2 * time.Hour)
		tracker.Reset(box)
		if got := ago(t, tracker.Status(box)); got != 0 || tracker.Counts(box) {
			t.Errorf("idle for %s, pages count: %v", got, tracker.Counts(box))
		}
	})
}

func TestForget_LeavesNothingButWhatHasNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for range 9 {
			tracker.Heartbeat(box, "key")
			time.Sleep(time.Minute)
		}
		lease := tracker.Begin(box, command)
		tracker.Forget(box)
		if got := tracker.Status(box).Because; len(got) != 1 {
			t.Errorf("a use of the next sandbox of that name is lost: %v", got)
		}
		lease.End()
		time.Sleep(time.Hour)
		tracker.Forget(box)
		if got := ago(t, tracker.Status(box)); got != 0 || tracker.Heartbeat(box, "key") {
			t.Errorf("it is remembered: idle for %s", got)
		}
		tracker.Forget("never heard of")
	})
}

func TestHeartbeat_IsOfOneKeyInOneSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		for range 5 {
			time.Sleep(time.Minute)
			tracker.Heartbeat(box, "post")
		}
		time.Sleep(time.Minute)
		if !tracker.Heartbeat(box, "post") || tracker.Heartbeat(box, "other") || tracker.Heartbeat("other", "post") {
			t.Error("it is not what comes at equal pauses that is a heartbeat, or not that alone")
		}
	})
}

func TestStatus_AlikeReasonsAreOneAndTheOldestIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, began := idle.New(), time.Now()
		first := tracker.Begin(box, page)
		time.Sleep(time.Second)
		tracker.Begin(box, command)
		tracker.Begin(box, page)
		tracker.Touch(box, idle.Use{Kind: idle.Stream, Detail: "events"})
		want := []idle.Reason{
			{Kind: idle.Web, Detail: "GET /lab", Since: began},
			{Kind: idle.Exec, Detail: "make test", Since: began.Add(time.Second)},
			{Kind: idle.Stream, Detail: "events", Since: began.Add(time.Second)},
		}
		if diff := cmp.Diff(want, tracker.Status(box).Because); diff != "" {
			t.Errorf("reasons differ (-want +got):\n%s", diff)
		}
		first.End()
		if got := tracker.Status(box).Because[0]; got.Since != began.Add(time.Second) {
			t.Errorf("the reason %v is of a lease that has ended", got)
		}
	})
}

func TestStatus_IsBoundedWhateverItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, began := idle.New(), time.Now()
		tracker.Begin(box, idle.Use{Kind: idle.Web, Detail: "GET /\x1b[31m\u202e\n" + strings.Repeat("é", 200) + "\xff"})
		for i := range 10_000 {
			time.Sleep(time.Nanosecond)
			tracker.Begin(box, idle.Use{Kind: idle.Web, Detail: fmt.Sprint("GET /", i)})
		}
		tracker.Touch(box, idle.Use{Kind: "none of ours", Detail: "?"})
		got := tracker.Status(box).Because
		if len(got) != 16 || got[0].Since != began || !slices.IsSortedFunc(got, func(a, b idle.Reason) int { return a.Since.Compare(b.Since) }) {
			t.Errorf("%d reasons, the first %+v; want the 16 oldest in order", len(got), got[0])
		}
		if d := got[0].Detail; len(d) > 120 || strings.ContainsAny(d, "\x1b\n\u202e") || !strings.HasPrefix(d, "GET /[31m é") {
			t.Errorf("detail %q", d)
		}
	})
}

func TestSubscribe_TellsOfKindsAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		sub := tracker.Subscribe()
		defer sub.Close()
		for range 100 {
			tracker.Begin(box, page).End()
			tracker.Begin(box, command).End()
		}
		if got := drain(sub); got != 1 {
			t.Errorf("%d changes in no time, want 1", got)
		}
		time.Sleep(2 * time.Second)
		tracker.Begin(box, command)
		tracker.Begin("other", page)
		if got := drain(sub); got != 2 {
			t.Errorf("%d changes, want one of each sandbox", got)
		}
		time.Sleep(2 * time.Second)
		tracker.Begin(box, command)
		if got := drain(sub); got != 0 {
			t.Errorf("%d changes for a kind that was in use already", got)
		}
	})
}

func drain(sub *event.Subscription[idle.Change]) int {
	n := 0
	for {
		select {
		case <-sub.C:
			n++
		default:
			return n
		}
	}
}

func TestTracker_ManyAtOnceLeaveNothingBehind(t *testing.T) {
	tracker := idle.New()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 500 {
				name := "box-" + strconv.Itoa((i+j)%5)
				one, two := tracker.Begin(name, page), tracker.Watch(name, terminal)
				two.Touch(j%2 == 0)
				tracker.Touch(name, feed)
				tracker.Status(name)
				tracker.Heartbeat(name, strconv.Itoa(j%20))
				if j%50 == 0 {
					tracker.Forget(name)
				}
				one.End()
				two.End()
			}
		})
	}
	all.Wait()
	for i := range 5 {
		for _, r := range tracker.Status("box-" + strconv.Itoa(i)).Because {
			if r.Kind != idle.Stream { // a moment that is less than a pulse ago
				t.Errorf("box-%d is in use by %v", i, r)
			}
		}
	}
}

func TestDismiss_NothingUnattendedCountsUntilTheNextAttendedUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		poll := idle.Use{Kind: idle.Web, Detail: "GET /wait", Unattended: true}
		tracker.Touch(box, page)
		running, waiting := tracker.Begin(box, command), tracker.Begin(box, poll)
		time.Sleep(10 * time.Minute)
		tracker.Dismiss(box)
		running.End() // cut by the stop
		time.Sleep(time.Minute)
		if tracker.Counts(box) {
			t.Error("a page counts")
		}
		if got := ago(t, tracker.Status(box)); got != time.Minute {
			t.Errorf("idle for %s, want since it was dismissed", got)
		}
		waiting.End()
		tracker.Begin(box, poll).End()
		tracker.Touch(box, poll)
		tracker.Touch(box, idle.Use{Kind: idle.Work})
		tracker.Reset(box)
		if tracker.Counts(box) {
			t.Error("what nobody does makes it attended")
		}
		tracker.Touch(box, page)
		if !tracker.Counts(box) {
			t.Error("a page does not count with its person back")
		}
	})
}

func TestWatch_IsAReasonSinceItsPresentStretch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		lease := tracker.Watch(box, terminal)
		since := func() time.Time {
			t.Helper()
			because := tracker.Status(box).Because
			if len(because) != 1 {
				t.Fatalf("in use by %+v", because)
			}
			return because[0].Since
		}
		if opened := time.Now(); !since().Equal(opened) {
			t.Errorf("since %s, want since it was opened", since())
		}
		time.Sleep(5 * time.Minute) // quiet
		typed := time.Now()
		for range 20 {
			lease.Touch(false)
			if !since().Equal(typed) {
				t.Errorf("since %s, want since the first key", since().Sub(typed))
			}
			time.Sleep(idle.Pulse - time.Second)
		}
	})
}

func TestDismiss_AUseThatWakesItMeanwhileCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := idle.New()
		again := tracker.Dismiss("a")
		time.Sleep(time.Millisecond)
		page := tracker.Begin("a", idle.Use{Kind: idle.Web}) // it waits for the freeze to end, and thaws
		time.Sleep(time.Millisecond)
		again()
		tracker.Reset("a")
		page.End()
		time.Sleep(time.Millisecond)
		if !tracker.Counts("a") {
			t.Error("what the page sends by itself does not count, though a person has just opened it")
		}
	})
}
