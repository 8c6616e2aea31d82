package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/auth"
)

func TestTemplates_ShowImagesAndBrokenOnes(t *testing.T) {
	s := newStage(t)
	page := s.get("root", "/templates").is(http.StatusOK)
	if got := len(page.all("article.book")); got != 5 {
		t.Fatalf("%d templates", got)
	}
	if got := textOf(page.need("#book-base")); !strings.Contains(got, "Built") || !strings.Contains(got, "Rebuild") {
		t.Errorf("base: %q", got)
	}
	broken := textOf(page.all("article.book")[4])
	if !strings.Contains(broken, "rust-edge/template.yaml:7") || !strings.Contains(broken, "Did you mean “title”?") || strings.Contains(broken, "Create") {
		t.Errorf("broken: %q", broken)
	}
	if page := s.get("ada", "/templates"); strings.Contains(textOf(page.need("main")), "Rebuild") {
		t.Error("a member is offered to build")
	}
}

func TestTemplate_ShowsItsReadmeAsText(t *testing.T) {
	page := newStage(t).get("ada", "/templates/node-api").is(http.StatusOK)
	prose := page.need("div.prose")
	if in(prose, "b") != nil || in(prose, "a") == nil || textOf(in(prose, "h2")) != "What is inside" {
		t.Errorf("readme %q", textOf(prose))
	}
	for n := range prose.Descendants() {
		if n.Data == "a" && !strings.HasPrefix(attr(n, "href"), "https://example.com/") {
			t.Errorf("link to %q", attr(n, "href"))
		}
	}
}

func TestTemplate_IsNotFoundWhenThereIsNone(t *testing.T) {
	s := newStage(t)
	s.get("ada", "/templates/nothing").is(http.StatusNotFound)
	if p := s.refused("ada", "/templates/nothing"); p.Status != http.StatusNotFound {
		t.Errorf("told %+v", p)
	}
}

func TestBuildButton_IsForAdmins(t *testing.T) {
	s := newStage(t)
	s.post("ada", "/templates/base/build", nil).is(http.StatusForbidden)
	s.post("root", "/templates/base/build", fields("next", "/templates")).leads("/templates")
	if s.images.built != 1 {
		t.Errorf("%d builds", s.images.built)
	}
}

func TestPassword_ChangeKeepsThisBrowserSignedIn(t *testing.T) {
	s := newStage(t)
	wrong := s.post("ada", "/settings/password", fields("old", "no", "new", "another long password")).is(http.StatusBadRequest)
	if got := textOf(wrong.need("#old-fault")); !strings.Contains(got, "isn't your current password") {
		t.Errorf("says %q", got)
	}
	short := s.post("ada", "/settings/password", fields("old", testPassword, "new", "short")).is(http.StatusBadRequest)
	if got := textOf(short.need("#new-fault")); !strings.Contains(got, "too short") {
		t.Errorf("says %q", got)
	}
	done := s.post("ada", "/settings/password", fields("old", testPassword, "new", "another long password")).leads("/settings?done=password")
	s.get("ada", "/settings").leads("/login?next=%2Fsettings")
	s.sessions["ada"] = done.Result().Cookies()[0].Value
	if got := textOf(s.get("ada", "/settings?done=password").is(http.StatusOK).need(".notice")); got != "Your password was changed." {
		t.Errorf("says %q", got)
	}
}

func TestTokens_ShowTheSecretOnceAndRevoke(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	mine := s.get("ada", "/settings/tokens").choice("Only mine")
	made := s.post("ada", "/settings/tokens", fields("name", "laptop", "sandbox", mine, "days", "30")).is(http.StatusOK)
	secret := attr(made.need("#secret"), "value")
	who, err := s.accounts.Authenticate(t.Context(), secret)
	if err != nil || who.Sandbox != "mine" || who.User.Name != "ada" {
		t.Fatalf("%+v: %v", who, err)
	}
	if made.Header().Get("Cache-Control") != "no-store" {
		t.Error("the secret may be kept by a cache")
	}
	list := s.get("ada", "/settings/tokens")
	if strings.Contains(list.Body.String(), secret) || list.find("#secret") != nil {
		t.Error("the secret is shown again")
	}
	item := list.need("li.item")
	if got := textOf(item); !strings.Contains(got, "laptop") || !strings.Contains(got, "only mine") {
		t.Errorf("item %q", got)
	}
	s.post("ada", attr(in(item, "form"), "action"), nil).leads("/settings/tokens?done=revoked")
	if _, err := s.accounts.Authenticate(t.Context(), secret); err == nil {
		t.Error("it is good still")
	}
}

func TestTokens_AreNotMadeForTheNextSandboxOfAName(t *testing.T) {
	s := newStage(t)
	old := s.put("ada", "lab", nil)
	choice := s.get("root", "/settings/tokens").choice("Only lab")
	s.boxes.drop(old)
	s.put("bob", "lab", nil)
	page := s.post("root", "/settings/tokens", fields("name", "x", "sandbox", choice)).is(http.StatusBadRequest)
	if got := textOf(page.need("#token-sandbox-fault")); !strings.Contains(got, "was deleted") {
		t.Errorf("says %q", got)
	}
}

func TestTokens_AreNotMadeForOthersSandboxes(t *testing.T) {
	s := newStage(t)
	s.put("bob", "his", nil)
	page := s.post("ada", "/settings/tokens", fields("name", "x", "sandbox", "his")).is(http.StatusBadRequest)
	if got := textOf(page.need(".notice")); !strings.Contains(got, "There is no sandbox") {
		t.Errorf("says %q", got)
	}
	for _, days := range []string{"0", "-1", "99999", "x"} {
		s.post("ada", "/settings/tokens", fields("name", "x", "days", days)).is(http.StatusBadRequest)
	}
	page = s.post("ada", "/settings/tokens", fields("name", "")).is(http.StatusBadRequest)
	if page.find("#token-name-fault") == nil {
		t.Errorf("says %q", textOf(page.need("main")))
	}
}

func TestTokens_OfOthersCannotBeRevoked(t *testing.T) {
	s := newStage(t)
	_, token, err := s.accounts.CreateToken(t.Context(), s.users["bob"].ID, auth.NewToken{Name: "his"})
	if err != nil {
		t.Fatal(err)
	}
	s.post("ada", "/settings/tokens/"+token.ID+"/revoke", nil)
	if left, err := s.accounts.Tokens(t.Context(), s.users["bob"].ID); err != nil || len(left) != 1 {
		t.Errorf("left %v: %v", left, err)
	}
}

func TestUsers_AreForAdmins(t *testing.T) {
	s := newStage(t)
	s.get("ada", "/settings/users").is(http.StatusForbidden)
	for _, path := range []string{"", "/" + s.users["bob"].ID + "/role", "/" + s.users["bob"].ID + "/delete"} {
		s.post("ada", "/settings/users"+path, fields("value", "admin", "confirm", "bob")).is(http.StatusForbidden)
	}
	if strings.Contains(textOf(s.get("ada", "/settings").need("main")), "Users") {
		t.Error("a member is shown the way to users")
	}
}

func TestUsers_CanBeAddedChangedAndDeleted(t *testing.T) {
	s := newStage(t)
	s.post("root", "/settings/users", fields("name", "eve", "role", "member", "password", testPassword)).leads("/settings/users?done=added")
	eve, err := s.accounts.UserByName(t.Context(), "eve")
	if err != nil {
		t.Fatal(err)
	}
	at := "/settings/users/" + eve.ID
	s.post("root", at+"/role", fields("value", "admin")).leads("/settings/users?done=changed")
	s.post("root", at+"/disabled", fields("value", "true")).leads("/settings/users?done=changed")
	again := s.post("root", at+"/disabled", fields("value", "true"), "HX-Request", "true", "HX-Current-URL", "http://localhost:8080/settings/users?done=changed")
	if got := again.Header().Get("HX-Redirect"); got != "/settings/users?done=changed" {
		t.Errorf("a second change on a page that told of the first leads to %q, which would show neither", got)
	}
	if eve, _ = s.accounts.User(t.Context(), eve.ID); eve.Role != auth.Admin || !eve.Disabled {
		t.Errorf("eve is %+v", eve)
	}
	page := s.post("root", at+"/delete", fields("confirm", "Eve")).is(http.StatusBadRequest)
	if page.find("#delete-user-fault") == nil {
		t.Errorf("says %q", textOf(page.need("main")))
	}
	s.post("root", at+"/delete", fields("confirm", "eve")).leads("/settings/users?done=deleted")
	s.get("root", at+"/delete").is(http.StatusNotFound)
}

func TestUsers_ShowWhatIsWrongAndNeverThePassword(t *testing.T) {
	s := newStage(t)
	page := s.post("root", "/settings/users", fields("name", "e v e", "role", "member", "password", testPassword)).is(http.StatusBadRequest)
	if page.find("#user-name-fault") == nil || attr(page.need("#user-name"), "value") != "e v e" {
		t.Errorf("says %q", textOf(page.need("main")))
	}
	if strings.Contains(page.Body.String(), testPassword) {
		t.Error("the password comes back")
	}
}

func TestUsers_NobodyTakesTheirOwnRights(t *testing.T) {
	s := newStage(t)
	at := "/settings/users/" + s.users["root"].ID
	s.post("root", at+"/role", fields("value", "member")).is(http.StatusConflict)
	s.post("root", at+"/disabled", fields("value", "true")).is(http.StatusConflict)
	s.post("root", at+"/delete", fields("confirm", "root")).is(http.StatusConflict)
	s.get("root", "/settings/users").is(http.StatusOK)
}

func TestMishap_IsALonePageWithOneWayOn(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		user, path string
		status     int
		says, way  string
	}{
		{"ada", "/no/such/page", http.StatusNotFound, "Not found", "Go to sandboxes"},
		{"ada", "/settings/users", http.StatusForbidden, "You don't have access", "Go to sandboxes"},
		{"", "/no/such/page", http.StatusNotFound, "Not found", "Sign in"},
	} {
		page := s.get(c.user, c.path).is(c.status)
		ways := page.all("a.button")
		if len(ways) != 1 || textOf(ways[0]) != c.way || !strings.Contains(textOf(page.need(".error-page")), c.says) || page.find("nav.nav") != nil ||
			in(page.need(".entry-head"), "svg") == nil {
			t.Errorf("%q at %s: %d ways, says %q", c.user, c.path, len(ways), textOf(page.need("body")))
		}
	}
}

func TestTemplate_TellsItsFolderToAdminsAlone(t *testing.T) {
	s := newStage(t)
	for user, want := range map[string]bool{"root": true, "ada": false} {
		text := textOf(s.get(user, "/templates/base").is(http.StatusOK).need("main"))
		if got := strings.Contains(text, "Folder"); got != want {
			t.Errorf("%s is told: %v", user, got)
		}
	}
}
