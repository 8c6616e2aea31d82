package metrics

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s is %v, want %v ± %v", what, got, want, within)
	}
}

func TestSeries_HasTheSameSumsInEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(3 * time.Hour)
		for _, r := range []Range{
			{Since: time.Now().Add(-14 * time.Minute)}, {Since: time.Now().Add(-14 * time.Minute), Step: time.Minute},
			{Since: time.Now().Add(-time.Hour), Step: 10 * time.Second}, {Since: time.Now().Add(-time.Hour), Step: MediumStep},
			{Since: time.Now().Add(-2 * time.Hour), Step: CoarseStep}, {Since: time.Now().Add(-2 * time.Hour), Step: 7 * time.Second},
		} {
			s := l.series("lab", r)
			cpu, tx := total(s)
			length := time.Since(s.Points[0].Time).Seconds()
			near(t, "CPU seconds of "+s.Step.String(), cpu.Seconds(), length/2, 4)
			near(t, "bytes of "+s.Step.String(), float64(tx), length*100, 1000)
			for i, p := range s.Points {
				if p.State != sandbox.Running || p.Memory != 100<<20 && i < len(s.Points)-1 {
					t.Fatalf("point %d of %s: %+v", i, s.Step, p)
				}
			}
		}
	})
}

func TestSeries_OfAMonthAndOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		began := time.Now()
		l.start("lab")
		for range 31 {
			time.Sleep(24 * time.Hour)
			l.end()
			l.run()
		}
		s := l.series("lab", Range{Since: time.Now().Add(-30 * 24 * time.Hour)})
		if s.Step != 2*time.Hour || len(s.Points) < 360 {
			t.Errorf("%d points of %s", len(s.Points), s.Step)
		}
		cpu, _ := total(s)
		length := time.Since(s.Points[0].Time)
		near(t, "CPU hours", cpu.Hours(), length.Hours()/2, 0.1)
		if len(s.Changes) == 0 || s.Changes[len(s.Changes)-1].State != sandbox.Running || s.Changes[0].Time.Before(began) {
			t.Errorf("changes %+v", s.Changes)
		}
	})
}

func TestRecorder_AsksOnlyThoseThatRunAndMarksWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.set("lab", sandbox.Creating)
		l.start("lab")
		time.Sleep(time.Minute)
		l.set("lab", sandbox.Frozen)
		asked := l.asked["lab"]
		time.Sleep(time.Minute)
		if l.asked["lab"] != asked {
			t.Errorf("a frozen sandbox was asked %d times", l.asked["lab"]-asked)
		}
		if _, ok := l.recorder.Latest("lab"); ok || l.recorder.Recent("lab") != nil {
			t.Error("a frozen sandbox has figures of now")
		}
		l.set("lab", sandbox.Running)
		time.Sleep(time.Minute)
		l.set("lab", sandbox.Sleeping)
		l.set("lab", sandbox.Asleep)
		time.Sleep(time.Minute)
		l.start("lab")
		time.Sleep(time.Minute)
		l.set("lab", sandbox.Stopping)
		l.start("lab")
		time.Sleep(time.Minute)
		l.set("lab", sandbox.Stopped)
		time.Sleep(time.Minute)
		l.start("lab")
		time.Sleep(10 * time.Second)
		var marks []Mark
		s := l.series("lab", Range{Since: time.Now().Add(-10 * time.Minute)})
		for _, c := range s.Changes {
			if c.Mark != "" {
				marks = append(marks, c.Mark)
			}
		}
		if diff := cmp.Diff([]Mark{Started, Woken, Woken, Restarted, Started}, marks); diff != "" {
			t.Error(diff)
		}
		states := map[sandbox.State]int{}
		for _, p := range s.Points {
			if p.State != sandbox.Running && p.Measured >= s.Step {
				t.Errorf("figures while %s: %+v", p.State, p)
			}
			states[p.State]++
		}
		if states[sandbox.Frozen] != 30 || states[sandbox.Asleep] != 30 || states[sandbox.Stopped] != 30 {
			t.Errorf("steps by state: %v", states)
		}
	})
}

func TestRecorder_CountsKillsForWantOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(time.Minute)
		l.mu.Lock()
		l.boxes["lab"].kills = 2
		l.mu.Unlock()
		time.Sleep(time.Minute)
		s := l.series("lab", Range{})
		kills, marks := int64(0), 0
		for _, p := range s.Points {
			kills += p.OOMKills
		}
		for _, c := range s.Changes {
			if c.Mark == OOMKilled {
				marks++
			}
		}
		if kills != 2 || marks != 1 {
			t.Errorf("%d kills, %d marks", kills, marks)
		}
		if n := l.recorder.OOMKills("lab"); n != 2 {
			t.Errorf("%d kills since the start", n)
		}
	})
}

func TestRecorder_CountersThatGoBackCountFromZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(time.Minute)
		l.mu.Lock()
		l.boxes["lab"].began = time.Now()
		l.mu.Unlock()
		time.Sleep(time.Minute)
		cpu, _ := total(l.series("lab", Range{}))
		near(t, "CPU seconds", cpu.Seconds(), 60, 2)
	})
}

func TestRecorder_KeepsFiguresWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		l.store.mu.Lock()
		l.store.full = true
		l.store.mu.Unlock()
		time.Sleep(8 * time.Minute)
		before, _ := total(l.series("lab", Range{Step: MediumStep}))
		near(t, "CPU seconds while full", before.Seconds(), 240, 2)
		l.store.mu.Lock()
		l.store.full = false
		l.store.mu.Unlock()
		time.Sleep(time.Minute)
		l.end()
		l.run()
		after, _ := total(l.series("lab", Range{Step: MediumStep}))
		near(t, "CPU seconds afterwards", after.Seconds(), 270, 2)

		l.store.mu.Lock()
		l.store.full = true
		l.store.mu.Unlock()
		time.Sleep(time.Hour)
		if n := l.recorder.waiting(); n > int(maxPending/MediumStep) {
			t.Errorf("%d batches wait in memory", n)
		}
	})
}

func TestRecorder_SaysThatASourceFailsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(time.Minute)
		l.mu.Lock()
		l.fail = errors.New("gone")
		box := l.boxes["lab"]
		delete(l.boxes, "lab")
		l.mu.Unlock()
		time.Sleep(time.Minute)
		if l.recorder.Problem() == nil {
			t.Error("no problem is told")
		}
		l.mu.Lock()
		l.fail, l.boxes["lab"] = nil, box
		l.mu.Unlock()
		time.Sleep(time.Minute)
		cpu, _ := total(l.series("lab", Range{}))
		near(t, "CPU seconds, the gap included", cpu.Seconds(), 90, 2)
		if l.recorder.Problem() != nil {
			t.Error("the problem stays")
		}
	})
}

func TestRecorder_RecentAndLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(20 * time.Minute)
		recent := l.recorder.Recent("lab")
		if len(recent) < 29 || len(recent) > 30 {
			t.Fatalf("%d points", len(recent))
		}
		for _, p := range recent {
			near(t, "cores", p.CPU, 0.5, 0.01)
		}
		p, ok := l.recorder.Latest("lab")
		if !ok || p.Memory != 100<<20 {
			t.Errorf("latest %+v %v", p, ok)
		}
	})
}

func TestRecorder_ADeletedOneKeepsItsHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(10 * time.Minute)
		l.mu.Lock()
		s := l.rows["lab"]
		delete(l.rows, "lab")
		l.mu.Unlock()
		s.State = sandbox.Deleting
		l.bus.Publish(sandbox.Event{Sandbox: s, Deleted: true})
		time.Sleep(time.Minute)
		cpu, _ := total(l.series("lab", Range{}))
		near(t, "CPU seconds", cpu.Seconds(), 300, 3)
		if len(l.recorder.tracks) != 0 {
			t.Error("it is still in memory")
		}
	})
}

func TestSeries_RefusesWhatMakesNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		time.Sleep(40 * 24 * time.Hour)
		now := time.Now()
		for field, r := range map[string]Range{
			"since": {Since: now, Until: now.Add(-time.Hour)},
			"until": {Since: now.Add(-90 * 24 * time.Hour), Until: now.Add(-60 * 24 * time.Hour)},
			"step":  {Since: now.Add(-24 * time.Hour), Step: 2 * time.Second},
		} {
			_, err := l.recorder.Series(context.Background(), "lab", r)
			var f *fault.Error
			if !errors.As(err, &f) || !fault.Is(err, fault.Invalid) || f.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		for _, step := range []time.Duration{1664400 * time.Hour, 2562047 * time.Hour, 40 * 24 * time.Hour} { // longer than all that is kept
			s, err := l.recorder.Series(context.Background(), "lab", Range{Since: now.Add(-30 * 24 * time.Hour), Step: step})
			if err != nil || len(s.Points) == 0 || len(s.Points) > 2 || s.Points[0].Time.Before(now.Add(-61*24*time.Hour)) {
				t.Errorf("a step of %s: %v, %d points", step, err, len(s.Points))
			}
		}
		s := l.series("nobody", Range{})
		for _, p := range s.Points {
			if p.Measured != 0 || p.State != "" {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func TestBetween_NonsenseStaysInBounds(t *testing.T) {
	now := time.Now()
	all := func(n int64) Usage {
		return Usage{CPU: time.Duration(n), Throttled: time.Duration(n), NetworkRx: n, NetworkTx: n, DiskRead: n, DiskWrite: n, OOMKills: n}
	}
	sum := span{from: now.UnixNano()}
	for i := range 1000 { // counters that jump from nothing to all and back
		before, after := all(0), all(math.MaxInt64)
		if i%2 == 1 {
			before, after = after, before
		}
		s, ok := between(Reading{Time: now, Usage: before}, Reading{Time: now.Add(time.Hour), Usage: after})
		if !ok {
			t.Fatal("it tells nothing")
		}
		sum.add(s)
	}
	u := sum.usage
	for _, n := range []int64{u.cpu, u.throttled, u.networkRx, u.networkTx, u.diskRead, u.diskWrite} {
		if n < 0 {
			t.Errorf("a sum has passed its end: %+v", u)
		}
	}
}

func TestRecorder_ItsOwnStartIsNoStartOfSandboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.start("lab")
		time.Sleep(time.Minute)
		l.end()
		l.run()
		time.Sleep(time.Minute)
		starts := 0
		for _, c := range l.series("lab", Range{}).Changes {
			if c.Mark != "" {
				starts++
			}
		}
		if starts != 1 {
			t.Errorf("%d starts, and it was started once", starts)
		}
	})
}
