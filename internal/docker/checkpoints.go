package docker

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/checkpoint"
	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// What keeping the memory of a sandbox and starting one with it may take.
const (
	checkpointLimit   = 5 * time.Minute  // the most that CRIU has, as for several GiB on a slow disk
	criuLimit         = 40 * time.Second // and longer for many bytes
	criuSpeed         = 32 << 20         // bytes that a slow disk reads or writes in a second
	supportLimit      = 10 * time.Second
	supportAskedFor   = time.Minute // how long an answer counts
	checkpointProgram = "criu"      // runc starts it by that name
)

// checkpoints keeps the memory and the processes of sandboxes, which the engine has CRIU write and read. The engine keeps a checkpoint with its
// container, so it is moved from there at once, and put beside the container that is to start from it.
type checkpoints struct {
	*connection

	mu    sync.Mutex
	asked time.Time
	why   string
}

// CheckpointSupport says in a sentence why the memory of sandboxes cannot be kept here; "" when it can. It remembers the answer for a minute.
func (e *checkpoints) CheckpointSupport(ctx context.Context) string {
	e.mu.Lock()
	asked, why := e.asked, e.why
	e.mu.Unlock()
	if time.Since(asked) < supportAskedFor {
		return why
	}
	if why = e.obstacle(ctx); ctx.Err() == nil {
		e.mu.Lock()
		e.asked, e.why = time.Now(), why
		e.mu.Unlock()
	}
	return why
}

func (e *checkpoints) obstacle(ctx context.Context) string {
	i := e.Info()
	switch {
	case !e.c.KeepMemory:
		return "Memory snapshots are switched off (--memory-snapshots)."
	case !strings.HasPrefix(i.Host, "unix://"):
		return "The engine is on another machine, where sandboxd cannot move what it writes."
	case !i.Can.Experimental:
		return `The engine's experimental features are off. Set "experimental": true in its daemon.json, and restart it.`
	}
	if _, err := os.ReadDir(filepath.Join(i.Root, "containers")); err != nil {
		return "The engine's folder " + i.Root + " cannot be read. Run sandboxd as root on the engine's host."
	}
	path, err := exec.LookPath(checkpointProgram)
	if err != nil {
		return "CRIU is not installed: there is no program criu on the PATH."
	}
	ctx, cancel := context.WithTimeout(ctx, supportLimit)
	defer cancel()
	if said, err := exec.CommandContext(ctx, path, "--version").Output(); err != nil || !newEnough(string(said)) {
		return "CRIU 4 or later is needed; " + path + " is not that: " + clean(string(said), longestWord)
	}
	if said, err := exec.CommandContext(ctx, path, "check").CombinedOutput(); err != nil {
		return "CRIU does not work on this kernel: " + clean(string(said), longestWord)
	}
	return ""
}

var criuVersion = regexp.MustCompile(`^Version: (\d+)\.`)

// newEnough reports whether what CRIU says of its version is 4 or later: the files of older ones differ.
func newEnough(said string) bool {
	found := criuVersion.FindStringSubmatch(said)
	if found == nil {
		return false
	}
	major, err := strconv.Atoi(found[1])
	return err == nil && major >= 4
}

// staged is the folder in which the engine has the checkpoints of a container.
func (e *checkpoints) staged(container string) string {
	return filepath.Join(e.Info().Root, "containers", container, "checkpoints")
}

// kept is the folder of a snapshot's checkpoint.
func (e *checkpoints) kept(snapshot string) string {
	return filepath.Join(e.c.CheckpointFolder, snapshot)
}

// Checkpoint keeps the memory and the processes of a sandbox. See sandbox.Checkpoints.
//
// The engine does not stop when its caller hangs up. So when ctx ends early, Checkpoint returns, and CRIU is ended; the next Checkpoints
// removes what is left of that.
func (e *checkpoints) Checkpoint(caller context.Context, id, snapshot string) (bytes int64, err error) {
	err = e.detached(caller, id, "keep the memory", checkpointLimit+time.Minute, func(ctx context.Context) (err error) {
		bytes, err = e.checkpoint(ctx, caller, id, snapshot)
		return err
	})
	if err != nil {
		return 0, err
	}
	return bytes, nil
}

func (e *checkpoints) checkpoint(ctx, caller context.Context, id, snapshot string) (int64, error) {
	box, err := e.able(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case !box.State.Running || !box.State.Paused:
		return 0, fault.New(fault.Conflict, "The sandbox is not frozen, so its memory cannot be kept.")
	case box.HostConfig.Init != nil && *box.HostConfig.Init:
		return 0, fault.New(fault.Conflict, "The sandbox is from before memory snapshots were switched on. Take a snapshot without memory, restore the sandbox to it, and try again.")
	}
	if e.Info().Cgroup == "1" { // there CRIU would wait without end for what is stopped
		if name := e.reclaims.kernel.stopped(box.ID); name != "" {
			return 0, fault.New(fault.Conflict, "The program %s is stopped (as by Ctrl+Z), so the memory cannot be kept. Continue it (fg) or end it, and try again.", name)
		}
	}
	at := filepath.Join(e.staged(box.ID), snapshot)
	err = os.RemoveAll(at)
	if err == nil {
		err = e.write(ctx, caller, box, snapshot)
	}
	var bytes int64
	if err == nil {
		bytes, err = sumUp(at)
	}
	if err == nil {
		err = moveFiles(at, e.kept(snapshot))
	}
	return bytes, errors.Join(err, os.RemoveAll(at))
}

// write has the engine write the memory of a container. CRIU may hang, as on a program that a signal has stopped, and with it all that is
// asked of the container: so it is killed when the caller leaves, or after a while.
func (e *checkpoints) write(ctx, caller context.Context, box container.InspectResponse, snapshot string) error {
	limit := criuTime(box.HostConfig.Memory)
	bounded, cancel := context.WithTimeout(caller, limit)
	defer cancel()
	written, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		e.endUnless(bounded, written, box.ID)
	}()
	err := e.client.Load().CheckpointCreate(ctx, box.ID, checkpoint.CreateOptions{CheckpointID: snapshot})
	close(written)
	<-watched
	switch {
	case err == nil:
		return nil
	case caller.Err() != nil:
		return classify(caller.Err(), "keep the memory")
	case bounded.Err() != nil:
		return fault.Wrap(err, fault.Unavailable, "The memory could not be kept: that was not done within %s.", limit)
	}
	return fault.Wrap(err, fault.Unavailable, "The memory could not be kept: %s", criuWord(err))
}

// endUnless ends the CRIU that writes the memory of a container when ctx ends, again until what it was begun by has returned: it may not have
// begun yet.
func (e *checkpoints) endUnless(ctx context.Context, returned <-chan struct{}, containerID string) {
	select {
	case <-returned:
		return
	case <-ctx.Done():
	}
	again := time.NewTicker(clearLimit)
	defer again.Stop()
	for {
		killed := e.reclaims.kernel.endCheckpoint(containerID)
		e.c.Log.Warn("keeping a memory is ended", "container", containerID, "processes", killed, "cause", ctx.Err())
		select {
		case <-returned:
			return
		case <-again.C:
		}
	}
}

// endLeft ends what an earlier sandboxd has left of keeping memories: it could hang, and its container with it.
func (e *checkpoints) endLeft(ctx context.Context) error {
	list, err := e.containers(ctx)
	for _, c := range list {
		e.reclaims.kernel.endCheckpoint(c.ID)
	}
	return err
}

// containers lists those of which memory can be kept.
func (e *checkpoints) containers(ctx context.Context) ([]container.Summary, error) {
	if !e.c.KeepMemory || e.own() != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	list, err := e.client.Load().ContainerList(ctx, container.ListOptions{All: true, Filters: e.ours()})
	return list, classify(err, "list its containers")
}

// criuTime bounds the time that CRIU has for so many bytes. For a sandbox without a limit of memory those are the most that there can be.
func criuTime(bytes int64) time.Duration {
	if bytes == 0 {
		return checkpointLimit
	}
	return min(criuLimit+time.Duration(bytes/criuSpeed)*time.Second, checkpointLimit)
}

// How CRIU says what it cannot do: an error is a line of its log.
var (
	criuFailed = regexp.MustCompile(`(?s)criu failed: .*(?:path=|log file:)\s*(/[^\s:]+)`)
	criuError  = regexp.MustCompile(`Error \([^)]*\): (.*)`)
)

// longestLog bounds how much of a log of CRIU is read.
const longestLog = 16 << 20

// criuWord is what CRIU says in its log, of which the engine names only the path, or what the engine says where that cannot be read.
func criuWord(err error) string {
	failed := criuFailed.FindStringSubmatch(innermost(err))
	if failed == nil {
		return word(err)
	}
	cause := "its log " + failed[1] + " cannot be read from here."
	if log, err := os.Open(failed[1]); err == nil {
		defer log.Close()
		cause = "its log " + failed[1] + " names no error."
		lines := bufio.NewScanner(io.LimitReader(log, longestLog))
		for lines.Scan() { // the first error is the cause of the others
			if found := criuError.FindStringSubmatch(lines.Text()); found != nil {
				cause = found[1]
				break
			}
		}
	}
	return "CRIU refuses it: " + clean(cause, longestWord)
}

// able gives the container of a sandbox, if checkpoints can be made here.
func (e *checkpoints) able(ctx context.Context, id string) (box container.InspectResponse, err error) {
	if why := e.CheckpointSupport(ctx); why != "" {
		return box, fault.New(fault.Conflict, "%s", why)
	}
	box, err = e.client.Load().ContainerInspect(ctx, e.resource(id))
	if errdefs.IsNotFound(err) {
		return box, fault.Wrap(err, fault.NotFound, "The container engine does not have this sandbox's container.")
	}
	return box, classify(err, "look at the container")
}

// StartFrom starts a sandbox with what Checkpoint has kept, of it or of another one. See sandbox.Checkpoints.
func (e *checkpoints) StartFrom(ctx context.Context, id, snapshot string) error {
	return e.detached(ctx, id, "start the container with its memory", checkpointLimit, func(ctx context.Context) error {
		return e.startFrom(ctx, id, snapshot)
	})
}

func (e *checkpoints) startFrom(ctx context.Context, id, snapshot string) (err error) {
	box, err := e.able(ctx, id)
	if err == nil && box.State.Running {
		err = fault.New(fault.Conflict, "The sandbox runs already.")
	}
	if err == nil {
		err = e.movedIn(ctx, id)
	}
	if err != nil {
		return err
	}
	defer e.seen.drop(id)
	at := filepath.Join(e.staged(box.ID), snapshot)
	defer func() { err = errors.Join(err, os.RemoveAll(at)) }()
	if err = os.RemoveAll(at); err == nil {
		err = putFiles(e.kept(snapshot), at)
	}
	var bytes int64
	if err == nil {
		bytes, err = isWhole(at)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.NotFound, "What was kept of its memory is gone.")
	}
	if err == nil {
		err = adapt(at, box.Config.Hostname)
	}
	if err == nil { // engines refuse a checkpoint with the very same content as an earlier one
		err = os.WriteFile(filepath.Join(at, e.resource(id)), []byte(sandbox.NewID()), checkpointFile)
	}
	if err != nil {
		return err
	}
	err = e.restore(ctx, box.ID, snapshot, criuTime(bytes))
	if leftErr := e.removeUnpacked(id); leftErr != nil {
		e.c.Log.Warn("what the engine has unpacked of a memory is left", "error", leftErr)
	}
	return err
}

// restore starts a container from the checkpoint that was put beside it. CRIU may hang on one that is damaged, or that a program has made so, and
// with it all that is asked of the container, which counts as an engine that is lost: so its processes are killed then.
func (e *checkpoints) restore(ctx context.Context, containerID, snapshot string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := e.client.Load().ContainerStart(ctx, containerID, container.StartOptions{CheckpointID: snapshot})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		killed := e.reclaims.kernel.end(containerID)
		e.c.Log.Warn("a memory did not come back in time; what there was of it is ended", "container", containerID, "processes", killed)
		return fault.Wrap(err, fault.Timeout, "It did not come back within %s.", limit)
	case lost(err):
		return classify(err, "start the container with its memory")
	}
	return fault.Wrap(err, fault.Unavailable, "%s", criuWord(err))
}

// Checkpoints lists the snapshots of which memory is kept. See sandbox.Checkpoints.
func (e *checkpoints) Checkpoints(ctx context.Context) (snapshots []string, err error) {
	if err := e.unstage(ctx); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(e.c.CheckpointFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.Unavailable, "The folder %s cannot be read.", e.c.CheckpointFolder)
	}
	for _, entry := range entries {
		snapshots = append(snapshots, strings.TrimSuffix(entry.Name(), partFile))
	}
	return slices.Compact(snapshots), nil
}

// unpackedPattern matches what containerd unpacks of a checkpoint that it starts from, and leaves there. It is ours when it has the file of
// the name of the container.
const unpackedPattern = "ctrd-checkpoint*"

// removeUnpacked removes what was unpacked for a sandbox.
func (e *checkpoints) removeUnpacked(id string) error {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), unpackedPattern, e.resource(id)))
	for _, marker := range found {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(marker)))
	}
	return err
}

// unstage removes what a crash has left of checkpoints with the containers.
func (e *checkpoints) unstage(ctx context.Context) error {
	list, err := e.containers(ctx)
	for _, c := range list {
		id, ours := e.idOf(firstName(c), c.Labels)
		if !ours {
			continue
		}
		unlock, free := e.ids.Try(id, 1)
		if !free {
			continue // one is being made, or started from
		}
		err = errors.Join(err, os.RemoveAll(e.staged(c.ID)), e.removeUnpacked(id))
		unlock()
	}
	return err
}

// RemoveCheckpoint removes what is kept of a memory. See sandbox.Checkpoints.
func (e *checkpoints) RemoveCheckpoint(_ context.Context, snapshot string) error {
	if snapshot == "" || filepath.Base(snapshot) != snapshot || strings.HasPrefix(snapshot, ".") {
		return fault.New(fault.Invalid, "%q is no id of a snapshot.", snapshot)
	}
	if e.c.CheckpointFolder == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(e.kept(snapshot)), os.RemoveAll(e.kept(snapshot)+partFile))
}
