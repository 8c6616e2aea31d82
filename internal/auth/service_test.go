package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// cheap makes hashing quick where a test is not about its cost.
var cheap = auth.Cost{Memory: 64, Passes: 1}

const (
	good = "correct horse battery"
	home = "192.0.2.7"
)

// world is a service with its store, an admin "root" and a member "ada", both with the password good.
type world struct {
	*auth.Service
	store auth.Store
	log   *bytes.Buffer
	root  auth.User
	ada   auth.User
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{store: newDatabase(t).Auth(), log: &bytes.Buffer{}}
	w.Service = auth.New(w.store, auth.Options{Cost: cheap, Log: slog.New(slog.NewTextHandler(w.log, nil))})
	w.root = w.add(t, "root", auth.Admin)
	w.ada = w.add(t, "ada", auth.Member)
	return w
}

func (w *world) add(t *testing.T, name string, r auth.Role) auth.User {
	t.Helper()
	u, err := w.CreateUser(t.Context(), auth.NewUser{Name: name, Role: r, Password: good})
	must(t, err)
	return u
}

func (w *world) login(t *testing.T, name string) string {
	t.Helper()
	secret, _, err := w.Login(t.Context(), home, name, good, false)
	must(t, err)
	return secret
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: error is %v, want one of kind %s", what, err, kind)
	}
}

func wantSession(t *testing.T, w *world, secret string, alive bool) {
	t.Helper()
	_, err := w.Session(t.Context(), secret)
	if alive {
		must(t, err)
	} else {
		wantKind(t, "session", err, fault.Unauthenticated)
	}
}

// What the store says goes up as it is, classified: pages answer 503 and not "wrong password".
func TestService_StoreFaultsKeepTheirKind(t *testing.T) {
	w := newWorld(t)
	secret := w.login(t, "ada")
	token, _, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
	must(t, err)
	live := w.Service
	down := auth.New(downStore{fault.New(fault.Unavailable, "The disk is full.")}, auth.Options{Cost: cheap})
	for name, call := range map[string]func(context.Context) error{
		"Bootstrap":   func(ctx context.Context) error { return w.Bootstrap(ctx, "") },
		"SetupCode":   func(ctx context.Context) error { _, _, err := w.SetupCode(ctx); return err },
		"Login":       func(ctx context.Context) error { _, _, err := w.Login(ctx, home, "ada", good, false); return err },
		"Session":     func(ctx context.Context) error { _, err := w.Session(ctx, secret); return err },
		"Logout":      func(ctx context.Context) error { return w.Logout(ctx, secret) },
		"HostSession": func(ctx context.Context) error { _, err := w.HostSession(ctx, secret, "h"); return err },
		"Sessions":    func(ctx context.Context) error { _, err := w.Sessions(ctx, w.ada.ID); return err },
		"IssueCode": func(ctx context.Context) error {
			_, err := w.IssueCode(ctx, secret, auth.Place{Host: "h", SandboxID: "1"}, "n")
			return err
		},
		"Authenticate": func(ctx context.Context) error { _, err := w.Authenticate(ctx, token); return err },
		"CreateToken": func(ctx context.Context) error {
			_, _, err := w.CreateToken(ctx, w.ada.ID, auth.NewToken{Name: "t"})
			return err
		},
		"Tokens":         func(ctx context.Context) error { _, err := w.Tokens(ctx, ""); return err },
		"RevokeToken":    func(ctx context.Context) error { return w.RevokeToken(ctx, "", "x") },
		"Users":          func(ctx context.Context) error { _, err := w.Users(ctx); return err },
		"User":           func(ctx context.Context) error { _, err := w.User(ctx, w.ada.ID); return err },
		"UserByName":     func(ctx context.Context) error { _, err := w.UserByName(ctx, "ada"); return err },
		"FirstAdmin":     func(ctx context.Context) error { _, err := w.FirstAdmin(ctx); return err },
		"SetRole":        func(ctx context.Context) error { return w.SetRole(ctx, w.ada.ID, auth.Admin) },
		"SetDisabled":    func(ctx context.Context) error { return w.SetDisabled(ctx, w.ada.ID, false) },
		"SetPassword":    func(ctx context.Context) error { return w.SetPassword(ctx, w.ada.ID, good) },
		"ChangePassword": func(ctx context.Context) error { return w.ChangePassword(ctx, w.ada.ID, good, good) },
		"DeleteUser":     func(ctx context.Context) error { return w.DeleteUser(ctx, w.ada.ID) },
	} {
		w.Service = down
		wantKind(t, name, call(t.Context()), fault.Unavailable)
		w.Service = live
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s of a caller who left: %v", name, err)
		}
	}
	wantSession(t, w, secret, true)
}

func TestPrincipal_MayUse(t *testing.T) {
	admin, member := auth.User{ID: "a", Role: auth.Admin}, auth.User{ID: "m", Role: auth.Member}
	for _, c := range []struct {
		p     auth.Principal
		owner string
		name  string
		want  bool
	}{
		{auth.Principal{User: admin}, "m", "box", true},
		{auth.Principal{User: member}, "m", "box", true},
		{auth.Principal{User: member}, "a", "box", false},
		{auth.Principal{User: member, SandboxID: "box"}, "m", "box", true},
		{auth.Principal{User: member, SandboxID: "box"}, "m", "other", false},
		{auth.Principal{User: member, SandboxID: "box"}, "a", "box", false},
		{auth.Principal{User: admin, SandboxID: "box"}, "m", "other", false},
		{auth.Principal{}, "m", "box", false},
	} {
		if got := c.p.May(c.owner, c.name); got != c.want {
			t.Errorf("%+v may use %s of %s: %v, want %v", c.p, c.name, c.owner, got, c.want)
		}
	}
}

// until lets the bubble's clock go on by d.
func until(d time.Duration) { <-time.After(d) }
