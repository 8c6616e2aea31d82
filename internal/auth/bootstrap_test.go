package auth_test

import (
	"sync"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

func TestBootstrap_MakesOneUnclaimedAdmin(t *testing.T) {
	store := newDatabase(t).Auth()
	var wg sync.WaitGroup
	for range 5 { // several processes at once, and again at every start
		wg.Go(func() {
			if err := auth.New(store, auth.Options{Cost: cheap}).Bootstrap(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := auth.New(store, auth.Options{Cost: cheap})
	users, err := s.Users(t.Context())
	if err != nil || len(users) != 1 || users[0].Name != "admin" || users[0].Role != auth.Admin || users[0].Claimed {
		t.Fatalf("%+v, %v", users, err)
	}
	first, err := s.FirstAdmin(t.Context())
	if err != nil || first.ID != users[0].ID {
		t.Errorf("%+v, %v", first, err)
	}
	token, _, err := s.CreateToken(t.Context(), first.ID, auth.NewToken{Name: "ci"})
	must(t, err)
	p, err := s.Authenticate(t.Context(), token)
	if err != nil || p.User.Role != auth.Admin {
		t.Errorf("a token of the unclaimed admin: %+v, %v", p, err)
	}
	for _, password := range []string{"", "admin", good} {
		_, _, err = s.Login(t.Context(), home, "admin", password, false)
		wantKind(t, "sign in as the unclaimed admin", err, fault.Unauthenticated)
	}
}

func TestBootstrap_PasswordClaimsOnceAndIsThenLeftAlone(t *testing.T) {
	s := auth.New(newDatabase(t).Auth(), auth.Options{Cost: cheap})
	if err := s.Bootstrap(t.Context(), "short"); fault.FieldOf(err) != "password" {
		t.Errorf("a bad password: %v", err)
	}
	must(t, s.Bootstrap(t.Context(), good))
	_, u, err := s.Login(t.Context(), home, "admin", good, false)
	must(t, err)
	must(t, s.SetPassword(t.Context(), u.ID, "changed by the admin"))
	must(t, s.Bootstrap(t.Context(), good))
	must(t, s.Bootstrap(t.Context(), "short"))
	_, _, err = s.Login(t.Context(), home, "admin", good, false)
	wantKind(t, "the configured password after a change", err, fault.Unauthenticated)
	_, needed, err := s.SetupCode(t.Context())
	if err != nil || needed {
		t.Errorf("a setup code is still given out: %v", err)
	}
}

func TestSetup_CodeClaimsTheAdminOnce(t *testing.T) {
	store := newDatabase(t).Auth()
	s := auth.New(store, auth.Options{Cost: cheap})
	must(t, s.Bootstrap(t.Context(), ""))
	code, needed, err := s.SetupCode(t.Context())
	if err != nil || !needed || len(code) < 20 {
		t.Fatalf("%q, %v, %v", code, needed, err)
	}
	if again, _, err := s.SetupCode(t.Context()); err != nil || again != code {
		t.Errorf("asked again it is %q (%v)", again, err)
	}
	for _, wrong := range []string{"", "x", code + "x", code[1:]} {
		_, err := s.Setup(t.Context(), wrong, "ada", good)
		wantKind(t, "a wrong code", err, fault.Forbidden)
	}
	for field, in := range map[string][2]string{"name": {"Ädä", good}, "password": {"ada", "short"}} {
		if _, err := s.Setup(t.Context(), code, in[0], in[1]); fault.FieldOf(err) != field {
			t.Errorf("%v: %v, want one about %q", in, err, field)
		}
	}
	before, err := s.FirstAdmin(t.Context())
	must(t, err)
	u, err := s.Setup(t.Context(), code, " Ada ", good)
	if err != nil || u.Name != "ada" || u.ID != before.ID || !u.Claimed || u.Role != auth.Admin {
		t.Fatalf("%+v, %v", u, err)
	}
	_, err = s.Setup(t.Context(), code, "eve", good)
	wantKind(t, "the code again", err, fault.Forbidden)
	_, _, err = s.Login(t.Context(), home, "ada", good, false)
	must(t, err)
	must(t, s.Bootstrap(t.Context(), ""))
	if _, needed, err := s.SetupCode(t.Context()); err != nil || needed {
		t.Errorf("after a restart setup is asked for again: %v", err)
	}
}

func TestSetup_RestartVoidsTheOldCode(t *testing.T) {
	store := newDatabase(t).Auth()
	old := auth.New(store, auth.Options{Cost: cheap})
	must(t, old.Bootstrap(t.Context(), ""))
	first, _, err := old.SetupCode(t.Context())
	must(t, err)
	must(t, old.Bootstrap(t.Context(), ""))
	_, err = old.Setup(t.Context(), first, "ada", good)
	wantKind(t, "the code before Bootstrap", err, fault.Forbidden)

	restarted := auth.New(store, auth.Options{Cost: cheap})
	must(t, restarted.Bootstrap(t.Context(), ""))
	second, needed, err := restarted.SetupCode(t.Context())
	if err != nil || !needed || second == first {
		t.Fatalf("%q, %v, %v", second, needed, err)
	}
	_, err = restarted.Setup(t.Context(), first, "ada", good)
	wantKind(t, "the code of the process before", err, fault.Forbidden)
	_, err = restarted.Setup(t.Context(), second, "", good)
	must(t, err)
	_, _, err = restarted.Login(t.Context(), home, "admin", good, false)
	must(t, err)
}

func TestSetup_CommandLineDoesNotVoidTheServersCode(t *testing.T) {
	store := newDatabase(t).Auth()
	server, cli := auth.New(store, auth.Options{Cost: cheap}), auth.New(store, auth.Options{Cost: cheap})
	must(t, server.Bootstrap(t.Context(), ""))
	code, _, err := server.SetupCode(t.Context())
	must(t, err)
	must(t, cli.Bootstrap(t.Context(), ""))
	admin, err := cli.FirstAdmin(t.Context())
	must(t, err)
	_, _, err = cli.CreateToken(t.Context(), admin.ID, auth.NewToken{Name: "ci"})
	must(t, err)
	_, err = server.Setup(t.Context(), code, "ada", good)
	must(t, err)
}

func TestSetup_EndsWhenAnAdminIsMadeAnotherWay(t *testing.T) {
	ways := map[string]func(t *testing.T, s *auth.Service, admin string) error{
		"password set": func(t *testing.T, s *auth.Service, admin string) error {
			return s.SetPassword(t.Context(), admin, good)
		},
		"other admin": func(t *testing.T, s *auth.Service, _ string) error {
			_, err := s.CreateUser(t.Context(), auth.NewUser{Name: "bob", Role: auth.Admin, Password: good})
			return err
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s := auth.New(newDatabase(t).Auth(), auth.Options{Cost: cheap})
			must(t, s.Bootstrap(t.Context(), ""))
			code, _, err := s.SetupCode(t.Context())
			must(t, err)
			admin, err := s.FirstAdmin(t.Context())
			must(t, err)
			must(t, way(t, s, admin.ID))
			_, err = s.Setup(t.Context(), code, "eve", good)
			wantKind(t, "the code afterwards", err, fault.Forbidden)
		})
	}
}

func TestSetup_OfManyAtOnceOneWins(t *testing.T) {
	s := auth.New(newDatabase(t).Auth(), auth.Options{Cost: cheap})
	must(t, s.Bootstrap(t.Context(), ""))
	code, _, err := s.SetupCode(t.Context())
	must(t, err)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.Setup(t.Context(), code, "ada", good) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			wantKind(t, "a loser", err, fault.Forbidden)
		}
	}
	if won != 1 {
		t.Errorf("%d claimed the admin", won)
	}
}
