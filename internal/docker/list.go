package docker

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// inspecting is how many containers are looked at side by side.
const inspecting = 8

// List gives all sandboxes of this instance. See sandbox.Runtime. A frozen one counts as running: its processes and
// its memory are there. One that was taken off the sandboxes' network is put back on it, at its address.
func (e *Engine) List(ctx context.Context) ([]sandbox.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	cli := e.client.Load()
	// Volumes first: a sandbox created between the two calls is then seen whole.
	volumes, err := cli.VolumeList(ctx, volume.ListOptions{Filters: e.ours()})
	if err != nil {
		return nil, classify(err, "list its volumes")
	}
	containers, err := cli.ContainerList(ctx, container.ListOptions{All: true, Filters: e.ours()})
	if err != nil {
		return nil, classify(err, "list its containers")
	}
	found := map[string]*sandbox.Instance{}
	for _, v := range volumes.Volumes {
		if id, ours := e.idOf(v.Name, v.Labels); ours {
			i := instance(v.Labels)
			i.Partial = true
			found[id] = &i
		}
	}
	homes, err := e.pooled(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, id := range homes {
		if found[id] == nil { // a removal was cut off, or the engine has lost its volumes
			found[id] = &sandbox.Instance{ID: id, Name: id, Partial: true}
		}
	}
	if err := e.look(ctx, containers, found); err != nil {
		return nil, err
	}
	out := make([]sandbox.Instance, 0, len(found))
	for _, i := range found {
		out = append(out, *i)
	}
	return out, nil
}

// look puts what the containers are into found, which has the volumes. A container always has its volume, since the
// engine removes none that is in use.
func (e *Engine) look(ctx context.Context, containers []container.Summary, found map[string]*sandbox.Instance) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inspecting)
	for _, c := range containers {
		id, ours := e.idOf(firstName(c), c.Labels)
		if !ours {
			e.c.Log.Warn("a container has this instance's label but not its name; it is left alone", "container", firstName(c))
			continue
		}
		i := instance(c.Labels)
		i.Volumes = c.Labels[labelVolumes]
		i.Strayed = e.c.LinkFolder != "" && strayed(c.Mounts, filepath.Join(e.c.LinkFolder, id))
		i.Partial = broken(c.State)
		i.Running, i.Frozen = alive(c.State), c.State == container.StatePaused
		found[id] = &i
		if e.own() == nil && offNetwork(c, e.network.name) { // "doctor" only looks
			g.Go(func() error { e.putBack(ctx, id, c.ID); return nil })
		}
		g.Go(func() error {
			d, err := e.detail(ctx, id, c)
			i.Started, i.ExitCode, i.OOM = d.started, d.exitCode, d.oom
			if err == nil {
				i.Moved, err = e.imageMoved(ctx, c)
			}
			return err
		})
	}
	return g.Wait()
}

// imageMoved says whether the name of the image that a container was made from names another image by now, or none.
func (e *connection) imageMoved(ctx context.Context, c container.Summary) (bool, error) {
	made := c.Labels[labelMade]
	if made == "" {
		return c.Image != c.Labels[labelImage], nil // the engine's list has the image's id then
	}
	is, err := e.client.Load().ImageInspect(ctx, c.Labels[labelImage])
	if errdefs.IsNotFound(err) {
		return true, nil
	}
	return is.ID != made, classify(err, "look at an image")
}

// strayed reports whether a container has another link folder than this one.
func strayed(mounts []container.MountPoint, link string) bool {
	n := slices.IndexFunc(mounts, func(m container.MountPoint) bool { return m.Destination == path.Dir(wire.SocketPath) })
	if n < 0 || strings.HasSuffix(mounts[n].Source, link) { // an engine may put something before it
		return false
	}
	has, err := os.Stat(mounts[n].Source)
	want, wantErr := os.Stat(link)
	return err != nil || wantErr != nil || !os.SameFile(has, want)
}

func alive(s container.ContainerState) bool {
	return s == container.StateRunning || s == container.StatePaused || s == container.StateRestarting
}

// detail gives what the engine's list does not tell of a container. A container that is gone meanwhile has none.
func (e *Engine) detail(ctx context.Context, id string, c container.Summary) (detail, error) {
	if d, ok := e.seen.recall(id, c.ID, c.State); ok {
		return d, nil
	}
	mark := e.seen.mark()
	r, err := e.client.Load().ContainerInspect(ctx, c.ID)
	if errdefs.IsNotFound(err) {
		return detail{}, nil
	}
	if err != nil {
		return detail{}, classify(err, "look at a container")
	}
	d := newDetail(r)
	e.seen.keep(id, d, mark)
	return d, nil
}

// detail is what only an inspection tells of a container.
type detail struct {
	container string
	state     container.ContainerState
	started   time.Time
	exitCode  int
	oom       bool
}

func newDetail(r container.InspectResponse) detail {
	d := detail{container: r.ID, state: r.State.Status}
	if t, err := time.Parse(time.RFC3339Nano, r.State.StartedAt); err == nil && t.Year() > 1 {
		d.started = t.UTC()
	}
	if !alive(r.State.Status) {
		d.exitCode = r.State.ExitCode
		// The engine notes that memory ran out also when that killed another process than the first.
		d.oom = r.State.OOMKilled && r.State.ExitCode == sandbox.ExitKilled
	}
	return d
}

// details remembers inspections while the engine's events are followed, which tell when one is out of date: so a list
// of many sandboxes is not as many calls.
type details struct {
	mu      sync.Mutex
	watched bool
	marks   uint64 // counts drops, so that an inspection that one has overtaken is not kept
	byID    map[string]detail
}

// reset forgets everything and remembers nothing until watch.
func (d *details) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watched, d.byID = false, map[string]detail{}
	d.marks++
}

// watch begins to remember.
func (d *details) watch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watched = true
}

// drop forgets one.
func (d *details) drop(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byID, id)
	d.marks++
}

func (d *details) mark() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.marks
}

func (d *details) keep(id string, x detail, mark uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watched && mark == d.marks {
		d.byID[id] = x
	}
}

func (d *details) recall(id, containerID string, state container.ContainerState) (detail, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := d.byID[id]
	return x, ok && x.container == containerID && x.state == state
}
