package sandboxtest

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// homeFor opens that of a sandbox for a snapshot.
func (h *homesTest) homeFor(id, snapshot string) sandbox.Home {
	h.t.Helper()
	home, err := h.s.Homes.OpenHome(h.ctx, id, snapshot)
	if err != nil {
		h.t.Fatalf("open: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = append(h.opened, home)
	return home
}

func (h *homesTest) closed(home sandbox.Home) {
	h.t.Helper()
	if err := home.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
}

// copyOut copies a home for a snapshot, whose copy is removed at the test's end at the latest.
func (h *homesTest) copyOut(id, snapshot string) archive.Stats {
	h.t.Helper()
	home := h.homeFor(id, snapshot)
	s, err := home.CopyOut(h.ctx, ignore)
	if err != nil {
		h.t.Fatalf("copy out: %v", err)
	}
	h.closed(home)
	return s
}

func (h *homesTest) copyIn(id, snapshot string) archive.Stats {
	h.t.Helper()
	home := h.homeFor(id, snapshot)
	s, err := home.CopyIn(h.ctx, ignore)
	if err != nil {
		h.t.Fatalf("copy in: %v", err)
	}
	h.closed(home)
	return s
}

func (h *homesTest) copies(want ...string) {
	h.t.Helper()
	got, _, err := h.s.Snapshots.Parts(h.ctx)
	slices.Sort(want)
	if err != nil || !slices.Equal(want, got) {
		h.t.Errorf("there are copies %q (%v), want %q", got, err, want)
	}
}

func (h *homesTest) removeCopies(snapshots ...string) {
	h.t.Helper()
	for _, id := range snapshots {
		if err := h.s.Snapshots.RemoveCopy(h.ctx, id); err != nil {
			h.t.Errorf("remove the copy: %v", err)
		}
	}
}

func homeCopied(t *testing.T, h *homesTest) {
	b, other, one, two := h.made(Patient), h.made(Patient), sandbox.NewID(), sandbox.NewID()
	h.put(b.ID, oldFiles())
	before, read := h.read(b.ID)
	out := h.copyOut(b.ID, one)
	h.same(b.ID, before)
	h.put(b.ID, newFiles())
	h.copyOut(b.ID, two)
	h.copies(one, two)
	for range 2 {
		in := h.copyIn(b.ID, one)
		want := read
		if h.s.Uncounted {
			want = archive.Stats{}
		}
		if d := cmp.Diff(want, out) + cmp.Diff(want, in); d != "" {
			t.Error(d)
		}
		h.same(b.ID, before)
	}
	h.copyIn(other.ID, two)
	h.has(other.ID, newFiles())
	h.copyOut(b.ID, two)
	h.copyIn(other.ID, two)
	h.same(other.ID, before)
	h.remove(b.ID) // which a copy outlives
	h.copyIn(other.ID, one)
	h.same(other.ID, before)
	h.removeCopies(one, two)
	h.copies()
}

func homeCopyAbsent(t *testing.T, h *homesTest) {
	b, id := h.made(Patient), sandbox.NewID()
	h.put(b.ID, oldFiles())
	home := h.homeFor(b.ID, id)
	_, err := home.CopyIn(h.ctx, ignore)
	h.kind(err, fault.NotFound)
	h.closed(home)
	h.has(b.ID, oldFiles())
	h.closed(h.homeFor(b.ID, id))
	h.copies()
}

func homeCopiedAtOnce(t *testing.T, h *homesTest) {
	from, id := h.made(Patient), sandbox.NewID()
	h.put(from.ID, oldFiles())
	h.copyOut(from.ID, id)
	var boxes sync.WaitGroup
	var made []string
	for range 3 {
		b := h.made(Patient)
		made = append(made, b.ID)
		boxes.Go(func() {
			home, err := h.s.Homes.OpenHome(h.ctx, b.ID, id)
			if err != nil {
				t.Error(err)
				return
			}
			defer home.Close()
			if _, err := home.CopyIn(h.ctx, ignore); err != nil {
				t.Error(err)
			}
		})
	}
	boxes.Wait()
	for _, id := range made {
		h.has(id, oldFiles())
	}
	h.removeCopies(id)
}

func homeCopyInUse(_ *testing.T, h *homesTest) {
	b, id := h.made(Patient), sandbox.NewID()
	h.removeCopies(id)
	h.copyOut(b.ID, id)
	home := h.homeFor(b.ID, id)
	h.kind(h.s.Snapshots.RemoveCopy(h.ctx, id), fault.Conflict)
	h.closed(home)
	h.removeCopies(id, id)
	h.copies()
}
