package auth

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// maxUserName bounds a user's name, in characters.
const maxUserName = 40

var userName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// NormalName gives the form in which a user's name is kept and compared: without blanks around it, in lower case.
func NormalName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// CheckUserName gives an Invalid fault about the field "name" that says what to change. The name must be normal.
func CheckUserName(name string) error {
	switch {
	case name == "":
		return fault.Field("name", "Choose a user name.")
	case len(name) > maxUserName:
		return fault.Field("name", "The user name is too long: use at most %d characters.", maxUserName)
	case !userName.MatchString(name):
		return fault.Field("name", "Use a–z, digits, dots, dashes and underscores; start with a letter or digit.")
	}
	return nil
}

func checkRole(r Role) error {
	if r != Admin && r != Member {
		return fault.Field("role", "A role is either %q or %q.", Admin, Member)
	}
	return nil
}

// NewUser asks for a user. An empty role means Member.
type NewUser struct {
	Name     string
	Role     Role
	Password string
}

// CreateUser adds a user with a password. Invalid says what to change, Conflict that the name is taken.
func (s *Service) CreateUser(ctx context.Context, n NewUser) (User, error) {
	name := NormalName(n.Name)
	if n.Role == "" {
		n.Role = Member
	}
	if err := firstOf(CheckUserName(name), checkRole(n.Role), CheckPassword(name, n.Password)); err != nil {
		return User{}, err
	}
	if _, err := s.store.UserByName(ctx, name); err == nil { // spares the hashing; InsertUser decides
		return User{}, nameTaken(name)
	}
	hash, err := s.hash.make(ctx, n.Password)
	if err != nil {
		return User{}, fmt.Errorf("create user %s: %w", name, err)
	}
	u := User{ID: newID(), Name: name, Role: n.Role, Claimed: true, Created: time.Now()}
	return u, s.insertUser(ctx, Account{User: u, Password: hash})
}

func (s *Service) insertUser(ctx context.Context, a Account) error {
	err := s.store.InsertUser(ctx, a)
	if fault.Is(err, fault.Conflict) {
		return nameTaken(a.Name)
	}
	if err != nil {
		return fmt.Errorf("create user %s: %w", a.Name, err)
	}
	return nil
}

func nameTaken(name string) error {
	return &fault.Error{Kind: fault.Conflict, Field: "name", Message: fmt.Sprintf("A user named %q already exists. Choose another name.", name)}
}

// Users gives all users, oldest first.
func (s *Service) Users(ctx context.Context) ([]User, error) {
	accounts, err := s.store.Users(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	users := make([]User, len(accounts))
	for i, a := range accounts {
		users[i] = a.User
	}
	return users, nil
}

// User finds one by id.
func (s *Service) User(ctx context.Context, id string) (User, error) {
	a, err := s.store.User(ctx, id)
	if err != nil {
		return User{}, userFault(err, id)
	}
	return a.User, nil
}

// UserByName finds one by name, in any case of letters.
func (s *Service) UserByName(ctx context.Context, name string) (User, error) {
	a, err := s.store.UserByName(ctx, NormalName(name))
	if err != nil {
		return User{}, userFault(err, name)
	}
	return a.User, nil
}

// FirstAdmin gives the oldest enabled admin, claimed or not: who owns what is made without anybody signed in.
func (s *Service) FirstAdmin(ctx context.Context) (User, error) {
	users, err := s.Users(ctx)
	if err != nil {
		return User{}, err
	}
	for _, u := range users {
		if u.Role == Admin && !u.Disabled {
			return u, nil
		}
	}
	return User{}, fault.New(fault.NotFound, "There is no administrator yet.")
}

// SetRole makes a user an admin or a member. Conflict if nobody else could administer any more.
func (s *Service) SetRole(ctx context.Context, userID string, r Role) error {
	if err := checkRole(r); err != nil {
		return err
	}
	return s.change(ctx, userID, func(a *Account, admins int) error {
		if r != Admin && leavesNone(*a, admins) {
			return lastAdmin(a.Name, "made a member")
		}
		a.Role = r
		return nil
	})
}

// SetDisabled locks a user out, or lets them in again: while disabled neither password, sessions nor tokens are good
// for anything. Their sandboxes keep running. Conflict for the last administrator who can sign in.
func (s *Service) SetDisabled(ctx context.Context, userID string, disabled bool) error {
	err := s.change(ctx, userID, func(a *Account, admins int) error {
		if disabled && leavesNone(*a, admins) {
			return lastAdmin(a.Name, "disabled")
		}
		a.Disabled = disabled
		return nil
	})
	if err != nil || !disabled {
		return err
	}
	return s.endSessions(ctx, userID) // so that enabling again does not bring an intruder's back
}

// DeleteUser removes a user with all sessions and tokens. Conflict if they own sandboxes or if nobody else could
// administer any more; NotFound if there is no such user.
func (s *Service) DeleteUser(ctx context.Context, userID string) error {
	u, err := s.User(ctx, userID)
	if err != nil {
		return err
	}
	n, err := s.owned(ctx, userID)
	if err != nil {
		return fmt.Errorf("count sandboxes of %s: %w", u.Name, err)
	}
	if n > 0 {
		return fault.New(fault.Conflict, "The user %s still owns %s. Delete them first, or disable the user instead.",
			u.Name, counted(n, "sandbox", "sandboxes"))
	}
	err = s.store.DeleteUser(ctx, userID, func(a Account, admins int) error {
		if leavesNone(a, admins) {
			return lastAdmin(a.Name, "deleted")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete user %s: %w", u.Name, err)
	}
	s.codes.forget(func(c code) bool { return c.user == userID })
	return nil
}

// leavesNone reports whether nobody could administer without a, when admins others can.
func leavesNone(a Account, admins int) bool {
	return a.Role == Admin && !a.Disabled && admins == 0
}

func lastAdmin(name, what string) error {
	return fault.New(fault.Conflict, "%s is the only administrator who can sign in and cannot be %s. Make another user "+
		"an administrator first.", name, what)
}

// SetPassword gives a user a new password without asking for the old one, as an administrator may, and ends all their
// sessions. Tokens stay. It claims the unclaimed admin.
func (s *Service) SetPassword(ctx context.Context, userID, password string) error {
	u, err := s.User(ctx, userID)
	if err != nil {
		return err
	}
	return s.setPassword(ctx, u, password, func(Account) error { return nil })
}

// ChangePassword gives a user a new password if the old one is right, and ends all their sessions, the present one
// included: they must sign in again with the new password. Invalid about the field "old" if it is wrong; Limited after
// too many wrong ones. Tokens stay.
func (s *Service) ChangePassword(ctx context.Context, userID, old, password string) error {
	giveBack, err := s.limits.take("user "+userID, "password")
	if err != nil {
		return err
	}
	a, err := s.store.User(ctx, userID)
	if err != nil {
		giveBack()
		return userFault(err, userID)
	}
	ok, err := s.hash.verify(ctx, a.Password, bounded(old))
	if err != nil {
		return fmt.Errorf("check password of %s: %w", a.Name, err)
	}
	if !ok {
		return fault.Field("old", "That isn't your current password.")
	}
	giveBack()
	return s.setPassword(ctx, a.User, password, func(now Account) error {
		if now.Password != a.Password {
			return fault.New(fault.Conflict, "The password was changed meanwhile. Sign in anew.")
		}
		return nil
	})
}

// setPassword hashes outside and writes inside the transaction, where allow is asked.
func (s *Service) setPassword(ctx context.Context, u User, password string, allow func(Account) error) error {
	if err := CheckPassword(u.Name, password); err != nil {
		return err
	}
	hash, err := s.hash.make(ctx, password)
	if err != nil {
		return fmt.Errorf("set password of %s: %w", u.Name, err)
	}
	err = s.change(ctx, u.ID, func(a *Account, _ int) error {
		a.Password = hash
		return nil
	}, allow)
	if err != nil {
		return err
	}
	return s.endSessions(ctx, u.ID)
}

func (s *Service) endSessions(ctx context.Context, userID string) error {
	if _, err := s.store.DeleteSessions(ctx, SessionFilter{User: userID}); err != nil {
		return fmt.Errorf("end sessions of user %s: %w", userID, err)
	}
	s.codes.forget(func(c code) bool { return c.user == userID })
	return nil
}

// change edits a user in one transaction, after all of allow agreed.
func (s *Service) change(ctx context.Context, id string, edit func(a *Account, admins int) error, allow ...func(Account) error) error {
	err := s.store.ChangeUser(ctx, id, func(a *Account, admins int) error {
		for _, ok := range allow {
			if err := ok(*a); err != nil {
				return err
			}
		}
		return edit(a, admins)
	})
	if err != nil {
		return userFault(err, id)
	}
	return nil
}

// userFault says "no such user" in words; other faults keep theirs.
func userFault(err error, who string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "There is no user %q.", who)
	}
	return fmt.Errorf("user %s: %w", who, err)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
