package sandbox

import (
	"context"
	"time"
)

// Hold says that a sandbox is in use until Expires, whether or not a use is seen: an agent or a person has declared it.
type Hold struct {
	ID        string
	SandboxID string
	Owner     string // id of the user who placed it
	Reason    string // in their words
	Created   time.Time
	Expires   time.Time
}

// HoldStore keeps holds beyond a restart. All methods are safe for concurrent use. A hold is deleted with its sandbox.
// Kinds as for Store.
type HoldStore interface {
	// PutHold adds the hold, or replaces that of its id; NotFound when its sandbox is not there.
	PutHold(ctx context.Context, h Hold) error
	// DeleteHold removes it; removing a missing one is no error.
	DeleteHold(ctx context.Context, id string) error
	// DeleteExpiredHolds removes those that have expired at that time.
	DeleteExpiredHolds(ctx context.Context, at time.Time) error
	// Holds gives all, expired ones included, the oldest first.
	Holds(ctx context.Context) ([]Hold, error)
}
