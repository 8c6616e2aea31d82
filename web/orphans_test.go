package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

func (f *fakeBoxes) Orphans() []sandbox.Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.orphans
}

func (f *fakeBoxes) take(id string) (i sandbox.Instance, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, i := range f.orphans {
		if i.ID == id {
			f.orphans = append(f.orphans[:n:n], f.orphans[n+1:]...)
			return i, nil
		}
	}
	return i, fault.New(fault.NotFound, "There is none.")
}

func (f *fakeBoxes) Adopt(ctx context.Context, id, name, owner string) (sandbox.Sandbox, error) {
	if _, err := f.store.ByName(ctx, name); err == nil || name == "" {
		return sandbox.Sandbox{}, &fault.Error{Kind: fault.Conflict, Field: "name", Message: "Another sandbox has the name."}
	}
	i, err := f.take(id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	box := sandbox.Sandbox{ID: id, Name: name, Owner: owner, Spec: sandbox.Spec{Template: i.Template}, State: sandbox.Starting, Created: stageTime, Changed: stageTime}
	return box, f.store.Insert(ctx, box)
}

func (f *fakeBoxes) RemoveOrphan(_ context.Context, id string) error {
	_, err := f.take(id)
	return err
}

var someOrphans = []sandbox.Instance{
	{ID: "feedfeedfeedfeed", Name: "lab", Template: "base", Image: "sandboxd/base:1", Running: true},
	{ID: "deaddeaddeaddead", Name: "old", Image: "debian:13", Partial: true},
}

func TestOrphans_PageOffersThemToAdmins(t *testing.T) {
	s := newStage(t)
	s.boxes.orphans = someOrphans
	if s.get("ada", "/").is(http.StatusOK).find("#orphans") != nil {
		t.Error("a member is shown them")
	}
	notice := textOf(s.get("root", "/").need("#orphans"))
	for _, want := range []string{"2 sandboxes without a record", "lab Base, running", "old debian:13, only its volume is left"} {
		if !strings.Contains(notice, want) {
			t.Errorf("%q is not in %q", want, notice)
		}
	}
	s.post("ada", "/orphans/feedfeedfeedfeed/adopt", nil).is(http.StatusForbidden)
	s.post("ada", "/orphans/feedfeedfeedfeed/remove", nil).is(http.StatusForbidden)

	taken := s.post("root", "/orphans/feedfeedfeedfeed/adopt", nil).is(http.StatusConflict)
	if attr(taken.need("#adopt-name"), "value") != "lab" || taken.find("#adopt-name-fault") == nil {
		t.Error("a taken name does not lead to the form for another one")
	}
	s.post("root", "/orphans/feedfeedfeedfeed/adopt", fields("name", "lab-2")).leads("/sandboxes/lab-2")

	s.get("root", "/orphans/deaddeaddeaddead/remove").is(http.StatusOK).need("button.danger")
	s.post("root", "/orphans/deaddeaddeaddead/remove", nil).leads("/")
	s.get("root", "/orphans/deaddeaddeaddead/remove").is(http.StatusNotFound)
	if s.get("root", "/").find("#orphans") != nil {
		t.Error("nothing is left, and still there is a notice")
	}
}

// withOrphans is the Manager with orphans that the engine does not have.
type withOrphans struct {
	*sandbox.Manager
	fake *fakeBoxes
}

func (w withOrphans) Orphans() []sandbox.Instance { return w.fake.Orphans() }

func (w withOrphans) Adopt(ctx context.Context, id, name, owner string) (sandbox.Sandbox, error) {
	return w.fake.Adopt(ctx, id, name, owner)
}

func (w withOrphans) RemoveOrphan(ctx context.Context, id string) error {
	return w.fake.RemoveOrphan(ctx, id)
}

func TestOrphans_API(t *testing.T) {
	w := newWorld(t)
	fake := newFakeBoxes()
	fake.orphans = someOrphans
	w.server.cfg.Sandboxes = withOrphans{w.manager, fake}
	const one = "/api/v1/orphans/feedfeedfeedfeed"
	for _, c := range [][2]string{{"GET", "/api/v1/orphans"}, {"POST", one + "/adopt"}, {"DELETE", one}} {
		w.call("ada", c[0], c[1], "").problem(http.StatusForbidden, "forbidden", "")
	}
	golden(t, "orphans", w.call("root", "GET", "/api/v1/orphans", "").is(http.StatusOK).Body.Bytes())
	w.call("root", "POST", one+"/adopt", "").problem(http.StatusConflict, "conflict", "name")
	got := w.call("root", "POST", one+"/adopt", `{"name":"other"}`).is(http.StatusCreated)
	if s := got.sandbox(); s.Name != "other" || s.Owner != "root" || got.Header().Get("Location") != "/api/v1/sandboxes/other" {
		t.Errorf("adopted: %+v at %s", s, got.Header().Get("Location"))
	}
	w.call("root", "POST", one+"/adopt", `{"name":"again"}`).problem(http.StatusNotFound, "not_found", "")
	w.call("root", "DELETE", "/api/v1/orphans/deaddeaddeaddead", "").is(http.StatusNoContent)
	w.call("root", "DELETE", "/api/v1/orphans/deaddeaddeaddead", "").problem(http.StatusNotFound, "not_found", "")
}
