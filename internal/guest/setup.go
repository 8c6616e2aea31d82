package guest

import (
	"context"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/wire"
)

// serveSetup takes the set-up and answers with what there is. The same set-up again, after a reconnect, changes
// nothing that runs.
func (g *Guest) serveSetup(w http.ResponseWriter, r *http.Request, link *descriptorConn) {
	var s wire.Setup
	if err := wire.Decode(r.Body, wire.MaxSetup, &s); err != nil {
		fail(w, problem(wire.CodeInvalid, "The set-up cannot be read: "+err.Error()))
		return
	}
	hello := wire.Hello{Protocol: wire.Protocol, Version: g.cfg.Version}
	if s.Protocol != wire.Protocol {
		answer(w, &hello) // and do nothing: sandboxd sees that we do not understand each other
		return
	}
	g.order.mu.Lock()
	defer g.order.mu.Unlock()
	if r.Context().Err() != nil {
		return // nobody listens any more: another connection may have said something newer
	}
	if g.order.from == link && s.Revision < g.order.revision {
		s = g.newest() // it was overtaken
	}
	g.order.from, g.order.revision = link, s.Revision
	g.setUp(s, &hello)
	answer(w, &hello)
}

// order keeps set-ups from overtaking each other: on one connection none counts that is older than the last.
type order struct {
	mu       sync.Mutex // held while one is taken in
	from     *descriptorConn
	revision int64
}

// newest is the set-up that counts.
func (g *Guest) newest() wire.Setup {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.setup
}

func (g *Guest) setUp(s wire.Setup, hello *wire.Hello) {
	g.mu.Lock()
	g.setup = s
	g.mu.Unlock()
	sh := g.shell()
	giveHome(g.cfg.Home, sh.UID, sh.GID)
	hello.User, hello.Home, hello.Shell = sh.User, sh.Home, sh.Path
	hello.HasTTYD, hello.HasTmux = sh.TTYD != "", sh.Tmux != ""
	g.openTerminals(sh)
	g.services.apply(s.Services)
	g.ide.allow(s.IDE)
	g.serving.Go(g.settler.started)
}

// giveHome gives the volume to the sandbox's user when it is root's: an engine makes a volume root's when the image has
// nothing in its place.
func giveHome(path string, uid, gid uint32) {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() || uid == 0 {
		return
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 {
		os.Lchown(path, int(uid), int(gid)) // what fails here shows where somebody wants to write
	}
}

func (g *Guest) stopGrace() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.setup.StopGrace > 0 {
		return g.setup.StopGrace
	}
	return wire.StopGrace
}

// setUpEnv is the environment of the set-up. It is never changed, only replaced.
func (g *Guest) setUpEnv() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.setup.Env
}

// shell says who uses terminals, and with what.
func (g *Guest) shell() Shell {
	who, _ := g.accounts.find("") // the default user always exists
	env := g.environ(who, nil, true)
	sh := Shell{User: who.name, UID: who.uid, GID: who.gid, Groups: who.groups, Home: who.home,
		Cwd: g.workFolder(""), Path: who.shell, Env: env.list()}
	sh.TTYD, _ = lookPath("ttyd", env["PATH"], "/")
	sh.Tmux, _ = lookPath("tmux", env["PATH"], "/")
	return sh
}

// openTerminals makes the tabs once; they outlive connections.
func (g *Guest) openTerminals(sh Shell) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.terminals != nil || g.cfg.Terminals == nil {
		return
	}
	t, run := g.cfg.Terminals(sh)
	g.terminals = t
	g.opened <- run
}

func (g *Guest) runTerminals(ctx context.Context) {
	select {
	case <-ctx.Done():
	case run := <-g.opened:
		if err := run(ctx); err != nil && ctx.Err() == nil {
			g.cfg.Log.Error("terminals have ended", "err", err)
		}
	}
}
