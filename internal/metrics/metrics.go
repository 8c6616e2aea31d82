// Package metrics knows what sandboxes and their host use, now and over the last month.
//
// It reads figures from a Source, keeps them in a Store, and gives them as series of points. It starts and stops nothing,
// and a sandbox that rests is not asked: it costs nothing.
//
// Invariant: memory is bounded by the number of sandboxes. A Source or a Store that fails costs points, never more.
package metrics

import (
	"context"
	"time"

	"sandboxd/internal/sandbox"
)

// HostID is the id under which the host's own figures are kept, beside the ids of sandboxes.
const HostID = "host"

// Usage is what a sandbox has used since its start, and what it holds now. The counters only grow until its next start.
type Usage struct {
	CPU       time.Duration // counter; of one core
	Throttled time.Duration // counter; how long its processes waited because of its CPU limit

	Memory      int64 // bytes held now, without the cached files that were not used lately (the working set)
	Cache       int64 // bytes of cached files now, some of which are in Memory too
	MemoryLimit int64 // bytes; 0 for none

	NetworkRx, NetworkTx int64 // counters; bytes, without loopback
	DiskRead, DiskWrite  int64 // counters; bytes

	Processes int64 // processes and threads now
	OOMKills  int64 // counter; processes killed for want of memory
}

// Reading is the Usage at a moment.
type Reading struct {
	Usage
	Time time.Time
}

// Source reads the usage of running sandboxes. It is safe for concurrent use, and each call has a deadline of its own.
type Source interface {
	// Read gives the readings of those of ids that run; the rest are missing from the map. An error means that
	// nothing could be read. Kinds: Unavailable, Timeout.
	Read(ctx context.Context, ids []string) (map[string]Reading, error)
}

// Point is what was used within one step of time.
type Point struct {
	Time     time.Time     // when the step begins
	State    sandbox.State // at the end of the step; "" when it is not known, and for the host
	Measured time.Duration // the part of the step that was measured; 0 when the figures below are not known

	CPU       float64 // cores, the mean over what was measured
	Throttled time.Duration

	Memory, Cache, MemoryLimit int64 // bytes; Memory and Cache are the largest within the step

	NetworkRx, NetworkTx, DiskRead, DiskWrite int64 // bytes within the step

	Processes int64 // the largest within the step
	OOMKills  int64 // within the step
}

// Mark says what happened besides a change of state.
type Mark string

// The marks.
const (
	Started   Mark = "start"   // by its owner, or created
	Woken     Mark = "wake"    // by use
	Restarted Mark = "restart" // by its owner, or after its processes ended
	OOMKilled Mark = "oom"     // a process of it was killed for want of memory
)

// Change says that a sandbox's state changed, or that something happened to it.
type Change struct {
	Time  time.Time
	State sandbox.State // from then on
	Mark  Mark          // "" for a mere change of state
}

// Series is a stretch of history.
type Series struct {
	Step    time.Duration
	Points  []Point  // one for each step, oldest first; they begin at multiples of Step
	Changes []Change // oldest first; the first one may be from before the points, and tells the state at their beginning
}

// Range asks for a stretch of history.
type Range struct {
	Since, Until time.Time     // a zero Since means an hour before Until, a zero Until means now
	Step         time.Duration // at least; 0 for one that gives about 360 points
}

// Bounds on a Range, and what is kept. See Recorder.
const (
	FineStep   = 2 * time.Second
	FineLife   = 15 * time.Minute // in memory only
	MediumStep = 15 * time.Second
	MediumLife = 24 * time.Hour
	CoarseStep = 2 * time.Minute
	CoarseLife = 30 * 24 * time.Hour
	MaxPoints  = 2000 // of one Series; a smaller step than allows that is an Invalid fault
)

// Tick says that new figures were read.
type Tick struct {
	Time time.Time
}
