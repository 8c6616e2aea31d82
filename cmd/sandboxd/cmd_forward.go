package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/tunnel"
)

// maxForwarded bounds the connections that are open at once.
const maxForwarded = 256

// forwarding is one port that is led into a sandbox.
type forwarding struct {
	local, remote int
	listener      net.Listener
}

func newForwardCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "port-forward NAME [LOCAL:]REMOTE…",
		Short: "Forward ports of this machine to a sandbox",
		Long: `port-forward listens on this machine's loopback and forwards connections to a port of the sandbox, also one
bound to 127.0.0.1 there. A connection wakes a sandbox that is asleep. LOCAL 0 takes any free port. It prints a line for
each port when it is ready, and runs until Ctrl-C, also across short outages of the server.`,
		Example: "  sandboxd port-forward lab 3000\n  sandboxd port-forward lab 8080:80 5432",
		Args:    cobra.MinimumNArgs(2),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkBox(args[0]); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		return forward(cmd, c, args[0], args[1:])
	}
	return cmd
}

// parseForward reads [LOCAL:]REMOTE.
func parseForward(text string) (f forwarding, err error) {
	local, remote, both := strings.Cut(text, ":")
	if !both {
		remote = local
	}
	var localErr error
	f.remote, err = strconv.Atoi(remote)
	f.local, localErr = strconv.Atoi(local)
	if err != nil || localErr != nil || f.remote < 1 || f.remote > 65535 || f.local < 0 || f.local > 65535 {
		return f, fault.Field("port", "%.40q is no port, such as 3000, or pair of ports, such as 8080:80.", text)
	}
	return f, nil
}

func forward(cmd *cobra.Command, c *client.Client, name string, args []string) error {
	var all []forwarding
	for _, text := range args {
		f, err := parseForward(text)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	ctx := cmd.Context()
	defer func() {
		for _, f := range all {
			if f.listener != nil {
				f.listener.Close()
			}
		}
	}()
	for i := range all {
		f := &all[i]
		var err error
		if f.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.local))); err != nil {
			return fault.Wrap(err, fault.Conflict, "Port %d of this machine cannot be used: %v. Choose another, such as 0:%d.", f.local, err, f.remote)
		}
	}
	for _, f := range all {
		fmt.Fprintf(cmd.OutOrStdout(), "Forwarding %s -> %s port %d\n", f.listener.Addr(), name, f.remote)
	}
	g := &forwarder{client: c, name: name, slots: make(chan struct{}, maxForwarded), complain: func(err error) {
		fmt.Fprintln(cmd.ErrOrStderr(), "sandboxd:", fault.Message(err))
	}}
	defer context.AfterFunc(ctx, func() {
		for _, f := range all {
			f.listener.Close()
		}
	})()
	return g.run(ctx, all)
}

// forwarder leads connections into a sandbox.
type forwarder struct {
	client   *client.Client
	name     string
	slots    chan struct{}
	complain func(error)
	running  sync.WaitGroup
}

// run takes connections until ctx ends.
func (g *forwarder) run(ctx context.Context, all []forwarding) error {
	var first error
	var mu sync.Mutex
	for _, f := range all {
		g.running.Go(func() {
			if err := g.accept(ctx, f); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				first = errors.Join(first, err)
			}
		})
	}
	g.running.Wait()
	if first != nil {
		return fault.Wrap(first, fault.Unavailable, "No more connections can be taken: %v.", first)
	}
	return nil
}

func (g *forwarder) accept(ctx context.Context, f forwarding) error {
	const retryPause = 100 * time.Millisecond
	for {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := f.listener.Accept()
		var passing net.Error
		switch {
		case err == nil:
			g.running.Go(func() {
				defer func() { <-g.slots }()
				g.lead(ctx, conn, f.remote)
			})
			continue
		case ctx.Err() != nil || !errors.As(err, &passing) || errors.Is(err, net.ErrClosed):
			return err
		}
		<-g.slots // out of descriptors, for one; the next may work
		<-time.After(retryPause)
	}
}

// lead joins one connection with the port.
func (g *forwarder) lead(ctx context.Context, conn net.Conn, port int) {
	defer conn.Close()
	to, err := g.client.Tunnel(ctx, g.name, port)
	if err != nil {
		if ctx.Err() == nil {
			g.complain(err)
		}
		return
	}
	defer context.AfterFunc(ctx, func() { to.Close(); conn.Close() })()
	half, ok := conn.(tunnel.Peer)
	if !ok {
		to.Close()
		return
	}
	tunnel.Join(to, half)
}
