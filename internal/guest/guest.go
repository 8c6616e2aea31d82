// Package guest is the program inside every sandbox: it dials out to sandboxd and serves commands,
// files, ports, terminals and declared services.
//
// It decides nothing: sandboxd knows who may ask, when a sandbox runs and its name. It needs nothing from the image,
// neither a shell nor /etc/passwd nor a writable root.
//
// Invariant: a stream that is reset ends its whole process tree, unless its request says otherwise. Background processes of
// a command that has ended, and services, outlive every connection.
package guest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/guest/files"
	"sandboxd/internal/wire"
)

// How long the end may take.
const (
	lastWait  = 3 * time.Second // a process that hangs in the kernel must not keep a sandbox from stopping
	otherWait = time.Minute     // in tests, where no engine waits
)

// Terminals are the sandbox's terminal tabs. Implemented by tty.Tabs. Safe for concurrent use.
type Terminals interface {
	// Dial connects to the tab's server, starting it when needed. Closing the connection leaves the tab alive.
	Dial(ctx context.Context, tab string) (net.Conn, error)
	// List gives all tabs.
	List() []wire.Terminal
	// Text writes the last lines of a tab and its scrollback, with colours; NotFound when only viewers have them.
	Text(ctx context.Context, tab string, w io.Writer) error
	// Close ends a tab and its programs; an unknown tab is no error.
	Close(tab string) error
}

// Tabs makes the terminals of a sandbox. run owns the tabs' processes, ends them with its ctx and returns when they have
// ended.
type Tabs func(Shell) (t Terminals, run func(ctx context.Context) error)

// Config says how a guest works. InSandbox means that this process is a sandbox's guest and nothing else: when idle it gives
// memory back, and at its end it ends every other process of its PID namespace. It must never be set elsewhere.
type Config struct {
	Socket    string // sandboxd's socket; "" means wire.SocketPath
	Models    int    // port for programs that ask for models; 0 means wire.ModelsPort
	Home      string // default working folder; "" means wire.HomePath
	IDE       string // where the versions of VS Code are; "" means wire.IDEPath
	Version   string
	Root      string       // of the files that are served; "" means /
	Passwd    string       // file of the users; "" means /etc/passwd
	Terminals Tabs         // called once, when the setup is known; nil means that there are none
	InSandbox bool         // see above
	Log       *slog.Logger // nil means no log
}

// Shell is the user and the environment of terminals.
type Shell struct {
	User   string
	UID    uint32
	GID    uint32
	Groups []uint32
	Home   string   // the user's home
	Cwd    string   // where a terminal starts
	Path   string   // absolute path of the user's shell, or "" when the image has none
	Env    []string // complete, as for a command on a terminal
	TTYD   string   // absolute path, or ""
	Tmux   string   // absolute path, or ""
}

// Guest is one sandbox's guest.
type Guest struct {
	cfg Config
	*spawner
	execs     *execs
	terminals *terminals
	services  *supervisor
	ports     *ports
	ide       *ide
	models    *models
	files     *files.Tree
	kept      *keeper
	settler   settler
	order     order          // of set-ups
	serving   sync.WaitGroup // handlers, terminals and commands

	presetting chan struct{} // taken by who writes the presets' files

	mu     sync.Mutex
	ending bool // no handler begins any more
}

// New makes a guest; Run lets it live.
func New(cfg Config) *Guest {
	if cfg.Socket == "" {
		cfg.Socket = wire.SocketPath
	}
	if cfg.Home == "" {
		cfg.Home = wire.HomePath
	}
	if cfg.IDE == "" {
		cfg.IDE = wire.IDEPath
	}
	if cfg.Passwd == "" {
		cfg.Passwd = "/etc/passwd"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &spawner{accounts: newAccounts(cfg.Passwd, "/etc/group"), base: baseEnv(os.Environ()), home: cfg.Home, alone: cfg.InSandbox}
	p.setup.Store(&wire.Setup{})
	m := newModels(cfg.Models)
	g := &Guest{
		cfg: cfg, spawner: p, services: newSupervisor(p.spawn), ports: newPorts(m.owns), models: m, ide: newIDE(cfg.IDE, p.spawnIDE),
		files:      files.New(p.filesConfig(cfg.Root)),
		presetting: make(chan struct{}, 1),
		terminals:  &terminals{open: cfg.Terminals, opened: make(chan func(context.Context) error, 1), log: cfg.Log},
	}
	g.execs = &execs{spawn: p.spawn, lines: g.services.lines, serving: &g.serving, byID: map[string]*process{}}
	g.kept = newKeeper(p.spawn, &g.serving, cfg.Home)
	settle, started := func() {}, func() {}
	if cfg.InSandbox {
		settle, started = giveBack, unmapProgram
		g.services.lines.tidy = tidy
	}
	g.settler = newSettler(settle, started)
	return g
}

// hearIgnored catches and drops signals that this process inherited as ignored, as under nohup. A child would inherit that
// too, and then never get such a signal; a caught signal is reset to its default in a child.
var hearIgnored = sync.OnceFunc(func() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} { // of the others the runtime hears all
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

// Run serves sandboxd until ctx ends, then ends services and, with Config.InSandbox, everything else in the sandbox.
func (g *Guest) Run(ctx context.Context) error {
	limit := otherWait
	if g.cfg.InSandbox {
		limit = lastWait
		reserveThreads()
	}
	hearIgnored()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer g.settler.stop()
	g.serving.Go(func() { g.terminals.run(life) })
	g.serving.Go(func() { g.files.Sweep(life) })
	g.serving.Go(func() { g.models.run(life) })
	linked := make(chan struct{})
	go func() {
		defer close(linked)
		g.link(life)
	}()
	<-ctx.Done()
	g.stop()
	g.services.lines.drain()
	end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-linked
		g.mu.Lock()
		g.ending = true
		g.mu.Unlock()
		g.serving.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(limit):
		return errors.New("something in the sandbox does not end")
	}
}

// begin counts a handler, unless the end is already waited for.
func (g *Guest) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ending {
		g.serving.Add(1)
	}
	return !g.ending
}

// stop ends services first, so that none is restarted, and everything else with them.
func (g *Guest) stop() {
	grace := g.stopGrace()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		var ended sync.WaitGroup
		ended.Go(g.ide.close)
		ended.Go(func() { g.services.stop(grace) })
		ended.Go(func() { g.kept.stop(grace) })
		ended.Wait()
	}()
	if g.cfg.InSandbox {
		sweep(grace)
	}
	<-stopped
}
