package sshd

import (
	"context"
	"io"
	"regexp"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/exec"
	"sandboxd/internal/idle"
	"sandboxd/internal/wire"
)

// session is one session channel. Its requests are read by one goroutine, which owns all but what mu guards; the command or
// subsystem runs in another.
type session struct {
	*connection
	channel ssh.Channel
	env     map[string]string
	tty     bool
	size    size
	started bool
	next    func()      // starts once its request is answered
	silent  *time.Timer // ends one that does not say what it is for
	running sync.WaitGroup

	mu      sync.Mutex
	command *command // once it runs
	resized size     // what its terminal is to have, where that is not what it has
}

// session serves a session channel to its end.
func (c *connection) session(ctx context.Context, n ssh.NewChannel) {
	channel, requests, err := n.Accept()
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &session{connection: c, channel: channel, env: map[string]string{}}
	ended := make(chan struct{})
	s.silent = time.AfterFunc(silenceLimit, func() { c.dismiss(channel, ended) })
	for r := range requests {
		ok := s.answer(ctx, r)
		_ = r.Reply(ok, nil) // a client that is gone needs none
		if s.next != nil {   // what ends at once would close the channel before the answer
			s.running.Go(s.next)
			s.next = nil
		}
	}
	cancel() // the channel is closed
	s.silent.Stop()
	close(ended)
	s.running.Wait()
	channel.Close()
}

// dismiss closes a channel, and the connection if the client does not agree to that in time.
func (c *connection) dismiss(channel ssh.Channel, ended <-chan struct{}) {
	channel.Close()
	select {
	case <-ended:
	case <-time.After(closeLimit):
		c.client.Close()
	}
}

// answer handles a request and reports whether it was accepted.
func (s *session) answer(ctx context.Context, r *ssh.Request) bool {
	switch r.Type {
	case "pty-req":
		return s.pty(r.Payload)
	case "env":
		return s.setenv(r.Payload)
	case "shell":
		return s.start(func() { s.run(ctx, shellJob()) })
	case "exec":
		line, ok := payloadText(r.Payload)
		return ok && s.start(func() { s.run(ctx, lineJob(line, s.tty)) })
	case "subsystem":
		name, ok := payloadText(r.Payload)
		return ok && name == "sftp" && s.startSFTP(ctx)
	case "window-change":
		var z sizeRequest
		if ssh.Unmarshal(r.Payload, &z) == nil {
			s.resize(within(z.Cols, z.Rows))
		}
	case "signal":
		name, ok := payloadText(r.Payload)
		return ok && s.signal(name)
	case "eow@openssh.com":
		s.unread()
	}
	return false
}

// start has what the session is for begin, once.
func (s *session) start(f func()) bool {
	if s.started || !s.silent.Stop() {
		return false
	}
	s.started = true
	s.next = f
	return true
}

// startSFTP begins a session of SFTP, if there may be one more.
func (s *session) startSFTP(ctx context.Context) bool {
	leave, ok := s.server.enter(openSFTP, s.box)
	if !ok {
		return false
	}
	if !s.start(func() { defer leave(); s.run(ctx, sftpJob()) }) {
		leave()
		return false
	}
	s.tty = false // a terminal would change the bytes
	return true
}

// resize tells the terminal its size; a frozen one learns of it when it is thawed.
func (s *session) resize(z size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resized = z
	if s.command != nil {
		s.command.wantsSize()
	}
}

// takeSize gives the size that the terminal is to have now, if it has another.
func (s *session) takeSize() (size, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	z := s.resized
	s.resized = size{}
	return z, z != size{}
}

// signal has a signal sent to the command. It is false when there is no such signal or command, or too many wait already.
func (s *session) signal(name string) bool {
	c := s.now()
	if c == nil || wire.CheckSignal(name) != nil {
		return false
	}
	select {
	case c.signals <- name:
		return true
	default:
		return false
	}
}

// unread is told that the client takes no more output.
func (s *session) unread() {
	if c := s.now(); c != nil {
		c.unread.Store(true)
	}
}

func (s *session) now() *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.command
}

// job is what a session is to run.
type job struct {
	command []string
	sftp    bool // instead of a command
	use     idle.Use
	stream  bool      // it is used by what goes through it, not by running
	noted   bool      // it is a use from its beginning, whatever goes through it
	loss    wire.Loss // what becomes of it when the client is lost
}

// A login shell is what the account has, and takes commands until its input ends. So does a bare shell that is asked for by
// its name, which is how editors use SSH.
const loginShell = `exec "${SHELL:-/bin/sh}" -l`

var bareShell = regexp.MustCompile(`^(/usr)?(/bin/)?(ba|da|z|fi|k|a)?sh( +(-l|-i|-s|--login))*$`)

func shellJob() job {
	return job{command: []string{"/bin/sh", "-c", loginShell}, stream: true, loss: wire.LossLeave,
		use: idle.Use{Kind: idle.Terminal, Detail: "ssh"}}
}

// sftpJob runs the guest's SFTP server, of which nothing is left when the client is lost.
func sftpJob() job {
	return job{sftp: true, stream: true, use: idle.Use{Kind: idle.Files, Detail: "sftp"}}
}

// lineJob runs a line in the account's shell, as sshd does.
func lineJob(line string, tty bool) job {
	bare := bareShell.MatchString(line)
	tty = tty || bare
	j := job{command: []string{"/bin/sh", "-c", `exec "${SHELL:-/bin/sh}" -c "$1"`, "sh", line}, stream: tty, noted: !bare, loss: wire.LossHangup,
		use: idle.Use{Kind: idle.Exec, Detail: exec.Title([]string{"sh", "-c", line})}}
	if tty {
		j.use.Kind, j.loss = idle.Terminal, wire.LossLeave
	}
	return j
}

// discard reads what nobody wants, until the channel ends.
func discard(r io.Reader) { _, _ = io.Copy(io.Discard, r) }
