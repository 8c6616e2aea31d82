package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// rootOf reads the root file system of a sandbox as a backup does.
func rootOf(t *testing.T, m *sandbox.Manager, s sandbox.Sandbox) sandbox.Rootfs {
	t.Helper()
	var layer bytes.Buffer
	var base string
	err := m.Capture(t.Context(), s.Ref(), false, func(ctx context.Context, c sandbox.Capture) (err error) {
		base, _, err = c.ReadLayer(ctx, &layer)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Rootfs{Base: base, Layer: sandbox.Layer{Content: bytes.NewReader(layer.Bytes()), Size: int64(layer.Len())}}
}

// wantRootAndHome wants both to be those of before, or both to be new.
func wantRootAndHome(t *testing.T, w *world, s sandbox.Sandbox, when string) (fresh bool) {
	t.Helper()
	files, _ := w.engine.HomeFiles(s.ID)
	_, fresh = files["b"]
	i, _ := w.engine.instance(t, s.ID)
	if strings.HasPrefix(s.Problem, "sandboxd was ended") && !strings.HasPrefix(i.Image, "snapshot:") && s.Root == "" {
		return false
	}
	if fresh != strings.HasPrefix(i.Image, "snapshot:") || fresh != (i.Image == s.Root) || s.Revert.Root != "" {
		t.Errorf("%s: its home is new: %t, its image is %q of %q, and it is to be %+v", when, fresh, i.Image, s.Root, s.Revert)
	}
	return fresh
}

func TestRestoreWithRoot_MakesBothAnew(t *testing.T) {
	for was, then := range map[sandbox.State]sandbox.State{
		sandbox.Running: sandbox.Running, sandbox.Frozen: sandbox.Asleep, sandbox.Asleep: sandbox.Asleep, sandbox.Stopped: sandbox.Stopped,
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, was)
			root := rootOf(t, m, s)
			if err := m.RestoreWithRoot(t.Context(), s.Ref(), root, fill(t)); err != nil {
				t.Errorf("%s: %v", was, err)
			}
			now := settled(t, m, "lab", then)
			if !wantRootAndHome(t, w, now, string(was)) || now.Base != root.Base {
				t.Errorf("%s: %+v", was, now)
			}
			truly(t, w, m, now, "restored when "+string(was))
			again := rootOf(t, m, now)
			if err := m.RestoreWithRoot(t.Context(), s.Ref(), again, fill(t)); err != nil {
				t.Errorf("%s: once more: %v", was, err)
			}
			if made := sandboxtest.LayersOf(w.engine.Runtime).Made(); len(made) != 2 || made[0] != root.Base+" and "+s.ID+" over " || made[1] != root.Base+" and "+s.ID+" over "+root.Base {
				t.Errorf("%s: of %q", was, made)
			}
		})
	}
}

func TestRestoreWithRoot_ThatFailsLeavesItAsItWas(t *testing.T) {
	broken := errors.New("broken")
	for _, what := range []string{"image", "home"} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, sandbox.Running)
			root, fill := rootOf(t, m, s), fill(t)
			starts := w.engine.Calls(sandboxtest.OpStart)
			if what == "image" {
				w.engine.refuse(sandboxtest.OpMakeImage, broken)
			} else {
				fill = func(context.Context, sandbox.Home) error { return broken }
			}
			if err := m.RestoreWithRoot(t.Context(), s.Ref(), root, fill); !errors.Is(err, broken) {
				t.Errorf("%s: %v", what, err)
			}
			now := settled(t, m, "lab", sandbox.Running)
			if wantRootAndHome(t, w, now, what) {
				t.Errorf("%s: it is the new one", what)
			}
			if what == "image" && w.engine.Calls(sandboxtest.OpStart) != starts {
				t.Error("it was stopped although the image could not be made")
			}
			truly(t, w, m, now, what)
		})
	}
}

// TestRestoreWithRoot_ACrashBeforeAnyCallLeavesOldOrNew kills the Manager before each thing that it does outside.
func TestRestoreWithRoot_ACrashBeforeAnyCallLeavesOldOrNew(t *testing.T) {
	outcomes := map[bool]int{}
	strikes(t, 40, func(t *testing.T, w *world) (end, do func()) {
		m, end := w.run(t)
		synctest.Wait()
		s := homed(t, w, m, sandbox.Running)
		root := rootOf(t, m, s)
		return end, func() { _ = m.RestoreWithRoot(t.Context(), s.Ref(), root, fill(t)) } // dies under us
	}, func(t *testing.T, w *world, m *sandbox.Manager, struck string) {
		pass(10 * time.Minute)
		s := settled(t, m, "lab", sandbox.Running)
		outcomes[wantRootAndHome(t, w, s, "killed before "+struck)]++
		truly(t, w, m, s, "killed before "+struck)
	})
	if outcomes[true] < 2 || outcomes[false] < 2 {
		t.Errorf("outcomes: %v", outcomes)
	}
}

func TestCreateFrom_ARootFileSystem(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		old := homed(t, w, m, sandbox.Stopped)
		for name, base := range map[string]string{"as-said": "", "foreign": "another/image:1", "moved": "x (replaced)", "no-tag": "image-of-base:x y"} {
			root := rootOf(t, m, old)
			want := root.Base
			if base != "" {
				root.Base = base
			}
			s, err := m.CreateFrom(t.Context(), sandbox.Request{Name: name, Template: "base"}, sandbox.Origin{Fill: fill(t), Rootfs: &root})
			if err != nil || s.Base != want || !wantRootAndHome(t, w, s, name) {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
			truly(t, w, m, s, name)
		}
		root := rootOf(t, m, old)
		root.Layer.Content = strings.NewReader("no layer")
		if _, err := m.CreateFrom(t.Context(), sandbox.Request{Name: "bad", Template: "base"}, sandbox.Origin{Fill: fill(t), Rootfs: &root}); !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
		if s, err := m.Sandbox(t.Context(), "bad"); !fault.Is(err, fault.NotFound) {
			t.Errorf("left over: %+v, %v", s, err)
		}
	})
}

func TestCapture_ReadsNoRootWhileItRuns(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		err := m.Capture(t.Context(), s.Ref(), true, func(ctx context.Context, c sandbox.Capture) error {
			_, _, err := c.ReadLayer(ctx, io.Discard)
			return err
		})
		if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	})
}
