package alert

import (
	"context"
	"time"

	"sandboxd/internal/logs"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Sources say how things stand. They are safe for concurrent use and wake no sandbox. Those with a ctx may be slow and may fail:
// what one of them watches is then left as it was. A kind whose source is nil has no alerts.
type Sources struct {
	// Sandboxes gives all sandboxes but pooled ones.
	Sandboxes func(ctx context.Context) ([]sandbox.Sandbox, error)
	// Services gives how the services of those of the sandboxes stand that run, by id. A sandbox that does not say is missing; one
	// that runs and has no services is there.
	Services func(ctx context.Context, all []sandbox.Sandbox) (map[string][]wire.ServiceStatus, error)
	// Usage gives the last figures of a sandbox that runs, from memory.
	Usage func(id string) (metrics.Point, bool)
	// OOMKills counts the processes of a sandbox that were killed for want of memory since sandboxd was started, from memory.
	OOMKills func(id string) int64
	// HomeSize gives the size of a sandbox's home in bytes, as of a time, from memory. ok is false when it is not known.
	HomeSize func(id string) (size int64, at time.Time, ok bool)
	// Failures gives the creates, starts and wakes that have failed since it was asked before.
	Failures func() []Failure
	// Builds gives how the last build of each template that there is ended.
	Builds func() map[string]Build
	// Backups gives what is wrong with the schedules of backups, at once.
	Backups func() []BackupTrouble
	// Host gives the figures of the host.
	Host func(ctx context.Context) (metrics.Host, error)
	// Pool gives what the storage pool has, at once; nil where there is none.
	Pool func() (Pool, error)
	// Certificate gives when the certificate of the dashboard ends.
	Certificate func(ctx context.Context) (end time.Time, err error)
	// Lines searches the logs, without waiting for the searches of users. One call is under way at a time.
	Lines func(ctx context.Context, q logs.Query) (logs.Result, error)
}

// Pool is the storage pool. Used and Size are in bytes.
type Pool struct {
	Used, Size int64
	ReadOnly   bool // so that nothing can be written any more
}

// BackupTrouble is something that is wrong with a schedule of backups: Part of its Target is the schedule's name, and Owner the schedule's
// where it is about no sandbox.
type BackupTrouble struct {
	Kind   Kind // BackupFailed, BackupMissed or BackupTest
	Target Target
	Text   string
}

// Failure is a create, start or wake that failed.
type Failure struct {
	SandboxID string
	Problem   string // a sentence
}

// Build is how the last build of a template's image ended.
type Build struct {
	Known   bool   // false when there was none since sandboxd was started
	Problem string // a sentence; "" when it was built
}
