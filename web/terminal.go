package web

import (
	"context"
	"net/http"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// openTerminal attaches a viewer to a terminal. Everything that can fail has failed before the upgrade. What a page does by
// itself says wake=0: then a sandbox that is asleep stays so, and the viewer is told.
func (s *Server) openTerminal(ctx context.Context, r *request) (talk, func(), error) {
	box, err := s.visible(ctx, r.who, r.param("name"))
	if err != nil {
		return nil, nil, err
	}
	attach := s.cfg.Terminals.Attach
	if r.query("wake") == "0" {
		attach = s.cfg.Terminals.Join
	}
	a, err := attach(sandbox.Only(ctx, box.ID), box.Name, r.param("tab"))
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, conn *websocket.Conn) error { return a.Pump(ctx, conn) }, a.Close, nil
}

// explained answers a request without an upgrade, at the address of a terminal's websocket, with why there is no
// terminal now: a script is not told why a websocket was refused, and asks so afterwards. It wakes nothing.
func (s *Server) explained(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		if websocket.IsWebSocketUpgrade(r.http) {
			return next(c)
		}
		ctx, cancel := context.WithTimeout(r.http.Context(), handlerTime)
		defer cancel()
		box, err := s.visible(ctx, r.who, r.param("name"))
		if err != nil {
			return err
		}
		switch box.State {
		case sandbox.Stopped, sandbox.Failed, sandbox.Deleting:
			return fault.New(fault.Conflict, "%s does not run: it is %s.", box.Name, box.State)
		}
		return &statusError{http.StatusUpgradeRequired, "upgrade_required", "This address speaks websocket only."}
	}
}
