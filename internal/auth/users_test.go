package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

func TestCreateUser_SaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, password string
		role           auth.Role
		field          string // "" when it is right
	}{
		{"bob", good, auth.Member, ""},
		{"  Eve.O-Neil_2 ", good, auth.Admin, ""},
		{"7of9", good, "", ""},
		{strings.Repeat("a", 40), good, "", ""},
		{strings.Repeat("a", 41), good, "", "name"},
		{"", good, "", "name"},
		{"   ", good, "", "name"},
		{".hidden", good, "", "name"},
		{"-rf", good, "", "name"},
		{"a b", good, "", "name"},
		{"jürgen", good, "", "name"},
		{"a/../b", good, "", "name"},
		{"a\nb", good, "", "name"},
		{"a\n", good, "god", "role"},
		{"role", good, "god", "role"},
		{"short", "123456789", "", "password"},
		{"ten", "1234567890", "", ""},
		{"runes", "äöüäöüäöü", "", "password"},
		{"runes10", "äöüäöüäöüä", "", ""},
		{"empty", "", "", "password"},
		{"long", strings.Repeat("ab", 100), "", ""},
		{"toolong", strings.Repeat("ab", 100) + "c", "", "password"},
		{"same-as-name", "Same-As-Name", "", "password"},
		{"repeated", "zzzzzzzzzzzz", "", "password"},
		{"repeated-rune", "éééééééééééé", "", "password"},
		{"not-text", "1234567890\xff", "", "password"},
		{"ADA", good, "", "name"}, // taken
	} {
		u, err := w.CreateUser(t.Context(), auth.NewUser{Name: c.name, Role: c.role, Password: c.password})
		if c.field == "" {
			if err != nil || u.Name != auth.NormalName(c.name) || !u.Claimed || u.Role == "" || u.ID == "" {
				t.Errorf("%q: %+v, %v", c.name, u, err)
			}
			continue
		}
		if fault.FieldOf(err) != c.field || fault.KindOf(err) == fault.Internal {
			t.Errorf("%q, %q: %v (field %q), want one about %q", c.name, c.password, err, fault.FieldOf(err), c.field)
		}
		if err != nil && c.password != "" && strings.Contains(err.Error(), c.password) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	_, err := w.CreateUser(t.Context(), auth.NewUser{Name: "Ada", Password: good})
	wantKind(t, "a taken name", err, fault.Conflict)
}

func TestUsers_AreFoundByNameInAnyCase(t *testing.T) {
	w := newWorld(t)
	u, err := w.UserByName(t.Context(), " ADA ")
	if err != nil || u != w.ada && u.ID != w.ada.ID {
		t.Errorf("%+v, %v", u, err)
	}
	_, err = w.UserByName(t.Context(), "nobody")
	if !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Message(err), `"nobody"`) {
		t.Error(err)
	}
	all, err := w.Users(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestLastAdmin_Stays(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	calls := map[string]func(id string) error{
		"SetRole":     func(id string) error { return w.SetRole(ctx, id, auth.Member) },
		"SetDisabled": func(id string) error { return w.SetDisabled(ctx, id, true) },
		"DeleteUser":  func(id string) error { return w.DeleteUser(ctx, id) },
	}
	for name, call := range calls {
		wantKind(t, name+" of the only admin", call(w.root.ID), fault.Conflict)
	}
	disabled := w.add(t, "disabled", auth.Admin)
	must(t, w.SetDisabled(ctx, disabled.ID, true))
	for name, call := range calls {
		wantKind(t, name+" beside a disabled admin", call(w.root.ID), fault.Conflict)
	}
	for name, call := range calls {
		second := w.add(t, "second", auth.Admin)
		must(t, call(w.root.ID))
		wantKind(t, name+" of the one left", call(second.ID), fault.Conflict)
		if name == "DeleteUser" {
			return
		}
		must(t, w.SetRole(ctx, w.root.ID, auth.Admin))
		must(t, w.SetDisabled(ctx, w.root.ID, false))
		must(t, w.DeleteUser(ctx, second.ID))
	}
}

func TestLastAdmin_TwoCannotRemoveEachOther(t *testing.T) {
	for range 20 {
		w := newWorld(t)
		other := w.add(t, "other", auth.Admin)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, id := range []string{w.root.ID, other.ID} {
			wg.Go(func() { errs[i] = w.DeleteUser(t.Context(), id) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("both ended alike: %v, %v", errs[0], errs[1])
		}
	}
}

func TestDeleteUser_WhoOwnsSandboxesStays(t *testing.T) {
	owned := map[string]int{}
	var broken error
	s := auth.New(newDatabase(t).Auth(), auth.Options{Cost: cheap,
		Owned: func(_ context.Context, id string) (int, error) { return owned[id], broken }})
	must(t, s.Bootstrap(t.Context(), good))
	u, err := s.CreateUser(t.Context(), auth.NewUser{Name: "ada", Password: good})
	must(t, err)
	for n, text := range map[int]string{1: "owns 1 sandbox.", 12: "owns 12 sandboxes."} {
		owned[u.ID] = n
		err := s.DeleteUser(t.Context(), u.ID)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), text) {
			t.Errorf("with %d: %v", n, err)
		}
	}
	owned[u.ID], broken = 0, errors.New("no answer")
	if err := s.DeleteUser(t.Context(), u.ID); !errors.Is(err, broken) {
		t.Errorf("when it cannot be counted: %v", err)
	}
	broken = nil
	must(t, s.DeleteUser(t.Context(), u.ID))
	wantKind(t, "delete again", s.DeleteUser(t.Context(), u.ID), fault.NotFound)
}

func TestDisabledUser_IsOutAtOnce(t *testing.T) {
	w := newWorld(t)
	secret := w.login(t, "ada")
	token, _, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
	must(t, err)
	code, err := w.IssueCode(t.Context(), secret, auth.Place{Host: "box.localhost", SandboxID: "1"}, "nonce")
	must(t, err)
	must(t, w.SetDisabled(t.Context(), w.ada.ID, true))
	wantSession(t, w, secret, false)
	_, err = w.Authenticate(t.Context(), token)
	wantKind(t, "token", err, fault.Unauthenticated)
	_, _, err = w.RedeemCode(t.Context(), code, "box.localhost", "nonce")
	wantKind(t, "code", err, fault.Unauthenticated)
	_, _, err = w.Login(t.Context(), home, "ada", good, false)
	wantKind(t, "login", err, fault.Forbidden)
	_, _, err = w.Login(t.Context(), home, "ada", "a wrong password", false)
	wantKind(t, "login that does not know the password", err, fault.Unauthenticated)
	_, _, err = w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
	wantKind(t, "new token", err, fault.Conflict)
	must(t, w.SetDisabled(t.Context(), w.ada.ID, false))
	wantSession(t, w, secret, false) // not back: it may be why they were disabled
	_, err = w.Authenticate(t.Context(), token)
	must(t, err)
}

func TestSetRole_CountsAtTheNextQuestion(t *testing.T) {
	w := newWorld(t)
	secret := w.login(t, "ada")
	must(t, w.SetRole(t.Context(), w.ada.ID, auth.Admin))
	p, err := w.Session(t.Context(), secret)
	if err != nil || p.User.Role != auth.Admin {
		t.Errorf("%+v, %v", p, err)
	}
	if err := w.SetRole(t.Context(), w.ada.ID, "god"); fault.FieldOf(err) != "role" {
		t.Error(err)
	}
	wantKind(t, "role of nobody", w.SetRole(t.Context(), "x", auth.Admin), fault.NotFound)
}

func TestSetPassword_EndsSessionsAndKeepsTokens(t *testing.T) {
	w := newWorld(t)
	hers, his := w.login(t, "ada"), w.login(t, "root")
	token, _, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
	must(t, err)
	if err := w.SetPassword(t.Context(), w.ada.ID, "short"); fault.FieldOf(err) != "password" {
		t.Errorf("a bad password: %v", err)
	}
	wantSession(t, w, hers, true)
	must(t, w.SetPassword(t.Context(), w.ada.ID, "another good one"))
	wantSession(t, w, hers, false)
	wantSession(t, w, his, true)
	_, err = w.Authenticate(t.Context(), token)
	must(t, err)
	_, _, err = w.Login(t.Context(), home, "ada", good, false)
	wantKind(t, "the old password", err, fault.Unauthenticated)
	_, _, err = w.Login(t.Context(), home, "ada", "another good one", false)
	must(t, err)
}

func TestChangePassword_NeedsTheOldOne(t *testing.T) {
	w := newWorld(t)
	secret := w.login(t, "ada")
	err := w.ChangePassword(t.Context(), w.ada.ID, "not the old one", "another good one")
	if fault.FieldOf(err) != "old" || !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong old password: %v", err)
	}
	if err := w.ChangePassword(t.Context(), w.ada.ID, good, "ada"); fault.FieldOf(err) != "password" {
		t.Errorf("a bad new password: %v", err)
	}
	wantSession(t, w, secret, true)
	must(t, w.ChangePassword(t.Context(), w.ada.ID, good, "another good one"))
	wantSession(t, w, secret, false)
	for range 10 {
		err = w.ChangePassword(t.Context(), w.ada.ID, "guess", "another good one")
	}
	wantKind(t, "many guesses at the old password", err, fault.Limited)
}
