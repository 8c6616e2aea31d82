package auth_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/internal/auth"
)

// brokenTouch is a store that can read but not note uses.
type brokenTouch struct{ auth.Store }

func (brokenTouch) TouchSession(context.Context, string, time.Time, time.Time) error { return errTouch }

func (brokenTouch) TouchToken(context.Context, string, time.Time) error { return errTouch }

// countingStore counts the questions for a session.
type countingStore struct {
	auth.Store
	asked atomic.Int32
}

func (c *countingStore) SessionByKey(ctx context.Context, key auth.Key) (auth.Session, auth.Account, error) {
	c.asked.Add(1)
	return c.Store.SessionByKey(ctx, key)
}

// changingStore lets something happen once, right before a session is kept.
type changingStore struct {
	auth.Store
	once   sync.Once
	change func()
}

func (c *changingStore) InsertSession(ctx context.Context, key auth.Key, n auth.Session, keep int) error {
	c.once.Do(c.change)
	return c.Store.InsertSession(ctx, key, n, keep)
}

// downStore is a store of which every call fails with err.
type downStore struct{ err error }

func (d downStore) InsertUser(context.Context, auth.Account) error {
	return d.err
}
func (d downStore) ChangeUser(context.Context, string, func(*auth.Account, int) error) error {
	return d.err
}
func (d downStore) DeleteUser(context.Context, string, func(auth.Account, int) error) error {
	return d.err
}
func (d downStore) User(context.Context, string) (a auth.Account, err error) {
	return a, d.err
}
func (d downStore) UserByName(context.Context, string) (a auth.Account, err error) {
	return a, d.err
}
func (d downStore) Users(context.Context) (all []auth.Account, err error) {
	return all, d.err
}
func (d downStore) InsertSession(context.Context, auth.Key, auth.Session, int) error {
	return d.err
}
func (d downStore) SessionByKey(context.Context, auth.Key) (n auth.Session, a auth.Account, err error) {
	return n, a, d.err
}
func (d downStore) Session(context.Context, string) (n auth.Session, err error) {
	return n, d.err
}
func (d downStore) TouchSession(context.Context, string, time.Time, time.Time) error {
	return d.err
}
func (d downStore) Sessions(context.Context, string) (all []auth.Session, err error) {
	return all, d.err
}
func (d downStore) DeleteSessions(context.Context, auth.SessionFilter) (n int, err error) {
	return n, d.err
}
func (d downStore) InsertToken(context.Context, auth.Key, auth.Token) error {
	return d.err
}
func (d downStore) TokenByKey(context.Context, auth.Key) (k auth.Token, a auth.Account, err error) {
	return k, a, d.err
}
func (d downStore) TouchToken(context.Context, string, time.Time) error {
	return d.err
}
func (d downStore) Tokens(context.Context, string) (all []auth.Token, err error) {
	return all, d.err
}
func (d downStore) DeleteToken(context.Context, string, string) error {
	return d.err
}
