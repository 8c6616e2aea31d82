package docker

import (
	"context"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// ready sees that the mover is there. When ctx ends it returns; what it has begun continues, and Close undoes it.
func (h *home) ready(ctx context.Context) error {
	if h.s.c.Pool == nil {
		return nil // since it was opened
	}
	return h.connectLater(ctx, h.targetNow())
}

func (h *home) targetNow() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.target
}

// connectLater is connect for a caller who may leave.
func (h *home) connectLater(ctx context.Context, target string) error {
	if h.s.life.Err() != nil {
		return errClosedHome
	}
	return h.s.onPool(ctx, "move the home", func() error { return h.connect(h.life, target) })
}

// staged says whether what is to replace the home is made beside it, in the pool. A home that is mounted somewhere is replaced in place
// instead: there the old one would stay.
func (h *home) staged() bool { return h.s.c.Pool != nil && !h.mounted }

// leftMounted reports whether the engine has a sandbox's volume mounted, as one that was killed leaves it. It uses such a mount again.
func (s *homes) leftMounted(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	v, err := s.client.Load().VolumeInspect(ctx, s.resource(id))
	var at unix.Statx_t
	return err == nil && unix.Statx(unix.AT_FDCWD, v.Mountpoint, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &at) == nil &&
		at.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// name is that of the folder in the pool that is the home, or will be.
func (h *home) name() string {
	if h.at == inPool {
		return h.s.resource(h.box)
	}
	return h.s.resource(h.box) + partNext
}

// copyInPool says whether the pool has the copy of the snapshot.
func (h *home) copyInPool() (bool, error) {
	if h.s.c.Pool == nil || h.snapshot == "" {
		return false, nil
	}
	return h.s.c.Pool.Has(h.s.snapshotVolume(h.snapshot))
}

// alone does something with the pool while the Home is not closed. Close waits for it.
func (h *home) alone(do func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut {
		return errClosedHome
	}
	return do()
}

// copyOutPooled is CopyOut of a home in the pool.
func (h *home) copyOutPooled(ctx context.Context) (archive.Stats, error) {
	copied := h.s.snapshotVolume(h.snapshot)
	err := h.s.onPool(ctx, "copy the home", func() error {
		return h.alone(func() error {
			staged, err := h.s.stage(h.name(), copied)
			if err != nil {
				return err
			}
			return h.s.swap(copied, staged)
		})
	})
	return archive.Stats{}, err // the pool counts nothing
}

// copyInPooled is CopyIn with a pool, where the home is afterwards. One that is in a plain volume moves there with its next container.
func (h *home) copyInPooled(ctx context.Context, progress func(archive.Stats)) (stats archive.Stats, err error) {
	pooled, err := h.copyInPool()
	if err != nil {
		return stats, err
	}
	if !pooled {
		if err := h.hasCopy(ctx); err != nil {
			return stats, err
		}
		return h.beside(ctx, func() (archive.Stats, error) {
			return h.job(ctx, wire.MoverJob{Do: wire.MoverCopyIn}, nil, nil, progress)
		})
	}
	if err := ctx.Err(); err != nil {
		return stats, classify(context.Cause(ctx), "move the home")
	}
	err = h.alone(func() error { // to its end, whatever ctx does: the outcome is to be known
		staged, err := h.s.stage(h.s.snapshotVolume(h.snapshot), h.name())
		if err != nil {
			return err
		}
		return h.s.swap(h.name(), staged)
	})
	return archive.Stats{}, err
}

// hasCopy is NotFound when the snapshot has no plain volume with a copy.
func (h *home) hasCopy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := h.s.client.Load().VolumeInspect(ctx, h.s.snapshotVolume(h.snapshot))
	if errdefs.IsNotFound(err) {
		return fault.Wrap(err, fault.NotFound, "There is no copy of the home for this snapshot.")
	}
	return classify(err, "look for the copy of the home")
}

// beside has the mover replace a copy of the home, which then takes the home's place. So the limit does not count the old home and the
// new one together, and it is the old one or the new one at any moment.
func (h *home) beside(ctx context.Context, replace func() (archive.Stats, error)) (stats archive.Stats, err error) {
	var staged string
	err = h.s.onPool(ctx, "move the home", func() error {
		return h.alone(func() (err error) {
			staged, err = h.begin()
			return err
		})
	})
	if err == nil {
		err = h.connectLater(ctx, staged)
	}
	if err != nil {
		return stats, err
	}
	if stats, err = replace(); err != nil {
		return stats, err
	}
	return stats, h.alone(func() error { // the mover has it, but has nothing to do any more
		err := h.s.swap(h.name(), staged)
		if err == nil {
			h.target = ""
		}
		return err
	})
}

// begin makes the folder that the mover is given for the home.
func (h *home) begin() (string, error) {
	pool := h.s.c.Pool
	staged, err := h.s.stage(h.name(), h.name())
	if fault.Is(err, fault.NotFound) { // it is in a plain volume, or was lost with an earlier pool
		return staged, pool.Create(staged)
	}
	if err != nil {
		return "", err
	}
	limit, err := pool.LimitOf(h.name())
	if err == nil {
		err = pool.Limit(staged, limit)
	}
	return staged, err
}
