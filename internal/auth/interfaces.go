package auth

import (
	"context"
	"time"
)

// Key is the SHA-256 of a session's or a token's secret: what is kept in its place. The secrets are random 256 bit
// numbers, so that neither salt nor slow hash is needed, and a lookup by Key tells nothing through its timing.
type Key [32]byte

// Account is a user with the hash of their password, as it is kept. Password is "" for the unclaimed admin; Claimed
// is derived from it.
type Account struct {
	User
	Password string
}

// Store keeps accounts. All methods are safe for concurrent use, also by several processes. Times are kept to the
// microsecond. Kinds: NotFound, Conflict, Unavailable (locked, full or gone; what was there before is intact).
type Store interface {
	UserStore
	SessionStore
	TokenStore
}

// UserStore keeps users.
type UserStore interface {
	// InsertUser adds a user; Conflict if the name or id exists.
	InsertUser(ctx context.Context, a Account) error
	// ChangeUser lets change edit a user in one transaction and keeps the result, or nothing when it gives an error,
	// which is returned as it is. admins counts the claimed and enabled admins apart from this user. The id cannot be
	// changed; Conflict if the new name is taken. change must not use the store.
	ChangeUser(ctx context.Context, id string, change func(a *Account, admins int) error) error
	// DeleteUser removes a user with all sessions and tokens in one transaction, if allow gives no error. admins is as
	// in ChangeUser. Deleting who is not there is no error, and allow is not asked. allow must not use the store.
	DeleteUser(ctx context.Context, id string, allow func(a Account, admins int) error) error
	// User finds one by id.
	User(ctx context.Context, id string) (Account, error)
	// UserByName finds one by name.
	UserByName(ctx context.Context, name string) (Account, error)
	// Users gives all, oldest first.
	Users(ctx context.Context) ([]Account, error)
}

// SessionStore keeps browser sessions.
type SessionStore interface {
	// InsertSession adds s and drops the oldest of the same user, parent and host, so that at most keep remain.
	// NotFound if its user or parent is not there.
	InsertSession(ctx context.Context, key Key, s Session, keep int) error
	// SessionByKey finds a session and its user.
	SessionByKey(ctx context.Context, key Key) (Session, Account, error)
	// Session finds one by id.
	Session(ctx context.Context, id string) (Session, error)
	// TouchSession notes its use. Touching what is not there is no error.
	TouchSession(ctx context.Context, id string, seen, expires time.Time) error
	// Sessions gives a user's sessions, newest first, host sessions included.
	Sessions(ctx context.Context, user string) ([]Session, error)
	// DeleteSessions removes those that match with all their host sessions.
	DeleteSessions(ctx context.Context, f SessionFilter) (int, error)
}

// SessionFilter picks sessions; all that is set must match. The zero value picks none.
type SessionFilter struct {
	ID        string
	User      string
	ExpiredBy time.Time // Expires is not after this
}

// TokenStore keeps API tokens.
type TokenStore interface {
	// InsertToken adds one. NotFound if its user is not there.
	InsertToken(ctx context.Context, key Key, t Token) error
	// TokenByKey finds a token and its user.
	TokenByKey(ctx context.Context, key Key) (Token, Account, error)
	// TouchToken notes its use. Touching what is not there is no error.
	TouchToken(ctx context.Context, id string, used time.Time) error
	// Tokens gives a user's tokens, newest first; of all users if user is "".
	Tokens(ctx context.Context, user string) ([]Token, error)
	// DeleteToken removes a token of that user; of any user if user is "". NotFound if there is none.
	DeleteToken(ctx context.Context, user, id string) error
}
