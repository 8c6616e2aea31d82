package chat

import (
	"context"
	"encoding/json"
)

// Store keeps conversations. Implementations pass chattest.StoreContract. Safe for concurrent use.
type Store interface {
	// Create adds a conversation. Kind: NotFound when its sandbox or its owner is gone.
	Create(ctx context.Context, c Conversation) error
	// List gives those of a sandbox, the last changed first.
	List(ctx context.Context, sandbox string) ([]Conversation, error)
	// Busy gives those of all sandboxes that are Working or Asking, or have messages in their queue.
	Busy(ctx context.Context) ([]Conversation, error)
	// Stirring gives those of all sandboxes that are not Idle.
	Stirring(ctx context.Context) ([]Conversation, error)
	// Conversation gives one. Kind: NotFound.
	Conversation(ctx context.Context, id string) (Conversation, error)
	// Apply keeps a change: all of it or nothing. Its number is the conversation's from then on. Kind: NotFound.
	Apply(ctx context.Context, id string, c Change) error
	// Items gives items in their order. Kind: NotFound when the conversation is gone.
	Items(ctx context.Context, id string, q ItemQuery) ([]Item, error)
	// Queue gives the messages that wait, in their order.
	Queue(ctx context.Context, id string) ([]Queued, error)
	// Memory gives what a driver keeps of a conversation; nil for nothing. Kind: NotFound.
	Memory(ctx context.Context, id string) (json.RawMessage, error)
	// SetMemory replaces it. Kind: NotFound.
	SetMemory(ctx context.Context, id string, m json.RawMessage) error
	// Copy adds a conversation with the items of another up to one number, as its change 1, their questions answered or lapsed. Kind:
	// NotFound.
	Copy(ctx context.Context, from string, upTo int64, c Conversation) error
	// Delete deletes one with all of it; none is no error.
	Delete(ctx context.Context, id string) error
}

// ItemQuery asks for items.
type ItemQuery struct {
	Before int64 // only those with lower numbers; 0 for all
	After  int64 // only those with higher numbers
	Since  int64 // only those that changed after the change of this number
	Turn   int64 // only those of one turn; 0 for all
	Limit  int   // the last ones, or with After the first; 0 for all
	Bytes  int   // no more of them once they take that much; 0 for all
	Shown  bool  // none of kind Record
}

// Size is about how many bytes an item takes.
func (it *Item) Size() int { return len(it.Text) + len(it.Output) + len(it.Data) + itemOverhead }

const itemOverhead = 128

// Driver works on turns of one kind of agent. Safe for concurrent use, of different conversations.
type Driver interface {
	// Turn works on one turn until it is over, and tells of all of it through t. It ends soon after ctx. An error makes the conversation
	// Failed: its message is for the person.
	Turn(ctx context.Context, t *Turn) error
}

// Checkpoints takes and restores snapshots of a sandbox's files.
type Checkpoints interface {
	// Take takes one and gives its id, after another one that is being taken.
	Take(ctx context.Context, sandbox, title string) (string, error)
	// Restore makes the sandbox's files those of a snapshot, and gives the id of one of what it replaced, which it takes first. That pushes
	// out none of those that Take has taken. Kind: NotFound when it is gone.
	Restore(ctx context.Context, sandbox, snapshot string) (before string, err error)
}
