package guest

import (
	"encoding/json"
	"errors"
	"net/http"

	"sandboxd/internal/wire"
)

// routes are all requests that sandboxd can send over the link.
func (g *Guest) routes(link *descriptorConn) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathSetup, func(w http.ResponseWriter, r *http.Request) { g.serveSetup(w, r, link) })
	mux.HandleFunc("POST "+wire.PathExec, g.execs.serveStart)
	mux.HandleFunc("POST "+wire.PathExecs+"{id}/signal", g.execs.on(serveSignal))
	mux.HandleFunc("POST "+wire.PathExecs+"{id}/resize", g.execs.on(serveResize))
	mux.HandleFunc("GET "+wire.PathTerminals, g.terminals.serveList)
	mux.HandleFunc("POST "+wire.PathTerminals+"/{tab}/dial", g.terminals.serveDial)
	mux.HandleFunc("GET "+wire.PathTerminals+"/{tab}/text", g.terminals.serveText)
	mux.HandleFunc("DELETE "+wire.PathTerminals+"/{tab}", g.terminals.serveClose)
	mux.HandleFunc("GET "+wire.PathIDE, g.ide.serveStatus)
	mux.HandleFunc("POST "+wire.PathIDE+"/dial", g.ide.serveDial)
	mux.HandleFunc("GET "+wire.PathServices, g.services.serveList)
	mux.HandleFunc("POST "+wire.PathServices+"/{name}/start", g.services.on(serveServiceStart))
	mux.HandleFunc("POST "+wire.PathServices+"/{name}/restart", g.services.on(serveServiceRestart))
	mux.HandleFunc("POST "+wire.PathServices+"/{name}/stop", g.services.on(serveServiceStop))
	mux.HandleFunc("GET "+wire.PathLogs, g.services.lines.serve)
	mux.HandleFunc("GET "+wire.PathPorts, g.ports.serveList)
	mux.HandleFunc("GET "+wire.PathPortsWatch, g.ports.serveWatch)
	mux.HandleFunc("POST "+wire.PathModels+"/accept", func(w http.ResponseWriter, r *http.Request) { g.models.serveAccept(w, r, link) })
	mux.HandleFunc("POST "+wire.PathModels+"/{number}/dial", g.models.serveDial)
	mux.Handle("POST "+wire.PathFiles+"{verb}", g.files)
	g.kept.routes(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.begin() {
			return // its connection is closed
		}
		defer g.serving.Done()
		defer g.settler.worked()
		g.settler.worked()
		if r.Method == http.MethodConnect {
			g.servePort(w, r, link)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// fail answers with err's Problem, or with an unavailable one.
func fail(w http.ResponseWriter, err error) {
	var p *wire.Problem
	if !errors.As(err, &p) {
		p = &wire.Problem{Code: wire.CodeUnavailable, Message: err.Error()}
	}
	p.Check()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Status())
	json.NewEncoder(w).Encode(p)
}

func answer(w http.ResponseWriter, m wire.Message) {
	b, err := wire.Encode(wire.MaxReply, m)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}

func problem(code, message string) error { return &wire.Problem{Code: code, Message: message} }
