package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sandboxd/internal/fault"
	"sandboxd/internal/socketproxy"
)

// Where the socket proxy is in compose/compose.yaml, and where engines listen.
const (
	proxySocket  = "/run/sandboxd/docker.sock"
	engineSocket = "/var/run/docker.sock"
)

func newSocketProxyCmd() *cobra.Command {
	var socket, engine string
	cmd := &cobra.Command{
		Use:   "socket-proxy",
		Short: "Tell Traefik which sandboxes are awake, without giving it the engine",
		Long: `socket-proxy serves, on a unix socket, the few calls of the engine's API with which Traefik finds containers. It shows
sandboxes only: their names, addresses and labels. It refuses every other call.

Only its own user can connect. compose/compose.yaml starts it for Traefik, which therefore never gets the engine's socket.`,
		Example: "  sandboxd socket-proxy\n  sandboxd socket-proxy --socket /run/traefik/docker.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return serveSocketProxy(cmd.Context(), socket, engine, log)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", proxySocket, "path of the socket to answer on")
	cmd.Flags().StringVar(&engine, "engine-socket", engineSocket, "path of the engine's own socket")
	return cmd
}

// serveSocketProxy runs the proxy until ctx ends.
func serveSocketProxy(ctx context.Context, socket, engine string, log *slog.Logger) error {
	listener, err := listenUnix(ctx, socket)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "The socket %s cannot be made: %v.", socket, err)
	}
	log.Info("telling of sandboxes", "socket", socket)
	return serveHTTP(ctx, listener, socketproxy.New(engine), log)
}

// listenUnix listens on a socket that only this user may connect to, in the place of one that a former process left.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if found, err := os.Lstat(path); err == nil {
		if found.Mode().Type() != fs.ModeSocket {
			return nil, errors.New("something else is at its path")
		}
		if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(errors.New("another program listens there already"), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), listener.Close())
	}
	return listener, nil
}
