package web

import (
	"context"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/socket"
	"sandboxd/internal/tunnel"
)

// patience is how long a client of a tunnel may take nothing and say nothing: a suspended program, or one whose
// output is read page by page, must not lose its connection.
const patience = 15 * time.Minute

// hostKeyShape is the SSH server's key.
type hostKeyShape struct {
	HostKey string `json:"host_key"` // as known_hosts has it, without the host
}

func (s *commandHandlers) apiHostKey(context.Context, *request, none) (reply, error) {
	return reply{body: hostKeyShape{s.cfg.SSH.HostKey()}}, nil
}

// reachable finds a sandbox that runs, or that use can wake.
func (s *commandHandlers) reachable(ctx context.Context, r *request) (access.Handle, error) {
	ctx, cancel := context.WithTimeout(ctx, handlerTime)
	defer cancel()
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return h, err
	}
	box := h.Sandbox()
	if box.State == sandbox.Stopped || box.State == sandbox.Failed || box.State == sandbox.Deleting {
		return h, fault.New(fault.Conflict, "%s is %s. Start it first.", box.Name, box.State)
	}
	return h, nil
}

// apiSSH speaks SSH over a websocket. A shell, command or forward in it wakes the sandbox.
func (s *commandHandlers) apiSSH(ctx context.Context, r *request) (talk, func(), error) {
	h, err := s.reachable(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, conn *websocket.Conn) error {
		return s.cfg.SSH.Serve(ctx, h, socket.New(conn, patience))
	}, func() {}, nil
}

// apiTunnel is a connection to a port. Whether something listens there is told before the upgrade.
func (s *commandHandlers) apiTunnel(ctx context.Context, r *request) (talk, func(), error) {
	port, err := strconv.Atoi(r.param("port"))
	if err != nil {
		return nil, nil, fault.Field("port", "A port is a number between 1 and 65535.")
	}
	h, err := s.reachable(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	to, err := s.cfg.Tunnels.Dial(ctx, h, port)
	if err != nil {
		return nil, nil, err
	}
	return func(_ context.Context, conn *websocket.Conn) error {
		tunnel.Join(to, socket.New(conn, patience))
		return nil
	}, func() { to.Close() }, nil
}
