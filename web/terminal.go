package web

import (
	"context"
	"net/http"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// openTerminal attaches a viewer to a terminal. Everything that can fail has failed before the upgrade.
func (s *Server) openTerminal(ctx context.Context, r *request) (talk, func(), error) {
	box, err := s.visible(ctx, r.who, r.param("name"))
	if err != nil {
		return nil, nil, err
	}
	a, err := s.cfg.Terminals.Attach(ctx, box.Name, r.param("tab"))
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
		if box.State == sandbox.Running || box.State == sandbox.Asleep {
			return &statusError{http.StatusUpgradeRequired, "upgrade_required", "This address speaks websocket only."}
		}
		return fault.New(fault.Conflict, "%s does not run: it is %s.", box.Name, box.State)
	}
}
