package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sandboxd/internal/sandbox"
)

// deleting runs f with a sandbox of ada's whose delete is under way until finish is called.
func deleting(t *testing.T, f func(t *testing.T, w *world, finish func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.box("ada", "lab")
		gate := make(chan struct{})
		w.engine.mu.Lock()
		w.engine.gate = gate
		w.engine.mu.Unlock()
		w.call("ada", "DELETE", lab, "").is(http.StatusAccepted)
		f(t, w, sync.OnceFunc(func() { close(gate) }))
	})
}

// TestGone_IsToldToWhoAsksDuringTheDelete asks for what waits in line behind a delete, which then ends.
func TestGone_IsToldToWhoAsksDuringTheDelete(t *testing.T) {
	for _, a := range [][3]string{
		{"POST", "/start", ""}, {"POST", "/start?wait=ready", ""}, {"POST", "/stop", ""}, {"POST", "/restart", ""}, {"POST", "/sleep", ""},
		{"POST", "/sleep", `{"frozen":true}`}, {"PATCH", "", `{"label":"x"}`}, {"PATCH", "", `{"freeze_after":"1h"}`}, {"DELETE", "", ""},
	} {
		deleting(t, func(t *testing.T, w *world, finish func()) {
			var got answer
			var asked sync.WaitGroup
			asked.Go(func() { got = w.call("ada", a[0], lab+a[1], a[2]) })
			w.call("bob", a[0], lab+a[1], a[2]).problem(http.StatusNotFound, "not_found", "")
			synctest.Wait()
			finish()
			asked.Wait()
			p := got.problem(http.StatusGone, "gone", "")
			later := w.call("ada", "GET", lab, "").problem(http.StatusGone, "gone", "")
			if p.Detail != later.Detail || !strings.HasPrefix(p.Detail, "lab was deleted on ") {
				t.Errorf("%s %s %s: told %q, and then %q", a[0], a[1], a[2], p.Detail, later.Detail)
			}
		})
	}
}

// vanishing deletes each sandbox, for another user, just before it is started.
type vanishing struct{ *fakeBoxes }

func (v vanishing) Start(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	box, err := v.Current(ctx, ref)
	if err == nil {
		err = v.store.Delete(ctx, box.ID)
	}
	if err != nil {
		return box, err
	}
	return v.fakeBoxes.Start(ctx, ref)
}

func TestGone_IsToldToABrowserToo(t *testing.T) {
	s := newStage(t)
	s.put("ada", "lab", nil)
	cfg := s.server.cfg
	cfg.Sandboxes = vanishing{s.boxes}
	s.server = New(cfg)
	s.post("bob", "/sandboxes/lab/start", nil).is(http.StatusNotFound)
	s.post("ada", "/sandboxes/lab/start", nil).is(http.StatusGone)
	s.post("bob", "/sandboxes/lab/start", nil).is(http.StatusNotFound)
}
