package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func fields(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// unclaimed makes a stage as it is on the first run, and gives the code of the setup link.
func unclaimed(t *testing.T) (*stage, string) {
	t.Helper()
	s := newEmptyStage(t)
	if err := s.accounts.Bootstrap(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	code, needed, err := s.accounts.SetupCode(t.Context())
	if err != nil || !needed {
		t.Fatal(needed, err)
	}
	return s, code
}

func TestSetup_MakesTheAdminAndSignsIn(t *testing.T) {
	s, code := unclaimed(t)
	page := s.get("", "/setup?code="+url.QueryEscape(code)).is(http.StatusOK)
	if got := attr(in(page.need("form"), "input"), "value"); got != code {
		t.Fatalf("the form carries %q", got)
	}
	if name := page.need("#name"); attr(name, "value") != "" { // the caret is in it, and what is typed would be added to a name
		t.Errorf("the name is filled in: %q", attr(name, "value"))
	}
	done := s.post("", "/setup", fields("code", code, "name", "chief", "password", testPassword)).leads("/")
	cookie := done.Result().Cookies()[0]
	if cookie.Name != s.server.sessionCookie() || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Domain != "" {
		t.Errorf("cookie %+v", cookie)
	}
	s.sessions["chief"] = cookie.Value
	if got := textOf(s.get("chief", "/").is(http.StatusOK).need("strong.clip")); got != "chief" {
		t.Errorf("signed in as %q", got)
	}
}

func TestLogin_TooManyGuessesAreToldWhenToTryAgain(t *testing.T) {
	s := newStage(t)
	for range 5 {
		s.post("", "/login", fields("name", "ada", "password", "a wrong password")).is(http.StatusUnauthorized)
	}
	again := s.post("", "/login", fields("name", "ada", "password", "a wrong password")).is(http.StatusTooManyRequests)
	after, err := strconv.Atoi(again.Header().Get("Retry-After"))
	if err != nil || after < 20 || after > 30 || !strings.Contains(textOf(again.need("main")), fmt.Sprintf("Try again in %d seconds", after)) {
		t.Errorf("retry after %q: %s", again.Header().Get("Retry-After"), textOf(again.need("main")))
	}
}

func TestSetup_ShowsWhatIsWrongAndKeepsTheName(t *testing.T) {
	s, code := unclaimed(t)
	page := s.post("", "/setup", fields("code", code, "name", "chief", "password", "short")).is(http.StatusBadRequest)
	if got := textOf(page.need("#password-fault")); !strings.Contains(got, "too short") {
		t.Errorf("fault %q", got)
	}
	if attr(page.need("#name"), "value") != "chief" || attr(page.need("#password"), "value") != "" {
		t.Error("the name is kept, the password is not sent back")
	}
	both := s.post("", "/setup", fields("code", code, "name", "No Name", "password", "short")).is(http.StatusBadRequest)
	both.need("#name-fault")
	both.need("#password-fault")
	wrong := s.post("", "/setup", fields("code", "wrong", "name", "chief", "password", testPassword))
	if wrong.Code != http.StatusBadRequest || wrong.find(".notice") == nil || wrong.find("#password") != nil {
		t.Errorf("status %d: %s", wrong.Code, textOf(wrong.need("main")))
	}
}

func TestSetup_BeginsWithWhatIsWrong(t *testing.T) {
	s, code := unclaimed(t)
	for _, c := range []struct{ name, password, focus string }{{"chief", "short", "password"}, {"No Name", "long enough to be one", "name"}} {
		page := s.post("", "/setup", fields("code", code, "name", c.name, "password", c.password)).is(http.StatusBadRequest)
		for _, id := range []string{"name", "password"} {
			if hasAttr(page.need("#"+id), "autofocus") != (id == c.focus) {
				t.Errorf("%s, %s: focus of %s", c.name, c.password, id)
			}
		}
	}
}

func TestSetup_SaysWhenItIsDoneOrHasNoCode(t *testing.T) {
	s, _ := unclaimed(t)
	for _, path := range []string{"/setup", "/login"} {
		if got := textOf(s.get("", path).is(http.StatusOK).need("main")); !strings.Contains(got, "Open the setup link") {
			t.Errorf("%s says %q", path, got)
		}
	}
	if got := textOf(s.get("", "/setup?code=old").is(http.StatusOK).need("main")); !strings.Contains(got, "not valid") || !strings.Contains(got, "Open the setup link") {
		t.Errorf("of a wrong code it says %q", got)
	}
	if got := textOf(newStage(t).get("", "/setup?code=x").is(http.StatusOK).need("main")); !strings.Contains(got, "has been done") {
		t.Errorf("says %q", got)
	}
}

func TestLogin_StaysSignedInOnlyWhenAskedTo(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		stay   string
		maxAge int
	}{{"", 0}, {"on", 30 * 24 * 60 * 60}} {
		done := s.post("", "/login", fields("name", "ada", "password", testPassword, "stay", c.stay)).leads("/")
		cookie := done.Result().Cookies()[0]
		if cookie.MaxAge != c.maxAge {
			t.Errorf("%q: the cookie lasts %d s, want %d", c.stay, cookie.MaxAge, c.maxAge)
		}
		s.sessions["ada"] = cookie.Value
		next := s.post("ada", "/settings/password", fields("old", testPassword, "new", testPassword)).leads("/settings?done=password")
		if got := next.Result().Cookies()[0].MaxAge; got != c.maxAge {
			t.Errorf("%q: after a change of the password it lasts %d s", c.stay, got)
		}
		again := s.post("", "/login", fields("name", "ada", "password", "not it at all", "stay", c.stay)).is(http.StatusUnauthorized)
		if hasAttr(in(again.need("label.check"), "input"), "checked") != (c.stay == "on") {
			t.Errorf("%q: the choice is lost after a wrong password", c.stay)
		}
	}
}

func TestLogin_LeadsToWhereOneWantedToGo(t *testing.T) {
	s := newStage(t)
	s.get("", "/templates?x=1").leads("/login?next=%2Ftemplates%3Fx%3D1")
	page := s.get("", "/login?next=%2Ftemplates%3Fx%3D1").is(http.StatusOK)
	next := attr(in(page.need("form"), "input"), "value")
	s.post("", "/login", fields("name", "ada", "password", testPassword, "next", next)).leads("/templates?x=1")
}

func TestLogin_NeverLeadsToAnotherSite(t *testing.T) {
	s := newStage(t)
	for _, next := range []string{"//evil.example", "https://evil.example/", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)", ""} {
		s.post("", "/login", fields("name", "ada", "password", testPassword, "next", next)).leads("/")
		if got := attr(in(s.get("", "/login?next="+url.QueryEscape(next)).need("form"), "input"), "value"); got != "" {
			t.Errorf("%q becomes %q", next, got)
		}
	}
}

func TestLogin_SaysBesideTheFormWhatIsWrong(t *testing.T) {
	s := newStage(t)
	page := s.post("", "/login", fields("name", "ada", "password", "not it at all")).is(http.StatusUnauthorized)
	if page.find(".notice") == nil || attr(page.need("#name"), "value") != "ada" {
		t.Errorf("page says %q", textOf(page.need("main")))
	}
	limited := false
	for range 50 {
		if page = s.post("", "/login", fields("name", "ada", "password", "not it at all")); page.Code == http.StatusTooManyRequests {
			limited = true
			break
		}
	}
	if !limited || page.find(".notice") == nil || page.find("#password") == nil {
		t.Errorf("limited %v, page %s", limited, textOf(page.need("main")))
	}
}

func TestLogout_EndsTheSession(t *testing.T) {
	s := newStage(t)
	s.post("ada", "/logout", nil).leads("/login")
	s.get("ada", "/").leads("/login")
	s.post("", "/logout", nil).leads("/login")
}

func TestTheme_IsKeptInACookieAndDrawnByTheServer(t *testing.T) {
	s := newStage(t)
	kept := s.post("ada", "/theme", fields("theme", "dark", "next", "/templates")).leads("/templates").Result().Cookies()[0]
	if kept.Name != themeCookie || kept.Value != "dark" {
		t.Fatalf("cookie %+v", kept)
	}
	page := s.get("ada", "/", "Cookie", s.server.sessionCookie()+"="+s.sessions["ada"]+"; "+themeCookie+"=dark")
	if got := attr(page.need("html"), "data-theme"); got != "dark" {
		t.Errorf("theme %q", got)
	}
	odd := s.get("ada", "/", "Cookie", s.server.sessionCookie()+"="+s.sessions["ada"]+"; "+themeCookie+"=<x>")
	if got := attr(odd.need("html"), "data-theme"); got != "auto" {
		t.Errorf("theme %q", got)
	}
}

func TestForms_RefuseOtherSites(t *testing.T) {
	s := newStage(t)
	for _, headers := range [][]string{
		{"Origin", "http://evil.localhost:8080"},
		{"Sec-Fetch-Site", "same-site", "Origin", "http://brave-otter.localhost:8080"},
		{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
	} {
		s.post("ada", "/sandboxes", fields("template", "base"), headers...).is(http.StatusForbidden)
	}
}

func TestScripts_AreSentToTheLoginWhenTheSessionIsOver(t *testing.T) {
	s := newStage(t)
	page := s.get("", "/new", "HX-Request", "true").is(http.StatusUnauthorized)
	if got := page.Header().Get("HX-Redirect"); got != "/login" {
		t.Errorf("leads to %q", got)
	}
}

func TestLogin_MayLeadOnToASandboxsHost(t *testing.T) {
	s := newStage(t)
	next := "/handover?to=http%3A%2F%2Fmine.localhost%3A8080%2F&nonce=x"
	policy := func(v view) string { return v.Header().Get("Content-Security-Policy") }
	if got := policy(s.get("", "/login?next="+url.QueryEscape(next))); !strings.Contains(got, "form-action 'self' http://*.localhost:8080/") {
		t.Errorf("policy %q", got)
	}
	if got := policy(s.post("", "/login", fields("name", "ada", "password", "no", "next", next))); !strings.Contains(got, "http://*.localhost:8080/") {
		t.Errorf("policy after a mistake %q", got)
	}
	if got := policy(s.get("", "/login?next=%2Ftemplates")); got != contentPolicy {
		t.Errorf("policy %q", got)
	}
}
