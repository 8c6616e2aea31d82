package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a reclaim. It stops by itself when the kernel finds nothing more.
const (
	reclaimLimit = 30 * time.Second
	reclaimStep  = 16 << 20 // bytes; a step cannot be interrupted, so a thaw may run beside one
	reclaimRest  = 2 << 20  // bytes that are not worth a step
	swapSpared   = 10       // per cent of the swap that stay free for the host itself
)

// reclaims are the sandboxes whose memory is being given back to the host, or is about to be.
type reclaims struct {
	kernel kernel
	turn   sync.Mutex // one at a time: they would only fight for the disk

	mu   sync.Mutex
	byID map[string]*reclaim
}

type reclaim struct{ cancel context.CancelFunc }

func newReclaims(k kernel) *reclaims { return &reclaims{kernel: k, byID: map[string]*reclaim{}} }

// begin notes one, in the place of an earlier one. The caller must call done.
func (r *reclaims) begin(ctx context.Context, id string) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	mine := &reclaim{cancel: cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.byID[id]; old != nil {
		old.cancel()
	}
	r.byID[id] = mine
	return ctx, func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.byID[id] == mine {
			delete(r.byID, id)
		}
	}
}

// end makes the reclaim of id end soon, if there is one. It does not wait.
func (r *reclaims) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.byID[id]; one != nil {
		one.cancel()
	}
}

// reclaimLater gives the memory of a frozen sandbox back to the host, where that can be done. It does not wait.
func (e *freezer) reclaimLater(id string) {
	if _, can, _ := e.FreezeSupport(); !can || e.life.Err() != nil {
		return
	}
	ctx, done := e.reclaims.begin(e.life, id)
	e.running.Go(func() {
		defer done()
		e.reclaims.turn.Lock()
		defer e.reclaims.turn.Unlock()
		ctx, cancel := context.WithTimeout(ctx, reclaimLimit)
		defer cancel()
		began := time.Now()
		freed, err := e.reclaim(ctx, id)
		e.c.Log.Debug("memory of a frozen sandbox is reclaimed", "container", e.resource(id), "bytes", freed,
			"took", time.Since(began), "error", err)
	})
}

func (e *freezer) reclaim(ctx context.Context, id string) (freed int64, err error) {
	r, err := e.client.Load().ContainerInspect(ctx, e.resource(id))
	if err != nil {
		return 0, err
	}
	if !r.State.Paused {
		return 0, nil
	}
	group, err := e.reclaims.kernel.group(r.ID, r.State.Pid)
	if err != nil {
		return 0, err
	}
	return e.reclaims.kernel.reclaim(ctx, group)
}

// kernel is what the kernel shows of itself in files, and what it is asked for.
type kernel struct {
	proc   string
	cgroup string                                // mount of cgroup v2
	shrink func(group string, bytes int64) error // moves so much of a group's memory to swap; EAGAIN when it is less
}

func hostKernel() kernel {
	return kernel{proc: "/proc", cgroup: "/sys/fs/cgroup", shrink: func(group string, bytes int64) error {
		return write(filepath.Join(group, "memory.reclaim"), strconv.FormatInt(bytes, 10))
	}}
}

// obstacle says in a sentence why the memory of a frozen group cannot be reclaimed from here, or "".
func (k kernel) obstacle() string {
	total, _, err := k.swap()
	switch {
	case err != nil:
		return "It cannot be told whether the host has swap."
	case total == 0:
		return "The host has no swap."
	case exists(filepath.Join(k.cgroup, "cgroup.type")): // every group but the first has it
		return "sandboxd runs in a container that sees only its own cgroup."
	case !exists(filepath.Join(k.cgroup, "cgroup.controllers")):
		return "sandboxd does not see the host's cgroups."
	case !exists(filepath.Join(k.cgroup, "memory.reclaim")):
		return "The kernel is older than 5.19 and cannot reclaim the memory of one cgroup."
	case unix.Access(filepath.Join(k.cgroup, "memory.reclaim"), unix.W_OK) != nil:
		return "sandboxd may not write to the host's cgroups."
	}
	return ""
}

// group finds a container's cgroup by its first process, where its memory can be reclaimed. See groupIn.
func (k kernel) group(id string, pid int) (string, error) {
	return k.groupIn(groupTree{file: "memory.reclaim"}, id, pid)
}

// groupTree is a tree of cgroups.
type groupTree struct {
	folder string // below the mount of all, named for its controller; "" in cgroup v2
	file   string // that a group must have
}

// groupIn finds a container's cgroup by its first process. Where that number means another process (sandboxd has its own
// number space in a container) it looks where engines put groups. The container's id must be in the path.
func (k kernel) groupIn(t groupTree, id string, pid int) (string, error) {
	var tries []string
	if at := k.pathOf(t, pid); at != "" {
		tries = append(tries, at)
	}
	tries = append(tries, "/system.slice/docker-"+id+".scope", "/docker/"+id)
	for _, at := range tries {
		// A sandbox could make groups below its own and move to one: cut the path after the container's.
		n := strings.Index(at, id)
		if len(id) < minContainerID || n < 0 || strings.Contains(at, "..") {
			continue
		}
		if end := strings.IndexByte(at[n:], '/'); end >= 0 {
			at = at[:n+end]
		}
		if full := filepath.Join(k.cgroup, t.folder, at); exists(filepath.Join(full, t.file)) {
			return full, nil
		}
	}
	return "", errNoGroup
}

// minContainerID is well below the 64 digits of a container's id, and far more than a path has by chance.
const minContainerID = 32

var errNoGroup = errors.New("the container's cgroup is not seen from here")

// pathOf gives the path of a process in a tree, or "".
func (k kernel) pathOf(t groupTree, pid int) string {
	text, err := os.ReadFile(filepath.Join(k.proc, strconv.Itoa(pid), "cgroup"))
	if err != nil || pid <= 0 {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if at, ok := t.path(strings.TrimSpace(line)); ok {
			return at
		}
	}
	return ""
}

// path gives that of a line of /proc/<pid>/cgroup, if it is the tree's: "0::/path", or "4:cpu,cpuacct:/path" in cgroup v1.
func (t groupTree) path(line string) (string, bool) {
	if t.folder == "" {
		return strings.CutPrefix(line, "0::")
	}
	_, rest, _ := strings.Cut(line, ":")
	controllers, at, _ := strings.Cut(rest, ":")
	return at, slices.Contains(strings.Split(controllers, ","), t.folder)
}

// reclaim makes the kernel move a group's memory to swap, step by step, until it finds no more, the host's swap runs
// low, or ctx ends. A sandbox has no swap of its own (its memory limit is one), so it is lent some for as long.
func (k kernel) reclaim(ctx context.Context, group string) (freed int64, err error) {
	before, err := readNumber(filepath.Join(group, "memory.current"))
	if err != nil {
		return 0, err
	}
	giveBack, err := lendSwap(group, before)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, giveBack()) }()
	now := before
	for now > reclaimRest && ctx.Err() == nil && k.swapLeft() {
		stepErr := k.shrink(group, min(now, reclaimStep))
		if now, err = readNumber(filepath.Join(group, "memory.current")); err != nil {
			return 0, err
		}
		if errors.Is(stepErr, unix.EAGAIN) { // the kernel found less than was asked for
			break
		}
		if stepErr != nil {
			return before - now, stepErr
		}
	}
	return before - now, nil
}

// lendSwap lets a group swap out more bytes than it has, until giveBack. Pages swapped out then stay so.
func lendSwap(group string, more int64) (giveBack func() error, err error) {
	limit := filepath.Join(group, "memory.swap.max")
	if !exists(limit) { // the kernel keeps no account of swap, so there is no limit
		return func() error { return nil }, nil
	}
	used, err := readNumber(filepath.Join(group, "memory.swap.current"))
	if err != nil {
		return nil, err
	}
	if err := write(limit, strconv.FormatInt(used+more, 10)); err != nil {
		return nil, err
	}
	return func() error { return write(limit, "0") }, nil
}

// swapLeft reports whether there is swap to spare.
func (k kernel) swapLeft() bool {
	total, free, err := k.swap()
	return err == nil && free > total/100*swapSpared
}

// swap gives the host's swap in bytes.
func (k kernel) swap() (total, free int64, err error) {
	text, err := os.ReadFile(filepath.Join(k.proc, "meminfo"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "SwapTotal: %d kB", &kib); err == nil {
			total = kib << 10
		}
		if _, err := fmt.Sscanf(line, "SwapFree: %d kB", &kib); err == nil {
			free = kib << 10
		}
	}
	return total, free, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readNumber(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// write puts text into a file of the kernel's, in one write.
func write(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteString(text)
	return err
}
