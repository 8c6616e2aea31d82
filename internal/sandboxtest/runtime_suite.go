package sandboxtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Behaviour is what the program of a box does once it is started.
type Behaviour string

// The behaviours. A program that is none of the special ones runs until it is asked to end, and then ends with 0.
const (
	Patient  Behaviour = "patient"
	Brief    Behaviour = "brief"    // ends at once with exit code 3
	Greedy   Behaviour = "greedy"   // takes memory until there is no more
	Deaf     Behaviour = "deaf"     // does not end when it is asked to
	Counting Behaviour = "counting" // counts from 1, up to a hundred a second, and works a little for each
)

// BriefExit is the exit code of a Brief program.
const BriefExit = 3

// RuntimeSubject is an engine under test, with two instances on it and the means to trouble it.
type RuntimeSubject struct {
	Runtime sandbox.Runtime
	Other   sandbox.Runtime                              // of another instance on the same engine
	Spec    func(b Behaviour) sandbox.ContainerSpec      // of a fresh sandbox whose program behaves so
	Cut     func(t *testing.T, b sandbox.ContainerSpec)  // leaves of b what a create leaves that is cut off half-way
	Destroy func(t *testing.T, id string)                // removes the container behind Runtime's back, not the volume
	Image   func(t *testing.T) (ref string, move func()) // gives Spec's image another reference, and what has that name another image
	Freeze  func(t *testing.T, id string)
	Limits  func(t *testing.T, id string) sandbox.Limits // those that its container has
	Listens func(t *testing.T, id string) bool           // tells whether a Patient program can be asked to end: an engine says sooner that it runs
	Hang    func() (resume func())                       // the engine takes calls of Runtime and does not answer
	Lose    func() (back func())                         // the engine is away for Runtime
}

// suiteLimit bounds what a suite waits for; a healthy engine takes a fraction of it.
const suiteLimit = 60 * time.Second

// RunRuntime checks that what open gives keeps sandbox.Runtime's contract. open is called for each test, and cleans up
// with t.Cleanup: all that the test has made of both instances.
func RunRuntime(t *testing.T, open func(t *testing.T) RuntimeSubject) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *runtimeTest)
	}{
		{"CreateMakesAndDoesNotStart", createMakes},
		{"CreateFinishesWhatWasCutOff", createFinishes},
		{"CreateOfAMissingImageIsNotFound", createMissingImage},
		{"CreateThatIsLeftAppearsNoMoreOnceRemoved", createLeft},
		{"CreateManyAtOnce", createMany},
		{"StartAndStopMayBeRepeated", startStop},
		{"StartThaws", startThaws},
		{"StartOfTheAbsentIsNotFound", startAbsent},
		{"StopEndsTheDeafAfterItsGrace", stopDeaf},
		{"ResizeChangesWhatIsAndStays", resizes},
		{"StopAndRemoveOfTheAbsentIsNoError", stopRemoveAbsent},
		{"RemoveTakesEverything", removeAll},
		{"RemoveFinishesWhatWasCutOff", removeCutOff},
		{"ListTellsHowItEnded", listEnds},
		{"ListTellsWhatIsLeftOfTheDestroyed", listDestroyed},
		{"ListTellsOfAnImageThatWasMadeAnew", listMoved},
		{"WatchMissesNothing", watchAll},
		{"WatchTellsHowItEnded", watchEnds},
		{"WatchEndsWithItsContext", watchContext},
		{"InstancesDoNotTouchEachOther", apart},
		{"HungEngineEndsWithTheCaller", hung},
		{"LostEngineIsUnavailable", lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
			defer cancel()
			c.run(t, &runtimeTest{RuntimeSubject: open(t), t: t, ctx: ctx})
		})
	}
}

// runtimeTest is one test of the suite, with what every test does.
type runtimeTest struct {
	RuntimeSubject
	t   *testing.T
	ctx context.Context
}

func (r *runtimeTest) create(b sandbox.ContainerSpec) {
	r.t.Helper()
	if err := r.Runtime.Create(r.ctx, b); err != nil {
		r.t.Fatalf("create: %v", err)
	}
}

func (r *runtimeTest) start(id string) {
	r.t.Helper()
	if err := r.Runtime.Start(r.ctx, id); err != nil {
		r.t.Fatalf("start: %v", err)
	}
}

// listens waits until a Patient program can be asked to end.
func (r *runtimeTest) listens(id string) {
	r.t.Helper()
	r.until("it listens", func() bool { return r.Listens(r.t, id) })
}

func (r *runtimeTest) until(what string, cond func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.t.Fatalf("it is never seen that %s", what)
		}
	}
}

func (r *runtimeTest) stop(id string, grace time.Duration) {
	r.t.Helper()
	if err := r.Runtime.Stop(r.ctx, id, grace); err != nil {
		r.t.Fatalf("stop: %v", err)
	}
}

func (r *runtimeTest) remove(id string) {
	r.t.Helper()
	if err := r.Runtime.Remove(r.ctx, id); err != nil {
		r.t.Fatalf("remove: %v", err)
	}
}

func (r *runtimeTest) made(b Behaviour) sandbox.ContainerSpec {
	r.t.Helper()
	box := r.Spec(b)
	r.create(box)
	return box
}

func (r *runtimeTest) list() []sandbox.Instance {
	r.t.Helper()
	all, err := r.Runtime.List(r.ctx)
	if err != nil {
		r.t.Fatalf("list: %v", err)
	}
	return all
}

// the gives what List has of id; it must be there.
func (r *runtimeTest) the(id string) sandbox.Instance {
	r.t.Helper()
	all := r.list()
	n := slices.IndexFunc(all, func(i sandbox.Instance) bool { return i.ID == id })
	if n < 0 {
		r.t.Fatalf("the list does not have %s: %+v", id, all)
	}
	return all[n]
}

// becomes waits until List says whether id, which runs, is frozen: a busy engine can list the state before for a moment.
func (r *runtimeTest) becomes(id string, frozen bool) {
	r.t.Helper()
	r.until(fmt.Sprintf("it runs and is frozen=%t", frozen), func() bool {
		i := r.the(id)
		return i.Running && i.Frozen == frozen
	})
}

func (r *runtimeTest) empty() {
	r.t.Helper()
	if all := r.list(); len(all) != 0 {
		r.t.Fatalf("something is left: %+v", all)
	}
}

func (r *runtimeTest) kind(err error, want fault.Kind) {
	r.t.Helper()
	if !fault.Is(err, want) {
		r.t.Errorf("got %v (%v), want an error of kind %v", err, fault.KindOf(err), want)
	}
}

func createMakes(t *testing.T, r *runtimeTest) {
	b := r.Spec(Patient)
	b.Template = "" // a plain image
	r.create(b)
	r.create(b)
	want := sandbox.Instance{ID: b.ID, Name: b.Name, Image: b.Image}
	if all := r.list(); len(all) != 1 || all[0] != want {
		t.Errorf("got %+v, want %+v alone", all, want)
	}
	b2 := r.made(Patient)
	if i := r.the(b2.ID); i.Template != b2.Template || i.Name != b2.Name {
		t.Errorf("got %+v of %+v", i, b2)
	}
}

func createFinishes(t *testing.T, r *runtimeTest) {
	b := r.Spec(Patient)
	r.Cut(t, b)
	if i := r.the(b.ID); !i.Partial || i.Running || i.Name != b.Name {
		t.Errorf("cut off, it is %+v", i)
	}
	r.kind(r.Runtime.Start(r.ctx, b.ID), fault.NotFound)
	r.create(b)
	if i := r.the(b.ID); i.Partial {
		t.Errorf("finished, it is %+v", i)
	}
	r.start(b.ID)
	if i := r.the(b.ID); !i.Running {
		t.Errorf("started, it is %+v", i)
	}
}

func createMissingImage(_ *testing.T, r *runtimeTest) {
	b := r.Spec(Patient)
	b.Image = MissingImage
	r.kind(r.Runtime.Create(r.ctx, b), fault.NotFound)
	r.remove(b.ID)
	r.empty()
}

// MissingImage is an image that no engine under test has.
const MissingImage = "sandboxd-test/no-such-image:none"

// createLeft leaves creates at various moments. Whatever the engine made of them, nothing comes after the remove.
func createLeft(t *testing.T, r *runtimeTest) {
	for n := range 8 {
		b := r.Spec(Patient)
		ctx, cancel := context.WithTimeout(r.ctx, time.Duration(n)*4*time.Millisecond)
		err := r.Runtime.Create(ctx, b)
		if err != nil && !fault.Is(err, fault.Timeout) {
			t.Errorf("a create that is left: %v", err)
		}
		cancel()
		r.remove(b.ID)
	}
	r.empty()
	r.made(Patient)
}

func createMany(t *testing.T, r *runtimeTest) {
	const many = 20
	boxes := make([]sandbox.ContainerSpec, many)
	errs := make([]error, many)
	var all sync.WaitGroup
	for n := range many {
		boxes[n] = r.Spec(Patient)
		all.Go(func() {
			if errs[n] = r.Runtime.Create(r.ctx, boxes[n]); errs[n] == nil {
				errs[n] = r.Runtime.Start(r.ctx, boxes[n].ID)
			}
		})
	}
	all.Wait()
	for n, err := range errs {
		if err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	for _, i := range r.list() {
		if !i.Running || i.Partial {
			t.Errorf("got %+v", i)
		}
	}
	if got := len(r.list()); got != many {
		t.Errorf("%d are listed", got)
	}
	for _, b := range boxes {
		all.Go(func() {
			if err := r.Runtime.Remove(r.ctx, b.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r.empty()
}

func startStop(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	r.start(b.ID)
	first := r.the(b.ID)
	if !first.Running || first.Started.IsZero() {
		t.Errorf("started, it is %+v", first)
	}
	r.start(b.ID)
	if again := r.the(b.ID); again != first {
		t.Errorf("the second start changed %+v to %+v", first, again)
	}
	r.listens(b.ID)
	r.stop(b.ID, 5*time.Second)
	if i := r.the(b.ID); i.Running || i.Partial || i.OOM || i.ExitCode != 0 {
		t.Errorf("stopped, it is %+v", i)
	}
	r.stop(b.ID, 5*time.Second)
	r.start(b.ID)
	if i := r.the(b.ID); !i.Running || i.Started.Before(first.Started) {
		t.Errorf("started again, it is %+v", i)
	}
}

func startThaws(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	r.start(b.ID)
	r.listens(b.ID)
	r.Freeze(t, b.ID)
	r.becomes(b.ID, true)
	r.start(b.ID)
	r.becomes(b.ID, false)
	r.stop(b.ID, 5*time.Second) // one that still is frozen would not hear it
	if i := r.the(b.ID); i.Running || i.ExitCode != 0 {
		t.Errorf("thawed and stopped, it is %+v", i)
	}
	r.start(b.ID)
	r.Freeze(t, b.ID)
	r.stop(b.ID, time.Second)
	if i := r.the(b.ID); i.Running {
		t.Errorf("frozen and stopped, it is %+v", i)
	}
	r.start(b.ID)
	r.Freeze(t, b.ID)
	r.remove(b.ID)
	r.empty()
}

func startAbsent(_ *testing.T, r *runtimeTest) {
	r.kind(r.Runtime.Start(r.ctx, sandbox.NewID()), fault.NotFound)
}

// stopDeaf stops one that hears no signal. On a busy machine the signal may come before the process ignores it, and ends it
// at once; then it is tried again.
func stopDeaf(t *testing.T, r *runtimeTest) {
	b := r.made(Deaf)
	for range 5 {
		r.start(b.ID)
		began := time.Now()
		r.stop(b.ID, time.Second)
		i := r.the(b.ID)
		if i.ExitCode == exitTerminated {
			continue
		}
		if took := time.Since(began); took < 900*time.Millisecond {
			t.Errorf("it had %s of its second", took)
		}
		if i.Running || i.ExitCode != sandbox.ExitKilled || i.OOM {
			t.Errorf("stopped, it is %+v", i)
		}
		return
	}
	t.Error("it never ignores the signal")
}

// exitTerminated is the exit code of a process that SIGTERM has ended.
const exitTerminated = 128 + 15

func stopRemoveAbsent(_ *testing.T, r *runtimeTest) {
	r.stop(sandbox.NewID(), time.Second)
	r.remove(sandbox.NewID())
	b := r.made(Patient)
	r.stop(b.ID, time.Second) // never started
}

func removeAll(t *testing.T, r *runtimeTest) {
	b, resting := r.made(Patient), r.made(Patient)
	r.start(b.ID)
	r.remove(b.ID)
	r.remove(b.ID)
	if i := r.list(); len(i) != 1 || i[0].ID != resting.ID {
		t.Errorf("left is %+v", i)
	}
	r.remove(resting.ID)
	r.empty()
	r.create(b) // the same once more
	r.start(b.ID)
}

func removeCutOff(t *testing.T, r *runtimeTest) {
	b := r.Spec(Patient)
	r.Cut(t, b)
	r.remove(b.ID)
	r.empty()
	b = r.made(Patient)
	r.start(b.ID)
	r.Destroy(t, b.ID)
	r.remove(b.ID)
	r.empty()
}

// listEnds sees how two have ended. An engine hears of a kill for want of memory beside the end of the process, and on a busy
// machine may hear of it too late; then it is tried again.
func listEnds(t *testing.T, r *runtimeTest) {
	brief, greedy := r.made(Brief), r.made(Greedy)
	seen := r.watch()
	r.start(brief.ID)
	r.start(greedy.ID)
	seen.until(t, "both have ended", func(all []sandbox.Instance) bool {
		return ended(all, brief.ID) && ended(all, greedy.ID)
	})
	if i := r.the(brief.ID); i.Running || i.ExitCode != BriefExit || i.OOM || i.Started.IsZero() {
		t.Errorf("the brief one is %+v", i)
	}
	last := r.the(greedy.ID)
	for range 4 {
		if last.OOM {
			break
		}
		before := last.Started
		r.start(greedy.ID)
		seen.until(t, "the greedy one has ended again", func(all []sandbox.Instance) bool {
			last = r.the(greedy.ID)
			return !last.Running && last.Started.After(before)
		})
	}
	if last.Running || last.ExitCode != sandbox.ExitKilled || !last.OOM {
		t.Errorf("the greedy one is %+v", last)
	}
}

func listDestroyed(t *testing.T, r *runtimeTest) {
	b := r.made(Patient)
	r.start(b.ID)
	r.Destroy(t, b.ID)
	if i := r.the(b.ID); !i.Partial || i.Running || i.Name != b.Name {
		t.Errorf("destroyed, it is %+v", i)
	}
	r.kind(r.Runtime.Start(r.ctx, b.ID), fault.NotFound)
	r.create(b)
	r.start(b.ID)
	if i := r.the(b.ID); !i.Running {
		t.Errorf("made anew, it is %+v", i)
	}
}

// listMoved makes a sandbox, has its image's name given to another image, and makes the container anew.
func listMoved(t *testing.T, r *runtimeTest) {
	b := r.Spec(Patient)
	image, move := r.Image(t)
	b.Image = image
	r.create(b)
	if i := r.the(b.ID); i.Moved || i.Image != b.Image {
		t.Errorf("it is %+v", i)
	}
	other := b
	other.Volumes = []sandbox.Mount{{Volume: sandbox.NewID(), Target: "/shared", ReadOnly: true}}
	if err := r.Runtime.Remount(r.ctx, other); err != nil {
		t.Fatal(err)
	}
	if i := r.the(b.ID); i.Moved || i.Image != b.Image {
		t.Errorf("with another volume it is %+v", i)
	}
	move()
	if i := r.the(b.ID); !i.Moved || i.Image != b.Image {
		t.Errorf("its image was made anew, it is %+v", i)
	}
	if err := r.Runtime.Remount(r.ctx, b); err != nil {
		t.Fatal(err)
	}
	if i := r.the(b.ID); !i.Moved || i.Image != b.Image {
		t.Errorf("its image was made anew, and it has another volume, it is %+v", i)
	}
	if err := r.Runtime.Recreate(r.ctx, b); err != nil {
		t.Fatal(err)
	}
	if i := r.the(b.ID); i.Moved {
		t.Errorf("made from the new one, it is %+v", i)
	}
}

func (r *runtimeTest) describe(i sandbox.Instance) string {
	return fmt.Sprintf("%s running=%t partial=%t exit=%d oom=%t", i.ID, i.Running, i.Partial, i.ExitCode, i.OOM)
}
