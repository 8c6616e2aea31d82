package auth_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

func TestLogin_OpensASession(t *testing.T) {
	w := newWorld(t)
	secret, u, err := w.Login(t.Context(), home, " ADA ", good, false)
	if err != nil || u.ID != w.ada.ID {
		t.Fatalf("%+v, %v", u, err)
	}
	p, err := w.Session(t.Context(), secret)
	if err != nil || p.User.ID != w.ada.ID || p.Token != "" || p.Session == "" {
		t.Errorf("%+v, %v", p, err)
	}
	list, err := w.Sessions(t.Context(), w.ada.ID)
	if err != nil || len(list) != 1 || list[0].From != home || list[0].ID != p.Session {
		t.Errorf("%+v, %v", list, err)
	}
	if other := w.login(t, "ada"); other == secret {
		t.Error("two sessions have one secret")
	}
}

func TestLogin_WrongIsToldAlikeForAllNames(t *testing.T) {
	w := newWorld(t)
	var messages []string
	for _, c := range [][2]string{{"ada", "wrong password"}, {"nobody", good}, {"", ""}, {"Ünknown", good}, {"ada", ""},
		{"ada", strings.Repeat("x", 1<<20)}, {strings.Repeat("y", 1<<20), good}, {"ada", good + " "}} {
		secret, u, err := w.Login(t.Context(), fmt.Sprint("from ", len(messages)), c[0], c[1], false)
		wantKind(t, c[0][:min(len(c[0]), 10)], err, fault.Unauthenticated)
		if secret != "" || u != (auth.User{}) {
			t.Errorf("a failed login gives %q, %+v", secret, u)
		}
		messages = append(messages, fault.Message(err))
	}
	for _, m := range messages {
		if m != messages[0] {
			t.Errorf("%q differs from %q", m, messages[0])
		}
	}
}

func TestLogin_GuessesAtOneNameAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		guess := func(from, name string) error {
			_, _, err := w.Login(t.Context(), from, name, "a wrong password", false)
			return err
		}
		for range 5 {
			wantKind(t, "guess", guess(home, "ada"), fault.Unauthenticated)
		}
		err := guess(home, "ada")
		wait := fault.RetryAfter(fmt.Errorf("wrapped: %w", err))
		if !fault.Is(err, fault.Limited) || wait != 30*time.Second || !strings.Contains(fault.Message(err), "30 seconds") {
			t.Errorf("the sixth guess: %v, retry after %s", err, wait)
		}
		_, _, err = w.Login(t.Context(), home, "ada", good, false)
		wantKind(t, "the right password while limited", err, fault.Limited)
		if _, _, err := w.Login(t.Context(), "198.51.100.1", "ada", good, false); err != nil {
			t.Errorf("ada herself from elsewhere: %v", err)
		}
		if _, _, err := w.Login(t.Context(), home, "root", good, false); err != nil {
			t.Errorf("another name from the same address: %v", err)
		}
		until(wait)
		if _, _, err := w.Login(t.Context(), home, "ada", good, false); err != nil {
			t.Errorf("the right password after the wait: %v", err)
		}
	})
}

func TestLogin_GuessesFromOneAddressAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		limited := 0
		for i := range 100 { // names differ, and so do addresses within one customer's network
			from := fmt.Sprintf("2001:db8:1:2::%x", i)
			_, _, err := w.Login(t.Context(), from, fmt.Sprintf("name%d", i), "a wrong password", false)
			if fault.Is(err, fault.Limited) {
				limited++
			}
		}
		if limited != 70 {
			t.Errorf("%d of 100 guesses were limited, want 70", limited)
		}
		_, _, err := w.Login(t.Context(), "2001:db8:1:3::1", "ada", good, false)
		must(t, err)
		until(2 * time.Second)
		_, _, err = w.Login(t.Context(), "2001:db8:1:2::ffff", "ada", good, false)
		must(t, err)
	})
}

func TestLogin_RightPasswordsAreNotLimited(t *testing.T) {
	w := newWorld(t)
	for range 50 {
		w.login(t, "ada")
	}
}

// Fifty logins a second from fifty addresses, at the real cost of hashing: other requests go on, memory stays bounded,
// and everybody gets a clear answer.
func TestLogin_FiftyASecondDoNotBlockOthers(t *testing.T) {
	s := auth.New(newDatabase(t).Auth(), auth.Options{})
	must(t, s.Bootstrap(t.Context(), good))
	_, admin, err := s.Login(t.Context(), home, "admin", good, false)
	must(t, err)
	token, _, err := s.CreateToken(t.Context(), admin.ID, auth.NewToken{Name: "t"})
	must(t, err)
	var attackers sync.WaitGroup
	answers := make(chan error, 200)
	for i := range 200 {
		attackers.Go(func() {
			_, _, err := s.Login(t.Context(), fmt.Sprintf("203.0.113.%d", i%50), "admin", "a wrong password", false)
			answers <- err
		})
	}
	for range 1000 { // while they wait for their turn
		if _, err := s.Authenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	attackers.Wait()
	close(answers)
	count := map[fault.Kind]int{}
	for err := range answers {
		count[fault.KindOf(err)]++
		if fault.Is(err, fault.Limited) {
			if wait := fault.RetryAfter(err); wait <= 0 {
				t.Errorf("no time to retry after: %v", err)
			}
		}
	}
	if count[fault.Limited] == 0 || count[fault.Unauthenticated] == 0 || len(count) != 2 {
		t.Errorf("answers by kind: %v", count)
	}
}

func TestSession_SlidesAndEnds(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		stay bool
		step time.Duration
		last time.Duration // how long it stays alive when used at each step
	}{
		"brief, unused":      {false, day + time.Hour, 0},
		"brief, used daily":  {false, day - time.Hour, 7 * (day - time.Hour)},
		"stays, unused":      {true, 31 * day, 0},
		"stays, used weekly": {true, 7 * day, 28 * day},
		"stays, used once":   {true, 30*day - time.Hour, 30*day - time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				secret, _, err := w.Login(t.Context(), home, "ada", good, c.stay)
				must(t, err)
				begun, lived := time.Now(), time.Duration(0)
				for {
					until(c.step)
					if _, err := w.Session(t.Context(), secret); err != nil {
						wantKind(t, "an ended session", err, fault.Unauthenticated)
						break
					}
					lived = time.Since(begun)
				}
				if lived != c.last {
					t.Errorf("it lived %s, want %s", lived, c.last)
				}
				list, err := w.Sessions(t.Context(), w.ada.ID)
				if err != nil || len(list) != 0 {
					t.Errorf("it is still listed: %+v, %v", list, err)
				}
				w.login(t, "root")
				if rows, err := w.store.Sessions(t.Context(), w.ada.ID); err != nil || len(rows) != 0 {
					t.Errorf("the next login leaves its row: %+v, %v", rows, err)
				}
			})
		})
	}
}

func TestSession_UseIsWrittenAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		secret := w.login(t, "ada")
		seen := func() time.Time {
			list, err := w.Sessions(t.Context(), w.ada.ID)
			must(t, err)
			return list[0].Seen
		}
		begun := seen()
		until(59 * time.Second)
		wantSession(t, w, secret, true)
		if !seen().Equal(begun) {
			t.Error("written within the minute")
		}
		until(time.Second)
		wantSession(t, w, secret, true)
		if got := seen().Sub(begun); got != time.Minute {
			t.Errorf("written %s later, want a minute", got)
		}
	})
}

func TestSession_GoesOnWhenItsUseCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		secret := w.login(t, "ada")
		until(time.Hour)
		broken := brokenTouch{w.store}
		s := auth.New(broken, auth.Options{Cost: cheap})
		if _, err := s.Session(t.Context(), secret); err != nil {
			t.Errorf("a session whose use cannot be written: %v", err)
		}
	})
}

func TestLogout_EndsTheSessionOnly(t *testing.T) {
	w := newWorld(t)
	one, two := w.login(t, "ada"), w.login(t, "ada")
	for range 2 { // twice is no error
		must(t, w.Logout(t.Context(), one))
	}
	must(t, w.Logout(t.Context(), "nonsense"))
	must(t, w.Logout(t.Context(), ""))
	wantSession(t, w, one, false)
	wantSession(t, w, two, true)
}

func TestSession_NonsenseIsRefused(t *testing.T) {
	w := newWorld(t)
	secret := w.login(t, "ada")
	for _, bad := range []string{"", "x", secret[1:], secret + "0", strings.ToUpper(secret), strings.Repeat("0", 43),
		strings.Repeat("x", 1<<20), secret[:42] + "'", "\x00" + secret[1:]} {
		wantSession(t, w, bad, false)
	}
}

func TestLogin_SessionOfAPasswordChangedMeanwhileIsNotOpened(t *testing.T) {
	w := newWorld(t)
	racing := &changingStore{Store: w.store, change: func() {
		must(t, w.SetPassword(t.Context(), w.ada.ID, "changed meanwhile"))
	}}
	s := auth.New(racing, auth.Options{Cost: cheap})
	secret, _, err := s.Login(t.Context(), home, "ada", good, false)
	if !fault.Is(err, fault.Unauthenticated) || secret != "" {
		t.Errorf("%q, %v", secret, err)
	}
	if rows, err := w.store.Sessions(t.Context(), w.ada.ID); err != nil || len(rows) != 0 {
		t.Errorf("a session is left: %+v, %v", rows, err)
	}
}

var errTouch = errors.New("the disk is full")

func TestSole_BadSessionsCostTheStoreOneLookEach(t *testing.T) {
	w := newWorld(t)
	store := &countingStore{Store: w.store}
	s := auth.New(store, auth.Options{Cost: cheap})
	shown := []string{"evil", strings.Repeat("!", 43), w.login(t, "ada")}
	for i := range auth.MaxShown - len(shown) {
		shown = append(shown, fmt.Sprintf("%043d", i))
	}
	for request, want := range []int32{auth.MaxShown - 2, 1, 1} {
		store.asked.Store(0)
		who, _, err := auth.Sole(shown, func(secret string) (auth.Principal, error) { return s.Session(t.Context(), secret) })
		if err != nil || who.User.ID != w.ada.ID {
			t.Errorf("request %d: %+v, %v", request, who, err)
		}
		if n := store.asked.Load(); n != want {
			t.Errorf("request %d: %d questions, want %d", request, n, want)
		}
	}
}
