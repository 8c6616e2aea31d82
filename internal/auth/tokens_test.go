package auth_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

func TestToken_WorksUntilRevoked(t *testing.T) {
	w := newWorld(t)
	secret, made, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: " CI ", Sandbox: "box", SandboxID: "1"})
	must(t, err)
	if !regexp.MustCompile(`^sbx_[0-9A-Za-z]{43}$`).MatchString(secret) {
		t.Errorf("the secret is %q", secret)
	}
	if made.Name != "CI" || !strings.HasPrefix(secret, made.Prefix) || len(made.Prefix) != 10 || !made.Expires.IsZero() {
		t.Errorf("%+v", made)
	}
	p, err := w.Authenticate(t.Context(), secret)
	if err != nil || p.User.ID != w.ada.ID || p.Token != made.ID || p.Sandbox != "box" || p.Session != "" {
		t.Errorf("%+v, %v", p, err)
	}
	wantKind(t, "revoke another's", w.RevokeToken(t.Context(), w.root.ID, made.ID), fault.NotFound)
	must(t, w.RevokeToken(t.Context(), w.ada.ID, made.ID))
	wantKind(t, "revoke twice", w.RevokeToken(t.Context(), "", made.ID), fault.NotFound)
	_, err = w.Authenticate(t.Context(), secret)
	wantKind(t, "a revoked token", err, fault.Unauthenticated)
	if strings.Contains(w.log.String(), secret) {
		t.Error("the log shows the secret")
	}
}

func TestToken_ForModelsIsGoodForNothingElse(t *testing.T) {
	w := newWorld(t)
	secret, made, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "editor", Models: true})
	must(t, err)
	_, err = w.Authenticate(t.Context(), secret)
	wantKind(t, "a token for models", err, fault.Forbidden)
	p, err := w.AuthenticateForModels(t.Context(), secret)
	if err != nil || p.User.ID != w.ada.ID || p.Token != made.ID || !p.Models {
		t.Errorf("%+v, %v", p, err)
	}
	whole, _, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "all"})
	must(t, err)
	if p, err := w.AuthenticateForModels(t.Context(), whole); err != nil || p.Models {
		t.Errorf("another token: %+v, %v", p, err)
	}
	must(t, w.RevokeToken(t.Context(), w.ada.ID, made.ID))
	_, err = w.AuthenticateForModels(t.Context(), secret)
	wantKind(t, "a revoked token", err, fault.Unauthenticated)
}

func TestToken_AnySandboxdRevokesWithoutAUser(t *testing.T) {
	w := newWorld(t)
	_, made, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
	must(t, err)
	must(t, w.RevokeToken(t.Context(), "", made.ID))
	list, err := w.Tokens(t.Context(), "")
	if err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestToken_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		secret, made, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t", TTL: time.Hour})
		must(t, err)
		if !made.Expires.Equal(time.Now().Add(time.Hour)) {
			t.Errorf("expires %s", made.Expires)
		}
		until(time.Hour - time.Microsecond)
		_, err = w.Authenticate(t.Context(), secret)
		must(t, err)
		until(time.Microsecond)
		_, err = w.Authenticate(t.Context(), secret)
		if !fault.Is(err, fault.Unauthenticated) || !strings.Contains(fault.Message(err), "expired") {
			t.Error(err)
		}
		if list, err := w.Tokens(t.Context(), w.ada.ID); err != nil || len(list) != 1 {
			t.Errorf("an expired token is not listed: %v", err)
		}
	})
}

func TestToken_LastUseIsWrittenAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		secret, made, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
		must(t, err)
		use := func() time.Duration {
			t.Helper()
			_, err := w.Authenticate(t.Context(), secret)
			must(t, err)
			list, err := w.Tokens(t.Context(), w.ada.ID)
			must(t, err)
			return list[0].LastUsed.Sub(made.Created)
		}
		for _, c := range []struct{ wait, want time.Duration }{
			{0, 0}, {59 * time.Second, 0}, {time.Second, time.Minute}, {30 * time.Second, time.Minute}, {40 * time.Second, 130 * time.Second},
		} {
			until(c.wait)
			if got := use(); got != c.want {
				t.Errorf("after another %s the last use is %s, want %s", c.wait, got, c.want)
			}
		}
		until(time.Hour)
		s := auth.New(brokenTouch{w.store}, auth.Options{Cost: cheap})
		if _, err := s.Authenticate(t.Context(), secret); err != nil {
			t.Errorf("a token whose use cannot be written: %v", err)
		}
	})
}

func TestToken_NonsenseIsRefused(t *testing.T) {
	w := newWorld(t)
	secret, _, err := w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "t"})
	must(t, err)
	session := w.login(t, "ada")
	for _, bad := range []string{"", "sbx_", secret[4:], "SBX_" + secret[4:], secret + " ", " " + secret, secret[:46], secret + "0",
		"sbx_" + strings.Repeat("0", 43), "sbx_" + session, session, "sbx_" + strings.Repeat("x", 1<<20), secret[:46] + "\n"} {
		_, err := w.Authenticate(t.Context(), bad)
		wantKind(t, "nonsense", err, fault.Unauthenticated)
	}
}

func TestCreateToken_SaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		n     auth.NewToken
		field string
	}{
		{auth.NewToken{Name: "ok"}, ""},
		{auth.NewToken{Name: strings.Repeat("ü", 64), Sandbox: "a-1", SandboxID: "1", TTL: time.Minute}, ""},
		{auth.NewToken{Name: ""}, "name"},
		{auth.NewToken{Name: " \u3164\u2800"}, "name"},
		{auth.NewToken{Name: "  "}, "name"},
		{auth.NewToken{Name: strings.Repeat("ü", 65)}, "name"},
		{auth.NewToken{Name: "a\nb"}, "name"},
		{auth.NewToken{Name: "a\u202eb"}, "name"},
		{auth.NewToken{Name: "a\xffb"}, "name"},
		{auth.NewToken{Name: "n", Sandbox: "a-1"}, "sandbox"},
		{auth.NewToken{Name: "n", SandboxID: "1"}, "sandbox"},
		{auth.NewToken{Name: "n", Models: true}, ""},
		{auth.NewToken{Name: "n", Models: true, Sandbox: "a-1", SandboxID: "1"}, "models"},
		{auth.NewToken{Name: "n", TTL: -time.Hour}, "ttl"},
		{auth.NewToken{Name: "n", TTL: time.Second}, "ttl"},
		{auth.NewToken{Name: "n", TTL: 100 * 366 * 24 * time.Hour}, "ttl"},
	} {
		_, _, err := w.CreateToken(t.Context(), w.ada.ID, c.n)
		if (err == nil) != (c.field == "") || fault.FieldOf(err) != c.field {
			t.Errorf("%+v: %v, want one about %q", c.n, err, c.field)
		}
	}
	_, _, err := w.CreateToken(t.Context(), "nobody", auth.NewToken{Name: "n"})
	wantKind(t, "a token for nobody", err, fault.NotFound)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 30 {
				_, _, _ = w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "n"})
			}
		})
	}
	all.Wait()
	_, _, err = w.CreateToken(t.Context(), w.ada.ID, auth.NewToken{Name: "n"})
	wantKind(t, "too many tokens", err, fault.Conflict)
	if have, err := w.Tokens(t.Context(), w.ada.ID); err != nil || len(have) != 200 {
		t.Errorf("%d tokens, %v", len(have), err)
	}
}
