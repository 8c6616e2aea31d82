package exec

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
)

// Size is the size of a terminal in characters. The zero value means no terminal.
type Size struct {
	Cols, Rows int
}

var (
	errTimedOut = fault.New(fault.Timeout, "The command took longer than its timeout and was killed.")
	errOpening  = fault.New(fault.Timeout, "The sandbox did not begin the command within %s.", openLimit)
)

// Session is a command in dialogue. Next belongs to one goroutine; the rest is safe for concurrent use. The caller
// must Close it.
type Session struct {
	process Process
	ctx     context.Context // ends with the command's timeout or its caller; the cause says which
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	leave   func()
	feeders sync.WaitGroup
	close   func()

	mu      sync.Mutex
	exited  bool
	failure error // the first that Next gave
}

// Open starts a command for a dialogue, with a terminal when size is given. The command lives until it ends, its
// timeout is over, ctx ends or the session is closed. Request.Stdin is not used. Kinds as for Starter, Invalid with
// the field, and Limited.
func (s *Service) Open(ctx context.Context, h access.Handle, r Request, size Size) (*Session, error) {
	return s.begin(ctx, h, r, size)
}

func (s *Service) begin(ctx context.Context, h access.Handle, r Request, size Size) (*Session, error) {
	begun := time.Now()
	session, err := s.open(ctx, h, r, size)
	if err != nil {
		s.cfg.Ended(time.Since(begun), err)
		return nil, err
	}
	leave := session.leave
	session.leave = func() {
		leave()
		s.cfg.Ended(time.Since(begun), session.outcome())
	}
	return session, nil
}

func (s *Service) open(ctx context.Context, h access.Handle, r Request, size Size) (*Session, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	tty := size != (Size{})
	if tty {
		if err := checkSize(size.Cols, size.Rows); err != nil {
			return nil, err
		}
	}
	leave, err := s.enter(h)
	if err != nil {
		return nil, err
	}
	start := Start{Command: r.Command, Cwd: r.Cwd, User: r.User, Env: r.Env, Log: r.Log, Title: r.Title, TTY: tty, Cols: size.Cols, Rows: size.Rows}
	session, err := s.startProcess(ctx, h, start, r.timeout())
	if err != nil {
		leave()
		return nil, err
	}
	session.leave = leave
	return session, nil
}

func (r Request) timeout() time.Duration {
	if r.Timeout == 0 {
		return DefaultTimeout
	}
	return r.Timeout
}

// startProcess starts the command under one context, which bounds first the opening and then the command.
func (s *Service) startProcess(ctx context.Context, h access.Handle, start Start, timeout time.Duration) (*Session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	opening := time.AfterFunc(openLimit, func() { cancel(errOpening) })
	process, err := s.cfg.Starter.Start(ctx, h, start)
	opening.Stop()
	if err != nil {
		if context.Cause(ctx) == errOpening { // it is this very value
			err = errOpening
		}
		cancel(err)
		return nil, err
	}
	session := &Session{process: process, ctx: ctx, cancel: cancel}
	session.timer = time.AfterFunc(timeout, func() { cancel(errTimedOut) })
	context.AfterFunc(ctx, process.Close) // so that a blocked Next, Write or emit's peer never keeps the tree alive
	session.close = sync.OnceFunc(session.end)
	return session, nil
}

// Next blocks for the next event. After Exited the session is over. Timeout when the command took too long and was
// killed, Unavailable when the link was lost, the context's error when the caller left.
func (s *Session) Next() (Event, error) {
	e, err := s.process.Next()
	if err != nil {
		err = s.lost(err)
		s.note(false, err)
		return Event{}, err
	}
	if e.Kind == Exited {
		s.note(true, nil)
	}
	return e, nil
}

// note keeps how the command has ended.
func (s *Session) note(exited bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exited = s.exited || exited
	if s.failure == nil {
		s.failure = err
	}
}

// outcome is why the command did not end by itself, after the session has.
func (s *Session) outcome() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.exited:
		return nil
	case s.failure != nil:
		return s.failure
	}
	return context.Cause(s.ctx)
}

// Write gives the command input. It blocks while the command does not read.
func (s *Session) Write(b []byte) (int, error) { return s.process.Stdin().Write(b) }

// CloseInput tells the command that no more input comes.
func (s *Session) CloseInput() error { return s.process.Stdin().Close() }

// Signal sends a signal, such as "INT", to the command's process group.
func (s *Session) Signal(name string) error {
	if err := checkSignal(name); err != nil {
		return err
	}
	return s.process.Signal(name)
}

// Resize tells the command's terminal its new size.
func (s *Session) Resize(size Size) error {
	if err := checkSize(size.Cols, size.Rows); err != nil {
		return err
	}
	return s.process.Resize(size.Cols, size.Rows)
}

// Close kills the command and waits for the session's goroutines. It may be called more than once.
func (s *Session) Close() { s.close() }

func (s *Session) end() {
	s.timer.Stop()
	s.cancel(context.Canceled)
	s.process.Close()
	s.feeders.Wait()
	s.leave()
}
