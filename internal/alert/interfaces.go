package alert

import (
	"context"
	"time"
)

// Sender carries messages to channels of one kind. Safe for concurrent use.
type Sender interface {
	// Check says what is wrong with a channel before it is kept. Kind: Invalid, with the field "address".
	Check(c Channel) error
	// Send hands a message over and returns once it was taken. It ends with ctx. An error of the kind Invalid or Forbidden says that
	// trying again is of no use; any other one, that it may be tried later. Its message is shown to the channel's owner.
	Send(ctx context.Context, c Channel, m Message) error
}

// Store keeps rules, channels, alerts and deliveries. Implementations pass StoreContract. Safe for concurrent use.
type Store interface {
	// Rules gives the rules of all owners, in the order in which their owners put them.
	Rules(ctx context.Context) ([]Rule, error)
	// Begin gives the installation its first rules, once ever: after that it changes nothing, also when they were all deleted.
	Begin(ctx context.Context, first []Rule) error
	// SetRules puts an owner's rules in the place of those before, in this order. Kind: NotFound when the owner is gone.
	SetRules(ctx context.Context, owner string, rules []Rule) error
	// Channels gives the channels of all owners, by name.
	Channels(ctx context.Context) ([]Channel, error)
	// PutChannel adds a channel, or changes the one with its ID. Kind: NotFound when its owner is gone.
	PutChannel(ctx context.Context, c Channel) error
	// DeleteChannel deletes one, with its deliveries; none is no error.
	DeleteChannel(ctx context.Context, id string) error

	// Open gives the alerts that are not resolved.
	Open(ctx context.Context) ([]Alert, error)
	// PutAlerts adds alerts, or changes those with their IDs, and queues deliveries with them, or changes those with their IDs: all
	// or none. A delivery to a channel that is gone is left out.
	PutAlerts(ctx context.Context, alerts []Alert, queue []Delivery) error
	// Find gives alerts that fired, those that fire first, then by when they were resolved, newest first.
	Find(ctx context.Context, q Query) ([]Alert, error)

	// Due gives the delivery of each channel whose Next has come and is the earliest, or is so far away that the clock must have been
	// put back; at most limit, the earliest first.
	Due(ctx context.Context, limit int) ([]Delivery, error)
	// PutDelivery keeps what has become of one. One that is gone, with its channel, stays so.
	PutDelivery(ctx context.Context, d Delivery) error
	// Deliveries gives the newest of one channel, newest first.
	Deliveries(ctx context.Context, channel string, limit int) ([]Delivery, error)

	// Sweep deletes what has been over for longer than it is kept: alerts that were resolved more than KeepAlerts ago and the oldest
	// beyond MaxAlerts, deliveries that were over KeepDeliveries after they were queued and the oldest beyond MaxDeliveries of a
	// channel.
	Sweep(ctx context.Context) error
}

// How long, and how many, a Store keeps of what is over.
const (
	KeepAlerts     = 90 * 24 * time.Hour
	MaxAlerts      = 50_000
	KeepDeliveries = 7 * 24 * time.Hour
	MaxDeliveries  = 200 // of each channel
)

// MaxBackoff is the longest time between two tries of a delivery, but for what is added at random, which is less than that again.
const MaxBackoff = time.Hour

// Query asks for alerts.
type Query struct {
	Scope   Scope
	Sandbox string // name or id; "" for any
	State   State  // Firing or Resolved; "" for both
	Before  string // ID of the last one of the page before; "" for the first page
	Limit   int    // 100 when 0, at most 1000
}

// Scope says whose alerts a reader may see: all, or those about sandboxes that User owns and those of User's own rules. With SandboxID,
// only those about that sandbox. The zero Scope sees nothing.
type Scope struct {
	All       bool
	User      string // user id
	SandboxID string
}
