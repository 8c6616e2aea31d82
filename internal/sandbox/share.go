package sandbox

import (
	"context"
	"time"
)

// Visibility says who may use a port.
type Visibility string

// The visibilities. A port without a rule is Private.
const (
	Private Visibility = "private" // the owner of the sandbox, and admins
	Shared  Visibility = "shared"  // and visitors with a link to the port that has not expired
	Public  Visibility = "public"  // everyone
)

// PortRule says that a port is shared or public.
type PortRule struct {
	SandboxID  string
	Port       int
	Visibility Visibility // Shared or Public
}

// Share is a link to a port; its secret lets visitors in, and is stored as its hash.
type Share struct {
	ID        string
	SandboxID string
	Port      int
	Hash      [32]byte
	Label     string // whom it is for, in its maker's words; may be ""
	Owner     string // id of the user who made it
	Created   time.Time
	Expires   time.Time
}

// PortStore keeps the rules and shares of ports. All methods are safe for concurrent use. Rules and shares are deleted
// with their sandbox. Times are stored to the microsecond. Kinds as for Store.
type PortStore interface {
	// PutRule adds the rule of a port, or replaces it; NotFound when its sandbox is not there.
	PutRule(ctx context.Context, r PortRule) error
	// DeleteRule makes a port private: its rule goes, and its shares with it. That of none is no error.
	DeleteRule(ctx context.Context, sandboxID string, port int) error
	// PutShare adds a share, and the rule Shared for a port that has none; NotFound when its sandbox is not there,
	// Conflict when there is a share of that id.
	PutShare(ctx context.Context, s Share) error
	// DeleteShare removes it; removing a missing one is no error. The port's rule stays.
	DeleteShare(ctx context.Context, id string) error
	// Rules gives all, by sandbox and port, and all shares, expired ones included, the oldest first.
	Rules(ctx context.Context) ([]PortRule, []Share, error)
}
