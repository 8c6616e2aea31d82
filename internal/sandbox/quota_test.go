package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const gib = 1 << 30

// quotas is a fake storage pool.
type quotas struct {
	mu    sync.Mutex
	homes map[string]int64 // limits by id
	fails error            // of the next limit
	die   func()           // called in place of the next limit
}

// LimitHome implements sandbox.Quota.
func (q *quotas) LimitHome(_ context.Context, id string, bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if die := q.die; die != nil {
		q.die = nil
		die()
		return errors.New("killed")
	}
	if err := q.fails; err != nil {
		q.fails = nil
		return err
	}
	q.homes[id] = bytes
	return nil
}

func (q *quotas) next(fails error, die func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fails, q.die = fails, die
}

func (q *quotas) limit(id string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.homes[id]
}

// withQuota plays with a storage pool, and templates that limit a home to 10 GiB.
func withQuota(t *testing.T, f func(t *testing.T, w *world, q *quotas, m *sandbox.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(), &quotas{homes: map[string]int64{}}
		w.quota, w.templates.disk = q, 10*gib
		m, end := w.run(t)
		defer end()
		synctest.Wait()
		f(t, w, q, m)
	})
}

func diskLimit(bytes int64) sandbox.LimitsChange { return sandbox.LimitsChange{Disk: &bytes} }

func disk(bytes int64) sandbox.Limits { return sandbox.Limits{Disk: bytes} }

func TestCreate_LimitsTheHomeAsAskedOrAsTheTemplateSays(t *testing.T) {
	withQuota(t, func(t *testing.T, w *world, q *quotas, m *sandbox.Manager) {
		for name, c := range map[string]struct {
			ask  sandbox.Request
			want int64
		}{
			"template": {sandbox.Request{Template: "base"}, 10 * gib},
			"asked":    {sandbox.Request{Template: "base", Limits: disk(30 * gib)}, 30 * gib},
			"least":    {sandbox.Request{Template: "base", Limits: disk(64 << 20)}, 64 << 20},
			"image":    {sandbox.Request{Image: "debian"}, 0},
		} {
			c.ask.Name = name
			s := create(t, m, c.ask)
			settled(t, m, name, sandbox.Running)
			spec, _ := w.engine.Spec(s.ID)
			if s.Spec.Limits.Disk != c.want || spec.Limits.Disk != c.want || q.limit(s.ID) != c.want {
				t.Errorf("%s: the row has %d, the container %d, the home %d", name, s.Spec.Limits.Disk, spec.Limits.Disk, q.limit(s.ID))
			}
		}
		for what, bytes := range map[string]int64{"too small": 64<<20 - 1, "negative": -1, "too large": 1<<50 + 1} {
			if _, _, err := m.Create(t.Context(), sandbox.Request{Template: "base", Limits: disk(bytes)}); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "disk" {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestCreate_WithoutAStoragePoolRefusesALimitAndIgnoresTheTemplates(t *testing.T) {
	play(t, func(t *testing.T, w *world, m *sandbox.Manager) {
		w.templates.change(func(c *templates) { c.disk = 10 * gib })
		_, _, err := m.Create(t.Context(), sandbox.Request{Template: "base", Limits: disk(gib)})
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "disk" || !strings.Contains(fault.Message(err), "has no storage pool") {
			t.Errorf("asked for: %v", err)
		}
		if s := create(t, m, sandbox.Request{Name: "lab"}); s.Spec.Limits.Disk != 0 {
			t.Errorf("limits %+v", s.Spec.Limits)
		}
		lab := settled(t, m, "lab", sandbox.Running)
		if _, err := m.Resize(t.Context(), lab.Ref(), diskLimit(gib)); !fault.Is(err, fault.Invalid) {
			t.Errorf("set: %v", err)
		}
	})
}

func TestCreate_OfOneFromBeforeTheStoragePoolFindsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.templates.disk = 10 * gib
		m, end := w.run(t)
		old := create(t, m, sandbox.Request{Name: "lab"})
		settled(t, m, "lab", sandbox.Running)
		end()
		w.quota = &quotas{homes: map[string]int64{}}
		m, end = w.run(t)
		defer end()
		again, created, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Template: "base"})
		if err != nil || created || again.ID != old.ID {
			t.Errorf("the same: %+v created %v, %v", again, created, err)
		}
		if _, _, err := m.Create(t.Context(), sandbox.Request{Name: "lab", Template: "base", Limits: disk(gib)}); !fault.Is(err, fault.Conflict) {
			t.Errorf("with a limit: %v", err)
		}
	})
}

func TestCreateFrom_HasTheLimitOfItsOrigin(t *testing.T) {
	from := sandbox.Limits{CPUs: 1, Memory: gib, Pids: 100}
	limited := from
	limited.Disk = 3 * gib
	withQuota(t, func(t *testing.T, w *world, _ *quotas, m *sandbox.Manager) {
		for what, c := range map[string]struct {
			limits sandbox.Limits
			want   int64
		}{"limited": {limited, 3 * gib}, "unlimited": {from, 0}, "unknown": {sandbox.Limits{}, 10 * gib}} {
			s, err := m.CreateFrom(t.Context(), sandbox.Request{Template: "base", Limits: c.limits}, sandbox.Origin{Fill: fill(t)})
			if err != nil || s.Spec.Limits.Disk != c.want {
				t.Errorf("%s: %+v, %v", what, s.Spec.Limits, err)
			}
		}
	})
	play(t, func(t *testing.T, _ *world, m *sandbox.Manager) {
		s, err := m.CreateFrom(t.Context(), sandbox.Request{Template: "base", Limits: limited}, sandbox.Origin{Fill: fill(t)})
		if err != nil || s.Spec.Limits != from {
			t.Errorf("without a storage pool: %+v, %v", s.Spec.Limits, err)
		}
	})
}

func TestResize_DiskChangesTheLimitAtOnceAndIsWholeOrNotAtAll(t *testing.T) {
	withQuota(t, func(t *testing.T, _ *world, q *quotas, m *sandbox.Manager) {
		create(t, m, sandbox.Request{Name: "lab"})
		lab := settled(t, m, "lab", sandbox.Running)
		check := func(what string, want int64) {
			t.Helper()
			s := settled(t, m, "lab", sandbox.Running)
			if s.Spec.Limits.Disk != want || q.limit(lab.ID) != want || s.Spec.Limits.CPUs != lab.Spec.Limits.CPUs {
				t.Errorf("%s: the row has %+v, the home %d", what, s.Spec.Limits, q.limit(lab.ID))
			}
		}
		if s, err := m.Resize(t.Context(), lab.Ref(), diskLimit(20*gib)); err != nil || s.Spec.Limits.Disk != 20*gib {
			t.Errorf("%+v, %v", s.Spec.Limits, err)
		}
		check("raised", 20*gib)
		if _, err := m.Resize(t.Context(), lab.Ref(), diskLimit(1)); fault.FieldOf(err) != "disk" {
			t.Errorf("too small: %v", err)
		}
		for _, kind := range []fault.Kind{fault.Conflict, fault.Unavailable} {
			q.next(fault.New(kind, "No."), nil)
			if _, err := m.Resize(t.Context(), lab.Ref(), diskLimit(5*gib)); !fault.Is(err, kind) {
				t.Errorf("refused: %v", err)
			}
			check("refused", 20*gib)
		}
		mustDo(t, func() (sandbox.Sandbox, error) { return m.Resize(t.Context(), lab.Ref(), diskLimit(0)) })
		check("lifted", 0)
	})
}

func TestResize_DiskCutOffHoldsAfterARestart(t *testing.T) {
	for what, rest := range map[string]func(t *testing.T, m *sandbox.Manager){
		"running": func(*testing.T, *sandbox.Manager) {},
		"stopped": func(t *testing.T, m *sandbox.Manager) {
			mustDo(t, func() (sandbox.Sandbox, error) { return m.Stop(t.Context(), ref(t, m, "lab")) })
			settled(t, m, "lab", sandbox.Stopped)
		},
	} {
		withQuota(t, func(t *testing.T, w *world, q *quotas, m *sandbox.Manager) {
			s := create(t, m, sandbox.Request{Name: "lab"})
			settled(t, m, "lab", sandbox.Running)
			rest(t, m)
			// Killed: the row is stored, and nothing after it is done.
			q.next(nil, func() { w.store.FailNextOf("Update", errors.New("killed")) })
			if _, err := m.Resize(t.Context(), s.Ref(), diskLimit(20*gib)); err == nil {
				t.Error("it is not cut off")
			}
			again, end := w.run(t)
			defer end()
			synctest.Wait()
			if what == "stopped" {
				mustDo(t, func() (sandbox.Sandbox, error) { return again.Start(t.Context(), s.Ref()) })
			}
			settled(t, again, "lab", sandbox.Running)
			if got, _ := again.Sandbox(t.Context(), "lab"); got.Spec.Limits.Disk != 20*gib || q.limit(s.ID) != 20*gib {
				t.Errorf("%s: the row has %d, the home %d", what, got.Spec.Limits.Disk, q.limit(s.ID))
			}
		})
	}
}
