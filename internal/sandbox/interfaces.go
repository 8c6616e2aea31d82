package sandbox

import (
	"context"
	"io"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
)

// Store keeps sandboxes. All methods are safe for concurrent use. Kinds: NotFound, Conflict (the name or id is
// taken), Unavailable (the store is locked, full or gone; its former content is intact).
type Store interface {
	// Insert adds a sandbox; Conflict if its name or id exists.
	Insert(ctx context.Context, s Sandbox) error
	// Update replaces the row of s.ID; NotFound if there is none.
	Update(ctx context.Context, s Sandbox) error
	// Delete removes the row and leaves a Tombstone; deleting a missing one is no error and leaves none.
	Delete(ctx context.Context, id string) error
	// Tombstone gives that of the last deleted sandbox of a name; NotFound when there was none lately.
	Tombstone(ctx context.Context, name string) (Tombstone, error)
	// ByName finds one.
	ByName(ctx context.Context, name string) (Sandbox, error)
	// List gives those that match, newest first (then by name), and how many match without Offset and Limit.
	List(ctx context.Context, f Filter) ([]Sandbox, int, error)
}

// Runtime is a container engine, or another program that can hold a sandbox. All methods are safe for concurrent use, end
// when ctx does, and are idempotent: a repeat after a crash finishes the work. They touch only objects that this sandboxd
// created. Kinds: NotFound, Invalid (the engine refuses the container; the message is the engine's own), Unavailable,
// Timeout.
type Runtime interface {
	// Create creates container, volume and all else that c needs, without starting it. If all exist it does nothing;
	// if parts of an interrupted create exist it completes them.
	Create(ctx context.Context, c ContainerSpec) error
	// Start starts it, or thaws it when it is frozen. Starting a running one is no error.
	Start(ctx context.Context, id string) error
	// Recreate is Create for a sandbox that does not run, and whose container is to be another one: its volume is used again.
	Recreate(ctx context.Context, c ContainerSpec) error
	// Remount gives a sandbox that does not run a container with the volumes of c in place of those that it has. All else that was
	// written outside of its volume stays. One that has strayed gets the link folder of c, too. It does nothing when they are the same;
	// NotFound when it has no container, Conflict when it runs.
	Remount(ctx context.Context, c ContainerSpec) error
	// Resize gives its container the cores and the memory of l, also while its programs run. All else of l stays as it was. NotFound when
	// it has no container, Conflict when its programs hold more memory now than they may.
	Resize(ctx context.Context, id string, l Limits) error
	// Stop asks it to end, and ends it after grace (at least a second is sensible). Stopping one that does not run, or
	// is not there, is no error.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Remove ends it and deletes it with its volume. Removing a missing one is no error.
	Remove(ctx context.Context, id string) error
	// List gives all instances of this sandboxd, partial ones included.
	List(ctx context.Context) ([]Instance, error)
	// Ping asks the engine for a sign of life.
	Ping(ctx context.Context) error
	// Watch calls seen for every change of an instance until ctx or the connection to the engine ends; the latter is
	// an Unavailable error. It calls ready once when nothing that happens from then on is missed.
	Watch(ctx context.Context, ready func(), seen func(Instance)) error
}

// Freezer freezes sandboxes on an engine. All methods are safe for concurrent
// use, end when ctx does, and are idempotent. Kinds as for Runtime. An engine may have none: then nothing is frozen.
type Freezer interface {
	// Freeze suspends all processes of a running sandbox, memory and connections kept, and gives back to the host the part
	// of its memory that the kernel can spare. Freezing a frozen one is no error; NotFound when it is not there, Conflict
	// when it does not run.
	Freeze(ctx context.Context, id string) error
	// Pause is Freeze for a moment: no memory is given back, and when this process dies the sandbox is thawed.
	Pause(ctx context.Context, id string) error
	// Thaw resumes them. Thawing one that is not frozen is no error; NotFound when it is not there, Conflict when it does
	// not run.
	Thaw(ctx context.Context, id string) error
	// Usage gives that of a running sandbox since it was started; NotFound when it is not there or does not run.
	Usage(ctx context.Context, id string) (Usage, error)
}

// Quota limits the homes that are in a storage pool. All methods are safe for concurrent use, end when ctx does, and are idempotent.
// An engine may have none: then no home is limited. Runtime.Create sets the limit of ContainerSpec by itself.
type Quota interface {
	// LimitHome limits what the home of a sandbox may take, in bytes; 0 is no limit. Files that exceed it stay. Kinds as for Runtime;
	// NotFound when there is no such home, Conflict when it is not in the storage pool.
	LimitHome(ctx context.Context, id string, bytes int64) error
}

// Snapshots holds the parts of snapshots on an engine: a copy of a sandbox's home, which Home.CopyOut makes, and its root file system
// as an image. All methods are safe for concurrent use, end when ctx does, and are idempotent. Kinds as for Runtime.
type Snapshots interface {
	// Commit keeps the root file system of a sandbox, which must not run or be frozen, as the image of a snapshot, and gives the
	// reference from which a container with it can be made, which ends with the snapshot's id. What has not changed since its
	// container was made takes no room.
	Commit(ctx context.Context, id, snapshot string) (image string, err error)
	// RemoveCopy removes the copy of a home. Removing a missing one is no error, Conflict when it is in use.
	RemoveCopy(ctx context.Context, snapshot string) error
	// RemoveImage removes the image. Removing a missing one is no error. Containers made from it keep what they need of it.
	RemoveImage(ctx context.Context, snapshot string) error
	// Parts lists the snapshots that this sandboxd has a copy of a home of, and those that it has an image of.
	Parts(ctx context.Context) (copies, images []string, err error)
}

// Layers reads what sandboxes have changed of their images, and makes images with that. All methods are safe for concurrent use and end when ctx does. Kinds as for
// Runtime.
type Layers interface {
	// ReadLayer writes, as a layer of an image (a tar archive in which an empty file .wh.NAME removes NAME), what the root file system of a
	// sandbox, which must not run or be frozen, has that an image does not have; "" for the image that its container was made from. What
	// is mounted is not in it, and lost tells what else is not. NotFound when there is no such image. An error of to comes back as it is.
	ReadLayer(ctx context.Context, id, base string, to io.Writer) (lost archive.Stats, err error)
	// MakeImage makes the image of a snapshot, which Snapshots.RemoveImage removes, of an image and a layer above it. NotFound when there is no such image,
	// Invalid when the layer has something else in the place of a mount, Unavailable when it cannot be unpacked.
	MakeImage(ctx context.Context, snapshot, base string, layer Layer) (image string, err error)
}

// Layer is one of an image, as ReadLayer writes it.
type Layer struct {
	Content io.ReadSeeker
	Size    int64 // bytes
}

// Checkpoints keeps the memory and the processes of sandboxes on an engine. All methods are safe for concurrent use and end when ctx does.
// Kinds as for Runtime. An engine may have none, and one that has may not be able to: then no memory is kept.
type Checkpoints interface {
	// CheckpointSupport says in a sentence why no memory can be kept; "" when it can.
	CheckpointSupport(ctx context.Context) string
	// Checkpoint keeps the memory and the processes of a frozen sandbox for a snapshot, and gives how many bytes that takes. It stays frozen.
	// Its guest must not be connected (Guests.HangUp). Conflict when it is not frozen or cannot be kept; Unavailable with a message when it
	// has something that cannot be kept.
	Checkpoint(ctx context.Context, id, snapshot string) (bytes int64, err error)
	// StartFrom starts a sandbox that does not run with the memory and the processes that were kept for a snapshot, of it or of another
	// sandbox, whose host name is its own then. Its files must be those of the snapshot. When it fails, the sandbox does not run. NotFound
	// when there is nothing kept, Conflict when it runs or none can be kept here.
	StartFrom(ctx context.Context, id, snapshot string) error
	// RemoveCheckpoint removes what was kept for a snapshot. Removing a missing one is no error.
	RemoveCheckpoint(ctx context.Context, snapshot string) error
	// Checkpoints lists the snapshots for which memory is kept, parts of interrupted ones included.
	Checkpoints(ctx context.Context) ([]string, error)
}

// Usage is how much a sandbox has used since its start. It only grows until the next start.
type Usage struct {
	CPU     time.Duration // of one core
	Network int64         // bytes, both directions, without loopback
	Disk    int64         // bytes read and written
	Memory  int64         // bytes held now; the one that may shrink
}

// Tombstone is the record of a deleted sandbox, for some weeks: its addresses answer 410 meanwhile.
type Tombstone struct {
	ID      string // "" for one that an older version has left
	Name    string
	Owner   string // user id
	Deleted time.Time
}

// Images gets the images of templates. Implemented by catalog.Images.
type Images interface {
	// Ensure gives the reference of t's image, building or pulling it first if needed; concurrent callers share one
	// build, which continues when a caller leaves.
	Ensure(ctx context.Context, t catalog.Template, report func(catalog.BuildEvent)) (ref string, err error)
	// Reference gives what Ensure would, without asking the engine.
	Reference(t catalog.Template) (ref string, err error)
}

// Templates finds templates. Implemented by catalog.Catalog. NotFound names the templates there are; Invalid says
// where one is broken.
type Templates interface {
	Template(name string) (catalog.Template, error)
}

// Guests is the sandboxes' end of the guest link. Safe for concurrent use.
type Guests interface {
	// Expect lets the guest of id dial in from now on, and tells it how to set itself up when it does; it gives the
	// folder to mount. Repeating it replaces the setup; one that is connected hears the new one at the next Ready.
	Expect(id string, setup Setup) (folder string, err error)
	// Ready blocks until the guest of id is connected, knows the setup that was last expected of it, and has said that it
	// is ready, or ctx ends. For one id it is not called twice at a time.
	Ready(ctx context.Context, id string) error
	// HangUp ends the connection of the guest of id, and lets none dial in until the next Expect. The folder stays. Unavailable when that is
	// not done before ctx ends. Of an unknown one it is no error.
	HangUp(ctx context.Context, id string) error
	// Forget stops listening for id and removes its folder. Forgetting an unknown one is no error.
	Forget(id string) error
}

// Setup is the configuration that a guest gets when it connects.
type Setup struct {
	Name     string
	Env      map[string]string
	Services []catalog.Service
	IDE      bool // whether VS Code is offered
	// MachineID is 32 hex digits that no other sandbox has, and that are the same for as long as there is the sandbox.
	MachineID string
}
