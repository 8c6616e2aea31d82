package docker

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
)

// groupFile bounds what is read of one of the kernel's files, in bytes. The longest has a line for each disk.
const groupFile = 64 << 10

// Groups reads usage from the files of the containers' cgroups. It implements metrics.Source. It asks the engine only where
// a container is that it has not read before.
type Groups struct {
	engine *Engine
	kernel kernel

	mu    sync.Mutex
	found map[string]place // by sandbox id
}

// place is where the figures of a container are.
type place struct {
	container string // the engine's id of it
	pid       int    // of its first process
	folders   groupFolders
}

// groupFolders are those of a container's cgroup, by what they measure; in cgroup v2 they are one.
type groupFolders struct {
	v2                       bool
	cpu, memory, blkio, pids string
	throttle                 string // in cgroup v1 that of the controller "cpu"
}

// NewGroups gives a source that reads cgroups, or why that is not possible from here, in a sentence.
func NewGroups(e *Engine) (g *Groups, why string) {
	i := e.Info()
	k := e.reclaims.kernel
	switch {
	case !strings.HasPrefix(i.Host, "unix://"):
		return nil, "The engine is on another machine."
	case i.Can.Rootless && i.Driver == "none":
		return nil, "The engine runs without cgroups."
	case exists(filepath.Join(k.cgroup, "cgroup.type")):
		return nil, "sandboxd runs in a container that sees only its own cgroup."
	case i.Cgroup == "2" && !exists(filepath.Join(k.cgroup, "cgroup.controllers")),
		i.Cgroup == "1" && !exists(filepath.Join(k.cgroup, "memory", "memory.stat")):
		return nil, "sandboxd does not see the host's cgroups."
	}
	return &Groups{engine: e, kernel: k, found: map[string]place{}}, ""
}

// Read implements metrics.Source.
func (g *Groups) Read(ctx context.Context, ids []string) (map[string]metrics.Reading, error) {
	places, err := g.places(ctx, ids)
	out := make(map[string]metrics.Reading, len(ids))
	var gone []string
	for id, p := range places {
		u, ok := g.usage(p)
		if !ok {
			gone = append(gone, id)
			continue
		}
		out[id] = metrics.Reading{Usage: u, Time: time.Now()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range gone {
		delete(g.found, id)
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// places finds those of ids, and forgets all others. An error means that the engine did not tell of some.
func (g *Groups) places(ctx context.Context, ids []string) (map[string]place, error) {
	now := make(map[string]place, len(ids))
	var unknown []string
	g.mu.Lock()
	for _, id := range ids {
		if p, ok := g.found[id]; ok && g.still(p) {
			now[id] = p
		} else {
			unknown = append(unknown, id)
		}
	}
	g.mu.Unlock()
	var mu sync.Mutex
	var work errgroup.Group
	work.SetLimit(inspecting)
	for _, id := range unknown {
		work.Go(func() error {
			p, err := g.find(ctx, id)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				now[id] = p
			}
			if fault.Is(err, fault.NotFound) { // it does not run any more
				return nil
			}
			return err
		})
	}
	err := work.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found = make(map[string]place, len(now))
	for id, p := range now {
		g.found[id] = p
	}
	return now, err
}

// still reports whether the first process of a container is the one that was found. Its number may have passed to another.
func (g *Groups) still(p place) bool {
	text, err := readGroupFile(filepath.Join(g.kernel.proc, strconv.Itoa(p.pid), "cgroup"))
	return err == nil && strings.Contains(text, p.container)
}

func (g *Groups) find(ctx context.Context, id string) (place, error) {
	ctx, cancel := context.WithTimeout(ctx, usageLimit)
	defer cancel()
	r, err := g.engine.client.Load().ContainerInspect(ctx, g.engine.resource(id))
	if err != nil {
		return place{}, classify(err, "tell where a container is")
	}
	if r.State == nil || !r.State.Running || r.State.Pid == 0 {
		return place{}, fault.New(fault.NotFound, "The sandbox does not run.")
	}
	p := place{container: r.ID, pid: r.State.Pid}
	if p.folders, err = g.folders(p); err != nil {
		return place{}, err
	}
	return p, nil
}

// folders finds those of a container. In cgroup v1 each controller has a tree of its own, and a path in it of its own.
func (g *Groups) folders(p place) (f groupFolders, err error) {
	if g.engine.Info().Cgroup == "2" {
		at, err := g.kernel.groupIn(groupTree{file: "cpu.stat"}, p.container, p.pid)
		return groupFolders{v2: true, cpu: at, memory: at, blkio: at, pids: at}, err
	}
	for controller, folder := range map[string]*string{"cpuacct": &f.cpu, "cpu": &f.throttle, "memory": &f.memory, "blkio": &f.blkio, "pids": &f.pids} {
		if *folder, err = g.kernel.groupIn(groupTree{controller, "cgroup.procs"}, p.container, p.pid); err != nil {
			return f, err
		}
	}
	return f, nil
}

// usage reads all files of a container; false when it is gone.
func (g *Groups) usage(p place) (u metrics.Usage, ok bool) {
	if p.folders.v2 {
		u, ok = p.folders.readV2()
	} else {
		u, ok = p.folders.readV1()
	}
	if !ok {
		return u, false
	}
	u.NetworkRx, u.NetworkTx, ok = traffic(filepath.Join(g.kernel.proc, strconv.Itoa(p.pid), "net/dev"))
	return u, ok
}

func (f groupFolders) readV2() (u metrics.Usage, ok bool) {
	cpu, err := readPairs(filepath.Join(f.cpu, "cpu.stat"))
	memory, err2 := readPairs(filepath.Join(f.memory, "memory.stat"))
	held, err3 := groupNumber(filepath.Join(f.memory, "memory.current"))
	if errors.Join(err, err2, err3) != nil {
		return u, false
	}
	u.CPU, u.Throttled = time.Duration(cpu.of("usage_usec"))*time.Microsecond, time.Duration(cpu.of("throttled_usec"))*time.Microsecond
	u.Memory, u.Cache = max(held-memory.of("inactive_file"), 0), memory.of("file")
	u.MemoryLimit, _ = groupNumber(filepath.Join(f.memory, "memory.max")) // "max" is no number: no limit
	// The rest is of controllers that need not be there: what cannot be read counts as 0.
	events, _ := readPairs(filepath.Join(f.memory, "memory.events"))
	u.OOMKills = events.of("oom_kill")
	u.Processes, _ = groupNumber(filepath.Join(f.pids, "pids.current"))
	text, _ := readGroupFile(filepath.Join(f.blkio, "io.stat")) // without the controller there is none
	for line := range strings.Lines(text) {
		for _, field := range strings.Fields(line) {
			key, value, _ := strings.Cut(field, "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch key {
			case "rbytes":
				u.DiskRead += n
			case "wbytes":
				u.DiskWrite += n
			}
		}
	}
	return u, true
}

// noLimit is above any memory limit of cgroup v1 that means one.
const noLimit = 1 << 60

func (f groupFolders) readV1() (u metrics.Usage, ok bool) {
	cpu, err := groupNumber(filepath.Join(f.cpu, "cpuacct.usage"))
	memory, err2 := readPairs(filepath.Join(f.memory, "memory.stat"))
	held, err3 := groupNumber(filepath.Join(f.memory, "memory.usage_in_bytes"))
	if errors.Join(err, err2, err3) != nil {
		return u, false
	}
	// What follows is of controllers that need not be there: what cannot be read counts as 0.
	throttle, _ := readPairs(filepath.Join(f.throttle, "cpu.stat"))
	u.CPU, u.Throttled = time.Duration(cpu), time.Duration(throttle.of("throttled_time"))
	u.Memory, u.Cache = max(held-memory.of("total_inactive_file"), 0), memory.of("total_cache")
	if limit := memory.of("hierarchical_memory_limit"); limit < noLimit {
		u.MemoryLimit = limit
	}
	oom, _ := readPairs(filepath.Join(f.memory, "memory.oom_control"))
	u.OOMKills = oom.of("oom_kill")
	u.Processes, _ = groupNumber(filepath.Join(f.pids, "pids.current"))
	text, err := readGroupFile(filepath.Join(f.blkio, "blkio.throttle.io_service_bytes_recursive"))
	if err != nil { // of an old kernel
		text, _ = readGroupFile(filepath.Join(f.blkio, "blkio.throttle.io_service_bytes"))
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		n, _ := strconv.ParseInt(fields[2], 10, 64)
		switch fields[1] {
		case "Read":
			u.DiskRead += n
		case "Write":
			u.DiskWrite += n
		}
	}
	return u, true
}

// traffic sums what has passed the interfaces of a process, but for loopback.
func traffic(file string) (rx, tx int64, ok bool) {
	text, err := readGroupFile(file)
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if !found || strings.TrimSpace(name) == "lo" || len(fields) < 9 {
			continue
		}
		in, _ := strconv.ParseInt(fields[0], 10, 64)
		out, _ := strconv.ParseInt(fields[8], 10, 64)
		rx, tx = rx+in, tx+out
	}
	return rx, tx, true
}

// groupBuffers are for the files of all sandboxes, one after another.
var groupBuffers = sync.Pool{New: func() any { return new([groupFile]byte) }}

// readGroupFile reads a file of the kernel's. It does so with plain calls, because package os would have each file watched by the
// poller: that costs as much as the read, and there are some ten files for each sandbox every two seconds.
func readGroupFile(name string) (string, error) {
	fd, err := retried(func() (int, error) { return unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buffer := groupBuffers.Get().(*[groupFile]byte)
	defer groupBuffers.Put(buffer)
	n := 0
	for n < len(buffer) {
		more, err := retried(func() (int, error) { return unix.Read(fd, buffer[n:]) })
		if err != nil || more <= 0 {
			return string(buffer[:n]), err
		}
		n += more
	}
	return string(buffer[:n]), nil
}

// retried does a call again for as long as a signal interrupts it.
func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// groupNumber reads a file with nothing but a number.
func groupNumber(name string) (int64, error) {
	text, err := readGroupFile(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
}

// pairs is the text of a file with a word and a number in each line.
type pairs string

func readPairs(name string) (pairs, error) {
	text, err := readGroupFile(name)
	return pairs(text), err
}

// of gives the number behind a word; 0 for none.
func (p pairs) of(word string) int64 {
	for line := range strings.Lines(string(p)) {
		if rest, found := strings.CutPrefix(line, word); found && strings.HasPrefix(rest, " ") {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64) // no number: none
			return n
		}
	}
	return 0
}
