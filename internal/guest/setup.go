package guest

import (
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/wire"
)

// serveSetup takes the setup and describes the sandbox. The same setup again, after a reconnect, changes nothing that
// runs.
func (g *Guest) serveSetup(w http.ResponseWriter, r *http.Request, link *descriptorConn) {
	var s wire.Setup
	if err := wire.Decode(r.Body, wire.MaxSetup, &s); err != nil {
		fail(w, problem(wire.CodeInvalid, "The setup cannot be read: "+err.Error()))
		return
	}
	hello := wire.Hello{Protocol: wire.Protocol, Version: g.cfg.Version, Models: true, Kept: true}
	if s.Protocol != wire.Protocol {
		answer(w, &hello) // and do nothing: sandboxd compares the versions
		return
	}
	g.order.mu.Lock()
	defer g.order.mu.Unlock()
	if r.Context().Err() != nil {
		return // the connection has ended: another one may have sent a newer setup
	}
	if g.order.from == link && s.Revision < g.order.revision {
		s = *g.setup.Load() // it was overtaken
	}
	g.order.from, g.order.revision = link, s.Revision
	g.setUp(s, &hello)
	answer(w, &hello)
}

// order keeps set-ups from overtaking each other: on one connection, one that is older than the last is ignored.
type order struct {
	mu       sync.Mutex // held while one is taken in
	from     *descriptorConn
	revision int64
}

func (g *Guest) setUp(s wire.Setup, hello *wire.Hello) {
	g.setup.Store(&s)
	sh := g.shell()
	giveHome(g.home, sh.UID, sh.GID)
	if g.cfg.InSandbox {
		giveMachineID(machineID, s.MachineID)
		if s.Models {
			g.presetHome(sh.Home)
		}
	}
	hello.User, hello.Home, hello.Shell = sh.User, sh.Home, sh.Path
	hello.HasTTYD, hello.HasTmux = sh.TTYD != "", sh.Tmux != ""
	g.terminals.start(sh)
	g.services.apply(s.Services)
	g.ide.allow(s.IDE)
	g.models.allow(s.Models)
	g.serving.Go(g.settler.started)
}

// giveHome gives the volume to the sandbox's user when it is root's: an engine makes a volume root's when the image has
// no folder in its place.
func giveHome(path string, uid, gid uint32) {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() || uid == 0 {
		return
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 {
		os.Lchown(path, int(uid), int(gid)) // a failure shows when the user writes
	}
}

const machineID = "/etc/machine-id"

// giveMachineID gives the sandbox an identity of its own when its image has one, which other sandboxes have too.
func giveMachineID(path, id string) {
	if was, err := os.ReadFile(path); err == nil && id != "" && len(was) > 0 {
		os.WriteFile(path, []byte(id+"\n"), 0o444) // a failure leaves the image's
	}
}

func (p *spawner) stopGrace() time.Duration {
	if grace := p.setup.Load().StopGrace; grace > 0 {
		return grace
	}
	return wire.StopGrace
}

// shell gives the user and the environment of terminals.
func (p *spawner) shell() Shell {
	who, _ := p.accounts.find("") // the default user always exists
	env := p.environ(who, nil, true)
	sh := Shell{User: who.name, UID: who.uid, GID: who.gid, Groups: who.groups, Home: who.home,
		Cwd: p.workFolder(""), Path: who.shell, Env: env.list()}
	sh.TTYD, _ = lookPath("ttyd", env["PATH"], "/")
	sh.Tmux, _ = lookPath("tmux", env["PATH"], "/")
	return sh
}
