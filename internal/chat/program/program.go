// Package program is the driver of agents that are programs in a sandbox and speak the Agent Client Protocol: it runs one as a kept program,
// gives it the person's messages, and tells the conversation what it does and asks.
//
// It knows no agent: Agents says how one is run, and Programs runs it. It keeps nothing in memory between turns.
//
// Invariant: what is shown and asked, what was written to the program, and the place in its output are one change of the conversation. So a
// turn that the end of sandboxd breaks off continues with the next byte, whenever that was.
package program

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/chat"
)

// Start says how an agent is run.
type Start struct {
	Name         string // for a person
	Command      []string
	Env          []string // "NAME=value"
	Cwd          string   // absolute; "" for the sandbox's home
	Authenticate bool     // lead it to the sandbox's models by the protocol, when it offers that
}

// Agents knows agents.
type Agents interface {
	// Agent says how one is run. Kind: NotFound, with a sentence.
	Agent(id string) (Start, error)
}

// Offsets say where one who talks to a program is: how much of its output was taken, and how much input it was given.
type Offsets struct{ Output, Input int64 }

// Kept is a program that is kept in a sandbox.
type Kept struct {
	ID    string
	Ended bool
}

// Pipe is the input and the output of a kept program, which outlast a lost link. Read is for one goroutine, Write for one, everything else
// for any. Read gives io.EOF when the program has ended, and a NotFound when it is not there any more.
type Pipe interface {
	io.ReadWriter
	// Ack lets output before an offset be forgotten.
	Ack(before int64) error
	Exit() (code, signal int) // after io.EOF
	Stderr() ([]byte, error)  // the end of it
	Close()                   // ends Read and Write; the program runs on
}

// Programs keeps programs in the sandboxes of conversations. Safe for concurrent use.
type Programs interface {
	// Kept lists those of the sandbox, the oldest first. It wakes the sandbox.
	Kept(ctx context.Context, c chat.Conversation) ([]Kept, error)
	// Keep starts a program; one with the same id again is no error.
	Keep(ctx context.Context, c chat.Conversation, id string, l Start) error
	// Attach gives the pipe of a program, from some offsets on, until ctx ends. It does no I/O.
	Attach(ctx context.Context, c chat.Conversation, id string, from Offsets) (Pipe, error)
	// End ends those programs whose ids begin with prefix. It wakes no sandbox: in one that does not run there is nothing to end.
	End(ctx context.Context, c chat.Conversation, prefix string) error
}

// Config says where a Driver has its parts from, and how patient it is. Zero means the usual.
type Config struct {
	Agents   Agents
	Programs Programs
	Models   string // address of the models in a sandbox, without a path
	Home     string // of a sandbox
	Limits   Limits // of each turn; zero means none

	Answer  time.Duration // that an agent may be silent before its turn has begun
	Silence time.Duration // that it may be silent in a turn
	Obey    time.Duration // that it may take to stop
	Quiet   time.Duration // of silence while a person is asked, before the program is left alone so that its sandbox can sleep
}

// The usual patience.
const (
	usualAnswer  = 2 * time.Minute // a large Node program on a busy machine
	usualSilence = time.Hour       // a long build, of which an agent tells only the end
	usualObey    = 10 * time.Second
	usualQuiet   = 2 * time.Second
	endLimit     = 10 * time.Second
)

// prefix begins the ids of all programs of ours.
const prefix = "agent-"

// maxIdle bounds the agents of other conversations that wait in a sandbox for their next message: each takes hundreds of megabytes.
const maxIdle = 3

// Driver implements chat.Driver. Safe for concurrent use.
type Driver struct {
	c Config

	mu   sync.Mutex
	busy map[string]bool // ids of conversations with a turn under way
}

// New makes a Driver.
func New(c Config) *Driver {
	for _, d := range []struct {
		to    *time.Duration
		usual time.Duration
	}{{&c.Answer, usualAnswer}, {&c.Silence, usualSilence}, {&c.Obey, usualObey}, {&c.Quiet, usualQuiet}} {
		if *d.to == 0 {
			*d.to = d.usual
		}
	}
	return &Driver{c: c, busy: map[string]bool{}}
}

// For gives the driver of an agent. Kind: NotFound, with a sentence, when there is none.
func (d *Driver) For(agent string) (chat.Driver, error) {
	if _, err := d.c.Agents.Agent(agent); err != nil {
		return nil, err
	}
	return d, nil
}

// Turn implements chat.Driver.
func (d *Driver) Turn(ctx context.Context, t *chat.Turn) error {
	c := t.Conversation()
	how, err := d.c.Agents.Agent(c.Agent)
	if err != nil {
		return err
	}
	d.mark(c.ID, true)
	defer d.mark(c.ID, false)
	r := &run{d: d, t: t, how: how, tools: map[string]*tool{}, answers: make(chan answer)}
	if err := r.load(ctx); err != nil {
		return err
	}
	return r.work(ctx)
}

func (d *Driver) mark(id string, busy bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if busy {
		d.busy[id] = true
	} else {
		delete(d.busy, id)
	}
}

// works reports whether a program is that of a conversation with a turn under way.
func (d *Driver) works(program string) bool {
	id, _, _ := strings.Cut(strings.TrimPrefix(program, prefix), "-")
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy[id]
}

// Left ends the programs of a conversation that was deleted. In a sandbox that is frozen or asleep they are left to the next agent that begins there.
func (d *Driver) Left(ctx context.Context, c chat.Conversation) error {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	return d.c.Programs.End(ctx, c, prefix+c.ID+"-")
}
