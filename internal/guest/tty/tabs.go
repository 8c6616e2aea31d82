// Package tty gives a sandbox its terminals: named tabs whose shells outlive those who watch them.
//
// Where the image has ttyd and tmux, a tab is one real ttyd on a unix socket in front of a tmux session of the tab's name,
// on the user's ordinary tmux server, so that `tmux attach` by hand finds the same. Elsewhere the guest answers ttyd's wire
// protocol itself (session), and keeps enough of the output to give a new viewer the exact screen (history); an emulator
// library was looked for, but those that can be had are unmaintained or draw in half a terminal toolkit. It
// does not decide who may watch, and knows nothing of sandboxd or of HTTP beyond what ttyd's protocol needs.
//
// Invariant: a shell never ends because a viewer, a ttyd or the link did; and no viewer can hold up another, or the
// program, for ever.
package tty

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"sandboxd/internal/wire"
)

// Main is the tab that is meant when none is named.
const Main = "main"

// Errors of Dial, Text and Close, to be told apart with errors.Is; sandboxd is told them as they are.
var (
	ErrBadName error = &wire.Problem{Code: wire.CodeInvalid, Message: "A terminal cannot have that name."}
	ErrNoText  error = &wire.Problem{Code: wire.CodeNotFound, Message: "Only the viewers of this terminal have its text."}
	ErrTooMany error = &wire.Problem{Code: wire.CodeConflict, Message: "There are as many terminals as may be. Close one first."}
	errNoTab   error = &wire.Problem{Code: wire.CodeNotFound, Message: "There is no such terminal."}
	errEnded   error = &wire.Problem{Code: wire.CodeUnavailable, Message: "The sandbox is stopping."}
)

// Config says whose terminals these are, and with what.
type Config struct {
	Dir        string              // for sockets and tmux.conf; made when it is not there
	Credential *syscall.Credential // the sandbox's user; nil for the guest's own
	Shell      string              // absolute path; "" for the first that is there
	Home       string              // the working directory of a new shell
	Env        []string            // the whole environment of a new shell
	TTYD       string              // path of ttyd, "" where there is none
	Tmux       string              // path of tmux, "" where there is none
}

// Tabs are the terminals of a sandbox. Safe for concurrent use.
type Tabs struct {
	config Config
	log    *slog.Logger
	web    *ttydServer

	ctx    context.Context // the children's; ends with Run
	cancel context.CancelFunc
	wg     sync.WaitGroup // the children
	turn   chan struct{}  // held during the start of a shell of our own

	mu       sync.Mutex
	ended    bool
	ttyds    map[string]*ttyd
	sessions map[string]*session
}

// New prepares the terminals; nothing is started until one is dialled.
func New(c Config, log *slog.Logger) *Tabs {
	c.Env = c.environment()
	ctx, cancel := context.WithCancel(context.Background())
	t := &Tabs{config: c, log: log, ctx: ctx, cancel: cancel, turn: make(chan struct{}, 1),
		ttyds: map[string]*ttyd{}, sessions: map[string]*session{}}
	t.web = newTTYDServer(t)
	return t
}

// Real tells whether tabs are a real ttyd with tmux, which also serves ttyd's page.
func (t *Tabs) Real() bool { return t.config.TTYD != "" && t.config.Tmux != "" }

// Run blocks until ctx ends, then ends ttyds and the guest's own shells, and returns when they are gone. What tmux holds
// is left to the end of the sandbox.
func (t *Tabs) Run(ctx context.Context) error {
	<-ctx.Done()
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.cancel()
	t.web.close()
	t.wg.Wait()
	return nil
}

// Dial connects to the HTTP server of a tab ("" for Main), which it starts when needed. Closing the connection ends
// nothing but the view.
func (t *Tabs) Dial(ctx context.Context, tab string) (net.Conn, error) {
	if tab == "" {
		tab = Main
	}
	if wire.CheckTab(tab) != nil {
		return nil, ErrBadName
	}
	if !t.Real() {
		return t.web.dial(tab)
	}
	d, err := t.ttyd(ctx, tab)
	if err != nil {
		return nil, err
	}
	return d.dial(ctx)
}

// List gives the tabs, by name. Sessions that a user has made in tmux by hand are tabs too when their names can be.
func (t *Tabs) List() []wire.Terminal {
	var byName map[string]wire.Terminal
	if t.Real() {
		byName = t.config.tmuxSessions(t.ctx)
	} else {
		byName = t.ownSessions()
	}
	names := slices.Sorted(maps.Keys(byName))
	all := make([]wire.Terminal, min(len(names), wire.MaxTabs))
	for i := range all {
		all[i] = byName[names[i]]
	}
	return all
}

// Text writes the last lines of a tab and its scrollback, with colours. ErrNoText for a shell of our own, which sends all of
// that to each new viewer.
func (t *Tabs) Text(ctx context.Context, tab string, w io.Writer) error {
	if wire.CheckTab(tab) != nil {
		return ErrBadName
	}
	if !t.Real() {
		return ErrNoText
	}
	text, err := t.config.tmuxText(ctx, tab)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// Close ends a tab's shell, and with it the view of everyone. A tab that is not there is no error.
func (t *Tabs) Close(tab string) error {
	if wire.CheckTab(tab) != nil {
		return ErrBadName
	}
	if !t.Real() {
		return t.closeOwn(tab)
	}
	err := t.config.tmuxKill(t.ctx, tab)
	t.mu.Lock()
	d := t.ttyds[tab]
	t.mu.Unlock()
	if d != nil {
		d.stop()
	}
	return err
}

// child runs f as a child that Run waits for; false when all is ended.
func (t *Tabs) child(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.wg.Go(f)
	return true
}

// enter counts the caller as a child until it calls wg.Done; false when all is ended.
func (t *Tabs) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.wg.Add(1)
	return true
}

func (t *Tabs) ownSessions() map[string]wire.Terminal {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]wire.Terminal, len(t.sessions))
	for name, s := range t.sessions {
		viewers, title, over := s.describe()
		if !over {
			all[name] = wire.Terminal{Name: name, Created: s.created, Viewers: viewers, Title: title, Folder: s.folder()}
		}
	}
	return all
}

func (t *Tabs) closeOwn(tab string) error {
	t.mu.Lock()
	s := t.sessions[tab]
	t.mu.Unlock()
	if s != nil {
		s.kill(s.ended)
	}
	return nil
}

// session gives a tab's shell, started with the size of its first viewer.
func (t *Tabs) session(tab string, z wire.TTYSize) (*session, error) {
	t.turn <- struct{}{} // held only while a process starts
	defer func() { <-t.turn }()
	if s, err := t.present(tab); s != nil || err != nil {
		return s, err
	}
	s, err := startSession(tab, &t.config, z, t.log)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[tab] = s
	t.wg.Go(func() { // also when all has just ended: then it ends at once
		s.run(t.ctx)
		t.forget(tab, s)
	})
	return s, nil
}

// present gives the tab's shell, or nil when one may be started.
func (t *Tabs) present(tab string) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errEnded
	}
	s := t.sessions[tab]
	if s == nil {
		if len(t.sessions) >= wire.MaxTabs {
			return nil, ErrTooMany
		}
		return nil, nil
	}
	if _, _, over := s.describe(); over {
		return nil, nil
	}
	return s, nil
}

func (t *Tabs) forget(tab string, s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[tab] == s {
		delete(t.sessions, tab)
	}
}

func (c *Config) uid() int {
	if c.Credential == nil {
		return -1
	}
	return int(c.Credential.Uid)
}

// shell is a login shell, as tmux starts one.
func (c *Config) shell() *exec.Cmd {
	path := c.shellPath()
	cmd := exec.Command(path)
	cmd.Args = []string{"-" + filepath.Base(path)}
	cmd.Env = c.Env
	cmd.Dir = c.home()
	return cmd
}

func (c *Config) shellPath() string {
	for _, p := range []string{c.Shell, "/bin/bash"} {
		if info, err := os.Stat(p); p != "" && err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return "/bin/sh"
}

// home is where a shell starts: a home that is missing or closed must not keep anyone out.
func (c *Config) home() string {
	if !filepath.IsAbs(c.Home) || !c.enters(c.Home) {
		return "/"
	}
	return c.Home
}

// environment is Env with the variables of our terminal, and without those of an outer one.
func (c *Config) environment() []string {
	env := slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "TMUX" || name == "TMUX_PANE" || name == "TERM" || name == "COLORTERM" || name == "SHELL"
	})
	has := func(name string) bool {
		return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	if !has("LANG") && !has("LC_ALL") && !has("LC_CTYPE") {
		env = append(env, "LANG=C.UTF-8")
	}
	return append(env, "TERM=xterm-256color", "COLORTERM=truecolor", "SHELL="+c.shellPath())
}
