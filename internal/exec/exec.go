// Package exec runs commands in sandboxes: to the end with their output kept within bounds, live, or in dialogue.
//
// It does not decide who may run what (delivery does, before), and it starts nothing itself: the guest does, asked
// through a Starter.
//
// Invariant: no command outlives its call, but for those that are kept (Keep). Whatever ends the call (the command's own end, its timeout, a caller that
// leaves, a lost link) ends the command's whole process tree, and no output makes sandboxd keep more than its bound.
package exec

import (
	"context"
	"io"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
)

// Bounds on a command. Each keeps one caller from taking what all share.
const (
	DefaultTimeout = 10 * time.Minute // a build or a test run
	MaxTimeout     = 24 * time.Hour
	DefaultOutput  = 1 << 20 // bytes of each stream that Run keeps
	MaxOutput      = 8 << 20
	openLimit      = 60 * time.Second // until the sandbox is awake and its guest has begun the command
	maxAtOnce      = 64               // commands under way in one sandbox
)

// Request asks for a command. Zero values mean the sandbox's own: its user, its home folder, its environment.
type Request struct {
	Command   []string          // program and arguments, not a shell's line; see Shell
	Cwd       string            // absolute path
	User      string            // name or number
	Env       map[string]string // added to the sandbox's
	Log       string            // a name like a service's, under which its output is kept in the sandbox's log too; "" for nowhere
	Title     string            // what it is called where people are told what keeps a sandbox awake; "" for Title(Command)
	Stdin     []byte
	Timeout   time.Duration // 0 for DefaultTimeout
	MaxOutput int           // bytes that Run keeps of each stream; 0 for DefaultOutput
}

// Result is how a command ended.
type Result struct {
	ExitCode       int    // as the kernel tells it; 128+n when signal n ended it; -1 when sandboxd did (TimedOut)
	Stdout, Stderr []byte // the first bytes of each; only from Run
	Truncated      bool   // more was written than was kept; the command was not disturbed by that
	TimedOut       bool   // it took longer than its timeout and was killed with all its children
	Duration       time.Duration
}

// Kind says what an Event is.
type Kind uint8

// The kinds of events, in the order in which they come: Started once, output, Exited once.
const (
	Started Kind = iota + 1
	Stdout
	Stderr
	Exited
)

// Event is something that happens with a running command.
type Event struct {
	Kind Kind
	Data []byte // of Stdout and Stderr; the receiver may keep it
	Exit int    // of Exited
}

// Start is what a guest is asked to run. Its values have been checked.
type Start struct {
	Command []string
	Cwd     string
	User    string
	Env     map[string]string
	Log     string
	Title   string
	TTY     bool // one stream (Stdout) with a terminal on it, of Cols × Rows
	Cols    int
	Rows    int
}

// Process is a command under way in a sandbox. Next belongs to one goroutine; the rest is safe for concurrent use.
type Process interface {
	Stdin() io.WriteCloser
	// Next blocks for the next event: output, then Exited, then io.EOF. It fails once the process is closed.
	Next() (Event, error)
	Signal(name string) error
	Resize(cols, rows int) error
	// Close kills the rest of the process tree and ends the use of the sandbox. It may be called more than once.
	Close()
}

// Starter starts commands in sandboxes. ctx bounds the whole life of the process. NotFound (of the field "command": no such
// program in it), Gone, Conflict (the sandbox does not run), Invalid (no such user or folder in it; of the field
// "command": what cannot be run), Unavailable.
type Starter interface {
	Start(ctx context.Context, h access.Handle, s Start) (Process, error)
}

// Config is what a Service works with.
type Config struct {
	Starter Starter // needed
	// Ended is told of every command, and of every request for one that was refused: how long it took, and the error that
	// its caller has got. A command that exited by itself has none, whatever its exit code; one whose caller has left has
	// context.Canceled. It must not block. nil for none.
	Ended func(took time.Duration, err error)
}

// Service runs commands. Safe for concurrent use.
type Service struct {
	cfg Config
	now semaphore.Keyed // commands under way, by sandbox
}

// New makes a Service. It does no I/O.
func New(c Config) *Service {
	if c.Ended == nil {
		c.Ended = func(time.Duration, error) {}
	}
	return &Service{cfg: c}
}

// enter counts a command in, or refuses it when too many are under way. The caller must call leave.
func (s *Service) enter(h access.Handle) (leave func(), err error) {
	leave, err = h.Acquire(context.Background(), &s.now, maxAtOnce, 0)
	if err != nil {
		return nil, fault.New(fault.Limited, "%d commands are under way in %s. Wait until one has ended.", maxAtOnce, h.Name())
	}
	return leave, nil
}

// chooseShell is a line for /bin/sh that runs its first argument in the best shell there is.
const chooseShell = `if [ -x /bin/bash ]; then exec /bin/bash -lc "$1"; else exec /bin/sh -lc "$1"; fi`

// Shell gives the command that runs line in a login shell: bash where there is one, else sh.
func Shell(line string) []string {
	return []string{"/bin/sh", "-c", chooseShell, "sh", line}
}

// ShellLine gives the line of a command that Shell has made.
func ShellLine(command []string) (line string, ok bool) {
	if len(command) == 0 || !slices.Equal(command, Shell(command[len(command)-1])) {
		return "", false
	}
	return command[len(command)-1], true
}
