package exec

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

type inGuest struct{}

// InGuest starts commands over the guests' links.
func InGuest() Starter { return inGuest{} }

// Start opens the sandbox, which wakes it, and uses it until the process is closed: a command counts as use for as long as
// it runs, however quiet. On a terminal only input and output count, because the terminal may just lie open.
func (inGuest) Start(ctx context.Context, h access.Handle, s Start) (Process, error) {
	open, kind := h.Open, idle.Exec
	if s.TTY {
		open, kind = h.OpenStream, idle.Terminal
	}
	session, err := open(ctx, idle.Use{Kind: kind, Detail: cmp.Or(s.Title, Title(s.Command))})
	if err != nil {
		return nil, err
	}
	p, err := session.Guest.Exec(ctx, wire.ExecStart{
		Command: s.Command, Cwd: s.Cwd, User: s.User, Env: s.Env, Log: s.Log, TTY: s.TTY, Cols: s.Cols, Rows: s.Rows,
	})
	if err != nil {
		session.Release()
		if fault.Is(err, fault.NotFound) && fault.FieldOf(err) == "" { // a user or folder: the request is wrong, the sandbox is there
			err = fault.Wrap(err, fault.Invalid, "%s", fault.Message(err))
		}
		return nil, err
	}
	if s.TTY {
		session.Note()
	}
	touch := func(unattended bool) error { return session.Touch(ctx, unattended) }
	return &process{p: p, touch: touch, close: sync.OnceFunc(func() {
		p.Close()
		session.Release()
	})}, nil
}

// process is a process over the link. Input wakes the sandbox, which its owner may have frozen meanwhile.
type process struct {
	p     *link.Process
	touch func(unattended bool) error // until the command's ctx ends
	close func()
}

func (p *process) Stdin() io.WriteCloser { return input{p} }

// input is a process's input.
type input struct{ of *process }

// Write gives the command input, once the sandbox is awake.
func (i input) Write(b []byte) (int, error) {
	if err := i.of.touch(false); err != nil {
		return 0, err
	}
	return i.of.p.Stdin.Write(b)
}

// Close ends the input.
func (i input) Close() error { return i.of.p.Stdin.Close() }

func (p *process) Next() (Event, error) {
	f, err := p.p.Next()
	if err != nil {
		return Event{}, err
	}
	_ = p.touch(true) // output wakes nothing, so this cannot fail
	switch f.Type {
	case wire.FrameStdout:
		return Event{Kind: Stdout, Data: bytes.Clone(f.Data)}, nil
	case wire.FrameStderr:
		return Event{Kind: Stderr, Data: bytes.Clone(f.Data)}, nil
	}
	return Event{Kind: Exited, Exit: f.Code}, nil
}

func (p *process) Signal(name string) error {
	if err := p.touch(false); err != nil {
		return err
	}
	return p.p.Signal(name)
}

func (p *process) Resize(cols, rows int) error { return p.p.Resize(cols, rows) }
func (p *process) Close()                      { p.close() }
