package web

import (
	"context"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// interior is the very sandbox whose inside a page follows, whatever has its name by then. It never changes, so any goroutine may
// read it.
type interior struct {
	server   *Server
	name, id string
}

func (s *Server) interiorOf(box sandbox.Sandbox) interior { return interior{s, box.Name, box.ID} }

// only gives a context with which nothing of another sandbox is found.
func (i interior) only(ctx context.Context) context.Context { return sandbox.Only(ctx, i.id) }

// beside hands on what listens in the sandbox, until ctx ends or it is gone.
func (i interior) beside(ctx context.Context, hand func(news)) {
	err := i.server.cfg.Services.WatchPorts(i.only(ctx), i.name, func(open []wire.PortOpen) error {
		hand(news{ports: &open})
		return ctx.Err()
	})
	if err != nil && ctx.Err() == nil { // the page goes on with what it knows
		i.server.log.Debug("watch ports", "sandbox", i.name, "err", err)
	}
}
