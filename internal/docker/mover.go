package docker

import (
	"context"
	"errors"
	"net"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/semaphore"
	"sandboxd/internal/wire"
)

// labelMover is on the containers that read, copy and replace homes; its value is the instance. They have none of the labels of
// sandboxes.
const labelMover = "sandboxd.mover"

// What a mover gets.
const (
	moverMemory = 256 << 20
	moverPids   = 64
	moverFiles  = 8192             // open folders, one for each level
	moverSilent = 2 * time.Minute  // without a word while it works
	moverDial   = 30 * time.Second // from its start
	moverPause  = 20 * time.Millisecond
	moverBuffer = 256 << 10
)

// moverCapabilities let root in it read and write whatever is in a home, and nothing else.
var moverCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP"}

// homes opens the homes of sandboxes.
type homes struct {
	*connection
	opening semaphore.Keyed // one at a time of a sandbox

	mu   sync.Mutex
	open map[string]*home // by the sandbox's id
}

// home is a sandbox.Home: a mover's container and the connection with it.
type home struct {
	s        *homes
	box      string // the sandbox's id
	snapshot string // its id, "" for none
	image    string // for the container
	at       location
	rooted   bool        // the home is the one in the mover's own root file system, which is kept
	mounted  bool        // a container has the home: that of the sandbox runs or is frozen, or the engine has left it so
	kept     atomic.Bool // the snapshot has a copy of the home now
	life     context.Context
	end      context.CancelFunc
	once     sync.Once
	closed   error

	mu     sync.Mutex
	shut   bool
	fresh  bool   // the snapshot had no volume before
	id     string // of the container
	folder string // of its socket
	conn   net.Conn
	target string // the folder in the pool that the mover has for the home; "" for the home itself
}

// OpenHome starts a mover beside a sandbox. See sandbox.Homes. With a storage pool the mover starts when it is needed first: where both
// a home and its copy are in there, the pool copies, and no program reads them.
//
// The engine does not stop making a container when its caller hangs up. So when ctx ends early, OpenHome returns, and what it has
// begun continues and is undone; another OpenHome of the same id waits for that.
func (s *homes) OpenHome(ctx context.Context, id, snapshot string) (sandbox.Home, error) {
	if err := s.own(); err != nil {
		return nil, err
	}
	if s.c.Listen == nil {
		return nil, fault.New(fault.Internal, "This connection to the engine opens no homes.")
	}
	if s.life.Err() != nil {
		return nil, fault.New(fault.Unavailable, "The connection to the container engine is closed.")
	}
	unlock, err := s.opening.Acquire(ctx, id, 1, -1)
	if err != nil {
		return nil, classify(err, "open the home")
	}
	type outcome struct {
		h   *home
		err error
	}
	done := make(chan outcome)
	s.running.Go(func() {
		defer unlock()
		h, err := s.openHome(ctx, id, snapshot)
		select {
		case done <- outcome{h, err}:
		case <-ctx.Done():
			if h != nil {
				s.closeLate(h)
			}
		}
	})
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return o.h, nil
	case <-ctx.Done():
		return nil, classify(ctx.Err(), "open the home")
	}
}

func (s *homes) closeLate(h *home) {
	if err := h.Close(); err != nil {
		s.c.Log.Warn("a container that moves a home cannot be removed yet", "container", h.id, "error", err)
	}
}

// openHome ends an earlier Home of the sandbox first. ctx ends the wait for the mover; what is asked of the engine is waited for.
func (s *homes) openHome(ctx context.Context, id, snapshot string) (*home, error) {
	h := &home{s: s, box: id, snapshot: snapshot}
	if err := h.look(ctx); err != nil {
		return nil, err
	}
	if err := s.closeOpen(id); err != nil {
		return nil, err
	}
	h.life, h.end = context.WithCancel(s.life)
	if s.c.Pool == nil {
		if err := h.connect(ctx, ""); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	} else {
		h.mounted = h.mounted || s.leftMounted(ctx, id)
		if snapshot != "" && h.mounted {
			s.syncPool(ctx)
		}
	}
	s.keep(h)
	return h, nil
}

// syncPool has what was written so far put on the disk, so that the sandbox need not be frozen for that.
func (s *homes) syncPool(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	if err := s.c.Pool.Sync(ctx); err != nil {
		s.c.Log.Debug("the storage pool is not synced", "error", err)
	}
}

// look learns what the sandbox's container is made from, and where the home is. The container's image is there as long as that is.
func (h *home) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	box, err := h.s.client.Load().ContainerInspect(ctx, h.s.resource(h.box))
	if errdefs.IsNotFound(err) {
		return fault.Wrap(err, fault.NotFound, "The container engine does not have this sandbox's container.")
	}
	if err != nil {
		return classify(err, "look at the container")
	}
	h.image, h.mounted = box.Image, box.State.Running
	h.at, err = h.s.homePlace(ctx, h.box)
	return err
}

// connect starts the mover, with a folder in the pool for the home, or the home itself when target is "", and waits for it. One that is
// there already is used. ctx ends the wait for the mover.
func (h *home) connect(ctx context.Context, target string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil && h.target == target {
		return nil
	}
	if h.shut || h.conn != nil {
		return errClosedHome
	}
	l, err := h.s.c.Listen("mover-" + h.box)
	if err != nil {
		return err
	}
	defer l.Close()
	h.folder, h.target = l.Folder, target
	if err := h.start(); err != nil {
		return err
	}
	return h.accept(ctx, l)
}

var errClosedHome = fault.New(fault.Unavailable, "The sandbox's home was closed, or is in use for something else. Try again.")

func (s *homes) keep(h *home) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[h.box] = h
}

func (s *homes) forget(h *home) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[h.box] == h {
		delete(s.open, h.box)
	}
}

// closeOpen closes the open Home of a sandbox, if there is one.
func (s *homes) closeOpen(id string) error {
	s.mu.Lock()
	h := s.open[id]
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	return h.Close()
}

// uses reports whether the copy of a snapshot is in use.
func (s *homes) uses(snapshot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.open {
		if h.snapshot == snapshot && s.c.Pool != nil {
			return true
		}
	}
	return false
}

// leave ends what is done with a sandbox's home, so that its volume can be removed.
func (s *homes) leave(ctx context.Context, id string) error {
	unlock, err := s.opening.Acquire(ctx, id, 1, -1)
	if err != nil {
		return classify(err, "remove the volume")
	}
	defer unlock()
	return errors.Join(s.closeOpen(id), s.removeMover(ctx, s.mover(id)))
}

// start makes and starts the container. One that a crash has left is removed before.
func (h *home) start() error {
	ctx, cancel := context.WithTimeout(h.s.life, createLimit)
	defer cancel()
	cli := h.s.client.Load()
	pooled, err := h.copyInPool()
	if err != nil {
		return err
	}
	if h.snapshot != "" && !pooled {
		_, err := cli.VolumeInspect(ctx, h.s.snapshotVolume(h.snapshot))
		if h.fresh = errdefs.IsNotFound(err); err != nil && !h.fresh {
			return classify(err, "look for the copy of the home")
		}
	}
	mounts := h.s.moverMounts(h, pooled)
	made, err := h.s.makeMover(ctx, h, mounts)
	if errdefs.IsConflict(err) {
		if err := h.s.removeMover(ctx, h.s.mover(h.box)); err != nil {
			return err
		}
		made, err = h.s.makeMover(ctx, h, mounts)
	}
	if err != nil {
		return refused(err, "make the container that moves the home")
	}
	h.id = made
	if h.rooted {
		if err := h.emptyHome(ctx); err != nil {
			return err
		}
	}
	return refused(cli.ContainerStart(ctx, h.id, container.StartOptions{}), "start the container that moves the home")
}

// mover is the name of the container that moves a sandbox's home.
func (s *homes) mover(id string) string { return s.resource(id) + "-mover" }

// makeMover gives the engine's bare error.
func (s *homes) makeMover(ctx context.Context, h *home, mounts []mount.Mount) (containerID string, err error) {
	f := s.facts.Load()
	pids := int64(moverPids)
	made, err := s.client.Load().ContainerCreate(ctx,
		&container.Config{
			User: "0:0", WorkingDir: "/", Image: h.image, Labels: map[string]string{labelMover: s.c.Instance},
			Entrypoint: strslice.StrSlice{wire.GuestPath, wire.MoverArgument}, NetworkDisabled: true,
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		&container.HostConfig{
			NetworkMode: network.NetworkNone, AutoRemove: !h.rooted, IpcMode: container.IPCModePrivate, OomScoreAdj: oomScore,
			LogConfig: logConfig(f.localLog), ReadonlyRootfs: !h.rooted, CapDrop: []string{"ALL"}, CapAdd: moverCapabilities,
			SecurityOpt: []string{"no-new-privileges", "seccomp=" + strictSeccomp()},
			Mounts:      mounts,
			Resources: container.Resources{
				Memory: moverMemory, PidsLimit: &pids,
				Ulimits: []*container.Ulimit{{Name: "core"}, {Name: "nofile", Soft: moverFiles, Hard: moverFiles}},
			},
		}, nil, nil, s.mover(h.box))
	return made.ID, err
}

// moverMounts are what a mover sees of the host. The engine makes the volume of the snapshot if it has none.
func (s *homes) moverMounts(h *home, pooledCopy bool) []mount.Mount {
	m := []mount.Mount{
		{Type: mount.TypeBind, Source: s.c.GuestBinary, Target: wire.GuestPath, ReadOnly: true},
		{Type: mount.TypeBind, Source: h.folder, Target: path.Dir(wire.SocketPath), ReadOnly: true},
	}
	switch {
	case h.rooted:
	case h.target != "":
		m = append(m, mount.Mount{Type: mount.TypeBind, Source: s.c.Pool.Path(h.target), Target: wire.HomePath})
	case h.at == inNext:
		m = append(m, mount.Mount{Type: mount.TypeBind, Source: s.c.Pool.Path(s.resource(h.box) + partNext), Target: wire.HomePath})
	default:
		m = append(m, mount.Mount{Type: mount.TypeVolume, Source: s.resource(h.box), Target: wire.HomePath, VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
	}
	switch {
	case h.snapshot == "":
	case pooledCopy:
		m = append(m, mount.Mount{Type: mount.TypeBind, Source: s.c.Pool.Path(s.snapshotVolume(h.snapshot)), Target: wire.SnapshotHome, ReadOnly: true})
	default:
		m = append(m, mount.Mount{Type: mount.TypeVolume, Source: s.snapshotVolume(h.snapshot), Target: wire.SnapshotPath,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: s.snapshotLabels()}})
	}
	return m
}

// accept waits for the mover, or for the container's end.
func (h *home) accept(ctx context.Context, l Listener) error {
	ctx, cancel := context.WithTimeout(ctx, moverDial)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		if h.ended(ctx) {
			cancel()
		}
	})
	conn, err := l.Accept()
	if err != nil {
		return fault.Wrap(errors.Join(err, ctx.Err()), fault.Unavailable, "The program that moves the home did not start.")
	}
	h.conn = conn
	return nil
}

// ended waits until the container has ended. It is false when that cannot be told.
func (h *home) ended(ctx context.Context) bool {
	answers, problems := h.s.client.Load().ContainerWait(ctx, h.id, container.WaitConditionNotRunning)
	select {
	case <-answers:
		return true
	case err := <-problems:
		return errdefs.IsNotFound(err)
	}
}

// Close implements sandbox.Home.
func (h *home) Close() error {
	h.once.Do(func() {
		h.end()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.shut = true
		if h.conn != nil {
			h.conn.Close()
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.s.life), removeLimit)
		defer cancel()
		if h.id != "" {
			h.closed = h.s.removeMover(ctx, h.id)
		}
		if h.fresh && !h.kept.Load() {
			h.closed = errors.Join(h.closed, h.dropVolume(ctx))
		}
		if h.target != "" {
			h.closed = errors.Join(h.closed, h.s.c.Pool.Remove(h.target))
		}
		if h.folder != "" {
			h.closed = errors.Join(h.closed, os.RemoveAll(h.folder))
		}
		h.s.forget(h)
	})
	return h.closed
}

// dropVolume removes the volume that was made for a copy, and has none. Another Home may have it meanwhile.
func (h *home) dropVolume(ctx context.Context) error {
	err := h.s.client.Load().VolumeRemove(ctx, h.s.snapshotVolume(h.snapshot), false)
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return classify(err, "remove the volume")
}

// removeMover removes a mover's container and waits until it is gone.
func (s *homes) removeMover(ctx context.Context, ref string) error {
	for {
		err := s.client.Load().ContainerRemove(ctx, ref, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) {
			return classify(err, "remove a container")
		}
		select { // it is being removed already, since it has ended
		case <-time.After(moverPause):
		case <-ctx.Done():
			return classify(ctx.Err(), "remove a container")
		}
	}
}

// SweepHomes removes the movers and copies that a crash has left, and what was being made in the pool. To be called before the first OpenHome.
func (s *homes) SweepHomes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	left, err := s.client.Load().ContainerList(ctx, container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelMover+"="+s.c.Instance))})
	if err != nil {
		return classify(err, "list its containers")
	}
	for _, c := range left {
		if err := s.removeMover(ctx, c.ID); err != nil {
			return err
		}
	}
	if err := s.sweepCopies(ctx); err != nil {
		return err
	}
	return s.sweepPool(ctx)
}
