package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
)

const testKey = "sk-hush-hush-0123456789"

// anthropicBody is a provider with a key.
const anthropicBody = `{"kind":"anthropic","base_url":"https://models.lan","models":["large","small"],"key":"` + testKey + `"}`

// limitedTo gives a token of user's that is limited to a sandbox.
func (w *world) limitedTo(user, box string) string {
	w.t.Helper()
	w.box(user, box)
	return w.token(user, auth.NewToken{Name: "one", Sandbox: box})
}

func TestProviders_AreTheServersForAdminsAndOnesOwnForOthers(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "PUT", "/api/v1/providers/claude", strings.Replace(anthropicBody, "{", `{"own":false,`, 1)).problem(http.StatusForbidden, "forbidden", "")
	w.call("root", "PUT", "/api/v1/providers/claude", anthropicBody).is(http.StatusCreated)
	w.call("root", "PUT", "/api/v1/providers/claude", anthropicBody).is(http.StatusOK)
	w.call("ada", "PUT", "/api/v1/providers/mine", `{"kind":"ollama","base_url":"http://gpu.lan:11434/","own":true}`).is(http.StatusCreated)
	w.call("root", "PUT", "/api/v1/providers/own", `{"kind":"openai","base_url":"http://other.lan/v1","own":true}`).is(http.StatusCreated)
	golden(t, "providers", w.call("ada", "GET", "/api/v1/providers", "").is(http.StatusOK).Body.Bytes())

	names := func(user string) (out string) {
		var list providersShape
		w.call(user, "GET", "/api/v1/providers", "").into(&list)
		for _, p := range list.Providers {
			out += p.Name + " "
		}
		return out
	}
	for user, want := range map[string]string{"root": "own claude ", "ada": "mine claude ", "bob": "claude "} {
		if got := names(user); got != want {
			t.Errorf("%s has %q, want %q", user, got, want)
		}
	}
	var p providerShape
	w.call("root", "GET", "/api/v1/providers/claude", "").is(http.StatusOK).into(&p)
	if p.BaseURL != "https://models.lan" || p.HasKey == nil || !*p.HasKey || p.Own {
		t.Errorf("an admin is told %+v", p)
	}
	w.call("ada", "GET", "/api/v1/providers/mine", "").is(http.StatusOK).into(&p)
	if p.BaseURL != "http://gpu.lan:11434" || !p.Own {
		t.Errorf("the owner is told %+v", p)
	}
	for _, path := range []string{"/mine", "/mine?own=false"} {
		for _, user := range []string{"bob", "root"} {
			w.call(user, "GET", "/api/v1/providers"+path, "").problem(http.StatusNotFound, "not_found", "")
		}
	}
	w.call("bob", "DELETE", "/api/v1/providers/mine", "").problem(http.StatusNotFound, "not_found", "")
	w.call("bob", "POST", "/api/v1/providers/mine/check", "").problem(http.StatusNotFound, "not_found", "")
	for _, c := range [][2]string{{"DELETE", "/claude?own=false"}, {"POST", "/claude/check?own=false"}} {
		w.call("ada", c[0], "/api/v1/providers"+c[1], "").problem(http.StatusForbidden, "forbidden", "")
	}
	w.call("ada", "GET", "/api/v1/providers/claude?own=perhaps", "").problem(http.StatusBadRequest, "invalid", "own")
	w.call("ada", "DELETE", "/api/v1/providers/mine", "").is(http.StatusNoContent)
	w.call("root", "DELETE", "/api/v1/providers/claude", "").is(http.StatusNoContent)
	w.call("root", "DELETE", "/api/v1/providers/claude", "").problem(http.StatusNotFound, "not_found", "")
}

func TestModels_AreNotChangedByTokensOfOneSandbox(t *testing.T) {
	w := newWorld(t)
	limited := []string{"Authorization", "Bearer " + w.limitedTo("root", "lab")}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/providers", ""}, {"GET", "/providers/x", ""}, {"PUT", "/providers/x", anthropicBody}, {"DELETE", "/providers/x", ""}, {"POST", "/providers/x/check", ""},
		{"GET", "/models/aliases", ""}, {"PUT", "/models/aliases/x", `{"targets":[]}`}, {"DELETE", "/models/aliases/x", ""},
		{"GET", "/models/budgets", ""}, {"PUT", "/models/budgets", `{"scope":"user","period":"day","requests":1}`}, {"DELETE", "/models/budgets?scope=user&period=day", ""},
		{"GET", "/models/settings", ""}, {"PUT", "/models/settings", `{"off":true}`},
	} {
		w.call("", c.method, "/api/v1"+c.path, c.body, limited...).problem(http.StatusForbidden, "forbidden", "")
	}
	w.call("", "GET", "/api/v1/models", "", limited...).is(http.StatusOK)
}

func TestProviders_NeverGiveTheirKeyBack(t *testing.T) {
	w := newWorld(t)
	hush := func(what string, got answer) answer {
		t.Helper()
		if strings.Contains(got.Body.String(), "hush") {
			t.Errorf("%s answers %s", what, got.Body)
		}
		return got
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // repeats the key as some do
		http.Error(w, "Incorrect API key provided: "+r.Header.Get("X-Api-Key"), http.StatusUnauthorized)
	}))
	defer upstream.Close()
	body := strings.Replace(anthropicBody, "https://models.lan", upstream.URL, 1)
	hush("PUT", w.call("ada", "PUT", "/api/v1/providers/claude", body)).is(http.StatusCreated)
	hush("PUT without a key", w.call("ada", "PUT", "/api/v1/providers/claude", `{"kind":"anthropic","base_url":"`+upstream.URL+`"}`)).is(http.StatusOK)
	hush("GET", w.call("ada", "GET", "/api/v1/providers/claude", "")).is(http.StatusOK)
	hush("the list", w.call("ada", "GET", "/api/v1/providers", "")).is(http.StatusOK)
	hush("check", w.call("ada", "POST", "/api/v1/providers/claude/check", "")).problem(http.StatusBadRequest, "invalid", "key")
	for what, wrong := range map[string]string{
		"a key with a space": `{"kind":"anthropic","base_url":"https://models.lan","key":"sk-hush hush"}`,
		"a list as a key":    `{"kind":"anthropic","base_url":"https://models.lan","key":["sk-hush"]}`,
		"no kind":            `{"base_url":"https://models.lan","key":"sk-hush"}`,
		"an unknown field":   `{"kind":"anthropic","api_key":"sk-hush"}`,
		"no JSON":            `{"kind":"anthropic","key":"sk-hush`,
		"a key in the URL":   `{"kind":"anthropic","base_url":"https://sk-hush@models.lan"}`,
	} {
		hush(what, w.call("ada", "PUT", "/api/v1/providers/claude", wrong)).is(http.StatusBadRequest)
	}
	if text := w.log.String(); strings.Contains(text, "hush") {
		t.Errorf("the log has the key: %s", text)
	}
	for _, e := range recorded(t, w.server) {
		if strings.Contains(e.Object+e.Problem, "hush") {
			t.Errorf("the key is recorded: %+v", e)
		}
	}
	has := func() bool {
		var p providerShape
		w.call("ada", "GET", "/api/v1/providers/claude", "").into(&p)
		return *p.HasKey
	}
	if !has() {
		t.Error("the key was lost")
	}
	w.call("ada", "PUT", "/api/v1/providers/claude", `{"kind":"anthropic","base_url":"`+upstream.URL+`","key":""}`).is(http.StatusOK)
	if has() {
		t.Error("the key was kept")
	}
}

func TestProviders_SayWhatIsWrongByField(t *testing.T) {
	w := newWorld(t)
	w.call("root", "PUT", "/api/v1/providers/claude", anthropicBody).is(http.StatusCreated)
	for _, c := range []struct{ name, body, field string }{
		{"No-Name", anthropicBody, "name"},
		{"x", `{"kind":"telepathy","base_url":"https://models.lan"}`, "kind"},
		{"x", `{"kind":"openai","base_url":"models.lan"}`, "base_url"},
		{"x", `{"kind":"openai","base_url":"file:///etc/passwd"}`, "base_url"},
		{"x", `{"kind":"openai","base_url":"https://models.lan","models":["a b"]}`, "models"},
		{"x", `{"kind":"openai","base_url":"https://models.lan","models":"a"}`, "models"},
		{"claude", `{"kind":"anthropic","base_url":"https://elsewhere.lan"}`, "key"}, // the key is not sent elsewhere
	} {
		w.call("root", "PUT", "/api/v1/providers/"+c.name, c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
}

func TestProviders_AreChecked(t *testing.T) {
	w := newWorld(t)
	hung := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/hung") {
			<-hung
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"small"},{"id":"large"}]}`)) // a lost connection fails the test
	}))
	defer upstream.Close()
	defer close(hung)
	w.call("ada", "PUT", "/api/v1/providers/mine", `{"kind":"openai","base_url":"`+upstream.URL+`/v1"}`).is(http.StatusCreated)
	var got offerShape
	if w.call("ada", "POST", "/api/v1/providers/mine/check", "").is(http.StatusOK).into(&got); strings.Join(got.Models, " ") != "large small" {
		t.Errorf("offered are %+v", got)
	}
	w.server.providers.limit = 50 * time.Millisecond
	w.call("ada", "PUT", "/api/v1/providers/mine", `{"kind":"openai","base_url":"`+upstream.URL+`/hung"}`).is(http.StatusOK)
	if p := w.call("ada", "POST", "/api/v1/providers/mine/check", "").problem(http.StatusGatewayTimeout, "timeout", ""); !strings.Contains(p.Detail, "did not answer within") {
		t.Errorf("says %q", p.Detail)
	}
	checkRecorded(t, w.server, "ada api provider.set  mine done", "ada api provider.check  mine done", "ada api provider.set  mine done", "ada api provider.check  mine failed")
}
