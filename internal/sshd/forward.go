package sshd

import (
	"context"
	"net/netip"
	"strings"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/tunnel"
)

// maxReason bounds what a client is told of why a channel is not opened.
const maxReason = 300

// forward connects a client to a port of the sandbox.
func (c *connection) forward(ctx context.Context, n ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if ssh.Unmarshal(n.ExtraData(), &to) != nil || to.Port == 0 || to.Port > 65535 {
		_ = n.Reject(ssh.ConnectionFailed, "that is no address")
		return
	}
	if !c.own(to.Host) {
		_ = n.Reject(ssh.Prohibited, "only the sandbox's own ports can be reached: use localhost as the host")
		return
	}
	port, err := c.server.cfg.Ports.Dial(ctx, c.handle, int(to.Port))
	if err != nil {
		_ = n.Reject(ssh.ConnectionFailed, text.OneLine(fault.Message(err), maxReason))
		return
	}
	channel, requests, err := n.Accept()
	if err != nil {
		port.Close()
		return
	}
	c.running.Go(func() { ssh.DiscardRequests(requests) })
	defer context.AfterFunc(ctx, func() { port.Close() })()
	tunnel.Join(port, channel)
}

// own says whether host is a name of the sandbox as seen from within it.
func (c *connection) own(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || host == c.box.Name {
		return true
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && (at.IsLoopback() || at.IsUnspecified())
}
