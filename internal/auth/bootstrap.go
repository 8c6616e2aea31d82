package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/fault"
)

// firstAdmin is the name of the unclaimed admin until it is claimed under another name.
const firstAdmin = "admin"

// Bootstrap makes the unclaimed first admin when there is no user, so that tokens can be made before the first
// sign-in. With a password it claims that admin; a password of an admin who is claimed already is left alone, so the
// same configuration can stay in place. It voids the setup code that this Service gave out before.
func (s *Service) Bootstrap(ctx context.Context, adminPassword string) error {
	s.setCode("")
	accounts, err := s.store.Users(ctx)
	if err != nil {
		return fmt.Errorf("look for users: %w", err)
	}
	if len(accounts) == 0 {
		u := User{ID: newID(), Name: firstAdmin, Role: Admin, Created: time.Now()}
		// A Conflict means that another process has just made it.
		if err := s.insertUser(ctx, Account{User: u}); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	if adminPassword == "" {
		return nil
	}
	a, found, err := s.unclaimed(ctx)
	if err != nil || !found {
		return err
	}
	_, err = s.claim(ctx, a.User, a.Name, adminPassword)
	return err
}

// SetupCode gives the one-time code that claims the unclaimed admin, and whether there is one to claim. The code is
// good in this process only, and as long as it lives or until Bootstrap: a new start of the server prints a new one.
func (s *Service) SetupCode(ctx context.Context) (code string, needed bool, err error) {
	_, needed, err = s.unclaimed(ctx)
	if err != nil || !needed {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.setup == "" {
		s.setup = rand.Text() // 130 bits
	}
	return s.setup, true, nil
}

// Setup claims the unclaimed admin with the setup code, under a name of their choice ("" for "admin"). Forbidden if
// the code is wrong or was used, Invalid about "name" or "password".
func (s *Service) Setup(ctx context.Context, code, name, password string) (User, error) {
	s.mu.Lock()
	want := s.setup
	s.mu.Unlock()
	given, kept := keyOf(code), keyOf(want)
	if want == "" || subtle.ConstantTimeCompare(given[:], kept[:]) != 1 {
		return User{}, badSetup()
	}
	a, found, err := s.unclaimed(ctx)
	if err != nil {
		return User{}, err
	}
	if !found {
		return User{}, badSetup()
	}
	if name = NormalName(name); name == "" {
		name = a.Name
	}
	u, err := s.claim(ctx, a.User, name, password)
	if err == nil {
		s.setCode("")
	}
	return u, err
}

func badSetup() error {
	return fault.New(fault.Forbidden, "This setup link is not valid, or was used already. Sign in, or restart sandboxd to get a new link.")
}

func (s *Service) setCode(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setup = code
}

// claim gives the unclaimed admin u a name and a password. Of several at once one wins; the others are Forbidden.
func (s *Service) claim(ctx context.Context, u User, name, password string) (User, error) {
	if err := errors.Join(CheckUserName(name), CheckPassword(name, password)); err != nil {
		return User{}, err
	}
	hash, err := s.hash.make(ctx, password)
	if err != nil {
		return User{}, fmt.Errorf("claim the first admin: %w", err)
	}
	err = s.store.ChangeUser(ctx, u.ID, func(a *Account, admins int) error {
		if a.Password != "" || admins > 0 {
			return badSetup()
		}
		a.Name, a.Password, a.Claimed = name, hash, true
		u = a.User
		return nil
	})
	if fault.Is(err, fault.Conflict) {
		return User{}, nameTaken(name)
	}
	if err != nil {
		return User{}, fmt.Errorf("claim the first admin: %w", err)
	}
	return u, nil
}

// unclaimed finds the admin to be claimed. There is none once any admin has a password: from then on only an admin
// makes another.
func (s *Service) unclaimed(ctx context.Context) (a Account, found bool, err error) {
	accounts, err := s.store.Users(ctx)
	if err != nil {
		return a, false, fmt.Errorf("look for the first admin: %w", err)
	}
	for _, b := range accounts {
		if b.Role != Admin || b.Disabled {
			continue
		}
		if b.Claimed {
			return Account{}, false, nil
		}
		if !found {
			a, found = b, true
		}
	}
	return a, found, nil
}
