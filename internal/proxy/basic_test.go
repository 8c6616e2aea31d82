package proxy

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/sandbox"
)

// basic is a user name and a password as a header.
func basic(user, pass string) header {
	return header{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+pass))}
}

// lock gives "ml" a user name and a password.
func (w *world) lock(user, pass string) {
	w.boxes.put("ml", sandbox.Sandbox{ID: "1", Name: "ml", Owner: "u-ann", State: sandbox.Running,
		Spec: sandbox.Spec{Env: map[string]string{"TTYD_USER": user, "TTYD_PASS": pass}}})
}

func TestPassword_OpensTheTerminalAndNothingElse(t *testing.T) {
	w := newWorld(t)
	w.lock("guest", "hush")
	w.serve(tabHost("main"), reflect)
	w.serve(portHost(3000), reflect)
	s := w.seen(w.ask("GET", terminal+"/token", basic("guest", "hush")))
	if len(s.Header["Authorization"]) != 0 {
		t.Errorf("the terminal sees the password: %v", s.Header)
	}
	w.wantStatus(w.ask("GET", port3000+"/", basic("guest", "hush")), 401)
	w.wantStatus(w.ask("GET", "http://other.localhost:8080/", basic("guest", "hush")), 401)
	w.wantStatus(w.ask("GET", terminal+"/", bearer), 200)
	w.wantStatus(w.ask("GET", terminal+"/", append(header{"Cookie", w.signIn("ml.localhost")}, basic("guest", "wrong")...)), 200)
	for _, c := range [][2]string{{"guest", "wrong"}, {"Guest", "hush"}, {"guest", "hush "}, {"", ""}, {"guest", ""}, {"", "hush"}} {
		a := w.ask("GET", terminal+"/", basic(c[0], c[1]))
		if a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") != `Basic realm="ml", charset="UTF-8"` {
			t.Errorf("%q: %d %v", c, a.StatusCode, a.Header)
		}
	}
	if w.seen(w.ask("GET", port3000+"/", append(basic("my", "own"), "X-Api-Key", annToken))).Header.Get("Authorization") == "" {
		t.Error("a program's own password is kept from it")
	}
}

func TestPassword_WhoHasNoneIsAskedAndShownTheOtherWay(t *testing.T) {
	w := newWorld(t)
	w.lock("guest", "hush")
	a := w.ask("GET", terminal+"/", page)
	w.wantStatus(a, 401)
	if !contains(a.Header.Get("WWW-Authenticate"), `Basic realm="ml"`) || !contains(a.body, "Sign in through the dashboard", "http://localhost:8080/handover?nonce=") {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if cookies := a.Cookies(); len(cookies) != 1 || cookies[0].Name != w.cookie(nonceCookie) {
		t.Errorf("cookies: %v", cookies)
	}
	a = w.ask("GET", terminal+"/ws", header{"Accept", "*/*"})
	if a.StatusCode != 401 || !contains(a.Header.Get("WWW-Authenticate"), "Basic") || len(a.Cookies()) != 0 {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	w.wantStatus(w.ask("GET", port3000+"/", page), 303)
}

func TestPassword_OneWithoutBothIsNone(t *testing.T) {
	w := newWorld(t)
	w.serve(tabHost("main"), reflect)
	for _, c := range [][2]string{{"", ""}, {"guest", ""}, {"", "hush"}} {
		w.lock(c[0], c[1])
		a := w.ask("GET", terminal+"/", append(basic(c[0], c[1]), page...))
		if a.StatusCode != 303 || a.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%q: %d %v", c, a.StatusCode, a.Header)
		}
	}
	if s := w.seen(w.ask("GET", terminal+"/token", append(basic("my", "own"), "X-Api-Key", annToken))); s.Header.Get("Authorization") == "" {
		t.Error("it is stripped all the same")
	}
}

func TestPassword_ASocketNeedsTheVerySameOrigin(t *testing.T) {
	w := newWorld(t)
	w.lock("guest", "hush")
	w.serve(tabHost("main"), tty("main"))
	for _, c := range []struct {
		h  header
		ok bool
	}{
		{header{"Origin", "http://ml.localhost:8080"}, true},
		{header{"Origin", port3000}, false},
		{header{"Origin", "http://evil.com"}, false},
		{header{"Origin", "null"}, false},
		{header{"Origin", "http://ml.localhost:8080", "Origin", "http://evil.com"}, false},
		{nil, true}, // a program: every browser says one
		{header{"Sec-Fetch-Mode", "websocket"}, false},
		{header{"Sec-Fetch-Site", "same-origin"}, false},
	} {
		conn, res, err := w.dial(terminal+"/ws", append(basic("guest", "hush"), c.h...))
		if (err == nil) != c.ok {
			t.Errorf("%q: %v %v", c.h, res, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	w.wantStatus(w.ask("POST", terminal+"/", append(basic("guest", "hush"), "Origin", "http://evil.com")), 403)
}

func TestPassword_WrongOnesAreLimitedByAddressAndSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.proxy.cfg.Trusted = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
		w.lock("guest", "hush")
		w.serve(tabHost("main"), tty("main"))
		from := func(address string, h header) header { return append(header{"X-Forwarded-For", address}, h...) }
		for range 50 {
			w.wantStatus(w.ask("GET", terminal+"/", from("198.51.100.1", basic("guest", "hush"))), 200) // right ones are not counted
		}
		for range attemptsBurst {
			w.wantStatus(w.ask("GET", terminal+"/", from("198.51.100.1", basic("guest", "wrong"))), 401)
		}
		for _, pass := range []string{"wrong", "hush"} {
			a := w.ask("GET", terminal+"/", append(from("198.51.100.1", basic("guest", pass)), "Accept", "text/html"))
			if a.StatusCode != 429 || a.Header.Get("Retry-After") != "6" || strings.Contains(a.body, scriptPath) {
				t.Errorf("%q: %d %v", pass, a.StatusCode, a.Header)
			}
		}
		w.wantStatus(w.ask("GET", terminal+"/", from("198.51.100.2", basic("guest", "hush"))), 200)
		w.wantStatus(w.ask("GET", terminal+"/", append(header{"Cookie", w.signIn("ml.localhost")}, from("198.51.100.1", nil)...)), 200)
		for i := range 2 * attemptsBurst {
			status := w.ask("GET", terminal+"/", from("2001:db8:1:2::"+strings.Repeat("a", i%4+1), basic("guest", "wrong"))).StatusCode
			if want := map[bool]int{true: 401, false: 429}[i < attemptsBurst]; status != want {
				t.Errorf("from a neighbour address, time %d: %d", i, status)
			}
		}
		time.Sleep(attemptsEvery)
		w.wantStatus(w.ask("GET", terminal+"/", from("198.51.100.1", basic("guest", "hush"))), 200)
		time.Sleep(attemptsBurst * attemptsEvery)
		for range attemptsBurst {
			w.wantStatus(w.ask("GET", terminal+"/", from("198.51.100.1", basic("guest", "wrong"))), 401)
		}
	})
}

func TestPassword_AChangedOneEndsWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.lock("guest", "hush")
		w.serve(tabHost("main"), tty("main"))
		conn := w.socket(terminal+"/ws", append(basic("guest", "hush"), "Origin", "http://ml.localhost:8080"))
		time.Sleep(time.Minute)
		if err := conn.WriteMessage(2, []byte("0x")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != "0x" {
			t.Errorf("%q %v", got, err)
		}
		w.lock("guest", "other")
		begun := time.Now()
		if _, _, err := conn.ReadMessage(); err == nil || time.Since(begun) > askAgain {
			t.Errorf("it lasts for %v: %v", time.Since(begun), err)
		}
		w.wantReleased()
	})
}

func TestPassword_OfADisabledOwnerOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.lock("guest", "hush")
		w.serve(tabHost("main"), tty("main"))
		conn := w.socket(terminal+"/ws", append(basic("guest", "hush"), "Origin", "http://ml.localhost:8080"))
		w.accounts.mu.Lock()
		w.accounts.revoked["u-ann"] = true
		w.accounts.mu.Unlock()
		begun := time.Now()
		if _, _, err := conn.ReadMessage(); err == nil || time.Since(begun) > 2*askAgain {
			t.Errorf("an open stream lasts for %v: %v", time.Since(begun), err)
		}
		w.boxes.set("ml", sandbox.Asleep, "")
		w.wantStatus(w.ask("GET", terminal+"/", basic("guest", "hush")), 401)
		if w.boxes.woken() != 0 {
			t.Error("the password of a disabled user wakes the sandbox")
		}
		w.wantReleased()
	})
}

func TestPassword_WakesTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.lock("guest", "hush")
	w.serve(tabHost("main"), tty("main"))
	w.boxes.set("ml", sandbox.Frozen, "")
	w.wantStatus(w.ask("GET", terminal+"/", page), 401)
	w.wantStatus(w.ask("GET", terminal+"/", basic("guest", "wrong")), 401)
	if w.boxes.woken() != 0 {
		t.Error("an anonymous request wakes it")
	}
	w.wantStatus(w.ask("GET", terminal+"/", basic("guest", "hush")), 200)
}

func TestKnown_ACredentialIsAskedForOnceInAMomentAndRefusalsAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		cookie := header{"Cookie", w.signIn("3000-ml.localhost")}
		for range 10 {
			w.wantStatus(w.ask("GET", port3000+"/", bearer), 200)
			w.wantStatus(w.ask("GET", port3000+"/", cookie), 200)
		}
		if w.accounts.asked != 2 {
			t.Errorf("asked %d times", w.accounts.asked)
		}
		w.wantStatus(w.ask("GET", "http://3001-ml.localhost:8080/", cookie), 401) // known at its own host only
		w.accounts.revoke("u-ann")
		time.Sleep(askAgain)
		asked := w.accounts.asked
		for range 3 {
			w.wantStatus(w.ask("GET", port3000+"/", bearer), 401)
			w.wantStatus(w.ask("GET", port3000+"/", cookie), 401)
		}
		if w.accounts.asked != asked+6 {
			t.Errorf("refusals are remembered: asked %d times", w.accounts.asked-asked)
		}
	})
}

func TestKnown_MemoryIsBounded(t *testing.T) {
	k := newCredentialCache(newAccounts())
	for i := range 2 * maxCredentials {
		k.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, cachedPrincipal{})
		if len(k.who) > maxCredentials {
			t.Fatalf("%d are remembered", len(k.who))
		}
	}
}
