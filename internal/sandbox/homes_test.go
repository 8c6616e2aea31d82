package sandbox_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
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

var (
	oldFiles = map[string]string{"a": "old"}
	newFiles = map[string]string{"b": "new", "c": "new"}
)

// packed is an archive of files.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: "home/" + name, Mode: 0o644, Size: int64(len(files[name]))})
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fill replaces a home by one with newFiles.
func fill(t *testing.T) func(ctx context.Context, h sandbox.Home) error {
	return func(ctx context.Context, h sandbox.Home) error {
		_, err := h.Replace(ctx, bytes.NewReader(packed(t, newFiles)), sandbox.Content{Prefix: "home/"}, func(archive.Stats) {})
		return err
	}
}

// read reads a home, and says whether it has oldFiles.
func read(ctx context.Context, c sandbox.Capture) error {
	var b bytes.Buffer
	if _, err := c.Home.Read(ctx, &b, "home/", func(archive.Stats) {}); err != nil {
		return err
	}
	if !bytes.Contains(b.Bytes(), []byte("home/a")) {
		return errors.New("the file is missing")
	}
	return nil
}

// homed is brought, with oldFiles in its home.
func homed(t *testing.T, w *world, m *sandbox.Manager, state sandbox.State) sandbox.Sandbox {
	t.Helper()
	s := brought(t, m, state)
	w.engine.PutHome(s.ID, oldFiles)
	w.engine.PutCopy(toSnapshot.Snapshot, newFiles)
	return s
}

// wantHome wants the home to have just these files.
func wantHome(t *testing.T, w *world, s sandbox.Sandbox, files map[string]string, when string) {
	t.Helper()
	got, whole := w.engine.HomeFiles(s.ID)
	if !whole || !maps.Equal(got, files) {
		t.Errorf("%s: home has %v (whole: %v), want %v", when, got, whole, files)
	}
	if w.engine.HomeOpen(s.ID) {
		t.Errorf("%s: its home is still open", when)
	}
}

func TestCapture_ReadsWhileNothingRuns(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, state)
			err := m.Capture(t.Context(), s.Ref(), false, func(ctx context.Context, c sandbox.Capture) error {
				now, err := m.Sandbox(ctx, "lab")
				i, _ := w.engine.instance(t, s.ID)
				if err != nil || now.State != sandbox.Capturing || !c.Still || c.Sandbox.State != state || i.Running && !i.Frozen {
					t.Errorf("%s: it is %s and was %s, still %v, %v; the engine has %+v", state, now.State, c.Sandbox.State, c.Still, err, i)
				}
				return read(ctx, c)
			})
			if err != nil {
				t.Errorf("%s: %v", state, err)
			}
			settled(t, m, "lab", state)
			truly(t, w, m, s, "captured when "+string(state))
			wantHome(t, w, s, oldFiles, string(state))
			if w.engine.Starts(s.ID) > 2 {
				t.Errorf("%s: started %d times", state, w.engine.Starts(s.ID))
			}
		})
	}
}

func TestCapture_LiveLeavesItRunning(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		err := m.Capture(t.Context(), s.Ref(), true, func(context.Context, sandbox.Capture) error {
			if now, err := m.Awake(t.Context(), s.Ref()); err != nil || now.State != sandbox.Running || w.engine.Frozen(s.ID) {
				t.Errorf("%s, %v", now.State, err)
			}
			return nil
		})
		if err != nil || w.engine.Calls(sandboxtest.OpFreeze) != 0 {
			t.Errorf("%v, %d freezes", err, w.engine.Calls(sandboxtest.OpFreeze))
		}
	})
}

func TestCapture_AUseWaitsAndAnEndOfTheCallerCutsItOff(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		ctx, cancel := context.WithCancel(t.Context())
		begun := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- m.Capture(ctx, s.Ref(), false, func(ctx context.Context, _ sandbox.Capture) error {
				close(begun)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		<-begun
		used := make(chan error, 1)
		go func() {
			_, err := m.Awake(t.Context(), s.Ref())
			used <- err
		}()
		pass(time.Minute)
		select {
		case err := <-used:
			t.Fatalf("used while it is frozen: %v", err)
		default:
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		if err := <-used; err != nil {
			t.Error(err)
		}
		truly(t, w, m, s, "cut off")
	})
}

func TestCapture_ThatNeverBeganDoesNotBegin(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		hold, held := make(chan struct{}), make(chan struct{})
		go m.Capture(t.Context(), s.Ref(), true, func(context.Context, sandbox.Capture) error { close(held); <-hold; return nil })
		<-held
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := m.Capture(ctx, s.Ref(), false, func(context.Context, sandbox.Capture) error { t.Error("began"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(hold)
		pass(time.Minute)
		truly(t, w, m, s, "given up")
	})
}

func TestRestore_ReplacesTheHomeAndStartsItAgain(t *testing.T) {
	for state, want := range map[sandbox.State]sandbox.State{
		sandbox.Running: sandbox.Running, sandbox.Frozen: sandbox.Asleep, sandbox.Asleep: sandbox.Asleep, sandbox.Stopped: sandbox.Stopped,
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, state)
			if err := m.Restore(t.Context(), s.Ref(), fill(t)); err != nil {
				t.Errorf("%s: %v", state, err)
			}
			settled(t, m, "lab", want)
			wantHome(t, w, s, newFiles, string(state))
			truly(t, w, m, s, "restored when "+string(state))
		})
	}
}

func TestRestore_ThatFailsLeavesItAsItWas(t *testing.T) {
	broken := errors.New("the archive is broken")
	for what, fill := range map[string]func(ctx context.Context, h sandbox.Home) error{
		"fails": func(context.Context, sandbox.Home) error { return broken },
		"breaks off": func(ctx context.Context, h sandbox.Home) error {
			_, err := h.Replace(ctx, &brokenReader{packed(t, newFiles)[:700], broken}, sandbox.Content{Prefix: "home/"}, func(archive.Stats) {})
			return err
		},
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, sandbox.Running)
			if err := m.Restore(t.Context(), s.Ref(), fill); !errors.Is(err, broken) {
				t.Errorf("%s: %v", what, err)
			}
			settled(t, m, "lab", sandbox.Running)
			wantHome(t, w, s, oldFiles, what)
		})
	}
}

func TestRestore_IsFinishedWhenItIsCancelledTooLate(t *testing.T) {
	for what, swapping := range map[string]bool{"as it starts again": false, "as the new home is swapped in": true} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, sandbox.Running)
			if swapping {
				w.engine.CutAfter(sandboxtest.AfterUnpack)
			}
			ctx, cancel := context.WithCancel(t.Context())
			err := m.Restore(ctx, s.Ref(), func(ctx context.Context, h sandbox.Home) error {
				defer cancel()
				return fill(t)(ctx, h)
			})
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			settled(t, m, "lab", sandbox.Running)
			wantHome(t, w, s, newFiles, what)
			truly(t, w, m, s, what)
		})
	}
}

func TestCreateFrom_IsFinishedWhenItsCallerLeavesTooLate(t *testing.T) {
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		ctx, cancel := context.WithCancel(t.Context())
		made, err := m.CreateFrom(ctx, sandbox.Request{Name: "lab-2", Template: "base"}, sandbox.Origin{Fill: func(ctx context.Context, h sandbox.Home) error {
			defer cancel()
			return fill(t)(ctx, h)
		}})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", made, err)
		}
		settled(t, m, "lab-2", sandbox.Running)
	})
}

type brokenReader struct {
	rest []byte
	err  error
}

func (r *brokenReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestDelete_InterruptsWhatIsDoneWithTheHome(t *testing.T) {
	for what, do := range map[string]func(m *sandbox.Manager, s sandbox.Sandbox, begun chan struct{}) error{
		"capture": func(m *sandbox.Manager, s sandbox.Sandbox, begun chan struct{}) error {
			return m.Capture(context.Background(), s.Ref(), false, func(ctx context.Context, _ sandbox.Capture) error {
				close(begun)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		},
		"capture that says only that it was cut off": func(m *sandbox.Manager, s sandbox.Sandbox, begun chan struct{}) error {
			return m.Capture(context.Background(), s.Ref(), false, func(ctx context.Context, _ sandbox.Capture) error {
				close(begun)
				<-ctx.Done()
				return ctx.Err()
			})
		},
		"restore": func(m *sandbox.Manager, s sandbox.Sandbox, begun chan struct{}) error {
			return m.Restore(context.Background(), s.Ref(), func(ctx context.Context, _ sandbox.Home) error {
				close(begun)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		},
	} {
		play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
			s := homed(t, w, m, sandbox.Running)
			begun, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- do(m, s, begun) }()
			<-begun
			if _, err := m.Delete(t.Context(), s.Ref()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if err := <-ended; !fault.Is(err, fault.Gone) {
				t.Errorf("%s: ended with %v", what, err)
			}
			if _, err := m.Wait(t.Context(), s.Ref()); !fault.Is(err, fault.Gone) {
				t.Errorf("%s: %v", what, err)
			}
			if _, exists := w.engine.instance(t, s.ID); exists {
				t.Errorf("%s: the engine still has it", what)
			}
		})
	}
}

func TestCreateFrom_HasTheHomeBeforeItStarts(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		on := true
		r := sandbox.Request{Name: "lab", Template: "base", Owner: "ann", Limits: sandbox.Limits{CPUs: 64, Memory: 1 << 40, Pids: 1 << 30}}
		s, err := m.CreateFrom(t.Context(), r, sandbox.Origin{
			Overrides: sandbox.Overrides{HasServices: true, Services: []catalog.Service{{Name: "web", Command: []string{"serve"}}}, IDE: &on},
			Fill: func(ctx context.Context, h sandbox.Home) error {
				now, err := m.Sandbox(ctx, "lab")
				if i, _ := w.engine.instance(t, now.ID); err != nil || i.Running {
					t.Errorf("%+v, %v", i, err)
				}
				return fill(t)(ctx, h)
			},
		})
		if err != nil || s.State != sandbox.Running || s.CutOff != "" || s.Spec.Limits.CPUs != 4 || !s.Overrides.HasServices || !m.OffersIDE(s) {
			t.Errorf("%+v, %v", s, err)
		}
		wantHome(t, w, s, newFiles, "created")
		truly(t, w, m, s, "created")
		if _, err := m.CreateFrom(t.Context(), r, sandbox.Origin{Fill: fill(t)}); !fault.Is(err, fault.Conflict) || fault.FieldOf(err) != "name" {
			t.Errorf("of the same name: %v", err)
		}
		named, err := m.CreateFrom(t.Context(), sandbox.Request{Template: "base"}, sandbox.Origin{Fill: fill(t)})
		if err != nil || named.Name == "" || named.Name == "lab" {
			t.Errorf("without a name: %+v, %v", named, err)
		}
	})
}

func TestCreateFrom_ThatFailsLeavesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		broken := errors.New("broken")
		_, err := m.CreateFrom(t.Context(), sandbox.Request{Name: "lab", Template: "base"}, sandbox.Origin{
			Fill: func(context.Context, sandbox.Home) error { return broken },
		})
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		wantNothing(t, w, m, "failed")
	})
}

func wantNothing(t *testing.T, w *world, m *sandbox.Manager, when string) {
	t.Helper()
	if s, err := m.Sandbox(t.Context(), "lab"); !fault.Is(err, fault.NotFound) {
		t.Errorf("%s: %+v, %v", when, s, err)
	}
	if all, err := w.engine.Runtime.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("%s: the engine has %+v, %v", when, all, err)
	}
}

// TestCreateFrom_ACrashBeforeAnyCallLeavesAllOrNothing kills the Manager before each thing that it does outside.
func TestCreateFrom_ACrashBeforeAnyCallLeavesAllOrNothing(t *testing.T) {
	outcomes := map[bool]int{}
	strikes(t, 30, func(t *testing.T, w *world) (end, do func()) {
		m, end := w.run(t)
		synctest.Wait()
		return end, func() {
			_, _ = m.CreateFrom(t.Context(), sandbox.Request{Name: "lab", Template: "base"}, sandbox.Origin{Fill: fill(t)}) // dies under us
		}
	}, func(t *testing.T, w *world, m *sandbox.Manager, struck string) {
		s, err := m.Sandbox(t.Context(), "lab")
		outcomes[err == nil]++
		if err != nil {
			wantNothing(t, w, m, "killed before "+struck)
			return
		}
		wantHome(t, w, s, newFiles, "killed before "+struck)
		truly(t, w, m, s, "killed before "+struck)
	})
	if outcomes[true] < 2 || outcomes[false] < 2 {
		t.Errorf("outcomes: %v", outcomes)
	}
}

// TestRestore_ACrashWhileItIsSwappedIn leaves the new home, before anything runs in it.
func TestRestore_ACrashWhileItIsSwappedIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		m, end := w.run(t)
		synctest.Wait()
		s := homed(t, w, m, sandbox.Running)
		w.engine.CutAfter(sandboxtest.AfterUnpack)
		err := m.Restore(t.Context(), s.Ref(), func(ctx context.Context, h sandbox.Home) error {
			err := fill(t)(ctx, h)
			w.fate.arm(0, true, errFate) // sandboxd is killed here
			return err
		})
		if !errors.Is(err, sandboxtest.ErrCut) {
			t.Error(err)
		}
		end()
		w.fate.rest()
		if _, whole := w.engine.HomeFiles(s.ID); whole {
			t.Error("it was not cut off")
		}
		m, end = w.run(t)
		defer end()
		pass(10 * time.Minute)
		settled(t, m, "lab", sandbox.Running)
		wantHome(t, w, s, newFiles, "after the crash")
	})
}

func TestCapture_RefusesWhatIsNotSettled(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		s := homed(t, w, m, sandbox.Running)
		w.engine.refuse(sandboxtest.OpStop, fault.New(fault.Unavailable, "Away."))
		if _, err := m.Stop(t.Context(), s.Ref()); err != nil {
			t.Fatal(err)
		}
		if err := m.Capture(t.Context(), s.Ref(), false, read); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "stopping") {
			t.Error(err)
		}
		if err := m.Restore(t.Context(), s.Ref(), fill(t)); !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	})
}
