package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

// safety is the snapshot that an update is taken back to: the engine has oldFiles in it.
var safety = sandbox.Revert{Snapshot: "5a", Root: sandboxtest.FakeImage("5a"), Base: "image-of-base"}

// newest is what the template's image is after a change of it.
const newest = "image-of-base2"

// aged brings a sandbox that is made from an older image than its template gives, with a snapshot of it as it is.
func aged(t *testing.T, w *world, m *sandbox.Manager, state sandbox.State) sandbox.Sandbox {
	t.Helper()
	s := homed(t, w, m, state)
	w.engine.PutCopy(safety.Snapshot, oldFiles)
	w.images.retag("2")
	return s
}

// wantImage wants the engine to have made a sandbox from an image.
func wantImage(t *testing.T, w *world, s sandbox.Sandbox, image, when string) {
	t.Helper()
	if i, _ := w.engine.instance(t, s.ID); i.Image != image || i.Partial {
		t.Errorf("%s: the engine has %+v, want image %s", when, i, image)
	}
}

// wantTakenBack wants a sandbox to be all that it was.
func wantTakenBack(t *testing.T, w *world, m *sandbox.Manager, s sandbox.Sandbox, when string) {
	t.Helper()
	now, err := m.Current(t.Context(), s.Ref())
	if err != nil || now.Root != safety.Root || now.Base != safety.Base || !now.Revert.Empty() {
		t.Errorf("%s: %+v, %v", when, now, err)
	}
	wantImage(t, w, s, safety.Root, when)
	wantHome(t, w, s, oldFiles, when)
}

func TestUpdate_PutsItOnTheNewImageWithItsHome(t *testing.T) {
	for was, then := range map[sandbox.State]sandbox.State{
		sandbox.Running: sandbox.Running, sandbox.Frozen: sandbox.Asleep, sandbox.Asleep: sandbox.Asleep, sandbox.Stopped: sandbox.Stopped,
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := aged(t, w, m, was)
			if st := m.Standing(s); !st.Older || !st.Known || st.Image != "image-of-base" || st.Newest != newest {
				t.Errorf("%s: before: %+v", was, st)
			}
			checked := false
			w.images.set(0, fault.New(fault.Invalid, "The template was changed meanwhile.")) // and nobody asks for its image
			err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(ctx context.Context, box sandbox.Sandbox) error {
				now, err := m.Current(ctx, s.Ref())
				i, _ := w.engine.instance(t, s.ID)
				if checked = true; err != nil || !now.Updating() || !i.Running || i.Image != newest {
					t.Errorf("%s: checked as %+v, %+v, %v", was, now, i, err)
				}
				return nil
			}})
			if err != nil || !checked {
				t.Errorf("%s: %v, checked %t", was, err, checked)
			}
			now := settled(t, m, "lab", then)
			if now.Root != "" || !now.Revert.Empty() || m.Standing(now).Older || !m.Standing(now).Known {
				t.Errorf("%s: %+v, %+v", was, now, m.Standing(now))
			}
			wantImage(t, w, s, newest, string(was))
			wantHome(t, w, s, oldFiles, string(was))
			truly(t, w, m, s, "updated when "+string(was))
		})
	}
}

func TestUpdate_ThatFailsIsTakenBack(t *testing.T) {
	broken := fault.New(fault.Unavailable, "The service web does not work.")
	for what, c := range map[string]struct {
		trouble func(w *world)
		check   error
		part    string
	}{
		"the check":   {func(*world) {}, broken, "The service web does not work."},
		"the start":   {func(w *world) { w.engine.Fail(sandboxtest.OpStart, fault.New(fault.Invalid, "No such program.")) }, nil, "No such program."},
		"the new one": {func(w *world) { w.engine.NoImage(newest) }, nil, "No such image"},
		"the guest": {func(w *world) {
			w.guests.silence("lab", true)
			time.AfterFunc(63*time.Second, func() { w.guests.silence("lab", false) })
		}, nil, "did not report"},
		"the stop before": {func(w *world) { w.engine.Fail(sandboxtest.OpStop, fault.New(fault.Unavailable, "Away.")) }, nil, "Away."},
	} {
		for _, was := range []sandbox.State{sandbox.Running, sandbox.Stopped} {
			play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
				s := aged(t, w, m, was)
				c.trouble(w)
				err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(context.Context, sandbox.Sandbox) error {
					w.engine.PutHome(s.ID, newFiles) // what the new image's programs have done
					return c.check
				}})
				if !errors.Is(err, sandbox.ErrTakenBack) || !strings.Contains(fault.Message(err), c.part) {
					t.Errorf("%s: %v", what, err)
				}
				settled(t, m, "lab", was)
				wantTakenBack(t, w, m, s, what)
				truly(t, w, m, s, what)
				if now, _ := m.Current(t.Context(), s.Ref()); !m.Standing(now).Older {
					t.Errorf("%s: it counts as %+v", what, m.Standing(now))
				}
			})
		}
	}
}

// TestUpdate_IsTakenBackFromAContainerOfTheOldImage has no home be moved by a container of the new image, which may not work at all.
func TestUpdate_IsTakenBackFromAContainerOfTheOldImage(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := aged(t, w, m, sandbox.Running)
		w.engine.refuse(sandboxtest.OpCopyIn, fault.New(fault.Unavailable, "The disk is full."))
		err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(context.Context, sandbox.Sandbox) error {
			return fault.New(fault.Unavailable, "It does not work.")
		}})
		now, _ := m.Current(t.Context(), s.Ref())
		if errors.Is(err, sandbox.ErrTakenBack) || !strings.Contains(fault.Message(err), "It does not work.") || !now.Updating() {
			t.Errorf("%v, it is %+v", err, now)
		}
		wantImage(t, w, s, safety.Root, "before its home is moved")
		w.engine.refuse(sandboxtest.OpCopyIn, nil)
		pass(3 * time.Minute)
		settled(t, m, "lab", sandbox.Running)
		wantTakenBack(t, w, m, s, "with room again")

		w.engine.NoImage(safety.Root)
		w.images.retag("3")
		if err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: "image-of-base3", Back: safety, Check: func(context.Context, sandbox.Sandbox) error { return errFate }}); err == nil {
			t.Error("no error")
		}
		if now := settled(t, m, "lab", sandbox.Failed); !strings.Contains(now.Problem, "cannot be put back") || !now.Revert.Empty() {
			t.Errorf("without the snapshot: %+v", now)
		}
	})
}

func TestUpdate_LeavesAloneWhatIsUsedAgainOrHasNoRoom(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := aged(t, w, m, sandbox.Running)
		err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Unused: func() bool {
			if now, err := m.Current(t.Context(), s.Ref()); err != nil || !now.Updating() {
				t.Errorf("asked while it is %+v, %v", now, err)
			}
			return false
		}})
		if !errors.Is(err, sandbox.ErrInUse) || !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
		settled(t, m, "lab", sandbox.Running)
		wantImage(t, w, s, "image-of-base", "used")
		if _, err := m.Stop(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		settled(t, m, "lab", sandbox.Stopped)
		w.full(fault.New(fault.Unavailable, "The host is full."))
		if err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety}); !fault.Is(err, fault.Unavailable) || errors.Is(err, sandbox.ErrTakenBack) {
			t.Error(err)
		}
		settled(t, m, "lab", sandbox.Stopped)
		wantImage(t, w, s, "image-of-base", "full")
	})
}

func TestUpdate_ADeleteEndsIt(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := aged(t, w, m, sandbox.Running)
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- m.Update(context.Background(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(ctx context.Context, _ sandbox.Sandbox) error {
				close(begun)
				<-ctx.Done()
				return context.Cause(ctx)
			}})
		}()
		<-begun
		if _, err := m.Delete(t.Context(), s.Ref()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !fault.Is(err, fault.Gone) {
			t.Errorf("ended with %v", err)
		}
		if _, err := m.Wait(t.Context(), s.Ref()); !fault.Is(err, fault.Gone) {
			t.Error(err)
		}
		if copies := w.engine.Calls(sandboxtest.OpCopyIn); copies != 0 {
			t.Errorf("its home was put back %d times", copies)
		}
		wantNothing(t, w, m, "deleted")
	})
}

// TestUpdate_ACrashBeforeAnyCallLeavesAllOrNothing kills the Manager before each thing that it does outside: the sandbox is wholly the
// updated one then, or wholly what it was.
func TestUpdate_ACrashBeforeAnyCallLeavesAllOrNothing(t *testing.T) {
	for _, was := range []sandbox.State{sandbox.Running, sandbox.Frozen, sandbox.Stopped} {
		for _, check := range []error{nil, fault.New(fault.Unavailable, "It does not work.")} {
			outcomes := map[string]int{}
			for n, struck := 0, "first"; struck != ""; n++ {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					m, end := w.run(t)
					synctest.Wait()
					s := aged(t, w, m, was)
					w.fate.arm(n, true, errFate)
					err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(context.Context, sandbox.Sandbox) error {
						w.engine.PutHome(s.ID, newFiles)
						return check
					}})
					end()
					struck = w.fate.rest()
					m, end = w.run(t)
					defer end()
					pass(10 * time.Minute)
					when := string(was) + " killed before " + struck
					now, rowErr := m.Current(t.Context(), s.Ref())
					if rowErr != nil || !now.State.Settled() || (now.State == sandbox.Running) != (was == sandbox.Running) || now.State == sandbox.Failed {
						t.Fatalf("%s: %+v, %v", when, now, rowErr)
					}
					truly(t, w, m, s, when)
					outcomes[now.Root]++
					i, _ := w.engine.instance(t, s.ID)
					switch {
					case now.Root == safety.Root:
						wantTakenBack(t, w, m, s, when)
					case i.Image == newest:
						outcomes["updated"]++
						wantHome(t, w, s, newFiles, when)
					default: // it was killed before the intent was stored
						wantImage(t, w, s, "image-of-base", when)
						wantHome(t, w, s, oldFiles, when)
					}
					if struck == "" && check == nil && err != nil {
						t.Errorf("%s: %v", was, err)
					}
				})
				if n > 40 {
					t.Fatal("it does not come to an end")
				}
			}
			if check == nil && outcomes["updated"] < 1 || outcomes[safety.Root] < 3 {
				t.Errorf("%s: outcomes %v", was, outcomes)
			}
		}
	}
}

// TestUpdate_ACrashWhileTheContainerIsMadeAnew ends sandboxd when the old container is gone and the new one is not there.
func TestUpdate_ACrashWhileTheContainerIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		synctest.Wait()
		s := aged(t, w, m, sandbox.Running)
		w.engine.CutAfter(sandboxtest.AfterDestroy)
		w.engine.refuse(sandboxtest.OpOpenHome, fault.New(fault.Unavailable, "Away.")) // so that it is not taken back at once
		if err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety}); !errors.Is(err, sandboxtest.ErrCut) || errors.Is(err, sandbox.ErrTakenBack) {
			t.Error(err)
		}
		end()
		w.engine.refuse(sandboxtest.OpOpenHome, nil)
		w.images.set(0, fault.New(fault.Invalid, "The template is broken by now."))
		m, end = w.run(t)
		defer end()
		pass(10 * time.Minute)
		settled(t, m, "lab", sandbox.Running)
		wantTakenBack(t, w, m, s, "between the containers")
	})
}

// TestUpdate_IsTakenBackThoughItsTemplateHasGone has no template that an update needs go in the middle of it, and its end be the same.
func TestUpdate_IsTakenBackThoughItsTemplateHasGone(t *testing.T) {
	for _, was := range []sandbox.State{sandbox.Running, sandbox.Stopped} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := aged(t, w, m, was)
			err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety, Check: func(context.Context, sandbox.Sandbox) error {
				w.templates.change(func(c *templates) { c.broken = true })
				return fault.New(fault.Unavailable, "It does not work.")
			}})
			if !errors.Is(err, sandbox.ErrTakenBack) {
				t.Error(err)
			}
			settled(t, m, "lab", was)
			wantTakenBack(t, w, m, s, "without its template")
			err = m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety})
			if !fault.Is(err, fault.Invalid) || errors.Is(err, sandbox.ErrTakenBack) {
				t.Errorf("again: %v", err)
			}
			settled(t, m, "lab", was)
		})
	}
}

// TestUpdate_ACrashWaitsForTheTemplate ends sandboxd in an update, and has its template gone at the next start.
func TestUpdate_ACrashWaitsForTheTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		synctest.Wait()
		s := aged(t, w, m, sandbox.Running)
		w.engine.CutAfter(sandboxtest.AfterDestroy)
		w.engine.refuse(sandboxtest.OpOpenHome, fault.New(fault.Unavailable, "Away.")) // so that it is not taken back at once
		err := m.Update(t.Context(), s.Ref(), sandbox.Update{Image: newest, Back: safety})
		if !strings.Contains(fault.Message(err), "It is not put back yet: Away.") || errors.Is(err, sandbox.ErrTakenBack) {
			t.Error(err)
		}
		end()
		w.engine.refuse(sandboxtest.OpOpenHome, nil)
		w.templates.change(func(c *templates) { c.broken = true })
		m, end = w.run(t)
		defer end()
		pass(3 * time.Minute)
		now, err := m.Current(t.Context(), s.Ref())
		p := m.Progress(s.ID)
		if err != nil || !now.Updating() || !strings.Contains(p.Detail, `There is no template "base"`) {
			t.Errorf("without its template: %+v, %+v, %v", now, p, err)
		}
		w.templates.change(func(c *templates) { c.broken = false })
		pass(3 * time.Minute)
		settled(t, m, "lab", sandbox.Running)
		wantTakenBack(t, w, m, s, "with its template again")
	})
}

func TestStanding_TellsOlderImagesFromNewOnes(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		if st := m.Standing(s); !st.Known || st.Older {
			t.Errorf("new: %+v", st)
		}
		sandboxtest.MoveImage(w.engine.Runtime, "image-of-base")
		if _, st, err := m.Look(t.Context(), s.Ref()); err != nil || !st.Older || st.Image != st.Newest {
			t.Errorf("its image was built anew under the same name: %+v, %v", st, err)
		}
		taken, err := m.Snapshot(t.Context(), s.Ref(), "77", false)
		if err != nil || taken.Base == "" || taken.Base == "image-of-base" {
			t.Errorf("base %q, %v", taken.Base, err)
		}
		if err := m.Revert(t.Context(), s.Ref(), sandbox.Revert{Snapshot: "77", Root: taken.Image, Base: taken.Base}); err != nil {
			t.Fatal(err)
		}
		if st := m.Standing(settled(t, m, "lab", sandbox.Running)); !st.Older {
			t.Errorf("made from a snapshot of an older image: %+v", st)
		}
		for what, box := range map[string]sandbox.Sandbox{
			"a plain image":       {ID: s.ID, Spec: sandbox.Spec{Image: "debian"}},
			"a template gone":     {ID: s.ID, Spec: sandbox.Spec{Template: "gone"}},
			"an unknown root":     {ID: s.ID, Spec: sandbox.Spec{Template: "base"}, Root: "snapshot:old"},
			"one not seen so far": {ID: "other", Spec: sandbox.Spec{Template: "base"}},
		} {
			if st := m.Standing(box); st.Known || st.Older {
				t.Errorf("%s: %+v", what, st)
			}
		}
		w.images.retag("")
		root := sandbox.Sandbox{ID: s.ID, Spec: sandbox.Spec{Template: "base"}, Root: "snapshot:1", Base: "image-of-base"}
		if st := m.Standing(root); st.Older || !st.Known {
			t.Errorf("a clone of one on the newest image: %+v", st)
		}
	})
}
