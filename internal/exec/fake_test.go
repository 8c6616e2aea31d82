package exec

import (
	"context"
	"errors"
	"io"
	"sync"

	"sandboxd/internal/access"
)

var errClosed = errors.New("process closed")

// fakeProcess says what script says, in order; a nil event blocks until it is closed.
type fakeProcess struct {
	script chan Event
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	input   []byte
	noInput bool // input was closed
	signals []string
	sizes   []Size
	deaf    bool // reads no input
}

func newFakeProcess(events ...Event) *fakeProcess {
	p := &fakeProcess{script: make(chan Event, len(events)+8), closed: make(chan struct{})}
	for _, e := range events {
		p.script <- e
	}
	return p
}

func (p *fakeProcess) Stdin() io.WriteCloser { return fakeInput{p} }

func (p *fakeProcess) Next() (Event, error) {
	select {
	case e := <-p.script:
		return e, nil
	default:
	}
	select {
	case e := <-p.script:
		return e, nil
	case <-p.closed:
		return Event{}, errClosed
	}
}

func (p *fakeProcess) Signal(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals = append(p.signals, name)
	return nil
}

func (p *fakeProcess) Resize(cols, rows int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes = append(p.sizes, Size{cols, rows})
	return nil
}

func (p *fakeProcess) Close() { p.once.Do(func() { close(p.closed) }) }

func (p *fakeProcess) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

type fakeInput struct{ p *fakeProcess }

func (i fakeInput) Write(b []byte) (int, error) {
	i.p.mu.Lock()
	deaf := i.p.deaf
	if !deaf {
		i.p.input = append(i.p.input, b...)
	}
	i.p.mu.Unlock()
	if deaf {
		<-i.p.closed
		return 0, errClosed
	}
	return len(b), nil
}

func (i fakeInput) Close() error {
	i.p.mu.Lock()
	defer i.p.mu.Unlock()
	i.p.noInput = true
	return nil
}

// fakeStarter starts the process it is given, whatever is asked.
type fakeStarter struct {
	process *fakeProcess
	err     error
	hang    bool // Start blocks until ctx ends

	mu    sync.Mutex
	asked []Start
}

func (f *fakeStarter) Start(ctx context.Context, _ access.Handle, s Start) (Process, error) {
	f.mu.Lock()
	f.asked = append(f.asked, s)
	f.mu.Unlock()
	if f.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.process, nil
}
