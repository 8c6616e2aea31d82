package guest

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/guest/descent"
	"sandboxd/internal/guest/thaw"
)

const (
	// looks and lookTime bound how long new members of a tree are stopped one by one while everything else runs on. On a busy
	// host a fork bomb runs faster than its processes can be found, however long that is tried.
	looks    = 4
	lookTime = 500 * time.Millisecond
	// lastTime bounds how long it is looked for then, while everything is stopped.
	lastTime = time.Second
	// killTime bounds how long a tree is killed: a process that is left hangs in the kernel and dies later.
	killTime = 5 * time.Second
	killPace = 2 * time.Millisecond
)

// proc is one line of the process table.
type proc struct {
	pid, ppid, session int
	zombie, stopped    bool
	terminal           bool // it has one that controls it
}

// killTree ends the process root and all that it started: its descendants, its session, and processes with its mark or, in
// the environment, its id (those that made a session of their own and lost their parents). It first stops all that it finds
// until nothing new appears, so that a process that forks for ever cannot run away from it, and then kills. With
// alone, which only a sandbox may say, it stops every other process too for as long as it hunts a tree that grows faster than
// that; jobs that a user stopped run on then. A tree of which more appears after that is hunted again.
//
// alive says whether root has not been reaped: afterwards its number may be another process's.
func killTree(root int, id string, mark descent.Mark, alive func() bool, alone bool) {
	h := hunt{root: root, mark: mark, found: map[int]bool{}, alive: alive}
	if id != "" {
		h.entry = []byte(marker + "=" + id)
	}
	if alive() {
		syscall.Kill(-root, syscall.SIGSTOP) // its group, at once
	}
	for left := thaw.NewBudget(killTime); ; {
		h.end(alone)
		for len(h.found) > 0 && !h.fresh && !left.Spent() { // until the killed are gone
			time.Sleep(killPace)
			h.look()
			h.kill()
		}
		if !h.fresh || left.Spent() {
			return
		}
	}
}

// hunt is the search for one tree.
type hunt struct {
	root  int
	entry []byte // of the environment; nil for none
	mark  descent.Mark
	alive func() bool
	found map[int]bool // alive at the last look, and stopped
	fresh bool         // some of them were new then
}

// end stops the members of the tree that it can find, and kills them.
func (h *hunt) end(alone bool) {
	grows, began := true, time.Now()
	for n := 0; grows && n < looks && time.Since(began) < lookTime; n++ {
		grows, _ = h.look()
	}
	everything := alone && grows
	if everything {
		syscall.Kill(-1, syscall.SIGSTOP) // at once, all but the first process and ourselves
		defer syscall.Kill(-1, syscall.SIGCONT)
	}
	for last := thaw.NewBudget(lastTime); everything && !last.Spent(); time.Sleep(killPace) {
		// A process that has not stopped yet may be replacing its program: its environment cannot be read then.
		if grows, runs := h.look(); !grows && !runs {
			break
		}
	}
	h.kill()
}

// look reads the process table, stops members of the tree that are new, forgets those that are gone, and reports
// whether there may be more: there were new ones, or a process ended while it was looked at and may have left children. runs
// reports that a process which is not known to be of the tree is not stopped.
func (h *hunt) look() (more, runs bool) {
	table, rootAlive := processes(), h.alive()
	members := map[int]bool{}
	for _, p := range table {
		if h.found[p.pid] && !p.zombie {
			members[p.pid] = true
		}
	}
	h.adopt(table, members, rootAlive)
	h.fresh = false
	for _, p := range table {
		switch {
		case members[p.pid] && !h.found[p.pid]:
			h.fresh = true
			syscall.Kill(p.pid, syscall.SIGSTOP)
		case !members[p.pid] && !p.zombie:
			more = more || syscall.Kill(p.pid, 0) == syscall.ESRCH
			runs = runs || !p.stopped
		}
	}
	h.found = members
	return more || h.fresh, runs
}

// kill kills what was found.
func (h *hunt) kill() {
	for pid := range h.found {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// adopt adds the processes that belong to the tree now to members.
func (h *hunt) adopt(table []proc, members map[int]bool, rootAlive bool) {
	kin := map[int]bool{}
	for pid := range members {
		kin[pid] = true
	}
	reused := false // root is gone and its number means another process
	for _, p := range table {
		reused = reused || !rootAlive && p.pid == h.root
	}
	if rootAlive {
		kin[h.root] = true // also as a zombie it still has children
	}
	env := newEnvirons()
	defer env.close()
	for _, p := range table {
		near := p.pid == h.root && rootAlive || !reused && p.session == h.root
		if near || h.mark != 0 && descent.Of(p.pid) == h.mark || h.entry != nil && env.holds(p.pid, h.entry) {
			kin[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if kin[p.ppid] && !kin[p.pid] {
				kin[p.pid], grown = true, true
			}
		}
	}
	for _, p := range table {
		if kin[p.pid] && !p.zombie {
			members[p.pid] = true
		}
	}
}

// processes reads the process table, without ourselves and the init process.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	self := os.Getpid()
	var table []proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || pid == 1 {
			continue
		}
		if p, ok := readStat(pid); ok {
			table = append(table, p)
		}
	}
	return table
}

// readStat reads /proc/<pid>/stat. The program's name in it may hold anything, also parentheses.
func readStat(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 5 {
		return proc{}, false
	}
	ppid, _ := strconv.Atoi(string(f[1]))
	session, _ := strconv.Atoi(string(f[3]))
	return proc{pid: pid, ppid: ppid, session: session, zombie: f[0][0] == 'Z' || f[0][0] == 'X',
		stopped: f[0][0] == 'T' || f[0][0] == 't', terminal: string(f[4]) != "0"}, true
}

// environs reads other processes' environments. The kernel lets root read another user's only with CAP_SYS_PTRACE,
// which containers do not have; so it looks with that user's own file system identity, which concerns this thread only.
type environs struct {
	uid, gid int
	buf      []byte
}

func newEnvirons() *environs {
	runtime.LockOSThread()
	return &environs{uid: os.Getuid(), gid: os.Getgid(), buf: make([]byte, 64<<10)}
}

// close gives the thread its identity back, or the thread up.
func (e *environs) close() {
	e.become(os.Getuid(), os.Getgid())
	if now, _ := unix.SetfsuidRetUid(-1); now == os.Getuid() {
		runtime.UnlockOSThread()
	}
}

func (e *environs) become(uid, gid int) {
	if uid == e.uid && gid == e.gid || os.Getuid() != 0 {
		return
	}
	// Back to root first: only root may take the group.
	unix.SetfsuidRetUid(0)
	unix.SetfsgidRetGid(gid)
	unix.SetfsuidRetUid(uid)
	e.uid, e.gid = uid, gid
}

// holds says whether the environment that pid was started with has the entry.
func (e *environs) holds(pid int, entry []byte) bool {
	path := "/proc/" + strconv.Itoa(pid)
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return false
	}
	e.become(int(st.Uid), int(st.Gid))
	f, err := os.Open(path + "/environ")
	if err != nil {
		return false
	}
	defer f.Close()
	return e.scan(f, entry)
}

// links gives where the open files of pid lead to. Each takes one of left.
func (e *environs) links(pid int, left *int) []string {
	path := "/proc/" + strconv.Itoa(pid)
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return nil
	}
	e.become(int(st.Uid), int(st.Gid))
	dir, err := os.Open(path + "/fd")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(max(*left, 1))
	*left -= len(names)
	links := make([]string, 0, len(names))
	for _, name := range names {
		if to, err := os.Readlink(path + "/fd/" + name); err == nil {
			links = append(links, to)
		}
	}
	return links
}

// scan looks for entry as a whole variable. An environment is bounded by the kernel, a few MiB at most.
func (e *environs) scan(f *os.File, entry []byte) bool {
	kept := 0 // of the variable that the last read cut in two
	for {
		n, err := f.Read(e.buf[kept:])
		b := e.buf[:kept+n]
		if err != nil {
			return bytes.Equal(b, entry)
		}
		for {
			i := bytes.IndexByte(b, 0)
			if i < 0 {
				break
			}
			if bytes.Equal(b[:i], entry) {
				return true
			}
			b = b[i+1:]
		}
		if len(b) == len(e.buf) {
			b[0], b = '\n', b[:1] // a variable longer than the buffer is not ours, nor is its rest
		}
		kept = copy(e.buf, b)
	}
}
