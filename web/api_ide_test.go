package web

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/ide"
)

// fakeIDE has VS Code being built, and then ready.
type fakeIDE struct {
	mu sync.Mutex
	on map[string]bool
}

func (f *fakeIDE) Status(ctx context.Context, h access.Handle) (ide.Status, error) {
	name := h.Name()
	if _, err := h.Current(ctx); err != nil {
		return ide.Status{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	st := ide.Status{State: ide.Off, URL: "http://code-" + name + ".localhost:8080/"}
	if f.on[name] {
		st.Enabled, st.State, st.Progress = true, ide.Building, ide.Progress{Step: 3, Steps: 12, Line: "compiling", Part: 0.256}
	}
	return st, nil
}

func (f *fakeIDE) Enable(ctx context.Context, h access.Handle, on bool) (ide.Status, error) {
	name := h.Name()
	if name == "full" {
		return ide.Status{}, fault.New(fault.Unavailable, "The store does not answer.")
	}
	f.mu.Lock()
	if f.on == nil {
		f.on = map[string]bool{}
	}
	f.on[name] = on
	f.mu.Unlock()
	return f.Status(ctx, h)
}

const labIDE = lab + "/ide"

func TestIDE_IsSwitchedOnAndOff(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	off := ideShape{State: "off", URL: "http://code-lab.localhost:8080/"}
	on := ideShape{Enabled: true, State: "building", URL: off.URL, Progress: &ideProgress{Step: 3, Steps: 12, Percent: 25, Line: "compiling"}}
	for _, step := range []struct {
		method, body string
		want         ideShape
	}{
		{"GET", "", off}, {"PUT", `{"enabled":true}`, on}, {"GET", "", on}, {"PUT", `{"enabled":true}`, on}, {"PUT", `{"enabled":false}`, off}, {"GET", "", off},
	} {
		var got ideShape
		w.call("ada", step.method, labIDE, step.body).is(http.StatusOK).into(&got)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s %s:\n%s", step.method, step.body, diff)
		}
	}
}

func TestIDE_RefusesWhatItCannotRead(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "PUT", labIDE, `{}`).problem(http.StatusBadRequest, "invalid", "enabled")
	w.call("ada", "PUT", labIDE, `{"enabled":"yes"}`).is(http.StatusBadRequest)
	w.call("ada", "PUT", labIDE, `{"enabled":true,"more":1}`).is(http.StatusBadRequest)
}

func TestIDE_IsItsOwnersAlone(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("bob", "GET", labIDE, "").problem(http.StatusNotFound, "not_found", "")
	w.call("bob", "PUT", labIDE, `{"enabled":true}`).problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "GET", apiPrefix+"/sandboxes/none/ide", "").problem(http.StatusNotFound, "not_found", "")
	w.call("", "PUT", labIDE, `{"enabled":true}`).is(http.StatusUnauthorized)
}
