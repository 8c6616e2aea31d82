package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// TestAccounts_KeepTheContract holds the accounts against the contract of auth.Store.
func TestAccounts_KeepTheContract(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, auth.Store)
	}{
		{"UsersComeBack", accountsUsers},
		{"UserNamesAndIDsAreUnique", accountsUnique},
		{"ChangeIsAllOrNothing", accountsChange},
		{"OtherAdminsAreCounted", accountsAdmins},
		{"DeletingAUserTakesTheirCredentials", accountsDeleteUser},
		{"ConcurrentChangesAreOneAfterTheOther", accountsTurns},
		{"SessionsComeBack", accountsSessions},
		{"SessionNeedsItsUserAndParent", accountsOrphans},
		{"OldestSessionsMakeRoom", accountsKeep},
		{"DeletingASessionTakesItsHosts", accountsHosts},
		{"SessionsAreDeletedByFilter", accountsSessionFilter},
		{"TokensComeBack", accountsTokens},
		{"TokensAreDeletedByOwner", accountsDeleteToken},
		{"CancelledContextEndsTheCall", accountsCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, fresh(t).Auth()) })
	}
}

var accountsEpoch = time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC)

// account gives a claimed and enabled account, created minutes after a fixed time; its id is "id-" and its name.
func account(name string, role auth.Role, minutes int) auth.Account {
	return auth.Account{Password: "hash of " + name, User: auth.User{ID: "id-" + name, Name: name, Role: role, Claimed: true,
		Created: accountsEpoch.Add(time.Duration(minutes) * time.Minute)}}
}

func sampleSession(id, user string, minutes int) auth.Session {
	made := accountsEpoch.Add(time.Duration(minutes) * time.Minute)
	return auth.Session{ID: id, User: user, From: "192.0.2.1", Created: made, Seen: made.Add(time.Second), Expires: made.Add(time.Hour)}
}

func accountsKey(s string) (k auth.Key) {
	copy(k[:], s)
	return k
}

func mustUser(t *testing.T, s auth.Store, a auth.Account) {
	t.Helper()
	must(t, s.InsertUser(t.Context(), a))
}

func mustSession(t *testing.T, s auth.Store, n auth.Session) {
	t.Helper()
	must(t, s.InsertSession(t.Context(), accountsKey(n.ID), n, 100))
}

func wantSame(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func accountsUsers(t *testing.T, s auth.Store) {
	none, err := s.Users(t.Context())
	must(t, err)
	wantSame(t, "users of an empty store", 0, len(none))
	first, second := account("zoe", auth.Admin, 0), account("ada", auth.Member, 1)
	first.Password, first.Claimed = "", false
	second.Disabled = true
	mustUser(t, s, second)
	mustUser(t, s, first)
	all, err := s.Users(t.Context())
	must(t, err)
	wantSame(t, "all users, oldest first", []auth.Account{first, second}, all)
	for _, a := range []auth.Account{first, second} {
		byID, err := s.User(t.Context(), a.ID)
		must(t, err)
		byName, err := s.UserByName(t.Context(), a.Name)
		must(t, err)
		wantSame(t, "user by id", a, byID)
		wantSame(t, "user by name", a, byName)
	}
	_, err = s.User(t.Context(), "ada")
	wantKind(t, "find an unknown id", err, fault.NotFound)
	_, err = s.UserByName(t.Context(), "nobody")
	wantKind(t, "find an unknown name", err, fault.NotFound)
}

func accountsUnique(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Admin, 0))
	mustUser(t, s, account("bob", auth.Member, 0))
	name, id := account("ada", auth.Member, 1), account("cat", auth.Member, 1)
	name.ID, id.ID = "other", "id-ada"
	wantKind(t, "insert a taken name", s.InsertUser(t.Context(), name), fault.Conflict)
	wantKind(t, "insert a taken id", s.InsertUser(t.Context(), id), fault.Conflict)
	err := s.ChangeUser(t.Context(), "id-bob", func(a *auth.Account, _ int) error { a.Name = "ada"; return nil })
	wantKind(t, "change to a taken name", err, fault.Conflict)
}

func accountsChange(t *testing.T, s auth.Store) {
	a := account("ada", auth.Member, 0)
	mustUser(t, s, a)
	refuse := errors.New("refused")
	err := s.ChangeUser(t.Context(), a.ID, func(a *auth.Account, _ int) error { a.Role = auth.Admin; return refuse })
	if !errors.Is(err, refuse) {
		t.Errorf("error is %v, want the callback's own", err)
	}
	got, err := s.User(t.Context(), a.ID)
	must(t, err)
	wantSame(t, "after a refused change", a, got)
	must(t, s.ChangeUser(t.Context(), a.ID, func(a *auth.Account, _ int) error {
		a.Name, a.Role, a.Password, a.Disabled = "eva", auth.Admin, "", true
		return nil
	}))
	a.Name, a.Role, a.Password, a.Disabled, a.Claimed = "eva", auth.Admin, "", true, false
	got, err = s.UserByName(t.Context(), "eva")
	must(t, err)
	wantSame(t, "after a change", a, got)
	err = s.ChangeUser(t.Context(), "nobody", func(*auth.Account, int) error { t.Error("asked about nobody"); return nil })
	wantKind(t, "change who is not there", err, fault.NotFound)
}

func accountsAdmins(t *testing.T, s auth.Store) {
	member, admin, other := account("member", auth.Member, 0), account("admin", auth.Admin, 1), account("other", auth.Admin, 2)
	unclaimed, disabled := account("unclaimed", auth.Admin, 3), account("disabled", auth.Admin, 4)
	unclaimed.Password, unclaimed.Claimed, disabled.Disabled = "", false, true
	for _, a := range []auth.Account{member, admin, other, unclaimed, disabled} {
		mustUser(t, s, a)
	}
	for id, want := range map[string]int{member.ID: 2, admin.ID: 1, other.ID: 1, unclaimed.ID: 2, disabled.ID: 2} {
		var changed, deleted int
		stop := errors.New("only counting")
		if err := s.ChangeUser(t.Context(), id, func(_ *auth.Account, n int) error { changed = n; return stop }); !errors.Is(err, stop) {
			t.Errorf("change gives %v", err)
		}
		if err := s.DeleteUser(t.Context(), id, func(_ auth.Account, n int) error { deleted = n; return stop }); !errors.Is(err, stop) {
			t.Errorf("delete gives %v", err)
		}
		wantSame(t, "other admins than "+id, []int{want, want}, []int{changed, deleted})
	}
}

func accountsDeleteUser(t *testing.T, s auth.Store) {
	for _, name := range []string{"ada", "bob"} {
		mustUser(t, s, account(name, auth.Member, 0))
		mustSession(t, s, sampleSession("s-"+name, "id-"+name, 0))
		child := sampleSession("h-"+name, "id-"+name, 1)
		child.Parent, child.Host = "s-"+name, "box.localhost"
		mustSession(t, s, child)
		must(t, s.InsertToken(t.Context(), accountsKey("t-"+name), auth.Token{ID: "t-" + name, User: "id-" + name, Created: accountsEpoch}))
	}
	asked := 0
	allow := func(auth.Account, int) error { asked++; return nil }
	must(t, s.DeleteUser(t.Context(), "id-ada", allow))
	must(t, s.DeleteUser(t.Context(), "id-ada", allow))
	wantSame(t, "times asked", 1, asked)
	for key, want := range map[string]bool{"s-ada": false, "h-ada": false, "s-bob": true, "h-bob": true} {
		if _, _, err := s.SessionByKey(t.Context(), accountsKey(key)); (err == nil) != want {
			t.Errorf("session %s: %v, want it there: %v", key, err, want)
		}
	}
	for key, want := range map[string]bool{"t-ada": false, "t-bob": true} {
		if _, _, err := s.TokenByKey(t.Context(), accountsKey(key)); (err == nil) != want {
			t.Errorf("token %s: %v, want it there: %v", key, err, want)
		}
	}
}

func accountsTurns(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Member, 0))
	const n = 20
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := s.ChangeUser(t.Context(), "id-ada", func(a *auth.Account, _ int) error { a.Password += "x"; return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a, err := s.User(t.Context(), "id-ada")
	must(t, err)
	wantSame(t, "changes kept", len("hash of ada")+n, len(a.Password))
}

func accountsSessions(t *testing.T, s auth.Store) {
	a := account("ada", auth.Member, 0)
	mustUser(t, s, a)
	old, young, host := sampleSession("old", a.ID, 0), sampleSession("young", a.ID, 1), sampleSession("host", a.ID, 2)
	host.Parent, host.Host, host.Stay = "old", "3000-box.localhost:8080", true
	for _, n := range []auth.Session{old, young, host} {
		mustSession(t, s, n)
		got, user, err := s.SessionByKey(t.Context(), accountsKey(n.ID))
		must(t, err)
		wantSame(t, "session by key", n, got)
		wantSame(t, "its user", a, user)
		got, err = s.Session(t.Context(), n.ID)
		must(t, err)
		wantSame(t, "session by id", n, got)
	}
	old.Seen, old.Expires = old.Seen.Add(time.Hour), old.Expires.Add(time.Hour)
	must(t, s.TouchSession(t.Context(), "old", old.Seen, old.Expires))
	must(t, s.TouchSession(t.Context(), "gone", old.Seen, old.Expires))
	all, err := s.Sessions(t.Context(), a.ID)
	must(t, err)
	wantSame(t, "all sessions, newest first", []auth.Session{host, young, old}, all)
	none, err := s.Sessions(t.Context(), "id-nobody")
	must(t, err)
	wantSame(t, "sessions of nobody", 0, len(none))
	_, err = s.Session(t.Context(), "gone")
	wantKind(t, "an unknown id", err, fault.NotFound)
	_, _, err = s.SessionByKey(t.Context(), accountsKey("gone"))
	wantKind(t, "an unknown key", err, fault.NotFound)
}

func accountsOrphans(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Member, 0))
	n := sampleSession("n", "id-nobody", 0)
	wantKind(t, "session of nobody", s.InsertSession(t.Context(), accountsKey("n"), n, 5), fault.NotFound)
	n.User, n.Parent, n.Host = "id-ada", "ended", "box.localhost"
	wantKind(t, "session of an ended parent", s.InsertSession(t.Context(), accountsKey("n"), n, 5), fault.NotFound)
	k := auth.Token{ID: "t", User: "id-nobody", Created: accountsEpoch}
	wantKind(t, "token of nobody", s.InsertToken(t.Context(), accountsKey("t"), k), fault.NotFound)
	all, err := s.Tokens(t.Context(), "")
	must(t, err)
	wantSame(t, "tokens kept", 0, len(all))
}

func accountsKeep(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Member, 0))
	mustUser(t, s, account("bob", auth.Member, 0))
	mustSession(t, s, sampleSession("bobs", "id-bob", -10))
	for i := range 5 {
		n := sampleSession(fmt.Sprintf("n%d", i), "id-ada", i)
		must(t, s.InsertSession(t.Context(), accountsKey(n.ID), n, 3))
	}
	for i := range 4 {
		h := sampleSession(fmt.Sprintf("h%d", i), "id-ada", i)
		h.Parent, h.Host = "n4", "box.localhost"
		must(t, s.InsertSession(t.Context(), accountsKey(h.ID), h, 2))
	}
	early := sampleSession("early", "id-ada", -60) // what was just made stays, whatever the clock says
	must(t, s.InsertSession(t.Context(), accountsKey(early.ID), early, 3))
	wantSessionIDs(t, s, "id-ada", "n4", "h3", "n3", "h2", "early")
	wantSessionIDs(t, s, "id-bob", "bobs")
}

func wantSessionIDs(t *testing.T, s auth.Store, user string, want ...string) {
	t.Helper()
	all, err := s.Sessions(t.Context(), user)
	must(t, err)
	var got []string
	for _, n := range all {
		got = append(got, n.ID)
	}
	wantSame(t, "sessions of "+user, want, got)
}

func accountsHosts(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Member, 0))
	mustSession(t, s, sampleSession("one", "id-ada", 9))
	mustSession(t, s, sampleSession("two", "id-ada", 8))
	for i, parent := range []string{"one", "one", "two"} {
		h := sampleSession(fmt.Sprintf("host%d", i), "id-ada", 7-i)
		h.Parent, h.Host = parent, "box.localhost"
		mustSession(t, s, h)
	}
	n, err := s.DeleteSessions(t.Context(), auth.SessionFilter{ID: "host0"})
	must(t, err)
	wantSame(t, "host session deleted", 1, n)
	n, err = s.DeleteSessions(t.Context(), auth.SessionFilter{ID: "one"})
	must(t, err)
	wantSame(t, "session deleted", 1, n)
	wantSessionIDs(t, s, "id-ada", "two", "host2")
}

func accountsSessionFilter(t *testing.T, s auth.Store) {
	for _, name := range []string{"ada", "bob"} {
		mustUser(t, s, account(name, auth.Member, 0))
		for i := range 3 {
			mustSession(t, s, sampleSession(fmt.Sprintf("%s%d", name, i), "id-"+name, i))
		}
	}
	for _, c := range []struct {
		name string
		f    auth.SessionFilter
		want int
	}{
		{"nothing set", auth.SessionFilter{}, 0},
		{"another's", auth.SessionFilter{ID: "ada0", User: "id-bob"}, 0},
		{"one's own", auth.SessionFilter{ID: "ada1", User: "id-ada"}, 1},
		{"not yet expired", auth.SessionFilter{ExpiredBy: accountsEpoch.Add(time.Hour - time.Microsecond)}, 0},
		{"expired by now", auth.SessionFilter{ExpiredBy: accountsEpoch.Add(time.Hour)}, 2},
		{"all of a user", auth.SessionFilter{User: "id-bob"}, 2},
		{"unknown", auth.SessionFilter{ID: "ada1"}, 0},
	} {
		n, err := s.DeleteSessions(t.Context(), c.f)
		must(t, err)
		wantSame(t, c.name, c.want, n)
	}
	wantSessionIDs(t, s, "id-ada", "ada2")
	wantSessionIDs(t, s, "id-bob")
}

func accountsTokens(t *testing.T, s auth.Store) {
	ada, bob := account("ada", auth.Member, 0), account("bob", auth.Admin, 0)
	mustUser(t, s, ada)
	mustUser(t, s, bob)
	plain := auth.Token{ID: "plain", User: ada.ID, Name: "CI für 実験", Prefix: "sbx_abcdef", Created: accountsEpoch}
	full := auth.Token{ID: "full", User: ada.ID, Name: "n", Sandbox: "box", Prefix: "sbx_ghijkl", Created: accountsEpoch.Add(time.Minute),
		LastUsed: accountsEpoch.Add(time.Hour), Expires: accountsEpoch.Add(48 * time.Hour)}
	bobs := auth.Token{ID: "bobs", User: bob.ID, Models: true, Created: accountsEpoch.Add(time.Second)}
	for _, k := range []auth.Token{plain, full, bobs} {
		must(t, s.InsertToken(t.Context(), accountsKey(k.ID), k))
		got, _, err := s.TokenByKey(t.Context(), accountsKey(k.ID))
		must(t, err)
		wantSame(t, "token by key", k, got)
	}
	_, user, err := s.TokenByKey(t.Context(), accountsKey("full"))
	must(t, err)
	wantSame(t, "its user", ada, user)
	plain.LastUsed = accountsEpoch.Add(2 * time.Hour)
	must(t, s.TouchToken(t.Context(), "plain", plain.LastUsed))
	must(t, s.TouchToken(t.Context(), "gone", plain.LastUsed))
	for who, want := range map[string][]auth.Token{ada.ID: {full, plain}, bob.ID: {bobs}, "": {full, bobs, plain}, "id-nobody": nil} {
		got, err := s.Tokens(t.Context(), who)
		must(t, err)
		wantSame(t, "tokens of "+who, want, slices.Clip(got))
	}
	_, _, err = s.TokenByKey(t.Context(), accountsKey("gone"))
	wantKind(t, "an unknown key", err, fault.NotFound)
	wantKind(t, "a taken key", s.InsertToken(t.Context(), accountsKey("full"), auth.Token{ID: "new", User: ada.ID, Created: accountsEpoch}), fault.Conflict)
}

func accountsDeleteToken(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Member, 0))
	for _, id := range []string{"one", "two"} {
		must(t, s.InsertToken(t.Context(), accountsKey(id), auth.Token{ID: id, User: "id-ada", Created: accountsEpoch}))
	}
	wantKind(t, "another's token", s.DeleteToken(t.Context(), "id-bob", "one"), fault.NotFound)
	must(t, s.DeleteToken(t.Context(), "id-ada", "one"))
	wantKind(t, "a token twice", s.DeleteToken(t.Context(), "id-ada", "one"), fault.NotFound)
	must(t, s.DeleteToken(t.Context(), "", "two"))
	_, _, err := s.TokenByKey(t.Context(), accountsKey("two"))
	wantKind(t, "a deleted token", err, fault.NotFound)
}

func accountsCancelled(t *testing.T, s auth.Store) {
	mustUser(t, s, account("ada", auth.Member, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, users := s.Users(ctx)
	_, sessions := s.Sessions(ctx, "id-ada")
	_, tokens := s.Tokens(ctx, "id-ada")
	_, _, key := s.TokenByKey(ctx, accountsKey("x"))
	for call, err := range map[string]error{"Users": users, "Sessions": sessions, "Tokens": tokens, "TokenByKey": key,
		"InsertUser": s.InsertUser(ctx, account("bob", auth.Member, 0)),
		"DeleteUser": s.DeleteUser(ctx, "id-ada", func(auth.Account, int) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s gives %v, want context.Canceled", call, err)
		}
	}
	all, err := s.Users(t.Context())
	must(t, err)
	wantSame(t, "users left", 1, len(all))
}
