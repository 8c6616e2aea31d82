package metrics

import (
	"context"
	"time"
)

// Tier is a resolution that a Store keeps, named by the step of its rows.
type Tier time.Duration

// The tiers of a Store.
const (
	Medium = Tier(MediumStep)
	Coarse = Tier(CoarseStep)
)

// Batch is what a Recorder adds to a Store at once.
type Batch struct {
	Seq     int64 // one more than that of the batch before
	Rows    []TierRow
	Changes []SandboxChange
}

// TierRow is a row of one sandbox in one tier.
type TierRow struct {
	ID   string
	Tier Tier
	Row  Row
}

// SandboxChange is a change of one sandbox.
type SandboxChange struct {
	ID     string
	Change Change
}

// Store keeps the history. Safe for concurrent use. Kinds: Unavailable (locked, full or gone; its content is intact).
type Store interface {
	// Last gives the Seq of the last batch that was added, 0 for none.
	Last(ctx context.Context) (int64, error)
	// Add keeps a batch, whole or not at all. One whose Seq is not above Last is kept already, and ignored. Changes of a
	// sandbox that are later than one that is added were stored before the clock was put back; they are forgotten.
	Add(ctx context.Context, b Batch) error
	// Rows gives those of a tier that begin within [since, until), oldest first, and the Seq up to which they are whole.
	Rows(ctx context.Context, id string, t Tier, since, until time.Time) (rows []Row, seq int64, err error)
	// Changes gives those within [since, until), oldest first, after the last one before since, if there is any, and the
	// Seq up to which they are whole.
	Changes(ctx context.Context, id string, since, until time.Time) (changes []Change, seq int64, err error)
	// Sweep forgets what is older than its tier's life at now.
	Sweep(ctx context.Context, now time.Time) error
}
