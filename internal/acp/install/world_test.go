package install

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// world is a Service, a sandbox, and what runs in it.
type world struct {
	*Service
	t       *testing.T
	box     *accesstest.Sandbox
	handle  access.Handle
	guest   *guest
	program *programs
	list    string // path of the admin's
}

func newWorld(t *testing.T) *world {
	t.Helper()
	g, p := &guest{files: map[string]string{}}, &programs{}
	w := &world{t: t, guest: g, program: p, box: accesstest.New("lab", g), list: t.TempDir() + "/agents.json"}
	w.handle = w.box.Handle(t)
	log := slog.New(slog.DiscardHandler)
	w.Service = New(Config{Catalog: NewCatalog(w.list, log), Exec: exec.New(exec.Config{Starter: p}), Log: log})
	accesstest.Run(t, w.Run)
	return w
}

// ended waits for the end of what is under way.
func (w *world) ended() {
	w.t.Helper()
	w.mu.Lock()
	j := w.jobs[w.handle.ID()]
	w.mu.Unlock()
	if j != nil {
		<-j.done
	}
}

// status gives one agent.
func (w *world) status(id string) Status {
	w.t.Helper()
	all, _, err := w.List(w.t.Context(), w.handle)
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a Status) bool { return a.ID == id })
	if i < 0 {
		w.t.Fatalf("there is no %s", id)
	}
	return all[i]
}

// programs runs nothing: each program that is started is given to the test.
type programs struct {
	mu      sync.Mutex
	started []*program
	next    func(*program) // what the next ones do; nil for exiting with 0
}

func (p *programs) Start(ctx context.Context, _ access.Handle, s exec.Start) (exec.Process, error) {
	one := &program{start: s, events: make(chan exec.Event, 10_000), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, one)
	if p.next == nil {
		one.exit(0)
	} else {
		p.next(one)
	}
	return one, nil
}

func (p *programs) all() []*program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.started)
}

type program struct {
	start  exec.Start
	events chan exec.Event
	closed chan struct{}
	once   sync.Once
}

func (p *program) says(text string) { p.events <- exec.Event{Kind: exec.Stdout, Data: []byte(text)} }
func (p *program) exit(code int)    { p.events <- exec.Event{Kind: exec.Exited, Exit: code} }

func (p *program) Stdin() io.WriteCloser { return nowhere{} }
func (p *program) Next() (exec.Event, error) {
	select {
	case e := <-p.events:
		return e, nil
	case <-p.closed:
		return exec.Event{}, errors.New("closed")
	}
}
func (p *program) Signal(string) error   { return nil }
func (p *program) Resize(int, int) error { return nil }
func (p *program) Close()                { p.once.Do(func() { close(p.closed) }) }

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }

// guest has files, by path.
type guest struct {
	access.Guest
	mu    sync.Mutex
	files map[string]string
	many  int // further names in every folder
	fails error
	puts  []wire.FilePut

	writes error // that writing gives
}

func (*guest) Done() <-chan struct{} { return nil }

func (g *guest) put(path, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files[path] = text
}

func (g *guest) FileList(_ context.Context, path, _ string, limit int) (wire.Listing, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails != nil {
		return wire.Listing{}, g.fails
	}
	names := map[string]bool{}
	for file := range g.files {
		if rest, ok := strings.CutPrefix(file, path+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			names[name] = true
		}
	}
	if len(names) == 0 {
		return wire.Listing{}, fault.New(fault.NotFound, "no such folder")
	}
	l := wire.Listing{Path: path}
	for name := range names {
		l.Entries = append(l.Entries, wire.Entry{Name: name})
	}
	for i := range g.many {
		l.Entries = append(l.Entries, wire.Entry{Name: strings.Repeat("x", i%200)})
	}
	l.Entries = l.Entries[:min(len(l.Entries), limit)]
	return l, nil
}

func (g *guest) FileRead(_ context.Context, path string, _, _ int64) (wire.Entry, io.ReadCloser, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text, ok := g.files[path]
	if !ok {
		return wire.Entry{}, nil, fault.New(fault.NotFound, "no such file")
	}
	return wire.Entry{}, io.NopCloser(strings.NewReader(text)), nil
}

func (g *guest) FileWrite(_ context.Context, put wire.FilePut, body io.Reader) (wire.Written, error) {
	text, err := io.ReadAll(body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.puts = append(g.puts, put)
	if g.writes != nil {
		return wire.Written{}, g.writes
	}
	if _, there := g.files[put.Path]; there && put.IfNone {
		return wire.Written{}, fault.New(fault.Conflict, "it is there")
	}
	g.files[put.Path] = string(text)
	return wire.Written{}, err
}
