package gateway

import (
	"context"
	"time"
)

// Store keeps providers, aliases, budgets, settings, and what was used. Implementations pass gatewaytest.StoreContract. Safe for
// concurrent use.
type Store interface {
	// Providers gives those of all owners, by owner ("" first) and name.
	Providers(ctx context.Context) ([]Provider, error)
	// PutProvider adds a provider, or changes the one with its ID. sealed is its key as it is kept; nil keeps the one before, and an
	// empty one drops it. Kinds: NotFound when its owner is gone, Conflict when the owner has another one of that name.
	PutProvider(ctx context.Context, p Provider, sealed []byte) error
	// ProviderKey gives the sealed key of a provider; nil when it has none. Kind: NotFound.
	ProviderKey(ctx context.Context, id string) ([]byte, error)
	// DeleteProvider deletes one; none is no error.
	DeleteProvider(ctx context.Context, id string) error

	// Aliases gives those of all owners, by owner ("" first) and name.
	Aliases(ctx context.Context) ([]Alias, error)
	// PutAlias adds an alias, or changes the one of its owner and name. Kind: NotFound when its owner is gone.
	PutAlias(ctx context.Context, a Alias) error
	// DeleteAlias deletes one; none is no error.
	DeleteAlias(ctx context.Context, owner, name string) error

	// Budgets gives all, those without a subject first.
	Budgets(ctx context.Context) ([]Budget, error)
	// PutBudget adds a budget, or changes the one of its scope, subject and period. Kind: NotFound when its subject is gone.
	PutBudget(ctx context.Context, b Budget) error
	// DeleteBudget deletes the one of that scope, subject and period; none is no error.
	DeleteBudget(ctx context.Context, scope Scope, subject string, period Period) error

	// Settings gives the settings; the zero ones at first.
	Settings(ctx context.Context) (Settings, error)
	// PutSettings keeps them.
	PutSettings(ctx context.Context, s Settings) error

	// AddCalls adds calls to the log and to the usage of their hours: all or none. One without an ID is added to the usage alone; one whose
	// ID is in the log is left out, so that a batch can be added again. Usage has no model for calls that failed, nor for further ones than
	// the first MaxUsageRows of an hour, user and sandbox, because clients make up names.
	AddCalls(ctx context.Context, calls []Call) error
	// Calls gives calls, newest first, without Request and Answer.
	Calls(ctx context.Context, q CallQuery) ([]Call, error)
	// Call gives one, whole. Kind: NotFound.
	Call(ctx context.Context, id string) (Call, error)
	// Usage gives what was used in the hours that begin from From on and before To, by time and then the most tokens first. Parts without
	// any are left out.
	Usage(ctx context.Context, q UsageQuery) ([]Usage, error)
	// SweepCalls deletes calls from before a time and the oldest beyond MaxCalls, the oldest contents beyond MaxContents, and the usage of
	// hours that ended KeepUsage before now.
	SweepCalls(ctx context.Context, before, now time.Time) error
}

// How long, and how many, a Store keeps of what is over.
const (
	KeepCalls    = 30 * 24 * time.Hour
	MaxCalls     = 200_000
	MaxContents  = 256 << 20 // bytes of all that was asked and answered, packed
	KeepUsage    = 400 * 24 * time.Hour
	MaxUsageRows = 100 // of an hour, user and sandbox
)

// Sealer makes keys unreadable in the store. *seal.Key is one.
type Sealer interface {
	Seal(purpose string, text []byte) ([]byte, error)
	Open(purpose string, sealed []byte) ([]byte, error)
}
