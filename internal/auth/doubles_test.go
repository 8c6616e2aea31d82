package auth_test

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/sandboxtest"
)

// brokenTouch is a store that can read but not note uses.
type brokenTouch struct{ *sandboxtest.MemAccounts }

func (brokenTouch) TouchSession(context.Context, string, time.Time, time.Time) error { return errTouch }

func (brokenTouch) TouchToken(context.Context, string, time.Time) error { return errTouch }

// changingStore lets something happen once, right before a session is kept.
type changingStore struct {
	*sandboxtest.MemAccounts
	once   sync.Once
	change func()
}

func (c *changingStore) InsertSession(ctx context.Context, key auth.Key, n auth.Session, keep int) error {
	c.once.Do(c.change)
	return c.MemAccounts.InsertSession(ctx, key, n, keep)
}
