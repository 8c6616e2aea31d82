package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// Session says who a dashboard session's secret belongs to, and prolongs the session. Unauthenticated if it has ended,
// is a sandbox host's, or its user is disabled.
func (s *Service) Session(ctx context.Context, secret string) (Principal, error) {
	n, u, err := s.session(ctx, secret, "")
	if err != nil {
		return Principal{}, err
	}
	s.prolong(ctx, n)
	return Principal{User: u, Session: n.ID, Stay: n.Stay}, nil
}

// HostSession says who a secret that RedeemCode gave belongs to, at that host only, and prolongs the session and the
// dashboard session that it hangs on. It is good for the one sandbox that the code was made for. Unauthenticated if either
// session has ended.
func (s *Service) HostSession(ctx context.Context, secret, host string) (Principal, error) {
	if host == "" {
		return Principal{}, signIn()
	}
	n, u, err := s.session(ctx, secret, host)
	if err != nil {
		return Principal{}, err
	}
	parent, err := s.store.Session(ctx, n.Parent)
	if fault.Is(err, fault.NotFound) || err == nil && !time.Now().Before(parent.Expires) {
		return Principal{}, signIn()
	}
	if err != nil {
		return Principal{}, fmt.Errorf("find the session's parent: %w", err)
	}
	s.prolong(ctx, n)
	s.prolong(ctx, parent)
	return Principal{User: u, Session: n.ID, SandboxID: n.SandboxID}, nil
}

// MaxShown bounds how many cookies of one name are tried. No browser has as many of ours.
const MaxShown = 50

// ErrMixed says that a browser shows sessions of several users. Without HTTPS a sandbox's page can set a cookie beside
// ours, and nobody can tell which of them is the person's.
var ErrMixed = fault.New(fault.Conflict,
	"Your browser sent more than one sign-in. A page of a sandbox may have set one. They were removed, so sign in again.")

// Sole asks for each secret that a browser shows whose session it is, and gives the one user with the first secret that
// is theirs. Secrets that are not good (Unauthenticated) do not count. ErrMixed for sessions of several users, and for
// more than MaxShown.
func Sole[T any](shown []T, ask func(T) (Principal, error)) (who Principal, by T, err error) {
	if len(shown) > MaxShown {
		return who, by, ErrMixed
	}
	err = fault.New(fault.Unauthenticated, "Please sign in.")
	for _, one := range shown {
		next, wrong := ask(one)
		switch {
		case fault.Is(wrong, fault.Unauthenticated):
		case wrong != nil:
			return Principal{}, by, wrong
		case err != nil:
			who, by, err = next, one, nil
		case next.User.ID != who.User.ID:
			return Principal{}, by, ErrMixed
		}
	}
	return who, by, err
}

func signIn() error {
	return fault.New(fault.Unauthenticated, "Your session has ended. Sign in again.")
}

// session finds a live session for host ("" for the dashboard) and its user.
func (s *Service) session(ctx context.Context, secret, host string) (Session, User, error) {
	if !plausible(secret) {
		return Session{}, User{}, signIn()
	}
	key := keyOf(secret)
	if s.unknown.has(key) {
		return Session{}, User{}, signIn()
	}
	n, a, err := s.store.SessionByKey(ctx, key)
	if fault.Is(err, fault.NotFound) {
		s.unknown.add(key)
		return Session{}, User{}, signIn()
	}
	if err != nil {
		return Session{}, User{}, fmt.Errorf("find the session: %w", err)
	}
	if n.Host != host || !time.Now().Before(n.Expires) {
		return Session{}, User{}, signIn()
	}
	return n, a.User, enabled(a.User)
}

// mostUnknown is how many keys are remembered until all are forgotten: of 80 browsers with MaxShown bad cookies.
const mostUnknown = 80 * MaxShown

// unknownKeys remembers keys that no session has, so that a browser's bad cookies cost the store one look each. No session gets
// such a key later: its secret is made at random. Safe for concurrent use.
type unknownKeys struct {
	mu   sync.Mutex
	keys map[Key]bool
}

func (u *unknownKeys) has(k Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.keys[k]
}

func (u *unknownKeys) add(k Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil || len(u.keys) >= mostUnknown {
		u.keys = map[Key]bool{}
	}
	u.keys[k] = true
}

func (s *Service) prolong(ctx context.Context, n Session) {
	s.touch(ctx, n.ID, n.Seen, func(ctx context.Context, now time.Time) error {
		return s.store.TouchSession(ctx, n.ID, now, n.end(now))
	})
}

// Logout ends a dashboard session and every host session that hangs on it. Ending what has ended is no error.
func (s *Service) Logout(ctx context.Context, secret string) error {
	if !plausible(secret) {
		return nil
	}
	n, _, err := s.store.SessionByKey(ctx, keyOf(secret))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		_, err = s.store.DeleteSessions(ctx, SessionFilter{ID: n.ID})
	}
	if err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	s.codes.forget(func(c code) bool { return c.session == n.ID })
	return nil
}

// Sessions gives a user's live dashboard sessions, newest first. Host sessions are part of theirs and not listed.
func (s *Service) Sessions(ctx context.Context, userID string) ([]Session, error) {
	all, err := s.store.Sessions(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var live []Session
	for _, n := range all {
		if n.Host == "" && time.Now().Before(n.Expires) {
			live = append(live, n)
		}
	}
	return live, nil
}
