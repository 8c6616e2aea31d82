package auth

import (
	"context"
	"fmt"
	"time"

	"sandboxd/internal/fault"
)

// How long sessions live and how many there may be.
const (
	// StayFor is how long a session lives whose user asked to stay signed in.
	StayFor = 30 * 24 * time.Hour

	briefIdle    = 24 * time.Hour     // any other ends when not used for this long
	briefMost    = 7 * 24 * time.Hour // and in any case
	keepSessions = 100                // of one user at the dashboard; the oldest go
	keepHosts    = 4                  // of one session at one sandbox host: a browser needs one, hand-overs may race
	maxFrom      = 64                 // bytes of a caller's address that are kept
)

// noName stands for whatever cannot be a user's name, so that the limiter keeps no strange or long ones.
const noName = "(no name)"

// Login checks a name and a password and opens a session for the caller at the address from, which lives for StayFor if stay
// is true, and a day or so without use otherwise. It takes as long for an unknown name as for a wrong password. Unauthenticated if they are wrong, Forbidden if the user is disabled, Limited
// (see fault.RetryAfter) after too many wrong ones or when too many sign in at once.
func (s *Service) Login(ctx context.Context, from, name, password string, stay bool) (secret string, u User, err error) {
	name = NormalName(name)
	if CheckUserName(name) != nil {
		name = noName
	}
	giveBack, err := s.limits.take(from, name)
	if err != nil {
		return "", User{}, err
	}
	a, err := s.store.UserByName(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		giveBack()
		return "", User{}, fmt.Errorf("sign in: %w", err)
	}
	ok, err := s.hash.verify(ctx, a.Password, bounded(password))
	if err != nil {
		return "", User{}, fmt.Errorf("sign in: %w", err)
	}
	if !ok {
		return "", User{}, fault.New(fault.Unauthenticated, "Wrong name or password.")
	}
	giveBack()
	if a.Disabled {
		return "", User{}, fault.New(fault.Forbidden, "This account is disabled. Ask an administrator to enable it.")
	}
	secret, err = s.open(ctx, Session{User: a.ID, From: from, Stay: stay}, keepSessions)
	if err != nil {
		return "", User{}, err
	}
	if err := s.unchanged(ctx, a, secret); err != nil {
		return "", User{}, err
	}
	return secret, a.User, nil
}

// unchanged ends the session just opened if the password was changed while it was being checked: changing a password
// ends all sessions, and this one may have come a moment too late for that.
func (s *Service) unchanged(ctx context.Context, a Account, secret string) error {
	now, err := s.store.User(ctx, a.ID)
	if err == nil && now.Password == a.Password {
		return nil
	}
	if err := s.Logout(ctx, secret); err != nil {
		return err
	}
	return fault.New(fault.Unauthenticated, "The password was changed meanwhile. Sign in again.")
}

// bounded cuts what cannot be a password to a length that is certainly wrong, so that hashing it costs no more.
func bounded(password string) string { return password[:min(len(password), maxPassword*4+1)] }

// open keeps a new session and clears away what has expired.
func (s *Service) open(ctx context.Context, n Session, keep int) (secret string, err error) {
	now := time.Now()
	if _, err := s.store.DeleteSessions(ctx, SessionFilter{ExpiredBy: now}); err != nil {
		return "", fmt.Errorf("clear old sessions: %w", err)
	}
	secret = newSecret()
	n.ID, n.Created, n.Seen = newID(), now, now
	n.Expires = n.end(now)
	n.From = n.From[:min(len(n.From), maxFrom)]
	if err := s.store.InsertSession(ctx, keyOf(secret), n, keep); err != nil {
		return "", fmt.Errorf("open a session: %w", err)
	}
	return secret, nil
}

// end gives when a session that is used now ends.
func (n Session) end(now time.Time) time.Time {
	if n.Stay {
		return n.Created.Add(StayFor)
	}
	end, most := now.Add(briefIdle), n.Created.Add(briefMost)
	if most.Before(end) {
		return most
	}
	return end
}
