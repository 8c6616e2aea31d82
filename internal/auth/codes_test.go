package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

const (
	host  = "box.localhost:8080"
	nonce = "n0nce"
)

func (w *world) code(t *testing.T, session string) string {
	t.Helper()
	code, err := w.IssueCode(t.Context(), session, auth.Place{Host: host, SandboxID: "1"}, nonce)
	must(t, err)
	return code
}

func (w *world) hostSession(t *testing.T, session string) string {
	t.Helper()
	secret, _, err := w.RedeemCode(t.Context(), w.code(t, session), host, nonce)
	must(t, err)
	return secret
}

func wantHost(t *testing.T, w *world, secret, host string, alive bool) {
	t.Helper()
	_, err := w.HostSession(t.Context(), secret, host)
	if alive {
		must(t, err)
	} else {
		wantKind(t, "host session at "+host, err, fault.Unauthenticated)
	}
}

func TestCode_OpensASessionAtThatHostOnly(t *testing.T) {
	w := newWorld(t)
	session := w.login(t, "ada")
	secret := w.hostSession(t, session)
	p, err := w.HostSession(t.Context(), secret, host)
	if err != nil || p.User.ID != w.ada.ID || p.Session == "" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, other := range []string{"", "other.localhost:8080", "3000-box.localhost:8080", "box.localhost", strings.ToUpper(host)} {
		wantHost(t, w, secret, other, false)
	}
	wantSession(t, w, secret, false) // not at the dashboard
	_, err = w.Authenticate(t.Context(), secret)
	wantKind(t, "at the API", err, fault.Unauthenticated)
	_, err = w.Authenticate(t.Context(), auth.TokenPrefix+secret)
	wantKind(t, "at the API, dressed up", err, fault.Unauthenticated)
	_, err = w.IssueCode(t.Context(), secret, auth.Place{Host: host, SandboxID: "1"}, nonce)
	wantKind(t, "to get further codes", err, fault.Unauthenticated)
	wantHost(t, w, session, host, false) // nor is the dashboard's secret good at a host
}

func TestCode_IsGoodOnceAndBound(t *testing.T) {
	w := newWorld(t)
	session := w.login(t, "ada")
	for name, in := range map[string][2]string{
		"another host": {"evil.localhost:8080", nonce}, "another nonce": {host, "other"}, "no nonce": {host, ""}, "no host": {"", nonce},
		"host and nonce swapped": {nonce, host},
	} {
		code := w.code(t, session)
		_, _, err := w.RedeemCode(t.Context(), code, in[0], in[1])
		wantKind(t, name, err, fault.Unauthenticated)
		_, _, err = w.RedeemCode(t.Context(), code, host, nonce)
		wantKind(t, "the same code after "+name, err, fault.Unauthenticated)
	}
	code := w.code(t, session)
	_, _, err := w.RedeemCode(t.Context(), code, host, "other", nonce, "another") // a browser may show more than one
	must(t, err)
	_, _, err = w.RedeemCode(t.Context(), code, host, nonce)
	wantKind(t, "a used code", err, fault.Unauthenticated)
	for _, bad := range []string{"", "x", strings.Repeat("a", 43), strings.Repeat("a", 1<<20)} {
		_, _, err = w.RedeemCode(t.Context(), bad, host, nonce)
		wantKind(t, "nonsense", err, fault.Unauthenticated)
	}
	for _, in := range [][2]string{{"", nonce}, {host, ""}, {strings.Repeat("h", 256), nonce}, {host, strings.Repeat("n", 256)}} {
		_, err := w.IssueCode(t.Context(), session, auth.Place{Host: in[0], SandboxID: "1"}, in[1])
		wantKind(t, "a code bound to nothing", err, fault.Invalid)
	}
	_, err = w.IssueCode(t.Context(), "nobody", auth.Place{Host: host, SandboxID: "1"}, nonce)
	wantKind(t, "a code for nobody", err, fault.Unauthenticated)
}

func TestCode_OfManyAtOnceOneWins(t *testing.T) {
	w := newWorld(t)
	code := w.code(t, w.login(t, "ada"))
	var wg sync.WaitGroup
	won := make(chan string, 20)
	for range 20 {
		wg.Go(func() {
			if secret, _, err := w.RedeemCode(t.Context(), code, host, nonce); err == nil {
				won <- secret
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d redeemed one code", len(won))
	}
}

func TestCode_LivesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		session := w.login(t, "ada")
		young, old := w.code(t, session), w.code(t, session)
		until(time.Minute - time.Nanosecond)
		_, _, err := w.RedeemCode(t.Context(), young, host, nonce)
		must(t, err)
		until(time.Nanosecond)
		_, _, err = w.RedeemCode(t.Context(), old, host, nonce)
		wantKind(t, "a code a minute old", err, fault.Unauthenticated)
	})
}

func TestCode_DiesWithItsSession(t *testing.T) {
	w := newWorld(t)
	for name, end := range map[string]func(session string) error{
		"logout":       func(s string) error { return w.Logout(t.Context(), s) },
		"new password": func(string) error { return w.SetPassword(t.Context(), w.ada.ID, good) },
	} {
		session := w.login(t, "ada")
		code, secret := w.code(t, session), w.hostSession(t, session)
		wantHost(t, w, secret, host, true)
		must(t, end(session))
		_, _, err := w.RedeemCode(t.Context(), code, host, nonce)
		wantKind(t, name+": code", err, fault.Unauthenticated)
		wantHost(t, w, secret, host, false)
	}
}

func TestHostSession_LogoutOfOneHostLeavesTheRest(t *testing.T) {
	w := newWorld(t)
	session := w.login(t, "ada")
	one, two := w.hostSession(t, session), w.hostSession(t, session)
	must(t, w.Logout(t.Context(), one))
	wantHost(t, w, one, host, false)
	wantHost(t, w, two, host, true)
	wantSession(t, w, session, true)
	if list, err := w.Sessions(t.Context(), w.ada.ID); err != nil || len(list) != 1 {
		t.Errorf("%d sessions are listed (%v), want the dashboard's", len(list), err)
	}
}

func TestHostSession_DiesWithAnExpiredParentAndKeepsAUsedOneAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		idle, used := w.login(t, "ada"), w.login(t, "ada")
		until(12 * time.Hour)
		ofIdle, ofUsed := w.hostSession(t, idle), w.hostSession(t, used)
		until(6 * time.Hour)
		wantHost(t, w, ofUsed, host, true) // prolongs the dashboard session too
		until(7 * time.Hour)
		wantHost(t, w, ofIdle, host, false)
		wantHost(t, w, ofUsed, host, true)
		wantSession(t, w, used, true)
		wantSession(t, w, idle, false)
	})
}

func TestCodes_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		session := w.login(t, "ada")
		codes := make([]string, 20)
		for i := range codes {
			codes[i] = w.code(t, session)
			until(time.Millisecond)
		}
		for i, code := range codes { // the 16 youngest of a session live
			_, _, err := w.RedeemCode(t.Context(), code, host, nonce)
			if alive := i >= 4; (err == nil) != alive {
				t.Errorf("code %d: %v, want it alive: %v", i, err, alive)
			}
		}
		var err error
		issued := 0
		for i := 0; err == nil && issued < 5000; i++ {
			u := w.add(t, fmt.Sprintf("user%d", i), auth.Member)
			own := w.login(t, u.Name)
			for j := 0; err == nil && j < 16; j++ {
				if _, err = w.IssueCode(t.Context(), own, auth.Place{Host: host, SandboxID: "1"}, nonce); err == nil {
					issued++
				}
			}
		}
		if wait := fault.RetryAfter(err); !fault.Is(err, fault.Limited) || wait <= 0 || issued != 4096 {
			t.Errorf("after %d codes: %v", issued, err)
		}
		until(time.Minute)
		w.code(t, session)
	})
}

func TestHostSessions_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		session := w.login(t, "ada")
		var secrets []string
		for range 6 {
			secrets = append(secrets, w.hostSession(t, session))
			until(time.Second)
		}
		for i, secret := range secrets {
			wantHost(t, w, secret, host, i >= 2)
		}
		wantSession(t, w, session, true)
	})
}
