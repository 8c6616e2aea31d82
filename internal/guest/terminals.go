package guest

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"sandboxd/internal/wire"
)

// terminals serves the tabs of the sandbox. Safe for concurrent use.
type terminals struct {
	open   Tabs                             // nil when there are none
	opened chan func(context.Context) error // runs the tabs, sent at most once
	log    *slog.Logger

	mu   sync.Mutex
	tabs Terminals // nil until start
}

// start makes the tabs once; they outlive connections.
func (t *terminals) start(sh Shell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tabs != nil || t.open == nil {
		return
	}
	tabs, run := t.open(sh)
	t.tabs = tabs
	t.opened <- run
}

// run lets the tabs live until ctx ends.
func (t *terminals) run(ctx context.Context) {
	select {
	case <-ctx.Done():
	case run := <-t.opened:
		if err := run(ctx); err != nil && ctx.Err() == nil {
			t.log.Error("terminals have ended", "err", err)
		}
	}
}

func (t *terminals) get() (Terminals, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tabs == nil {
		return nil, problem(wire.CodeUnavailable, "This sandbox has no terminals.")
	}
	return t.tabs, nil
}

// tab gives the tabs and the name of the one in the request.
func (t *terminals) tab(r *http.Request) (Terminals, string, error) {
	name := r.PathValue("tab")
	if wire.CheckTab(name) != nil {
		return nil, "", problem(wire.CodeInvalid, "A terminal cannot have that name.")
	}
	tabs, err := t.get()
	return tabs, name, err
}

func (t *terminals) serveList(w http.ResponseWriter, r *http.Request) {
	tabs, err := t.get()
	if err != nil {
		fail(w, err)
		return
	}
	list := wire.Terminals(tabs.List())
	answer(w, &list)
}

func (t *terminals) serveDial(w http.ResponseWriter, r *http.Request) {
	tabs, name, err := t.tab(r)
	if err != nil {
		fail(w, err)
		return
	}
	conn, err := tabs.Dial(r.Context(), name)
	if err != nil {
		fail(w, err)
		return
	}
	join(w, r, conn, terminalPause)
}

func (t *terminals) serveText(w http.ResponseWriter, r *http.Request) {
	tabs, name, err := t.tab(r)
	if err == nil {
		err = tabs.Text(r.Context(), name, w)
	}
	if err != nil {
		fail(w, err)
	}
}

func (t *terminals) serveClose(w http.ResponseWriter, r *http.Request) {
	tabs, name, err := t.tab(r)
	if err == nil {
		err = tabs.Close(name)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
