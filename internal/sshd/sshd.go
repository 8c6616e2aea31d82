// Package sshd is the SSH server of sandboxes. It speaks SSH on a connection that delivery has authorised for one sandbox, and
// ends there what a client asks for: shells, commands and SFTP servers run over the guest's link, forwarded connections end at
// the sandbox's own ports. No sshd is needed in the image.
//
// It authenticates nobody: the holder of the connection is the sandbox's user, whatever name is given. It carries nothing from the
// sandbox back to the client's machine: no agent, no X11, no remote forwarding; those are refused as SSH provides for.
//
// Invariant: a connection reaches the one sandbox that it was made for, by its id, and nothing else. Being open
// is no use of it. Typing is, a command until it ends, and SFTP while something goes through it. Whatever it opens is bounded
// in number, and has ended when Serve returns.
package sshd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/tunnel"
)

const (
	handshakeLimit = 20 * time.Second
	openLimit      = 60 * time.Second // until the sandbox is awake and its guest has started the program
	silenceLimit   = 60 * time.Second // until a session says what it is for
	closeLimit     = 10 * time.Second // until a client agrees that a session has ended
	maxChannels    = 100              // of one connection
)

// ciphers are those that processors do themselves. Clients would prefer ChaCha20, which costs several times as much.
var ciphers = []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR}

// Ports connects to the ports of sandboxes. Implemented by tunnel.Service.
type Ports interface {
	Dial(ctx context.Context, h access.Handle, port int) (*tunnel.Conn, error)
}

// Config is what a Server is made of. Nothing in it may be nil.
type Config struct {
	Key   *HostKey
	Ports Ports
	Log   *slog.Logger
}

// Server serves SSH. Safe for concurrent use.
type Server struct {
	cfg  Config
	ssh  *ssh.ServerConfig
	open semaphore.Keyed // how many are open at once, by bound
}

// New makes a Server. It does no I/O.
func New(cfg Config) *Server {
	c := &ssh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-sandboxd"}
	c.Ciphers = ciphers
	c.AddHostKey(cfg.Key.signer)
	return &Server{cfg: cfg, ssh: c}
}

// HostKey is the server's public key as known_hosts and authorized_keys have it: "ssh-ed25519 AAAA…".
func (s *Server) HostKey() string { return s.cfg.Key.Public() }

// Serve speaks SSH on conn, for one sandbox, until the client leaves or ctx ends, and closes conn. An error says that the client has
// not spoken SSH, or that too many connections to the sandbox are open (Limited); that it has left is none.
func (s *Server) Serve(ctx context.Context, h access.Handle, conn net.Conn) error {
	box := h.Sandbox()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	leave, ok := s.enter(openConnections, box)
	if !ok {
		return fault.New(fault.Limited, "Too many SSH connections to %s are open: close some first.", box.Name)
	}
	defer leave()
	late := time.AfterFunc(handshakeLimit, func() { conn.Close() })
	client, channels, requests, err := ssh.NewServerConn(conn, s.ssh)
	if !late.Stop() && err == nil {
		err = errors.New("handshake took too long")
	}
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "The SSH handshake was not understood.")
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &connection{server: s, handle: h, box: box, client: client, slots: make(chan struct{}, maxChannels)}
	c.running.Go(func() { c.requests(requests) })
	c.serve(ctx, channels)
	cancel()
	client.Close()
	c.running.Wait()
	return nil
}

// connection is one client's.
type connection struct {
	server  *Server
	handle  access.Handle
	box     sandbox.Sandbox // as it was judged
	client  ssh.Conn
	slots   chan struct{} // one for each open channel
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool // for sessions: the client has said that it wants no more
}

// requests answers global requests: a sign of life is answered, remote forwarding refused.
func (c *connection) requests(in <-chan *ssh.Request) {
	for r := range in {
		if r.Type == "no-more-sessions@openssh.com" {
			c.mu.Lock()
			c.closed = true
			c.mu.Unlock()
		}
		_ = r.Reply(false, nil) // a client that is gone needs none
	}
}

// serve lets in channels until there are no more.
func (c *connection) serve(ctx context.Context, in <-chan ssh.NewChannel) {
	for n := range in {
		if why, text := c.refuses(n.ChannelType()); text != "" {
			_ = n.Reject(why, text) // a client that is gone needs none
			continue
		}
		leave, ok := c.enter()
		if !ok {
			_ = n.Reject(ssh.ResourceShortage, "too many channels are open: close some first")
			continue
		}
		c.running.Go(func() {
			defer leave()
			if n.ChannelType() == "direct-tcpip" {
				c.forward(ctx, n)
				return
			}
			c.session(ctx, n)
		})
	}
}

func (c *connection) refuses(channel string) (ssh.RejectionReason, string) {
	switch channel {
	case "direct-tcpip":
		return 0, ""
	case "session":
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			return ssh.Prohibited, "no more sessions were wanted on this connection"
		}
		return 0, ""
	case "direct-streamlocal@openssh.com":
		return ssh.Prohibited, "sockets of the sandbox cannot be forwarded, only its TCP ports"
	}
	return ssh.UnknownChannelType, "there is no such channel here"
}

// enter counts a channel in, if there is room. The caller must call leave.
func (c *connection) enter() (leave func(), ok bool) {
	select {
	case c.slots <- struct{}{}:
	default:
		return nil, false
	}
	out, ok := c.server.enter(openChannels, c.box)
	if !ok {
		<-c.slots
		return nil, false
	}
	return func() { out(); <-c.slots }, true
}

// open opens the sandbox: for a command, which is a use until it is released, or for a stream, which is one when something
// goes through it.
func (c *connection) open(ctx context.Context, u idle.Use, stream bool) (*access.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if stream {
		return c.handle.OpenStream(ctx, u)
	}
	return c.handle.Open(ctx, u)
}
