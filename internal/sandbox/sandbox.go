// Package sandbox says what a sandbox is, which states it has, and is the only place that changes them.
//
// It knows nothing of containers, SQL, HTTP or pages: the engine is behind Runtime and Freezer, the database behind Store,
// the program inside behind Guests, images behind Images. Nor does it know what a use is: a caller that puts a sandbox to
// rest says whether it still is unused, and a caller that uses one asks for it awake.
//
// Invariant: only Manager changes a sandbox's state, one operation per name at a time, intent written before the
// engine is asked; so a crash at any line leaves a row from which Reconcile can finish the operation. A pooled sandbox
// has no owner until one claim gives it one, and is never pooled again.
package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// State is the state of a sandbox.
type State string

// The states. Creating, Starting, Stopping, Sleeping and Deleting are intents under way: after a crash the next Run
// finishes them. After one in Capturing or Restoring it gives the sandbox the state that CutOff says.
const (
	Creating State = "creating"
	Starting State = "starting"
	Running  State = "running"
	Stopping State = "stopping"
	Stopped  State = "stopped"  // its owner's wish; use does not wake it
	Frozen   State = "frozen"   // by us; its processes keep their memory but do not run; wakes on use, at once
	Sleeping State = "sleeping" // on its way to Asleep
	Asleep   State = "asleep"   // by us; its processes have ended; wakes on use
	Failed   State = "failed"   // Problem says why; can be started again or deleted
	Deleting State = "deleting"

	Capturing State = "capturing" // its home is being read, and nothing in it runs meanwhile
	Restoring State = "restoring" // its home is being replaced
)

// Settled reports whether nothing is under way.
func (s State) Settled() bool {
	return s == Running || s == Frozen || s == Stopped || s == Asleep || s == Failed
}

// Resting reports whether sandboxd has put it to rest, so that use wakes it.
func (s State) Resting() bool { return s == Frozen || s == Asleep || s == Sleeping }

// Sleeps reports whether sandboxd has put it to rest with its programs ended, or is about to.
func (s State) Sleeps() bool { return s == Asleep || s == Sleeping }

// moves reports whether something is done with its home.
func (s State) moves() bool { return s == Capturing || s == Restoring }

// Sandbox is one sandbox as it is stored. It is a value: do not change its maps.
type Sandbox struct {
	ID      string // 16 hex digits; names everything of it on the engine; never reused
	Name    string // DNS label, unique
	Label   string // free text beside the name, may be ""
	Owner   string // user id
	Spec    Spec
	State   State
	Problem string // why it failed, or why it was started again until State changes, for a person; "" otherwise
	// CutOff is what State becomes when Capturing or Restoring ends before its time; "" in any other state. Deleting says of a
	// new sandbox that none is to be left.
	CutOff State
	// Cause is the kind of the fault behind Problem; Internal when it is not known, as after a restart of sandboxd.
	Cause     fault.Kind
	Created   time.Time
	Changed   time.Time    // when State last changed
	Rest      catalog.Rest // its own times; its template or the server gives those that it leaves open
	Overrides Overrides    // in place of its template's
	Pooled    bool         // created in advance and without an owner: not listed, not reachable, until a create claims it

	Root       string // image that its container is made from in place of its template's: a snapshot's; "" for the template's
	Base       string // where Root is set: the image of its template that Root comes from; "" when that is not known
	ClonedFrom string // name then of the sandbox that it is a clone of; "" for none
	Revert     Revert // what Restoring makes of it, if that is not cut off before; the zero value in any other state

	Fingerprint string // of what a pooled one was made from; "" otherwise
	Resizing    bool   // Spec has new limits, which its container and its home may not have yet
}

// TerminalPassword gives the user name and password that let anyone into its terminal: TTYD_USER and TTYD_PASS of its own
// environment. ok is false when there are none.
func (s Sandbox) TerminalPassword() (user, password string, ok bool) {
	user, password = s.Spec.Env["TTYD_USER"], s.Spec.Env["TTYD_PASS"]
	return user, password, user != "" && password != ""
}

// Updating reports whether it is being put on a newer image, or back.
func (s Sandbox) Updating() bool { return s.State == Restoring && s.Revert.Update }

// Revert is a snapshot that a sandbox is reverted to. The zero value stands for none. Without Snapshot, Root is what a backup brings: an
// image, or the id that it will have.
type Revert struct {
	Snapshot  string    `json:"snapshot"` // its id: of the copy of its home
	Root      string    `json:"root"`     // as Sandbox.Root
	Overrides Overrides `json:"overrides"`
	Base      string    `json:"base,omitempty"`   // as Sandbox.Base
	Memory    bool      `json:"memory,omitempty"` // it is started with the memory of the snapshot
	Update    bool      `json:"update,omitempty"` // it takes an update back, which is under way until then
	Filled    bool      `json:"filled,omitempty"` // there is no snapshot; its home is restored, and Root follows
}

// Empty reports whether nothing is made of a sandbox.
func (r Revert) Empty() bool { return r.Snapshot == "" && r.Root == "" }

// Spec is the request that a sandbox was created for. Two creates of one name are the same when their specs are equal.
type Spec struct {
	Template string // "" for a plain image
	Image    string // "" for a template
	Limits   Limits
	Env      map[string]string // the creator's; the template's own is added when the container is created
}

// Limits bound what a sandbox may use. All but Disk are above zero once a sandbox exists.
type Limits struct {
	CPUs   float64 // cores
	Memory int64   // bytes
	Pids   int64   // processes and threads
	Disk   int64   // bytes that the home may take; 0 for no limit, as where there is no storage pool
}

// Equal reports whether two specs ask for the same.
func (s Spec) Equal(o Spec) bool {
	return s.Template == o.Template && s.Image == o.Image && s.Limits == o.Limits && maps.Equal(s.Env, o.Env)
}

// NewID makes a fresh random id.
func NewID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// Request asks for a new sandbox. Zero limits mean the template's defaults, an empty name an automatic one.
type Request struct {
	Name     string
	Label    string
	Owner    string
	Template string // exactly one of Template and Image is set
	Image    string
	Limits   Limits
	Env      map[string]string
	Rest     catalog.Rest
}

// Filter picks sandboxes from the list.
type Filter struct {
	Owner  string // user id; "" for all
	Query  string // case-insensitive part of the name, label, template or image; "" for all
	State  State  // "" for all
	Up     bool   // only those that run or are frozen
	Pooled bool   // those of the pools instead of people's
	Offset int
	Limit  int // 0 for no bound
}

// Phase is a step of an operation under way, as people are shown it.
type Phase string

// The phases: of a create and a start, in order, and of what is done with a home.
const (
	PhaseImage  Phase = "image"  // building or pulling
	PhaseVolume Phase = "volume" // creating the container and its volume
	PhaseStart  Phase = "start"
	PhaseReady  Phase = "ready" // waiting for the guest to say so

	PhaseBackup  Phase = "backup"  // the home is being read
	PhaseRestore Phase = "restore" // the home is being replaced

	PhaseSnapshot Phase = "snapshot" // the home is being copied
	PhaseMemory   Phase = "memory"   // that is done, and the memory of programs is still being kept

	PhaseCheck Phase = "check" // whether its services work after an update
)

// Progress is how far an operation under way has come. The zero value means nothing is under way.
type Progress struct {
	Phase    Phase
	Fraction float64   // 0 to 1 within the phase; 0 when it cannot be told
	Detail   string    // the last line of output, cleaned of control characters
	Since    time.Time // when the phase began
}

// Event says that a sandbox has changed: its row, its progress, or that it is gone; or that a wake of it has failed.
type Event struct {
	Sandbox  Sandbox
	Progress Progress
	Deleted  bool
	Failed   error // of a wake, which may have left the row as it was; nil otherwise
}

// ContainerSpec is what an engine needs to create a sandbox.
type ContainerSpec struct {
	ID         string
	Name       string
	Template   string // "" for a plain image
	Image      string // reference, present on the engine
	Limits     Limits
	Profile    catalog.Profile
	Namespaces bool // its programs may make user namespaces
	Env        map[string]string
	Labels     map[string]string // routing labels and our own; never a secret
	LinkPath   string            // host folder of the guest link, mounted read-only
	Volumes    []Mount           // beside the home, by target
}

// ExitKilled is the exit code of an instance that SIGKILL has ended.
const ExitKilled = 128 + 9

// Instance is a sandbox on an engine: fact, where Sandbox is intent.
type Instance struct {
	ID       string
	Name     string
	Template string
	Image    string
	Running  bool      // its processes are there, frozen or not
	Frozen   bool      // they do not run
	ExitCode int       // of the last run, when not running
	OOM      bool      // the last run was ended for want of memory
	Partial  bool      // some of its parts are missing, so that it cannot be started: a create or a removal was cut off
	Started  time.Time // of the last start; zero if never
	Moved    bool      // Image names another image by now, or none
	Volumes  string    // that its container has, as MountText writes them
	Strayed  bool      // the link folder of its container is not this server's, whose data folder was moved: its guest cannot dial in
}
