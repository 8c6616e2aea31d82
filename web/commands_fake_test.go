package web

import (
	"context"
	"io"
	"strings"
	"sync"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
)

// fakeCommands is a guest that knows some programs: see run.
type fakeCommands struct {
	mu    sync.Mutex
	asked []exec.Start
	last  *fakeCommand
	began chan struct{} // is closed when a command starts, if a test waits for that
}

// onStart gives what is closed when the next command has started.
func (f *fakeCommands) onStart() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = make(chan struct{})
	return f.began
}

func (f *fakeCommands) Start(ctx context.Context, h access.Handle, s exec.Start) (exec.Process, error) {
	if _, err := h.Current(ctx); err != nil {
		return nil, err
	}
	if s.Command[0] == "missing" {
		return nil, fault.Field("command", "There is no program %q in the sandbox.", s.Command[0])
	}
	p := &fakeCommand{events: make(chan exec.Event), input: make(chan []byte, 16), ended: make(chan struct{})}
	f.mu.Lock()
	f.asked, f.last = append(f.asked, s), p
	if f.began != nil {
		close(f.began)
		f.began = nil
	}
	f.mu.Unlock()
	go p.run(s.Command)
	return p, nil
}

func (f *fakeCommands) lastAsked() exec.Start {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1]
}

func (f *fakeCommands) lastCommand() *fakeCommand {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

type fakeCommand struct {
	events chan exec.Event
	input  chan []byte
	ended  chan struct{}
	once   sync.Once
}

// run does what command says: "echo TEXT…", "fail", "hang", "flood", "bytes" (not UTF-8), "split" (a character in two
// halves), "cat" (its input, until that ends).
func (p *fakeCommand) run(command []string) {
	code := 0
	switch command[0] {
	case "echo", "/bin/sh":
		p.say(exec.Stdout, strings.Join(command[1:], " ")+"\n")
	case "fail":
		p.say(exec.Stderr, "no\n")
		code = 3
	case "hang":
		<-p.ended
	case "flood":
		for range 20 {
			p.say(exec.Stdout, strings.Repeat("x", 100<<10))
		}
	case "bytes":
		p.say(exec.Stdout, "\xff\x00")
	case "split":
		p.say(exec.Stdout, "a\xe2\x82")
		p.say(exec.Stdout, "\xac!")
	case "cat":
		for b := range p.input {
			p.say(exec.Stdout, string(b))
		}
	}
	p.send(exec.Event{Kind: exec.Exited, Exit: code})
}

func (p *fakeCommand) say(k exec.Kind, text string) { p.send(exec.Event{Kind: k, Data: []byte(text)}) }

func (p *fakeCommand) send(e exec.Event) {
	select {
	case p.events <- e:
	case <-p.ended:
	}
}

func (p *fakeCommand) Next() (exec.Event, error) {
	select {
	case e := <-p.events:
		return e, nil
	case <-p.ended:
		return exec.Event{}, io.EOF
	}
}

func (p *fakeCommand) Stdin() io.WriteCloser { return commandInput{p} }
func (p *fakeCommand) Signal(name string) error {
	p.say(exec.Stdout, "signal "+name)
	return nil
}
func (p *fakeCommand) Resize(cols, _ int) error {
	p.say(exec.Stdout, "wide "+strings.Repeat("=", cols))
	return nil
}
func (p *fakeCommand) Close() { p.once.Do(func() { close(p.ended) }) }

type commandInput struct{ p *fakeCommand }
