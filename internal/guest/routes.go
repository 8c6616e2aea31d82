package guest

import (
	"encoding/json"
	"errors"
	"net/http"

	"sandboxd/internal/wire"
)

// routes is everything that sandboxd can ask over the link.
func (g *Guest) routes(link *descriptorConn) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathSetup, func(w http.ResponseWriter, r *http.Request) { g.serveSetup(w, r, link) })
	mux.HandleFunc("POST "+wire.PathExec, g.serveExec)
	mux.HandleFunc("POST "+wire.PathExecs+"{id}/signal", g.serveSignal)
	mux.HandleFunc("POST "+wire.PathExecs+"{id}/resize", g.serveResize)
	mux.HandleFunc("GET "+wire.PathTerminals, g.serveTerminals)
	mux.HandleFunc("POST "+wire.PathTerminals+"/{tab}/dial", g.serveTerminal)
	mux.HandleFunc("GET "+wire.PathTerminals+"/{tab}/text", g.serveTerminalText)
	mux.HandleFunc("DELETE "+wire.PathTerminals+"/{tab}", g.serveCloseTerminal)
	mux.HandleFunc("GET "+wire.PathIDE, g.serveIDE)
	mux.HandleFunc("POST "+wire.PathIDE+"/dial", g.serveIDEDial)
	mux.HandleFunc("DELETE "+wire.PathIDE, g.serveIDEStop)
	mux.HandleFunc("GET "+wire.PathServices, g.serveServices)
	mux.HandleFunc("GET "+wire.PathServices+"/{name}/log", g.serveServiceLog)
	mux.HandleFunc("GET "+wire.PathServices+"/{name}/follow", g.serveServiceFollow)
	mux.HandleFunc("POST "+wire.PathServices+"/{name}/start", g.serveServiceStart)
	mux.HandleFunc("POST "+wire.PathServices+"/{name}/restart", g.serveServiceRestart)
	mux.HandleFunc("POST "+wire.PathServices+"/{name}/stop", g.serveServiceStop)
	mux.HandleFunc("GET "+wire.PathPorts, g.servePorts)
	mux.HandleFunc("GET "+wire.PathPortsWatch, g.serveWatchPorts)
	g.fileRoutes(mux)
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

// statusOf gives each code its own status, for whoever looks at the protocol; sandboxd goes by the code.
func statusOf(code string) int {
	switch code {
	case wire.CodeInvalid:
		return http.StatusBadRequest
	case wire.CodeNotFound:
		return http.StatusNotFound
	case wire.CodeConflict:
		return http.StatusConflict
	case wire.CodeRefused:
		return http.StatusBadGateway
	}
	return http.StatusServiceUnavailable
}

// fail answers with the problem that err is, or with an unavailable one.
func fail(w http.ResponseWriter, err error) {
	var p *wire.Problem
	if !errors.As(err, &p) {
		p = &wire.Problem{Code: wire.CodeUnavailable, Message: err.Error()}
	}
	p.Check()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(p.Code))
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
