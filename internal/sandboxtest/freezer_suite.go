package sandboxtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// FreezerSubject is an engine under test that can freeze.
type FreezerSubject struct {
	RuntimeSubject
	Freezer sandbox.Freezer
	Another sandbox.Freezer                   // the Other's
	Count   func(t *testing.T, id string) int // how far a Counting program has said that it has come, also a frozen one
	Work    func(t *testing.T, id string)     // lets a Counting program work for a moment; nil when it does so by itself
}

// How the suite tells whether something stands still, and what a frozen sandbox's end may take: an engine needs about
// a tenth of a second for one that runs.
const (
	stillFor  = 250 * time.Millisecond
	quickEnd  = 4 * time.Second
	longGrace = 10 * time.Second
)

// RunFreezer checks that what open gives keeps sandbox.Freezer's contract. open is as for RunRuntime.
func RunFreezer(t *testing.T, open func(t *testing.T) FreezerSubject) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *freezerTest)
	}{
		{"FrozenStandsStillAndGoesOn", freezeStands},
		{"FreezeAndThawMayBeRepeated", freezeRepeats},
		{"FreezeOfWhatDoesNotRunIsAConflict", freezeStopped},
		{"FreezeOfTheAbsentIsNotFound", freezeAbsent},
		{"StartThawsWithoutAnotherRun", freezeStart},
		{"StopOfTheFrozenIsQuickAndInOrder", freezeStop},
		{"RemoveOfTheFrozenIsQuick", freezeRemove},
		{"WatchTellsOfFreezeAndThaw", freezeWatch},
		{"UsageGrowsWithWorkAndNeverShrinks", usageGrows},
		{"InstancesDoNotFreezeEachOther", freezeApart},
		{"HungEngineEndsWithTheCaller", freezeHung},
		{"LostEngineIsUnavailable", freezeLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
			defer cancel()
			s := open(t)
			c.run(t, &freezerTest{runtimeTest: &runtimeTest{RuntimeSubject: s.RuntimeSubject, t: t, ctx: ctx}, s: s})
		})
	}
}

// freezerTest is one test of the suite, with what every test does.
type freezerTest struct {
	*runtimeTest
	s FreezerSubject
}

// counting makes and starts a program that counts, and waits until it does.
func (f *freezerTest) counting() sandbox.ContainerSpec {
	f.t.Helper()
	b := f.made(Counting)
	f.start(b.ID)
	f.beyond(b.ID, 2)
	return b
}

// beyond waits until the program of id has counted further than n.
func (f *freezerTest) beyond(id string, n int) {
	f.t.Helper()
	for f.s.Count(f.t, id) <= n {
		if f.ctx.Err() != nil {
			f.t.Fatalf("it never counts beyond %d", n)
		}
	}
}

// still checks that the program of id does not count, and gives how far it is.
func (f *freezerTest) still(id string) int {
	f.t.Helper()
	n := f.s.Count(f.t, id)
	for began := time.Now(); time.Since(began) < stillFor; {
		if i := f.the(id); !i.Running || !i.Frozen {
			f.t.Fatalf("frozen, it is %+v", i)
		}
	}
	if now := f.s.Count(f.t, id); now != n {
		f.t.Errorf("frozen, it counts from %d to %d", n, now)
	}
	return n
}

func (f *freezerTest) freeze(id string) {
	f.t.Helper()
	if err := f.s.Freezer.Freeze(f.ctx, id); err != nil {
		f.t.Fatalf("freeze: %v", err)
	}
}

func (f *freezerTest) thaw(id string) {
	f.t.Helper()
	if err := f.s.Freezer.Thaw(f.ctx, id); err != nil {
		f.t.Fatalf("thaw: %v", err)
	}
}

func (f *freezerTest) usage(id string) sandbox.Usage {
	f.t.Helper()
	u, err := f.s.Freezer.Usage(f.ctx, id)
	if err != nil {
		f.t.Fatalf("usage: %v", err)
	}
	return u
}

func freezeStands(t *testing.T, f *freezerTest) {
	b := f.counting()
	before := f.the(b.ID)
	f.freeze(b.ID)
	n := f.still(b.ID)
	frozen := before
	if frozen.Frozen = true; f.the(b.ID) != frozen {
		t.Errorf("frozen, it is %+v, want %+v", f.the(b.ID), frozen)
	}
	f.thaw(b.ID)
	if got := f.the(b.ID); got != before {
		t.Errorf("thawed, it is %+v, want %+v", got, before)
	}
	f.beyond(b.ID, n) // from where it was: a program that began anew would be told by its start
	f.freeze(b.ID)
	f.still(b.ID)
}

func freezeRepeats(t *testing.T, f *freezerTest) {
	b := f.counting()
	f.thaw(b.ID) // it is not frozen
	f.beyond(b.ID, f.s.Count(t, b.ID))
	f.freeze(b.ID)
	f.freeze(b.ID)
	n := f.still(b.ID)
	f.thaw(b.ID)
	f.thaw(b.ID)
	f.beyond(b.ID, n)
	if i := f.the(b.ID); !i.Running || i.Frozen {
		t.Errorf("thawed, it is %+v", i)
	}
}

func freezeStopped(t *testing.T, f *freezerTest) {
	b := f.made(Patient)
	check := func(when string) {
		t.Helper()
		f.kind(f.s.Freezer.Freeze(f.ctx, b.ID), fault.Conflict)
		f.kind(f.s.Freezer.Thaw(f.ctx, b.ID), fault.Conflict)
		_, err := f.s.Freezer.Usage(f.ctx, b.ID)
		f.kind(err, fault.NotFound)
		if i := f.the(b.ID); i.Running || i.Frozen {
			t.Errorf("%s, it is %+v", when, i)
		}
	}
	check("never started")
	f.start(b.ID)
	f.stop(b.ID, longGrace)
	check("stopped")
	f.start(b.ID)
	f.freeze(b.ID)
	f.stop(b.ID, longGrace)
	check("frozen and stopped")
	f.start(b.ID)
	if i := f.the(b.ID); !i.Running || i.Frozen {
		t.Errorf("started again, it is %+v", i)
	}
}

func freezeAbsent(t *testing.T, f *freezerTest) {
	partial := f.Spec(Patient)
	f.Cut(t, partial)
	for _, id := range []string{sandbox.NewID(), partial.ID} {
		f.kind(f.s.Freezer.Freeze(f.ctx, id), fault.NotFound)
		f.kind(f.s.Freezer.Thaw(f.ctx, id), fault.NotFound)
		_, err := f.s.Freezer.Usage(f.ctx, id)
		f.kind(err, fault.NotFound)
	}
}

func freezeStart(t *testing.T, f *freezerTest) {
	b := f.counting()
	before := f.the(b.ID)
	f.freeze(b.ID)
	n := f.still(b.ID)
	f.start(b.ID)
	f.beyond(b.ID, n)
	if got := f.the(b.ID); got != before {
		t.Errorf("started, it is %+v, want %+v", got, before)
	}
}

func freezeStop(t *testing.T, f *freezerTest) {
	b := f.counting()
	f.freeze(b.ID)
	began := time.Now()
	f.stop(b.ID, longGrace)
	if took := time.Since(began); took > quickEnd {
		t.Errorf("it took %s", took)
	}
	if i := f.the(b.ID); i.Running || i.Frozen || i.ExitCode != 0 {
		t.Errorf("stopped, it is %+v", i)
	}
}

func freezeRemove(t *testing.T, f *freezerTest) {
	b := f.counting()
	f.freeze(b.ID)
	began := time.Now()
	f.remove(b.ID)
	if took := time.Since(began); took > quickEnd {
		t.Errorf("it took %s", took)
	}
	f.empty()
}

func freezeWatch(t *testing.T, f *freezerTest) {
	b := f.counting()
	w := f.watch()
	want := f.the(b.ID)
	frozen := want
	frozen.Frozen = true
	f.freeze(b.ID)
	w.until(t, "it is frozen", func(all []sandbox.Instance) bool { return slices.Contains(all, frozen) })
	f.thaw(b.ID)
	w.until(t, "it is thawed", func(all []sandbox.Instance) bool { return all[len(all)-1] == want })
	got := slices.Compact(w.told()) // the same may be told twice,
	if len(got) > 0 && got[0] == want {
		got = got[1:] // and its start late
	}
	if !slices.Equal(got, []sandbox.Instance{frozen, want}) {
		t.Errorf("told %+v, want frozen and then thawed %+v", got, want)
	}
	f.freeze(b.ID)
	f.stop(b.ID, longGrace)
	w.until(t, "it has ended", func(all []sandbox.Instance) bool { return ended(all, b.ID) })
	if last := w.told()[len(w.told())-1]; last.Frozen {
		t.Errorf("what has ended is told to be frozen: %+v", last)
	}
}

func usageGrows(t *testing.T, f *freezerTest) {
	b := f.counting()
	last := f.usage(b.ID)
	for range 5 {
		if f.s.Work != nil {
			f.s.Work(t, b.ID)
		}
		f.beyond(b.ID, f.s.Count(t, b.ID)+3)
		now := f.usage(b.ID)
		if now.CPU <= last.CPU || now.Network < last.Network || now.Disk < last.Disk || now.Memory <= 0 {
			t.Errorf("after work, usage goes from %+v to %+v", last, now)
		}
		last = now
	}
	f.freeze(b.ID)
	last = f.usage(b.ID)
	f.still(b.ID)
	if now := f.usage(b.ID); now.CPU != last.CPU || now.Network < last.Network {
		t.Errorf("frozen, usage goes from %+v to %+v", last, now)
	}
	f.stop(b.ID, longGrace)
	f.start(b.ID)
	if now := f.usage(b.ID); now.CPU >= last.CPU {
		t.Errorf("started anew, it has used %+v, and before %+v", now, last)
	}
}

func freezeApart(t *testing.T, f *freezerTest) {
	b := f.made(Patient)
	f.start(b.ID)
	_, err := f.s.Another.Usage(f.ctx, b.ID)
	f.kind(err, fault.NotFound)
	f.kind(f.s.Another.Freeze(f.ctx, b.ID), fault.NotFound)
	if i := f.the(b.ID); i.Frozen {
		t.Errorf("the other instance has frozen it: %+v", i)
	}
	f.freeze(b.ID)
	f.kind(f.s.Another.Thaw(f.ctx, b.ID), fault.NotFound)
	if i := f.the(b.ID); !i.Frozen {
		t.Errorf("the other instance has thawed it: %+v", i)
	}
}

// calls are all that can be asked of a freezer.
func (f *freezerTest) calls(id string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"freeze": func(ctx context.Context) error { return f.s.Freezer.Freeze(ctx, id) },
		"thaw":   func(ctx context.Context) error { return f.s.Freezer.Thaw(ctx, id) },
		"usage":  func(ctx context.Context) error { _, err := f.s.Freezer.Usage(ctx, id); return err },
	}
}

func freezeHung(t *testing.T, f *freezerTest) {
	b := f.counting()
	resume := f.Hang()
	for name, call := range f.calls(b.ID) {
		ctx, cancel := context.WithTimeout(f.ctx, 150*time.Millisecond)
		if err := call(ctx); !fault.Is(err, fault.Timeout) {
			t.Errorf("%s: got %v, want a Timeout", name, err)
		}
		cancel()
		ctx, cancel = context.WithCancel(f.ctx)
		cancel()
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	resume()
	f.freeze(b.ID)
	f.thaw(b.ID)
}

func freezeLost(t *testing.T, f *freezerTest) {
	b := f.counting()
	back := f.Lose()
	for name, call := range f.calls(b.ID) {
		if err := call(f.ctx); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", name, err)
		}
	}
	back()
	f.freeze(b.ID)
	f.thaw(b.ID)
}
