// Package docker drives a Docker engine. It implements sandbox.Runtime, sandbox.Freezer, sandbox.Homes, sandbox.Snapshots, sandbox.Layers, sandbox.Checkpoints,
// catalog.Engine and volume.Engine.
//
// It decides nothing about sandboxes and keeps nothing: the engine's labels are its memory. It is the only importer
// of the engine's client library, and no type, id or word of the engine leaves it, but for the engine's own text in
// messages about what it refuses.
//
// Invariant: it touches only what carries the label of its own instance, or its name. Every call to the engine has a deadline. A
// container gets no host path but the guest, its link folder, VS Code and the CA bundle, all read-only, and its home, which may be in
// the storage pool, and volumes of this instance, no capability beyond its profile's, and never the engine's socket. A home that is in the pool is replaced only while
// no container has it mounted.
package docker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"

	"sandboxd/internal/fault"
	"sandboxd/internal/semaphore"
)

// How long the engine may take. Callers' own deadlines count as well; these bound calls that come without one.
const (
	callLimit   = 30 * time.Second // a question, or a small change
	createLimit = 80 * time.Second // making a container: an image's content under the home is copied to its volume
	startLimit  = 80 * time.Second
	removeLimit = 80 * time.Second
	lingerLimit = 8 * time.Second  // removing the unused network; Close waits for it
	stopMargin  = 30 * time.Second // beyond the grace that the sandbox is given
)

// Config is what an Engine works with.
type Config struct {
	Host        string // the engine's address, as in DOCKER_HOST, which "" leaves to that
	Instance    string // random id of this sandboxd, kept in its data folder; "" for one that only handles images
	GuestBinary string // absolute path on the engine's host
	LinkFolder  string // absolute path of the folder with the link folders of the sandboxes, by their ids; "" when it is not known
	IDEFolder   string // absolute path of the folder with the versions of VS Code, or ""
	CAFile      string // absolute path of a whole CA bundle (the system's and the extra ones), or ""
	Subnet      string // IPv4 network for the sandboxes, /8 to /24, or "" for the first free one
	Log         *slog.Logger
	// NetworkLinger is how long the sandboxes' network stays when its last sandbox is gone; 0 removes it at once.
	NetworkLinger time.Duration
	// Firewall keeps sandboxes off this host; nil when nothing can.
	Firewall Firewall
	// Watchdog is the command that calls ThawOrphan, without the container's name, which follows; empty for none.
	Watchdog []string
	// Listen listens on a new socket in a folder of its own, which containers can be given; nil when no home is opened.
	Listen func(name string) (Listener, error)
	// KeepMemory makes containers whose memory can be kept, in CheckpointFolder, an absolute path of this process.
	KeepMemory       bool
	CheckpointFolder string
	// Pool has the homes and their copies as subvolumes; nil where they are plain volumes of the engine.
	Pool Pool
}

// Pool keeps folders that are copied at once, whatever their size, and can be limited. A name is that of a volume. Nothing is done by
// halves: a folder is there as a whole or not at all. A folder that is missing is fault.NotFound. All are safe for concurrent use.
type Pool interface {
	// Path is the absolute path of a folder, whether it is there or not.
	Path(name string) string
	Has(name string) (bool, error)
	// Create makes an empty folder; Conflict when the name is taken.
	Create(name string) error
	// Copy makes to a copy of from; Conflict when to is taken.
	Copy(from, to string) error
	// Move gives a folder another name; Conflict when that is taken.
	Move(name, to string) error
	// Replace swaps a folder in for another, which is removed. Unless it was limited itself, it gets the limit of that, and is charged for
	// what Used counts of that. NotFound when either is missing.
	Replace(name, with string) error
	// Remove removes a folder; a missing one is none.
	Remove(name string) error
	// Limit bounds what a folder may take, in bytes, as Used counts it; 0 lifts the bound.
	Limit(name string, bytes int64) error
	// LimitOf gives that bound, 0 for none.
	LimitOf(name string) (int64, error)
	// Used is what was written in a folder, in bytes, and is still in it or in any other. A copy begins at 0.
	Used(name string) (int64, error)
	// Room is what can still be written in a folder, in bytes: what its limit leaves, and the pool has.
	Room(name string) (int64, error)
	// List lists the folders.
	List() ([]string, error)
	// Sync writes what was changed to the disk, so that a Copy soon after is quick. It returns when ctx ends.
	Sync(ctx context.Context) error
}

// Listener is a socket that a container dials, named as in wire.SocketPath. The one who has it removes the folder.
type Listener struct {
	net.Listener
	Folder string // absolute path on the engine's host
}

// Firewall filters traffic from the sandboxes' network. Its methods may be repeated.
type Firewall interface {
	// Guard filters traffic that comes in on bridge, from now on.
	Guard(ctx context.Context, bridge string) error
	// Lift judges nothing any more.
	Lift(ctx context.Context) error
}

// Engine is a Docker engine. Its methods are safe for concurrent use. The caller must Close it.
type Engine struct {
	*connection
	*freezer
	imageStore
	*homes
	*snapshots
	*checkpoints
	*volumes
}

// freezer freezes and thaws, and gives memory back.
type freezer struct{ *connection }

// imageStore builds, pulls and reads images.
type imageStore struct{ *connection }

// connection is the engine's client, its facts, and our objects on it.
type connection struct {
	c         Config
	client    atomic.Pointer[client.Client]
	facts     atomic.Pointer[facts]
	network   *sandboxNetwork
	ids       semaphore.Keyed
	seen      details
	reclaims  *reclaims
	watchdogs *watchdogs
	lingering atomic.Bool     // a removal of the network is due
	life      context.Context // ends with Close; creates whose caller has left and reclaims end with it
	end       context.CancelFunc
	running   sync.WaitGroup
}

// Open connects to the engine that the environment names (DOCKER_HOST and its kin, else the local socket), and learns
// what it can and what it holds of this instance. Unavailable when none is there, so that waiting for it may help, and
// Timeout when one does not answer; Invalid when c is wrong, or the engine is one that cannot be used.
func Open(ctx context.Context, c Config) (*Engine, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	n, err := newNetwork(c)
	if err != nil {
		return nil, err
	}
	conn := &connection{c: c, network: n, reclaims: newReclaims(hostKernel()), watchdogs: &watchdogs{command: c.Watchdog}}
	h := &homes{connection: conn, open: map[string]*home{}}
	e := &Engine{conn, &freezer{conn}, imageStore{conn}, h, &snapshots{connection: conn, opened: h}, &checkpoints{connection: conn},
		&volumes{connection: conn, folders: map[string]string{}}}
	e.retired.Store(true) // by an earlier one, for all that is known
	e.seen.reset()
	e.life, e.end = context.WithCancel(context.Background())
	if err := e.refresh(ctx); err != nil {
		e.end()
		return nil, denied(err)
	}
	if err := e.endLeft(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close ends running work and waits for it.
func (e *Engine) Close() error {
	e.end()
	e.running.Wait()
	return e.client.Load().Close()
}

// NetworkName is the name of the network that an instance's sandboxes are on.
func NetworkName(instance string) string { return "sandboxd-" + instance }

// refresh learns anew what the engine is and has; it may be another one than before, or another version.
func (e *Engine) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	cli, err := dial(e.c.Host)
	if err != nil {
		return err
	}
	f, err := learn(ctx, cli)
	if err != nil {
		cli.Close()
		return err
	}
	e.facts.Store(f)
	if old := e.client.Swap(cli); old != nil {
		if err := old.Close(); err != nil {
			e.c.Log.Debug("close of an old engine connection", "error", err)
		}
	}
	if e.c.Instance == "" {
		return nil
	}
	return e.scan(ctx)
}

// own refuses work on sandboxes to an engine that was opened for images only.
func (e *connection) own() error {
	if e.c.Instance == "" || e.c.GuestBinary == "" {
		return fault.New(fault.Internal, "This connection to the engine is for images only.")
	}
	return nil
}
