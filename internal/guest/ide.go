package guest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

// Bounds of a start of VS Code. A start takes half a second; a first one on a busy host may read 200 MB from a slow disk.
const (
	ideStart = 12 * time.Second // of the sandbox's time; below what sandboxd waits for an answer
	ideGrace = 3 * time.Second  // after SIGTERM, before SIGKILL
	idePause = 2 * time.Second  // after a start that came to nothing, until the next: pages ask again by themselves
)

var (
	errIDEOff    = problem(wire.CodeConflict, "VS Code is switched off in this sandbox.")
	errIDEStarts = problem(wire.CodeUnavailable, "VS Code is being started.")
)

// ide is VS Code in the sandbox: one code-server, started when it is dialled and not there. It listens on a socket that the
// guest itself has made in a folder that only root may enter, so that programs in the sandbox can neither reach nor replace
// it. Safe for concurrent use.
type ide struct {
	root  string // of the versions
	spawn func(ideCommand) (*process, error)
	pause time.Duration
	runs  sync.WaitGroup

	mu      sync.Mutex
	on      bool
	closed  bool
	run     *ideRun // the newest; nil before the first
	problem string  // how the newest ended by itself
	next    time.Time
}

// ideCommand holds the parameters of a start.
type ideCommand struct {
	wire.IDEStart
	tree   string // the version's folder
	listen *os.File
	ready  *os.File
}

func newIDE(root string, spawn func(ideCommand) (*process, error)) *ide {
	return &ide{root: root, spawn: spawn, pause: idePause}
}

// allow says whether it may run. One that runs and may not is ended, without waiting.
func (i *ide) allow(on bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.on = on
	if !on && i.run != nil {
		i.run.halt()
	}
}

// close ends it for good, and waits for its end.
func (i *ide) close() {
	i.mu.Lock()
	i.closed = true
	if i.run != nil {
		i.run.halt()
	}
	i.mu.Unlock()
	i.runs.Wait()
}

// dial connects to it, started when it does not run.
func (i *ide) dial(ctx context.Context, s wire.IDEStart) (net.Conn, error) {
	run, err := i.running(s)
	for err == nil && run.halted() { // switched off and on again: it is about to end
		select {
		case <-run.ended:
			run, err = i.running(s)
		case <-ctx.Done():
			err = errIDEStarts
		}
	}
	if err == nil {
		err = run.await(ctx)
	}
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", run.socket)
	if err != nil {
		return nil, problem(wire.CodeUnavailable, "VS Code does not answer: "+err.Error())
	}
	return conn, nil
}

// running gives the run that is alive, else a new one.
func (i *ide) running(s wire.IDEStart) (*ideRun, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.closed:
		return nil, problem(wire.CodeUnavailable, "The sandbox is stopping.")
	case !i.on:
		return nil, errIDEOff
	case i.run != nil && !i.run.over():
		return i.run, nil
	case i.problem != "" && time.Now().Before(i.next):
		return nil, problem(wire.CodeUnavailable, i.problem)
	}
	run, err := i.begin(s)
	if err != nil {
		return nil, err
	}
	i.run, i.problem = run, ""
	i.runs.Go(func() { i.live(run) })
	return run, nil
}

// begin starts a run. It needs mu, and takes as long as starting a process does.
func (i *ide) begin(s wire.IDEStart) (*ideRun, error) {
	tree := filepath.Join(i.root, s.Version)
	if _, err := os.Stat(filepath.Join(tree, ideProgram)); err != nil {
		return nil, problem(wire.CodeUnavailable, "This sandbox was created without VS Code, by an older sandboxd. Create a new one.")
	}
	run, err := newIDERun(s.Version)
	if err != nil {
		return nil, problem(wire.CodeUnavailable, "There is no place for VS Code's socket: "+reason(err)+".")
	}
	if err := run.start(i.spawn, ideCommand{IDEStart: s, tree: tree}); err != nil {
		run.remove()
		return nil, err
	}
	return run, nil
}

// live waits for the end of a run, and keeps the reason unless it was asked to end.
func (i *ide) live(run *ideRun) {
	run.live()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.problem = ""; !run.halted() {
		i.problem, i.next = run.last(), time.Now().Add(i.pause)
	}
	close(run.ended)
}

func (i *ide) status() wire.IDEStatus {
	i.mu.Lock()
	defer i.mu.Unlock()
	st := wire.IDEStatus{State: wire.IDEStopped, Problem: i.problem}
	if i.run == nil || i.run.over() {
		return st
	}
	st.State, st.Version = wire.IDEStarting, i.run.version
	if i.run.up() {
		st.State = wire.IDERunning
	}
	return st
}

func (i *ide) serveStatus(w http.ResponseWriter, _ *http.Request) {
	st := i.status()
	answer(w, &st)
}

func (i *ide) serveDial(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s := wire.IDEStart{Version: query.Get(wire.IDEVersion), Ports: query.Get(wire.IDEPorts)}
	if err := s.Check(); err != nil {
		fail(w, problem(wire.CodeInvalid, "VS Code cannot be started with that: "+err.Error()))
		return
	}
	conn, err := i.dial(r.Context(), s)
	if err != nil {
		fail(w, err)
		return
	}
	join(w, r, conn, 0)
}

// errNoFolder says that no folder could be made for the socket.
var errNoFolder = errors.New("no folder can be written to")
