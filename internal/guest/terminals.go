package guest

import (
	"net/http"

	"sandboxd/internal/wire"
)

func (g *Guest) tabs() (Terminals, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.terminals == nil {
		return nil, problem(wire.CodeUnavailable, "This sandbox has no terminals.")
	}
	return g.terminals, nil
}

// tab gives the tabs and the name of the one that the request is about.
func (g *Guest) tab(r *http.Request) (Terminals, string, error) {
	name := r.PathValue("tab")
	if wire.CheckTab(name) != nil {
		return nil, "", problem(wire.CodeInvalid, "A terminal cannot have that name.")
	}
	t, err := g.tabs()
	return t, name, err
}

func (g *Guest) serveTerminals(w http.ResponseWriter, r *http.Request) {
	t, err := g.tabs()
	if err != nil {
		fail(w, err)
		return
	}
	list := wire.Terminals(t.List())
	answer(w, &list)
}

func (g *Guest) serveTerminal(w http.ResponseWriter, r *http.Request) {
	t, name, err := g.tab(r)
	if err != nil {
		fail(w, err)
		return
	}
	conn, err := t.Dial(r.Context(), name)
	if err != nil {
		fail(w, err)
		return
	}
	join(w, r, conn, terminalPause)
}

func (g *Guest) serveTerminalText(w http.ResponseWriter, r *http.Request) {
	t, name, err := g.tab(r)
	if err == nil {
		err = t.Text(r.Context(), name, w)
	}
	if err != nil {
		fail(w, err)
	}
}

func (g *Guest) serveCloseTerminal(w http.ResponseWriter, r *http.Request) {
	t, name, err := g.tab(r)
	if err == nil {
		err = t.Close(name)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
