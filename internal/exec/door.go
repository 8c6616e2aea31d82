package exec

import (
	"bytes"
	"context"
	"io"
	"sync"

	"sandboxd/internal/door"
	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// Doors opens sandboxes. Implemented by door.Doors.
type Doors interface {
	Open(ctx context.Context, name, use string) (*door.Entry, error)
}

// Through makes the Starter that goes through sandboxes' doors and over their guests' links.
func Through(d Doors) Starter { return starter{d} }

type starter struct{ doors Doors }

// Start opens the sandbox's door and keeps it open until the process is closed.
func (t starter) Start(ctx context.Context, name string, s Start) (Process, error) {
	entry, err := t.doors.Open(ctx, name, "exec")
	if err != nil {
		return nil, err
	}
	p, err := entry.Session.Exec(ctx, wire.ExecStart{
		Command: s.Command, Cwd: s.Cwd, User: s.User, Env: s.Env, TTY: s.TTY, Cols: s.Cols, Rows: s.Rows,
	})
	if err != nil {
		entry.Release()
		if fault.Is(err, fault.NotFound) { // a program, user or folder: the request is wrong, the sandbox is there
			err = fault.Wrap(err, fault.Invalid, "%s", fault.Message(err))
		}
		return nil, err
	}
	return &process{p: p, close: sync.OnceFunc(func() {
		p.Close()
		entry.Release()
	})}, nil
}

// process is a process over the link.
type process struct {
	p     *link.Process
	close func()
}

func (p *process) Stdin() io.WriteCloser { return p.p.Stdin }

func (p *process) Next() (Event, error) {
	f, err := p.p.Next()
	if err != nil {
		return Event{}, err
	}
	switch f.Type {
	case wire.FrameStdout:
		return Event{Kind: Stdout, Data: bytes.Clone(f.Data)}, nil
	case wire.FrameStderr:
		return Event{Kind: Stderr, Data: bytes.Clone(f.Data)}, nil
	}
	return Event{Kind: Exited, Exit: f.Code}, nil
}

func (p *process) Signal(name string) error    { return p.p.Signal(name) }
func (p *process) Resize(cols, rows int) error { return p.p.Resize(cols, rows) }
func (p *process) Close()                      { p.close() }
