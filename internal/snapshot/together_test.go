package snapshot_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/snapshot"
)

func TestService_ManyAtOnceLeaveWhatIsListedAndNoMore(t *testing.T) {
	for seed := range uint64(6) {
		within(t, func(c *snapshot.Config) { c.Most = 20 }, func(w *world, box sandbox.Sandbox) {
			boxes := []sandbox.Sandbox{box, w.create("two")}
			for _, op := range []sandboxtest.Op{sandboxtest.OpCommit, sandboxtest.OpCopyOut, sandboxtest.OpCopyIn} {
				w.engine.Delay(op, time.Second)
			}
			var works sync.WaitGroup
			for i := range uint64(6) {
				works.Go(func() { w.act(rand.New(rand.NewPCG(seed, i)), boxes) })
			}
			works.Wait()
			w.delete(boxes[1])
			<-time.After(2 * time.Hour)
			w.wantTruth()
			w.restart()
			w.wantTruth()
		})
	}
}

// act does things at random; each may be refused.
func (w *world) act(r *rand.Rand, boxes []sandbox.Sandbox) {
	for range 15 {
		box := boxes[r.IntN(len(boxes))]
		list := w.List(func(s snapshot.Snapshot) bool { return s.SandboxID == box.ID })
		some := ""
		if len(list) > 0 {
			some = list[r.IntN(len(list))].ID
		}
		ctx := w.t.Context()
		var err error
		switch r.IntN(8) {
		case 0, 1:
			_, _, err = w.Begin(ctx, box, snapshot.Ask{Kind: snapshot.Automatic})
		case 2:
			_, _, err = w.Begin(ctx, box, snapshot.Ask{Name: "named"})
		case 3:
			err = w.Delete(ctx, some)
		case 4:
			_, err = w.Restore(ctx, box, some)
		case 5:
			_, err = w.Clone(ctx, box, snapshot.CloneAsk{Owner: "ann", Count: 1 + r.IntN(3), Snapshot: some})
		case 6:
			_, err = w.Edit(ctx, some, "edited", "")
		case 7:
			w.engine.Fail(sandboxtest.OpCopyOut, errDown)
			_, err = w.Clone(ctx, box, snapshot.CloneAsk{Owner: "ann", Count: 1})
		}
		if fault.Is(err, fault.Internal) {
			w.t.Errorf("unclassified: %v", err)
		}
		<-time.After(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
}

// wantTruth checks that memory, store and engine agree.
func (w *world) wantTruth() {
	w.t.Helper()
	boxes, _, err := w.m.List(w.t.Context(), sandbox.Filter{})
	w.ok(err)
	list, err := w.store.List(w.t.Context())
	w.ok(err)
	heads, err := w.store.Heads(w.t.Context())
	w.ok(err)
	ids := []string{""}
	for _, snap := range list {
		ids = append(ids, snap.ID)
	}
	images := slices.Clone(ids[1:])
	for _, b := range boxes {
		if b.State != sandbox.Running {
			w.t.Errorf("%s is %s: %s", b.Name, b.State, b.Problem)
		}
		if b.Root != "" && !slices.Contains(images, b.Root[len(sandboxtest.FakeImage("")):]) {
			images = append(images, b.Root[len(sandboxtest.FakeImage("")):])
		}
		if h := heads[b.ID]; h.Snapshot != w.Head(b.ID) || !slices.Contains(ids, h.Snapshot) || !slices.Contains(ids, h.Undo) {
			w.t.Errorf("head of %s is %+v, in memory %q", b.Name, h, w.Head(b.ID))
		}
	}
	for _, snap := range list {
		got, err := w.Snapshot(snap.ID)
		if err != nil || got.Parent != snap.Parent || got.Kind != snap.Kind || got.Name != snap.Name || !slices.Contains(ids, snap.Parent) {
			w.t.Errorf("stored %+v, in memory %+v, %v", snap, got, err)
		}
		if !slices.ContainsFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == snap.SandboxID }) {
			w.t.Errorf("the sandbox of %+v is gone", snap)
		}
	}
	w.wantRows(ids[1:]...)
	w.wantParts(slices.Clone(ids[1:]), images)
}
