package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// What comes after the id in the names of volumes, and of folders in the storage pool. A home itself has nothing.
const (
	partSnapshot = "-snapshot" // the copy of a home
	partNext     = "-next"     // in the pool only: the home of a sandbox that still has a plain volume, from its next container on
	partMaking   = "-part"     // in the pool only, after any of them: what is to take its place
)

// syncLimit bounds what a snapshot waits for before its sandbox is frozen. What is not on the disk by then makes the freeze longer.
const syncLimit = 10 * time.Second

// noRoom is how many bytes are taken for none: the kernel reserves some for itself.
const noRoom = 4 << 20

// location says where a home is.
type location string

const (
	inVolume location = "in a plain volume"
	inPool   location = "in the pool" // its volume is a folder there
	inNext   location = "moved"       // into the pool; its container has the old one
)

// homePlace tells where a sandbox's home is, NotFound when nothing is there yet.
func (e *connection) homePlace(ctx context.Context, id string) (location, error) {
	if e.c.Pool == nil {
		return inVolume, nil
	}
	if moved, err := e.moved(ctx, id); err != nil || moved {
		return inNext, err
	}
	v, err := e.client.Load().VolumeInspect(ctx, e.resource(id))
	switch {
	case errdefs.IsNotFound(err):
		return "", fault.Wrap(err, fault.NotFound, "The container engine does not have this sandbox's volume.")
	case err != nil:
		return "", classify(err, "look for the volume")
	case v.Options["device"] == e.c.Pool.Path(e.resource(id)):
		return inPool, nil
	}
	return inVolume, nil
}

// moved says whether a sandbox's home has moved into the pool, and its container not yet.
func (e *connection) moved(ctx context.Context, id string) (moved bool, err error) {
	var has atomic.Bool // the pool may answer when nobody waits any more
	err = e.onPool(ctx, "look for the home", func() error {
		is, err := e.c.Pool.Has(e.resource(id) + partNext)
		has.Store(is)
		return err
	})
	return err == nil && has.Load(), err
}

// parseVolume tells what a volume, or a folder in the pool, is: the home of a sandbox or the copy that a snapshot has, whole or not.
func (e *connection) parseVolume(name string) (id, part string, ours bool) {
	rest, ours := strings.CutPrefix(name, e.resource(""))
	rest = strings.TrimSuffix(rest, partMaking)
	id, part, split := strings.Cut(rest, "-")
	if split {
		part = "-" + part
	}
	if part == partNext {
		part = ""
	}
	return id, part, ours && id != "" && (part == "" || part == partSnapshot || part == partVolume)
}

// pooled gives the ids of the sandboxes, or snapshots, that have a folder in the pool, sorted.
func (e *connection) pooled(ctx context.Context, part string) (ids []string, err error) {
	if e.c.Pool == nil {
		return nil, nil
	}
	names, err := e.pooledNames(ctx)
	for _, name := range names {
		if id, is, ours := e.parseVolume(name); ours && is == part {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// pooledNames lists the folders in the pool.
func (e *connection) pooledNames(ctx context.Context) ([]string, error) {
	var all atomic.Pointer[[]string] // the pool may answer when nobody waits any more
	err := e.onPool(ctx, "list what is in the storage pool", func() error {
		names, err := e.c.Pool.List()
		all.Store(&names)
		return err
	})
	if err != nil {
		return nil, err
	}
	return *all.Load(), nil
}

// pooledSizes puts what sandboxes have written in their homes in the pool into out.
func (e *connection) pooledSizes(ctx context.Context, out map[string]int64) error {
	homes, err := e.pooled(ctx, "")
	for _, id := range homes {
		if err != nil || ctx.Err() != nil {
			break
		}
		var bytes int64
		for _, name := range []string{e.resource(id) + partNext, e.resource(id)} {
			if bytes, err = e.c.Pool.Used(name); !fault.Is(err, fault.NotFound) {
				break
			}
		}
		switch {
		case err == nil:
			out[id] = bytes
		case fault.Is(err, fault.NotFound): // it was removed meanwhile
			err = nil
		}
	}
	return err
}

// pooledVolumeSizes puts what was written in volumes in the pool into out.
func (e *connection) pooledVolumeSizes(ctx context.Context, out map[string]int64) error {
	ids, err := e.pooled(ctx, partVolume)
	for _, id := range ids {
		if err != nil || ctx.Err() != nil {
			break
		}
		bytes, usedErr := e.c.Pool.Used(e.volumeName(id))
		switch {
		case usedErr == nil:
			out[id] = bytes
		case !fault.Is(usedErr, fault.NotFound): // else it was removed meanwhile
			err = usedErr
		}
	}
	return err
}

// movedIn is NotFound when a sandbox's home has moved into the pool: its container has the old one, and has to be made anew.
func (e *connection) movedIn(ctx context.Context, id string) error {
	if e.c.Pool == nil {
		return nil
	}
	moved, err := e.moved(ctx, id)
	if err == nil && moved {
		err = fault.New(fault.NotFound, "The sandbox's home has moved into the storage pool, and its container has not been made anew yet.")
	}
	return err
}

// makeHome makes b's home in the pool, with its limit, or moves it there when it has been restored. A home that is in a plain volume
// stays there otherwise. It may be repeated.
func (e *Engine) makeHome(ctx context.Context, b sandbox.ContainerSpec) error {
	if e.c.Pool == nil {
		return nil
	}
	return e.onPool(ctx, "make the home", func() error {
		at, err := e.homePlace(ctx, b.ID)
		switch {
		case fault.Is(err, fault.NotFound):
			return e.makePooled(ctx, b)
		case err != nil || at == inVolume:
			return err
		case at == inNext:
			return e.moveIn(ctx, b)
		}
		return e.limitHome(b)
	})
}

// makePooled makes the folder and then the volume that is it. A folder that is there is used: a create was cut off, or the engine has lost
// its volumes, but not the home.
func (e *Engine) makePooled(ctx context.Context, b sandbox.ContainerSpec) error {
	name := e.resource(b.ID)
	if err := e.c.Pool.Create(name); err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	if err := e.limitHome(b); err != nil {
		return err
	}
	_, err := e.client.Load().VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: e.labels(b),
		DriverOpts: map[string]string{"type": "none", "o": "bind", "device": e.c.Pool.Path(name)}})
	return refused(err, "make the volume")
}

func (e *Engine) limitHome(b sandbox.ContainerSpec) error {
	err := e.c.Pool.Limit(e.resource(b.ID), b.Limits.Disk)
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.Invalid, "The sandbox's home is not in the storage pool any more. Restore it from a backup: remove the sandbox, and make it anew.")
	}
	return err
}

// LimitHome implements sandbox.Quota. A home that has moved into the pool is limited there, although its container has the old one yet.
func (e *Engine) LimitHome(ctx context.Context, id string, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if e.c.Pool == nil {
		return errPlainHome
	}
	return e.onPool(ctx, "limit the home", func() error {
		at, err := e.homePlace(ctx, id)
		switch {
		case err != nil:
			return err
		case at == inVolume:
			return errPlainHome
		case at == inNext:
			return e.c.Pool.Limit(e.resource(id)+partNext, bytes)
		}
		return e.c.Pool.Limit(e.resource(id), bytes)
	})
}

var errPlainHome = fault.New(fault.Conflict, "The sandbox's home is not in the storage pool, so its size cannot be limited. It moves in when a snapshot or a backup is restored.")

// moveIn gives a sandbox the home in the pool that it is to have, in the place of its plain volume. When the image of its next container is
// missing, it keeps the old one: homes are opened by that.
func (e *Engine) moveIn(ctx context.Context, b sandbox.ContainerSpec) error {
	name := e.resource(b.ID)
	_, err := e.client.Load().VolumeInspect(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "look for the volume")
	}
	if err == nil {
		if _, err := e.client.Load().ImageInspect(ctx, b.Image); err != nil {
			return classify(err, "look for the image")
		}
		if err := e.removeContainer(ctx, b.ID); err != nil {
			return err
		}
		if err := e.leave(ctx, b.ID); err != nil {
			return err
		}
		if err := e.client.Load().VolumeRemove(ctx, name, false); err != nil && !errdefs.IsNotFound(err) {
			return classify(err, "remove the volume")
		}
	}
	if err := e.c.Pool.Remove(name); err != nil { // no volume is it
		return err
	}
	if err := e.c.Pool.Move(name+partNext, name); err != nil {
		return err
	}
	return e.makePooled(ctx, b)
}

// withPoolFault puts what is wrong with a home in the pool before an error of the engine's, which could not use it and does not say so.
func (e *connection) withPoolFault(id string, err error) error {
	if err == nil || e.c.Pool == nil {
		return err
	}
	if why := e.poolFault(id); why != nil {
		return errors.Join(why, err)
	}
	return err
}

func (e *connection) poolFault(id string) error {
	ctx, cancel := context.WithTimeout(e.life, callLimit)
	defer cancel()
	return e.onPool(ctx, "look for the home", func() error {
		if at, err := e.homePlace(ctx, id); err != nil || at != inPool {
			return nil
		}
		room, err := e.c.Pool.Room(e.resource(id))
		switch {
		case fault.Is(err, fault.NotFound):
			return fault.Wrap(err, fault.Invalid, "The sandbox's home is not in the storage pool any more. Restore it from a backup.")
		case err == nil && room < noRoom:
			return fault.New(fault.Unavailable, "There is no room for the sandbox's home: the storage pool is full, or the disk limit is too low. "+
				"Raise the limit, delete snapshots or sandboxes, or make the pool larger: sandboxd pool grow SIZE")
		}
		return nil
	})
}

// removePooled removes folders from the pool, and what was to take their places.
func (e *connection) removePooled(ctx context.Context, names ...string) error {
	if e.c.Pool == nil {
		return nil
	}
	return e.onPool(ctx, "remove the home", func() error {
		for _, name := range names {
			if err := e.c.Pool.Remove(name); err != nil {
				return err
			}
			if err := e.c.Pool.Remove(name + partMaking); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweepPool removes what was being made when an earlier process ended.
func (e *connection) sweepPool(ctx context.Context) error {
	if e.c.Pool == nil {
		return nil
	}
	names, err := e.pooledNames(ctx)
	if err != nil {
		return err
	}
	return e.onPool(ctx, "tidy the storage pool up", func() (err error) {
		for _, name := range names {
			if _, _, ours := e.parseVolume(name); ours && strings.HasSuffix(name, partMaking) {
				err = errors.Join(err, e.c.Pool.Remove(name))
			}
		}
		return err
	})
}

// onPool does something with the pool, which may take long on a busy disk, and cannot be ended. When ctx ends it returns; what is done
// continues. what is as for classify.
func (e *connection) onPool(ctx context.Context, what string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return classify(err, what)
	}
	done := make(chan error, 1)
	e.running.Go(func() { done <- do() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return classify(context.Cause(ctx), what)
	}
}

// swap makes of name what with has, in one step. A folder that is not there yet becomes it.
func (e *connection) swap(name, with string) error {
	pool := e.c.Pool
	has, err := pool.Has(name)
	if err != nil {
		return err
	}
	if has {
		return pool.Replace(name, with)
	}
	return pool.Move(with, name)
}

// stage makes a copy of a folder that is to take the place of name, and gives its name.
func (e *connection) stage(from, name string) (string, error) {
	staged := name + partMaking
	if err := e.c.Pool.Remove(staged); err != nil {
		return "", err
	}
	return staged, e.c.Pool.Copy(from, staged)
}
