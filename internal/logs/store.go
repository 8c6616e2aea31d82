package logs

import (
	"context"
	"time"
)

// BatchLines is how many lines a Keeper gives to a Store at once, at most.
const BatchLines = 16_000

// Look is what a Store is to go through: at least all lines that it describes. Empty fields describe any.
type Look struct {
	Scope        Scope
	Services     []string
	Levels       []Level
	Words        []Word // all of them in one line
	Since, Until time.Time
	Before       ID
}

// Block is a part of what a Store has.
type Block struct {
	Bound ID                     // no line of this block or of those that follow has a larger ID
	Last  ID                     // no line of this block has a larger ID
	Lines func() ([]Line, error) // oldest first, for the caller until the next call; nil when the block only tells how far it went
}

// Store keeps lines. Safe for concurrent use, but for Add, which one caller calls. Kinds: Unavailable (locked, full or gone; its
// content is intact).
type Store interface {
	// Last gives a number that no ID of a line in the Store is above, as of when it was opened.
	Last() ID
	// Add keeps lines, in the order of their IDs, all or none. Lines that are not above those it has are kept already, and ignored.
	Add(ctx context.Context, lines []Line) error
	// Walk calls see with blocks that together have all lines that look describes, and others, until see returns false or ctx ends.
	// Bounds never grow.
	Walk(ctx context.Context, look Look, see func(Block) bool) error
	// Before gives the last lines of a sandbox below an ID, oldest first: a page of them, which fills from the last one on.
	Before(ctx context.Context, sandbox string, id ID, page Page) ([]Line, error)
	// From gives the first lines of a sandbox from an ID on, oldest first: a page of them.
	From(ctx context.Context, sandbox string, id ID, page Page) ([]Line, error)
	// Line gives the line with an ID, of any sandbox. Kind: NotFound.
	Line(ctx context.Context, id ID) (Line, error)
	// Delete forgets all lines of a sandbox, and that they are kept.
	Delete(ctx context.Context, sandbox string) error
	// Keep notes that the log of a sandbox is kept; a note from before is replaced.
	Keep(ctx context.Context, k Kept) error
	// Unkeep takes such a note away. One that is not there is no error.
	Unkeep(ctx context.Context, sandbox string) error
	// Kept gives those notes, newest first. A Sweep takes away those of which no line is left.
	Kept(ctx context.Context) ([]Kept, error)
	// Sweep forgets the oldest lines, as limits at now want.
	Sweep(ctx context.Context, l Limits, now time.Time) error
	// Usage gives what each sandbox that has lines takes, and the size of the file or files with all that belongs to them.
	Usage(ctx context.Context) (each []Use, disk int64, err error)
}
