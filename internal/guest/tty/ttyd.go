package tty

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/guest/descent"
	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

const (
	ttydStart = 5 * time.Second      // a fresh ttyd takes about 10 ms
	ttydPoll  = 2 * time.Millisecond // how often its socket is tried meanwhile
	ttydGrace = 2 * time.Second      // after SIGTERM, before SIGKILL

	// ttydPing keeps an idle connection alive through proxies that cut it after a minute. ttyd hangs up 7 s after an
	// unanswered ping, so that it is also how long a viewer may be held back.
	ttydPing = "45"
)

// ttyd is one tab's ttyd process, started when it is dialled and not there.
type ttyd struct {
	tab    string
	socket string
	tabs   *Tabs
	turn   chan struct{} // held while it is checked and started

	mu      sync.Mutex
	process *process // nil before the first start
}

// process is a child; exited is closed when it has been waited for.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// ttyd gives the tab's entry, made when it is not there.
func (t *Tabs) ttyd(ctx context.Context, tab string) (*ttyd, error) {
	if d, full := t.known(tab); d != nil {
		return d, nil
	} else if full {
		t.prune(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.ttyds[tab]; d != nil {
		return d, nil
	}
	if len(t.ttyds) >= wire.MaxTabs {
		return nil, ErrTooMany
	}
	d := &ttyd{tab: tab, tabs: t, socket: filepath.Join(t.config.Dir, tab+".sock"), turn: make(chan struct{}, 1)}
	t.ttyds[tab] = d
	return d, nil
}

func (t *Tabs) known(tab string) (d *ttyd, full bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ttyds[tab], len(t.ttyds) >= wire.MaxTabs
}

// prune forgets tabs whose tmux session has ended.
func (t *Tabs) prune(ctx context.Context) {
	alive := t.config.tmuxSessions(ctx)
	t.mu.Lock()
	var dead []*ttyd
	for name, d := range t.ttyds {
		if _, ok := alive[name]; !ok {
			dead = append(dead, d)
			delete(t.ttyds, name)
		}
	}
	t.mu.Unlock()
	for _, d := range dead {
		d.stop()
	}
}

// dial connects to the tab's ttyd, started when it does not run. A ttyd that died is started again here, on demand.
func (d *ttyd) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ttydStart)
	defer cancel()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("dial ttyd: %w", ctx.Err())
	}
	p, err := d.running()
	if err != nil {
		return nil, err
	}
	return d.connect(ctx, p)
}

// running gives the process, started when needed. The caller holds the turn.
func (d *ttyd) running() (*process, error) {
	d.mu.Lock()
	p := d.process
	d.mu.Unlock()
	if p != nil && !isClosed(p.exited) {
		return p, nil
	}
	p, err := d.start()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.process = p
	d.mu.Unlock()
	return p, nil
}

func (d *ttyd) start() (*process, error) {
	c := &d.tabs.config
	conf, err := c.prepare()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(d.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("start ttyd: %w", err)
	}
	cmd := exec.Command(c.TTYD, "-W", "-i", d.socket, "-T", "xterm-256color", "-P", ttydPing, "-d", "1", "-w", c.home(),
		"-t", "disableLeaveAlert=true", "-t", "fontSize=14",
		c.Tmux, "-u", "-f", conf, "new-session", "-A", "-s", d.tab)
	cmd.Env, cmd.Dir = c.Env, c.home()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.Credential}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	if !d.tabs.child(func() { d.watch(p, started) }) {
		return nil, errEnded
	}
	return p, <-started
}

// watch starts p and waits for it; it ends it when the tabs are ended.
func (d *ttyd) watch(p *process, started chan<- error) {
	defer close(p.exited)
	if err := descent.StartPlain(p.cmd.Start); err != nil {
		started <- fmt.Errorf("start ttyd: %w", err)
		return
	}
	started <- nil
	quit := context.AfterFunc(d.tabs.ctx, p.end)
	defer quit()
	err := p.cmd.Wait()
	if d.tabs.ctx.Err() == nil {
		d.tabs.log.Debug("ttyd ended", "tab", d.tab, "error", err)
	}
}

// stop ends the process if it runs. Its tmux session is not touched.
func (d *ttyd) stop() {
	d.mu.Lock()
	p := d.process
	d.mu.Unlock()
	if p != nil {
		p.end()
	}
}

// end asks the process to end, insists, and waits for it. The process has been started.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if !thaw.Wait(p.exited, ttydGrace) {
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// connect tries p's socket until it answers, p ends, or ctx does.
func (d *ttyd) connect(ctx context.Context, p *process) (net.Conn, error) {
	tick := time.NewTicker(ttydPoll)
	defer tick.Stop()
	for {
		conn, err := p.reach(ctx, d.socket)
		if err == nil {
			return conn, nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return nil, fmt.Errorf("dial ttyd: it ended at once: %s", p.cmd.ProcessState)
		case <-ctx.Done():
			return nil, fmt.Errorf("dial ttyd: %w", errors.Join(ctx.Err(), err))
		}
	}
}

var errImpostor = errors.New("the socket is another process's")

// reach connects to the socket and makes sure that p listens there: its folder belongs to the sandbox's user, who might
// have put anything in its place, and the guest may open sockets that the user may not.
func (p *process) reach(ctx context.Context, socket string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if pid, err := peer(conn.(*net.UnixConn)); err != nil || pid != p.cmd.Process.Pid {
		conn.Close()
		return nil, errors.Join(errImpostor, err)
	}
	return conn, nil
}

// peer is the process that made the listening socket.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, inner); err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}
