package web

import (
	"context"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// openTerminal attaches a viewer to a terminal. Everything that can fail has failed before the upgrade. What a page does by
// itself says wake=0: then a sandbox that is asleep stays so, and the viewer is told.
func (s *commandHandlers) openTerminal(ctx context.Context, r *request) (talk, func(), error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, nil, err
	}
	attach := s.cfg.Terminals.Attach
	if r.query("wake") == "0" {
		attach = s.cfg.Terminals.Join
	}
	a, err := attach(ctx, h, r.param("tab"))
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, conn *websocket.Conn) error { return a.Pump(ctx, conn) }, a.Close, nil
}

// noTerminal says why there is no terminal now, or nil. It wakes nothing.
func (s *commandHandlers) noTerminal(ctx context.Context, r *request) error {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return err
	}
	box := h.Sandbox()
	switch box.State {
	case sandbox.Stopped, sandbox.Failed, sandbox.Deleting:
		return fault.New(fault.Conflict, "%s does not run: it is %s.", box.Name, box.State)
	}
	return nil
}
