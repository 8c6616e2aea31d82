package program_test

import (
	"context"
	"io"
	"strings"
	"sync"

	"sandboxd/internal/acp/acptest"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/program"
	"sandboxd/internal/fault"
)

// box is a sandbox in memory: its programs are scripted agents, whose input and output are kept as a guest keeps them.
type box struct {
	loads  bool
	fails  bool     // agents die when they load a session
	models []string // that agents offer
	newer  bool     // in the newer way
	limit  int      // bytes that one Read gives at most; 0 for all

	left   chan struct{} // gets something when a pipe is closed
	panics bool          // when it is asked how its program ended

	mu   sync.Mutex
	all  map[string]*kept
	ids  []string
	runs []string // what agents ran
}

// kept is one program.
type kept struct {
	mu    sync.Mutex
	moved *sync.Cond
	in    []byte // that it was given
	taken int    // of in
	out   []byte
	acked int64
	ended bool
	gone  bool
	code  int
}

// deafAt is how much input a program is given that it does not read.
const deafAt = 4 << 20

func (b *box) Kept(context.Context, chat.Conversation) (list []program.Kept, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.ids {
		if k := b.all[id]; k != nil {
			k.mu.Lock()
			list = append(list, program.Kept{ID: id, Ended: k.ended})
			k.mu.Unlock()
		}
	}
	return list, nil
}

func (b *box) Keep(_ context.Context, _ chat.Conversation, id string, _ program.Start) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[id] != nil {
		return nil
	}
	k := &kept{}
	k.moved = sync.NewCond(&k.mu)
	if b.all == nil {
		b.all = map[string]*kept{}
	}
	b.all[id] = k
	b.ids = append(b.ids, id)
	a := acptest.Agent{Loads: b.loads, Fails: b.fails, Models: b.models, Newer: b.newer, Run: func(line string, out func(string)) error {
		b.mu.Lock()
		b.runs = append(b.runs, line)
		b.mu.Unlock()
		out("ran ")
		out(line + "\n")
		return nil
	}}
	go func() {
		err := a.Serve(input{k}, output{k})
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.ended = true; err != nil {
			k.code = 3
		}
		k.moved.Broadcast()
	}()
	return nil
}

func (b *box) Attach(ctx context.Context, _ chat.Conversation, id string, from program.Offsets) (program.Pipe, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &pipe{k: b.all[id], at: from, limit: b.limit, left: b.left, panics: b.panics}
	if p.k == nil {
		p.k = &kept{gone: true}
		p.k.moved = sync.NewCond(&p.k.mu)
	}
	context.AfterFunc(ctx, p.Close)
	return p, nil
}

func (b *box) End(_ context.Context, _ chat.Conversation, prefix string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, k := range b.all {
		if strings.HasPrefix(id, prefix) {
			k.mu.Lock()
			k.ended, k.gone = true, true
			k.moved.Broadcast()
			k.mu.Unlock()
			delete(b.all, id)
		}
	}
	return nil
}

// stops ends all programs, as the stop of a sandbox does.
func (b *box) stops() { _ = b.End(context.Background(), chat.Conversation{}, "") }

func (b *box) running() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// input and output are a program's own ends.
type input struct{ k *kept }

func (i input) Read(p []byte) (int, error) {
	i.k.mu.Lock()
	defer i.k.mu.Unlock()
	for i.k.taken == len(i.k.in) && !i.k.ended {
		i.k.moved.Wait()
	}
	if i.k.ended {
		return 0, io.EOF
	}
	n := copy(p, i.k.in[i.k.taken:])
	i.k.taken += n
	i.k.moved.Broadcast()
	return n, nil
}

type output struct{ k *kept }

func (o output) Write(p []byte) (int, error) {
	o.k.mu.Lock()
	defer o.k.mu.Unlock()
	if o.k.ended {
		return 0, io.ErrClosedPipe
	}
	o.k.out = append(o.k.out, p...)
	o.k.moved.Broadcast()
	return len(p), nil
}

// pipe is sandboxd's end.
type pipe struct {
	k      *kept
	at     program.Offsets
	limit  int
	left   chan struct{}
	panics bool
	closed bool // guarded by k.mu
}

func (p *pipe) Read(b []byte) (int, error) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	for !p.closed && !p.k.gone && !p.k.ended && int(p.at.Output) == len(p.k.out) {
		p.k.moved.Wait()
	}
	switch {
	case p.closed:
		return 0, context.Canceled
	case p.k.gone:
		return 0, fault.New(fault.NotFound, "There is no such program.")
	case int(p.at.Output) == len(p.k.out):
		return 0, io.EOF
	case p.at.Output < p.k.acked:
		return 0, fault.New(fault.Conflict, "That is forgotten.")
	}
	if p.limit > 0 {
		b = b[:min(len(b), p.limit)]
	}
	n := copy(b, p.k.out[p.at.Output:])
	p.at.Output += int64(n)
	return n, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	for !p.closed && !p.k.gone && len(p.k.in)-p.k.taken > deafAt {
		p.k.moved.Wait()
	}
	switch {
	case p.closed:
		return 0, context.Canceled
	case p.k.gone:
		return 0, fault.New(fault.NotFound, "There is no such program.")
	case int(p.at.Input) > len(p.k.in):
		return 0, fault.New(fault.Conflict, "Bytes before these are missing.")
	}
	has := len(p.k.in) - int(p.at.Input)
	p.k.in = append(p.k.in, b[min(has, len(b)):]...)
	p.at.Input += int64(len(b))
	p.k.moved.Broadcast()
	return len(b), nil
}

func (p *pipe) Ack(before int64) error {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	p.k.acked = max(p.k.acked, before)
	return nil
}

func (p *pipe) Exit() (code, signal int) {
	if p.panics {
		panic("oops")
	}
	return p.k.code, 0
}

func (p *pipe) Stderr() ([]byte, error) { return []byte("the reason why\n"), nil }

func (p *pipe) Close() {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	p.closed = true
	select {
	case p.left <- struct{}{}:
	default:
	}
	p.k.moved.Broadcast()
}
