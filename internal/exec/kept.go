package exec

import (
	"context"
	"io"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// Between two attempts to reach a kept program again.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// Keep starts a program that outlives this call, every connection and sandboxd itself: it ends by itself, with EndKept, or with its
// sandbox. id is the caller's choice (lower-case letters, digits and hyphens, 64 at most); the same again is no error. Request's Stdin,
// Timeout, Log and MaxOutput are not used. Running is no use of the sandbox: who works with the program holds the sandbox. Kinds as
// for Starter, and Conflict when the sandbox keeps as many as it can.
func (s *Service) Keep(ctx context.Context, h access.Handle, id string, r Request) error {
	if err := r.check(); err != nil {
		return err
	}
	return withGuest(ctx, h, h.Open, r.Command, func(g access.Guest) error {
		return g.StartKept(ctx, wire.KeptStart{ID: id, Command: r.Command, Cwd: r.Cwd, User: r.User, Env: r.Env})
	})
}

// Kept gives the programs that a sandbox keeps, oldest first, those included that have ended. It wakes nothing: Conflict when the
// sandbox does not run.
func (s *Service) Kept(ctx context.Context, h access.Handle) ([]wire.Kept, error) {
	session, err := h.Look(ctx)
	if err != nil {
		return nil, err
	}
	return session.Guest.ListKept(ctx)
}

// EndKept ends a kept program with its whole tree and forgets it. An unknown one is no error.
func (s *Service) EndKept(ctx context.Context, h access.Handle, id string) error {
	return withGuest(ctx, h, h.OpenStream, []string{id}, func(g access.Guest) error { return g.EndKept(ctx, id) })
}

// withGuest opens the sandbox for a moment.
func withGuest(ctx context.Context, h access.Handle, open func(context.Context, idle.Use) (*access.Session, error), command []string, do func(access.Guest) error) error {
	opening, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	session, err := open(opening, idle.Use{Kind: idle.Exec, Detail: Title(command)})
	if err != nil {
		return err
	}
	defer session.Release()
	return do(session.Guest)
}

// Offsets says where one who talks to a kept program is: how much of its output was taken, and how much input it was given.
type Offsets struct{ Output, Input int64 }

// Pipe is the input and the output of a kept program as one stream, which continues where it was when the link to the sandbox was lost.
// Read is for one goroutine, Write for one, everything else for any. The caller must Close it; the program does not mind.
type Pipe struct {
	ctx    context.Context
	cancel context.CancelFunc
	handle access.Handle
	id     string
	kept   *link.Kept // the reader's; nil while there is none

	turn    chan struct{} // of who opens the session
	mu      sync.Mutex
	session *access.Session // nil while there is none
	at      Offsets
}

// Attach gives the pipe of a kept program, from some offsets on: those of the Pipe before, or zero for a new program. It lives until ctx
// ends or Close. It does no I/O yet: who has no such program learns that from Read. There must be one pipe of a program at a time.
func (s *Service) Attach(ctx context.Context, h access.Handle, id string, from Offsets) *Pipe {
	ctx, cancel := context.WithCancel(ctx)
	return &Pipe{ctx: ctx, cancel: cancel, handle: h, id: id, at: from, turn: make(chan struct{}, 1)}
}

// Offsets gives where it is. What Read has given is not forgotten in the sandbox before Ack.
func (p *Pipe) Offsets() Offsets {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// Read reads what the program writes to stdout, and gives io.EOF when it has ended and all was read. It wakes the sandbox when it
// connects, and waits out a lost link.
// Kinds: NotFound (the program is not kept, or its sandbox was stopped meanwhile), Gone, Conflict (the sandbox does not run), or ctx's
// error.
func (p *Pipe) Read(b []byte) (n int, err error) {
	err = p.retry(func() error {
		if p.kept == nil {
			session, err := p.open()
			if err != nil {
				return err
			}
			if p.kept, err = session.Guest.AttachKept(p.ctx, p.id, p.Offsets().Output); err != nil {
				return err
			}
		}
		if n, err = p.kept.Read(b); err != nil && err != io.EOF {
			p.kept.Close()
			p.kept = nil
		}
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at.Output += int64(n)
	return n, err
}

// Exit is how the program has ended, once Read has given io.EOF.
func (p *Pipe) Exit() (code, signal int) {
	if p.kept == nil {
		return -1, 0
	}
	return p.kept.Exit()
}

// Write writes to the program's stdin, each byte once. It wakes the sandbox, waits out a lost link, and blocks while the program does not
// read. Kinds as for Read, and Conflict when the program does not read its input any more.
func (p *Pipe) Write(b []byte) (n int, err error) {
	err = p.retry(func() error {
		session, err := p.open()
		if err == nil {
			err = session.Touch(p.ctx, false)
		}
		if err != nil {
			return err
		}
		took, err := session.Guest.WriteKept(p.ctx, p.id, b[n:], p.Offsets().Input)
		n += took
		p.mu.Lock()
		defer p.mu.Unlock()
		p.at.Input += int64(took)
		return err
	})
	return n, err
}

// Ack lets the sandbox forget output before an offset that Offsets gave: the caller has stored it. The program is held up when too much
// is not forgotten.
func (p *Pipe) Ack(before int64) error {
	return p.retry(func() error {
		session, err := p.open()
		if err != nil {
			return err
		}
		return session.Guest.AckKept(p.ctx, p.id, before)
	})
}

// Stderr gives the end of what the program has written to stderr.
func (p *Pipe) Stderr() (text []byte, err error) {
	err = p.retry(func() error {
		session, err := p.open()
		if err == nil {
			text, err = session.Guest.KeptStderr(p.ctx, p.id)
		}
		return err
	})
	return text, err
}

// Close ends the pipe. It may be called more than once, and ends a Read and a Write.
func (p *Pipe) Close() {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.Release()
		p.session = nil
	}
}

// retry does something again while the link is away.
func (p *Pipe) retry(do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := do()
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		if !fault.Is(err, fault.Unavailable) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			timer.Stop()
			return context.Cause(p.ctx)
		}
	}
}

// open gives a session whose link lives.
func (p *Pipe) open() (*access.Session, error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if s := p.current(); s != nil {
		return s, nil
	}
	opening, cancel := context.WithTimeout(p.ctx, openLimit)
	defer cancel()
	s, err := p.handle.OpenStream(opening, idle.Use{Kind: idle.Exec, Detail: p.id})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil { // closed meanwhile
		s.Release()
		return nil, context.Cause(p.ctx)
	}
	p.session = s
	return s, nil
}

// current gives the session that there is, and releases one whose link has ended.
func (p *Pipe) current() *access.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return nil
	}
	select {
	case <-p.session.Guest.Done():
		p.session.Release()
		p.session = nil
	default:
	}
	return p.session
}
