package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/hostname"
)

// shows gives a Cookie header with several values of the session's cookie.
func (s *stage) shows(secrets ...string) string {
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, s.server.sessionCookie()+"="+secret)
	}
	return strings.Join(pairs, "; ")
}

func TestTossed_BadSessionsLockNobodyOut(t *testing.T) {
	s := newStage(t)
	bad := slices.Repeat([]string{"evil", strings.Repeat("x", 43)}, auth.MaxShown/2)
	for _, n := range []int{4, auth.MaxShown - 1} {
		for _, shown := range [][]string{append(slices.Clone(bad[:n]), s.sessions["ada"]), append([]string{s.sessions["ada"]}, bad[:n]...)} {
			page := s.get("", "/", "Cookie", s.shows(shown...)).is(http.StatusOK)
			if got := textOf(page.need("strong.clip")); got != "ada" {
				t.Errorf("signed in as %q", got)
			}
		}
	}
	s.get("", "/", "Cookie", s.shows(append(bad, s.sessions["ada"])...)).is(http.StatusConflict)
}

func TestTossed_SessionsOfTwoUsersAreRefusedAndRemoved(t *testing.T) {
	s := newStage(t)
	hosts, err := hostname.New("http://box.example.com")
	if err != nil {
		t.Fatal(err)
	}
	s.server.cfg.Hosts = hosts
	s.get("", "/", "Cookie", s.shows(s.sessions["ada"], s.sessions["ada"], "evil")).is(http.StatusOK)
	for _, shown := range []string{s.shows(s.sessions["ada"], s.sessions["bob"]), s.shows(s.sessions["bob"], "evil", s.sessions["ada"])} {
		page := s.get("", "/sandboxes/lab", "Cookie", shown).is(http.StatusConflict)
		if !strings.Contains(textOf(page.need("main")), "sign in again") {
			t.Errorf("told %q", textOf(page.need("main")))
		}
		gone := map[string]bool{}
		for _, c := range page.Result().Cookies() {
			gone[c.Domain+c.Path] = c.Name == s.server.sessionCookie() && c.MaxAge < 0
		}
		for _, domain := range []string{"", "box.example.com", "example.com"} {
			for _, path := range []string{"/", "/sandboxes", "/sandboxes/", "/sandboxes/lab", "/sandboxes/lab/"} {
				if !gone[domain+path] {
					t.Errorf("the cookie of %q for %s stays", domain, path)
				}
			}
		}
		if gone["com/"] {
			t.Error("a whole top level is asked for")
		}
		s.get("", "/sandboxes/lab/files?path=.", "Cookie", shown).is(http.StatusConflict)
		s.get("", "/live", "Cookie", shown).is(http.StatusConflict)
	}
}
