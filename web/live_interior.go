package web

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/wire"
)

// interior is the sandbox whose inside a page follows. It never changes, so any goroutine may read it.
type interior struct {
	server *Server
	handle access.Handle
}

// beside hands on what listens in the sandbox, until ctx ends or it is gone.
func (i interior) beside(ctx context.Context, hand func(news)) {
	err := i.server.cfg.Services.WatchPorts(ctx, i.handle, func(open []wire.PortOpen) error {
		hand(news{ports: &open})
		return ctx.Err()
	})
	if err != nil && ctx.Err() == nil { // the page keeps what it knows
		i.server.log.Debug("watch ports", "sandbox", i.handle.Name(), "err", err)
	}
}
