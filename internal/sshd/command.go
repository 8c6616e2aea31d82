package sshd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// lostStatus is the exit status of a command without one, as ssh itself has it.
const lostStatus = 255

// maxSignals bounds the signals of one command that wait to be sent.
const maxSignals = 16

// pieceSize is how much input is taken at once.
const pieceSize = 32 << 10

// command is a command under way.
type command struct {
	process *link.Process
	opened  *access.Session
	stream  bool
	unread  atomic.Bool   // the client takes no more output
	sizes   chan struct{} // says that the terminal's size has changed
	signals chan string   // names of signals to send
}

// run runs a job to its end, and tells the client how that was.
func (s *session) run(ctx context.Context, j job) {
	defer s.channel.Close()
	c, life, err := s.begin(ctx, j)
	if err != nil {
		s.fail(err)
		return
	}
	defer life()
	s.mu.Lock()
	s.command = c
	s.mu.Unlock()
	c.wantsSize() // it may have changed meanwhile
	end := make(chan struct{})
	s.running.Go(func() { s.keepSize(c, end) })
	s.running.Go(func() { c.sendSignals(ctx, end) })
	s.running.Go(func() { s.feed(ctx, c) })
	err = s.tell(ctx, c)
	close(end)
	if err != nil && ctx.Err() == nil {
		s.fail(err)
	}
}

// begin opens the sandbox and starts the command, which lives until ctx ends or life is called.
func (s *session) begin(ctx context.Context, j job) (c *command, life func(), err error) {
	opened, err := s.open(ctx, j.use, j.stream)
	if err != nil {
		return nil, nil, err
	}
	env := s.env
	// Programs ask whether there are such, and no more; bash reads its ~/.bashrc for a command then.
	env["SSH_CONNECTION"], env["SSH_CLIENT"] = "127.0.0.1 0 127.0.0.1 22", "127.0.0.1 0 22"
	start := wire.ExecStart{Command: j.command, SFTP: j.sftp, Env: env, TTY: s.tty, Loss: j.loss}
	if s.tty {
		start.Cols, start.Rows = s.size.cols, s.size.rows
	}
	p, err := opened.Guest.Exec(ctx, start)
	if j.sftp && fault.Is(err, fault.Invalid) { // a guest that does not know SFTP misses the command
		err = fault.Wrap(err, fault.Conflict, "%s was created by an older sandboxd and has no SFTP server: "+
			"use rsync, scp -O or sandboxd cp, or create it anew.", s.box.Name)
	}
	if err != nil {
		opened.Release()
		return nil, nil, err
	}
	if j.noted {
		opened.Note()
	}
	c = &command{process: p, opened: opened, stream: j.stream, sizes: make(chan struct{}, 1), signals: make(chan string, maxSignals)}
	return c, func() { p.Close(); opened.Release() }, nil
}

// awake makes sure that the sandbox is awake to take input.
func (c *command) awake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return c.opened.Touch(ctx, false)
}

// feed gives the command its input. One that has closed it does not hold up the client.
func (s *session) feed(ctx context.Context, c *command) {
	buf := make([]byte, pieceSize)
	for {
		n, err := s.channel.Read(buf)
		if n > 0 {
			if c.awake(ctx) != nil {
				c.process.Close() // and tell gives why
				break
			}
			c.wantsSize()
			if _, err := c.process.Stdin.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			_ = c.process.Stdin.Close() // a command that has ended needs no end of its input
			break
		}
	}
	discard(s.channel)
}

// tell passes on the command's output, and how it ended.
func (s *session) tell(ctx context.Context, c *command) error {
	for {
		f, err := c.process.Next()
		if err != nil {
			return err
		}
		_ = c.opened.Touch(ctx, true) // what comes out wakes nothing, and so cannot fail
		switch f.Type {
		case wire.FrameStdout:
			err = s.say(ctx, c, f.Data)
		case wire.FrameStderr:
			_, err = s.channel.Stderr().Write(f.Data)
		case wire.FrameExit:
			s.exit(f.Code, f.Signal)
			return nil
		}
		if err != nil {
			return fmt.Errorf("tell the client: %w", err)
		}
	}
}

// say passes on output. A program that writes to a closed stream gets the kernel's usual error.
func (s *session) say(ctx context.Context, c *command, data []byte) error {
	if c.unread.Load() {
		c.signal(ctx, "PIPE")
		return nil
	}
	_, err := s.channel.Write(data)
	return err
}

// exit tells how a command has ended. The status tells of a signal as shells do, for clients that do not know its message.
func (s *session) exit(code, signal int) {
	if name := signalNames[signal]; name != "" {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(exitSignal{Signal: name}))
	}
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(exitStatus{uint32(code)})) // a client that is gone needs none
	_ = s.channel.CloseWrite()
}

// fail tells why there is no command, or not any more.
func (s *session) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		s.server.cfg.Log.Debug("ssh session", "sandbox", s.box.Name, "error", err)
	}
	fmt.Fprintf(s.channel.Stderr(), "sandboxd: %s\r\n", text.OneLine(fault.Message(err), maxReason))
	s.exit(lostStatus, 0)
}

// signal sends a signal to the command. One that has ended needs none.
func (c *command) signal(ctx context.Context, name string) {
	if c.awake(ctx) == nil {
		_ = c.process.Signal(name)
	}
}

// sendSignals sends what the client signals, one after the other: each may have to wake the sandbox.
func (c *command) sendSignals(ctx context.Context, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case name := <-c.signals:
			c.signal(ctx, name)
		}
	}
}

// wantsSize has keepSize look.
func (c *command) wantsSize() {
	select {
	case c.sizes <- struct{}{}:
	default:
	}
}

// keepSize tells the terminal its size whenever that has changed. A sandbox that stands still takes no size: then it is told
// with the next key.
func (s *session) keepSize(c *command, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-c.sizes:
		}
		z, changed := s.takeSize()
		if !changed || !s.tty {
			continue
		}
		if err := c.process.Resize(z.cols, z.rows); err != nil {
			s.mu.Lock()
			if s.resized == (size{}) {
				s.resized = z
			}
			s.mu.Unlock()
		}
	}
}
