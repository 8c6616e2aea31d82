package sshd

import (
	"context"
	"errors"
	"io"
	"net"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/fault"
)

// Client is an SSH client, for machines without ssh. Safe for concurrent use.
type Client struct{ ssh *ssh.Client }

// Dial makes the SSH handshake on conn with a server that has this host key, as Server.HostKey gives it. It closes conn when it
// fails. Forbidden when the server has another key.
func Dial(ctx context.Context, conn net.Conn, hostKey string) (*Client, error) {
	want, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil {
		conn.Close()
		return nil, fault.Wrap(err, fault.Unavailable, "The server's SSH host key cannot be read.")
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	other := false
	c, channels, requests, err := ssh.NewClientConn(conn, "sandboxd", &ssh.ClientConfig{
		User: "sandbox", Timeout: handshakeLimit, ClientVersion: "SSH-2.0-sandboxd",
		HostKeyAlgorithms: []string{want.Type()},
		HostKeyCallback: func(host string, at net.Addr, key ssh.PublicKey) error {
			err := ssh.FixedHostKey(want)(host, at, key)
			other = err != nil
			return err
		},
	})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if other {
			return nil, fault.Wrap(err, fault.Forbidden, "The server has another SSH host key than it says it has.")
		}
		return nil, fault.Wrap(err, fault.Unavailable, "The server did not answer the SSH handshake.")
	}
	return &Client{ssh.NewClient(c, channels, requests)}, nil
}

// Close ends the connection and all that it carries.
func (c *Client) Close() error { return c.ssh.Close() }

// Run is a command, or with no Line a login shell, as a client wants it.
type Run struct {
	Line   string
	TTY    bool
	Term   string // of a terminal, as TERM has it
	Cols   int
	Rows   int
	Resize <-chan [2]int // columns and rows whenever they have changed; may be nil
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Run runs r to its end and gives its exit status. Unavailable when the connection is lost before; the end of ctx ends it.
func (c *Client) Run(ctx context.Context, r Run) (status int, err error) {
	session, err := c.ssh.NewSession()
	if err != nil {
		return lostStatus, lost(err)
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	session.Stdin, session.Stdout, session.Stderr = r.Stdin, r.Stdout, r.Stderr
	if r.TTY {
		if err := session.RequestPty(r.Term, r.Rows, r.Cols, ssh.TerminalModes{}); err != nil {
			return lostStatus, lost(err)
		}
	}
	if r.Line == "" {
		err = session.Shell()
	} else {
		err = session.Start(r.Line)
	}
	if err != nil {
		return lostStatus, lost(err)
	}
	end := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		r.tellSizes(session, end)
	}()
	err = session.Wait()
	close(end)
	<-told
	return statusOf(err)
}

func (r Run) tellSizes(session *ssh.Session, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case z := <-r.Resize:
			_ = session.WindowChange(z[1], z[0]) // the end of the connection is told otherwise
		}
	}
}

func statusOf(err error) (int, error) {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	}
	return lostStatus, lost(err)
}

func lost(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The connection to the sandbox was lost.")
}
