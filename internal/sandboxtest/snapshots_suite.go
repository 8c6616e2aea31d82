package sandboxtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// SnapshotsSubject is what keeps the parts of snapshots, under test, with the homes and the engine that it is of.
type SnapshotsSubject struct {
	HomesSubject
	Another sandbox.Snapshots // of another instance on the same engine
}

// RunSnapshots checks that what open gives keeps the contracts of sandbox.Snapshots and Runtime.Recreate. open is as for RunRuntime.
// What is in a root file system is not looked at: the fake has none.
func RunSnapshots(t *testing.T, open func(t *testing.T) SnapshotsSubject) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *snapshotsTest)
	}{
		{"CommitMakesAnImageForOthers", commitMakes},
		{"CommitOfTheFrozenAndNotOfTheRunning", commitFrozen},
		{"CommitOfTheAbsentIsNotFound", commitAbsent},
		{"RemoveImageMayBeRepeatedAndSpoilsNoContainer", imageRemoved},
		{"InstancesDoNotTouchEachOther", partsApart},
		{"RecreateUsesTheVolumeAgain", recreated},
		{"RecreateFinishesWhatWasCutOff", recreatedAbsent},
		{"RecreateOfAMissingImageLeavesTheOldOne", recreatedMissing},
		{"RemountChangesTheVolumesAlone", remounted},
		{"HungEngineEndsWithTheCaller", snapshotsHung},
		{"LostEngineIsUnavailable", snapshotsLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
			defer cancel()
			s := open(t)
			r := &runtimeTest{RuntimeSubject: s.RuntimeSubject, t: t, ctx: ctx}
			test := &snapshotsTest{homesTest: &homesTest{runtimeTest: r, s: s.HomesSubject}, another: s.Another}
			c.run(t, test)
			test.closeAll()
			test.parts(nil, nil)
		})
	}
}

// snapshotsTest is one test of the suite.
type snapshotsTest struct {
	*homesTest
	another sandbox.Snapshots
}

func (s *snapshotsTest) commit(id, snapshot string) string {
	s.t.Helper()
	image, err := s.s.Snapshots.Commit(s.ctx, id, snapshot)
	if err != nil || image == "" {
		s.t.Fatalf("commit: %q, %v", image, err)
	}
	return image
}

func (s *snapshotsTest) parts(copies, images []string) {
	s.t.Helper()
	c, i, err := s.s.Snapshots.Parts(s.ctx)
	slices.Sort(copies)
	slices.Sort(images)
	if err != nil || !slices.Equal(copies, c) || !slices.Equal(images, i) {
		s.t.Errorf("there are copies %q and images %q (%v), want %q and %q", c, i, err, copies, images)
	}
}

func (s *snapshotsTest) removeImages(snapshots ...string) {
	s.t.Helper()
	for _, id := range snapshots {
		if err := s.s.Snapshots.RemoveImage(s.ctx, id); err != nil {
			s.t.Errorf("remove the image: %v", err)
		}
	}
}

func (s *snapshotsTest) recreate(b sandbox.ContainerSpec) {
	s.t.Helper()
	if err := s.Runtime.Recreate(s.ctx, b); err != nil {
		s.t.Fatalf("recreate: %v", err)
	}
}

func commitMakes(t *testing.T, s *snapshotsTest) {
	b, one, two := s.made(Patient), sandbox.NewID(), sandbox.NewID()
	image := s.commit(b.ID, one)
	if again := s.commit(b.ID, one); again != image {
		t.Errorf("the images of one snapshot are %s and %s", image, again)
	}
	s.parts(nil, []string{one})
	other := s.Spec(Patient)
	other.Image = image
	s.create(other)
	s.start(other.ID)
	if i := s.the(other.ID); !i.Running || i.Name != other.Name || i.Image != image {
		t.Errorf("made from it: %+v", i)
	}
	s.listens(other.ID)
	s.stop(other.ID, longGrace)
	s.commit(other.ID, two)
	s.copyOut(b.ID, two)
	s.parts([]string{two}, []string{one, two})
	if all := s.list(); len(all) != 2 {
		t.Errorf("what belongs to snapshots is listed: %+v", all)
	}
	s.remove(other.ID)
	s.removeImages(one, two)
	s.removeCopies(two)
}

func commitFrozen(_ *testing.T, s *snapshotsTest) {
	b, id := s.made(Patient), sandbox.NewID()
	s.start(b.ID)
	_, err := s.s.Snapshots.Commit(s.ctx, b.ID, id)
	s.kind(err, fault.Conflict)
	s.parts(nil, nil)
	s.Freeze(s.t, b.ID)
	s.commit(b.ID, id)
	if i := s.the(b.ID); !i.Frozen {
		s.t.Errorf("it is not frozen any more: %+v", i)
	}
	s.removeImages(id)
}

func commitAbsent(t *testing.T, s *snapshotsTest) {
	partial := s.Spec(Patient)
	s.Cut(t, partial)
	for _, id := range []string{sandbox.NewID(), partial.ID} {
		_, err := s.s.Snapshots.Commit(s.ctx, id, sandbox.NewID())
		s.kind(err, fault.NotFound)
	}
}

func imageRemoved(_ *testing.T, s *snapshotsTest) {
	b, other, id := s.made(Patient), s.Spec(Patient), sandbox.NewID()
	s.removeImages(id)
	other.Image = s.commit(b.ID, id)
	s.create(other)
	s.removeImages(id, id)
	s.parts(nil, nil)
	s.start(other.ID)
	s.kind(s.Runtime.Create(s.ctx, func() sandbox.ContainerSpec { b := s.Spec(Patient); b.Image = other.Image; return b }()), fault.NotFound)
	s.remove(other.ID)
}

func partsApart(t *testing.T, s *snapshotsTest) {
	b, id := s.made(Patient), sandbox.NewID()
	s.commit(b.ID, id)
	s.copyOut(b.ID, id)
	if copies, images, err := s.another.Parts(s.ctx); err != nil || len(copies)+len(images) > 0 {
		t.Errorf("another instance has %q and %q (%v)", copies, images, err)
	}
	for name, err := range map[string]error{"copy": s.another.RemoveCopy(s.ctx, id), "image": s.another.RemoveImage(s.ctx, id)} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.parts([]string{id}, []string{id})
	s.removeImages(id)
	s.removeCopies(id)
}

func recreated(t *testing.T, s *snapshotsTest) {
	b, id := s.made(Patient), sandbox.NewID()
	s.put(b.ID, oldFiles())
	before, _ := s.read(b.ID)
	template := b.Image
	b.Image = s.commit(b.ID, id)
	for range 2 {
		s.recreate(b)
		if i := s.the(b.ID); i.Partial || i.Running || i.Image != b.Image {
			t.Errorf("made anew, it is %+v", i)
		}
		s.same(b.ID, before)
	}
	s.start(b.ID)
	s.listens(b.ID)
	s.stop(b.ID, longGrace)
	b.Image = template
	s.recreate(b)
	s.same(b.ID, before)
	if all := s.list(); len(all) != 1 || all[0].Image != template {
		t.Errorf("got %+v", all)
	}
	s.removeImages(id)
}

func recreatedAbsent(t *testing.T, s *snapshotsTest) {
	b, partial := s.made(Patient), s.Spec(Patient)
	s.put(b.ID, oldFiles())
	before, _ := s.read(b.ID)
	s.Destroy(t, b.ID)
	s.recreate(b)
	s.same(b.ID, before)
	s.Cut(t, partial)
	s.recreate(partial)
	s.start(partial.ID)
}

func recreatedMissing(_ *testing.T, s *snapshotsTest) {
	b := s.made(Patient)
	missing := b
	missing.Image = MissingImage
	s.kind(s.Runtime.Recreate(s.ctx, missing), fault.NotFound)
	s.start(b.ID)
	s.listens(b.ID)
}

func remounted(t *testing.T, s *snapshotsTest) {
	b := s.made(Patient)
	s.kind(s.Runtime.Remount(s.ctx, s.Spec(Patient)), fault.NotFound)
	s.put(b.ID, oldFiles())
	before, _ := s.read(b.ID)
	if err := s.Runtime.Remount(s.ctx, b); err != nil { // there is nothing to change
		t.Fatal(err)
	}
	s.start(b.ID)
	changed := b
	changed.Volumes = []sandbox.Mount{{Volume: sandbox.NewID(), Target: "/shared", ReadOnly: true}}
	s.kind(s.Runtime.Remount(s.ctx, changed), fault.Conflict)
	s.stop(b.ID, longGrace)
	for _, one := range []sandbox.ContainerSpec{changed, b} {
		for range 2 {
			if err := s.Runtime.Remount(s.ctx, one); err != nil {
				t.Fatal(err)
			}
			if i := s.the(b.ID); i.Volumes != sandbox.MountText(one.Volumes) || i.Partial || i.Image != b.Image {
				t.Errorf("after a change of volumes: %+v", i)
			}
		}
		s.start(b.ID)
		s.listens(b.ID)
		s.stop(b.ID, longGrace)
	}
	s.same(b.ID, before)
}

// snapshotCalls are all that an engine is asked for snapshots.
func (s *snapshotsTest) snapshotCalls(b sandbox.ContainerSpec) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"commit":       func(ctx context.Context) error { _, err := s.s.Snapshots.Commit(ctx, b.ID, "1"); return err },
		"recreate":     func(ctx context.Context) error { return s.Runtime.Recreate(ctx, b) },
		"remount":      func(ctx context.Context) error { return s.Runtime.Remount(ctx, b) },
		"remove copy":  func(ctx context.Context) error { return s.s.Snapshots.RemoveCopy(ctx, "1") },
		"remove image": func(ctx context.Context) error { return s.s.Snapshots.RemoveImage(ctx, "1") },
		"parts":        func(ctx context.Context) error { _, _, err := s.s.Snapshots.Parts(ctx); return err },
	}
}

func snapshotsHung(t *testing.T, s *snapshotsTest) {
	b := s.made(Patient)
	resume := s.Hang()
	for name, call := range s.snapshotCalls(b) {
		ctx, cancel := context.WithTimeout(s.ctx, 150*time.Millisecond)
		if err := call(ctx); !fault.Is(err, fault.Timeout) {
			t.Errorf("%s: got %v, want a Timeout", name, err)
		}
		cancel()
	}
	resume()
	s.recreate(b)
	s.removeImages("1")
}

func snapshotsLost(t *testing.T, s *snapshotsTest) {
	b := s.made(Patient)
	back := s.Lose()
	for name, call := range s.snapshotCalls(b) {
		if err := call(s.ctx); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", name, err)
		}
	}
	back()
	s.recreate(b)
}
