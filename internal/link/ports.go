package link

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/wire"
)

// portsPace is the least time between two lists of open ports that are listened to: a guest of ours looks once a second.
const portsPace = 200 * time.Millisecond

// Ports gives the TCP ports on which something in the sandbox listens now, in ascending order, each once. NotFound says that
// the guest is older than the question.
func (s *Session) Ports(ctx context.Context) ([]wire.PortOpen, error) {
	var l wire.Ports
	err := s.call(ctx, http.MethodGet, wire.PathPorts, nil, &l)
	return l, err
}

// WatchPorts gives the open ports to emit: as they are, and then whenever they change, until ctx or the connection ends or
// emit fails, whose error it gives back. NotFound says that the guest is older than the question.
func (s *Session) WatchPorts(ctx context.Context, emit func([]wire.PortOpen) error) error {
	return s.follow(ctx, wire.PathPortsWatch, wire.FramePorts, func(payload []byte) error {
		var l wire.Ports
		if err := wire.Unmarshal(payload, &l); err != nil {
			return s.failed(ctx, err)
		}
		if err := emit(l); err != nil {
			return err
		}
		select {
		case <-time.After(portsPace):
		case <-ctx.Done():
		}
		return nil
	})
}
