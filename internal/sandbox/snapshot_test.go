package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// toSnapshot is a snapshot that the engine of homed has, with newFiles and services of its own.
var toSnapshot = sandbox.Revert{Snapshot: "50", Root: sandboxtest.FakeImage("50"), Overrides: sandbox.Overrides{
	HasServices: true, Services: []catalog.Service{{Name: "web", Command: []string{"serve"}}},
}}

// wantAsOneSnapshot wants home, image and overrides of a sandbox to be all those from before a revert to toSnapshot, or all its.
func wantAsOneSnapshot(t *testing.T, w *world, s sandbox.Sandbox, when string) {
	t.Helper()
	if s.Root != "" && s.Root != toSnapshot.Root { // others look at it
		return
	}
	files, _ := w.engine.HomeFiles(s.ID)
	i, _ := w.engine.instance(t, s.ID)
	if _, has := files["b"]; s.Root == "" && i.Image != toSnapshot.Root && !(has && strings.HasPrefix(when, "revert")) {
		return
	}
	if _, has := files["b"]; !has || s.Root != toSnapshot.Root || i.Image != toSnapshot.Root || !s.Overrides.HasServices {
		t.Errorf("%s: its home has %v, its image is %q of %q, its overrides are %+v", when, files, i.Image, s.Root, s.Overrides)
	}
	if !s.Revert.Empty() {
		t.Errorf("%s: it is still to be as %+v", when, s.Revert)
	}
}

func TestSnapshot_IsTakenWhileNothingRuns(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, state)
			taken, err := m.Snapshot(t.Context(), s.Ref(), "5a", false)
			if err != nil || !taken.Still || taken.Image != sandboxtest.FakeImage("5a") || taken.Stats.Files != 1 || taken.Sandbox.State != state {
				t.Errorf("%s: %+v, %v", state, taken, err)
			}
			settled(t, m, "lab", state)
			truly(t, w, m, s, "taken when "+string(state))
			if err := m.Revert(t.Context(), s.Ref(), sandbox.Revert{Snapshot: "5a"}); err != nil {
				t.Errorf("%s: %v", state, err)
			}
			wantHome(t, w, s, oldFiles, "as the snapshot")
		})
	}
}

func TestSnapshot_ThatFailsLeavesTheSandboxAsItWas(t *testing.T) {
	for _, op := range []sandboxtest.Op{sandboxtest.OpCommit, sandboxtest.OpCopyOut, sandboxtest.OpOpenHome} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, sandbox.Running)
			full := fault.New(fault.Unavailable, "Full.")
			w.engine.refuse(op, full)
			if _, err := m.Snapshot(t.Context(), s.Ref(), "5a", false); !errors.Is(err, full) {
				t.Errorf("%s: %v", op, err)
			}
			settled(t, m, "lab", sandbox.Running)
			truly(t, w, m, s, "with a failing "+string(op))
		})
	}
}

func TestRevert_MakesItAsTheSnapshot(t *testing.T) {
	for was, then := range map[sandbox.State]sandbox.State{
		sandbox.Running: sandbox.Running, sandbox.Frozen: sandbox.Asleep, sandbox.Asleep: sandbox.Asleep, sandbox.Stopped: sandbox.Stopped,
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, was)
			if err := m.Revert(t.Context(), s.Ref(), toSnapshot); err != nil {
				t.Errorf("%s: %v", was, err)
			}
			now := settled(t, m, "lab", then)
			wantHome(t, w, s, newFiles, string(was))
			if i, _ := w.engine.instance(t, s.ID); i.Image != toSnapshot.Root || now.Root != toSnapshot.Root || !now.Overrides.HasServices {
				t.Errorf("%s: %+v, %+v", was, i, now)
			}
			recreated := w.engine.Calls(sandboxtest.OpRecreate)
			if err := m.Revert(t.Context(), s.Ref(), toSnapshot); err != nil || w.engine.Calls(sandboxtest.OpRecreate) != recreated+1 {
				t.Errorf("%s: again to the same image: %v, made anew %d times", was, err, w.engine.Calls(sandboxtest.OpRecreate))
			}
			back := sandbox.Revert{Snapshot: "50"}
			if err := m.Revert(t.Context(), s.Ref(), back); err != nil {
				t.Errorf("%s: back to the template's image: %v", was, err)
			}
			if i, _ := w.engine.instance(t, s.ID); i.Image == toSnapshot.Root {
				t.Errorf("%s: still made from %s", was, i.Image)
			}
		})
	}
}

func TestRevert_ThatFailsChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		gone := toSnapshot
		gone.Snapshot = "5f"
		if err := m.Revert(t.Context(), s.Ref(), gone); !fault.Is(err, fault.NotFound) {
			t.Errorf("to one that is not there: %v", err)
		}
		full := fault.New(fault.Unavailable, "Full.")
		w.engine.refuse(sandboxtest.OpCopyIn, full)
		if err := m.Revert(t.Context(), s.Ref(), toSnapshot); !errors.Is(err, full) {
			t.Errorf("with a full disk: %v", err)
		}
		w.engine.refuse(sandboxtest.OpCopyIn, nil)
		settled(t, m, "lab", sandbox.Running)
		truly(t, w, m, s, "failed")
		wantHome(t, w, s, oldFiles, "failed")
	})
}

// TestRevert_ACrashWhileTheContainerIsMadeAnew ends sandboxd when the old container is gone and the new one is not there.
func TestRevert_ACrashWhileTheContainerIsMadeAnew(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Stopped} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			m, end := w.run(t)
			synctest.Wait()
			s := homed(t, w, m, state)
			w.engine.CutAfter(sandboxtest.AfterDestroy)
			if err := m.Revert(t.Context(), s.Ref(), toSnapshot); !errors.Is(err, sandboxtest.ErrCut) {
				t.Errorf("%s: %v", state, err)
			}
			end()
			m, end = w.run(t)
			defer end()
			pass(10 * time.Minute)
			settled(t, m, "lab", state)
			wantHome(t, w, s, newFiles, string(state))
			truly(t, w, m, s, string(state))
		})
	}
}

func TestCreateFrom_ASnapshotMakesAClone(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		homed(t, w, m, sandbox.Running)
		clone, err := m.CreateFrom(t.Context(), sandbox.Request{Name: "copy", Template: "base", Owner: "ann"}, sandbox.Origin{
			Overrides: toSnapshot.Overrides, Snapshot: toSnapshot.Snapshot, Root: toSnapshot.Root, ClonedFrom: "lab",
			Fill: func(ctx context.Context, h sandbox.Home) error {
				_, err := h.CopyIn(ctx, func(archive.Stats) {})
				return err
			},
		})
		if err != nil || clone.State != sandbox.Running || clone.ClonedFrom != "lab" || clone.Root != toSnapshot.Root {
			t.Errorf("%+v, %v", clone, err)
		}
		wantHome(t, w, clone, newFiles, "cloned")
		if i, _ := w.engine.instance(t, clone.ID); i.Image != toSnapshot.Root {
			t.Errorf("made from %s", i.Image)
		}
	})
}

func TestInspect_ShowsWhatDiffersAndChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		err := m.Inspect(t.Context(), s.Ref(), toSnapshot.Snapshot, func(ctx context.Context, h sandbox.Home) error {
			found, more, err := h.Compare(ctx, 2)
			if err != nil || !more || len(found) != 2 || found[0] != (archive.Difference{Path: "a", Change: archive.Added, Kind: archive.KindFile, Size: 3}) {
				t.Errorf("%+v, %v, %v", found, more, err)
			}
			before, after, err := h.Versions(ctx, "a", 2)
			if err != nil || before != nil || string(after) != "ol" {
				t.Errorf("%q, %q, %v", before, after, err)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if err := m.Inspect(t.Context(), s.Ref(), "5f", func(ctx context.Context, h sandbox.Home) error {
			_, _, err := h.Compare(ctx, 2)
			return err
		}); !fault.Is(err, fault.NotFound) {
			t.Errorf("of one that is not there: %v", err)
		}
		truly(t, w, m, s, "inspected")
		wantHome(t, w, s, oldFiles, "inspected")
	})
}

func TestRevert_WhoseImageIsGoneMeanwhileFailsWithTheReason(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		w.engine.NoImage(toSnapshot.Root)
		if err := m.Revert(t.Context(), s.Ref(), toSnapshot); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
		now := settled(t, m, "lab", sandbox.Failed)
		if !strings.Contains(now.Problem, "image for the rest of it is gone") || !now.Revert.Empty() {
			t.Errorf("%+v", now)
		}
		pass(10 * time.Minute)
		if copies := w.engine.Calls(sandboxtest.OpCopyIn); copies != 1 {
			t.Errorf("copied %d times", copies)
		}
	})
}
