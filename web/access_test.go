package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

func TestToken_EitherHeaderWillDo(t *testing.T) {
	w := newWorld(t)
	secret := w.tokens["ada"]
	for _, h := range [][2]string{{"Authorization", "Bearer " + secret}, {"Authorization", "bearer  " + secret}, {"X-API-Key", secret}} {
		w.call("", "GET", "/api/v1/users/me", "", h[0], h[1]).is(200)
	}
}

func TestToken_WhatIsNotGoodIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, h := range [][2]string{
		{"X-Nothing", ""}, {"Authorization", "Bearer"}, {"Authorization", "Bearer "}, {"Authorization", "Basic YTpi"},
		{"Authorization", "Bearer sbx_nonsense"}, {"Authorization", "Bearer " + strings.Repeat("x", 5000)}, {"X-API-Key", "sbx_"},
	} {
		got := w.call("", "GET", "/api/v1/users/me", "", h[0], h[1])
		got.problem(401, "unauthenticated", "")
		if got.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%q: no WWW-Authenticate", h[0])
		}
	}
}

func TestToken_RevokedExpiredAndDisabledAreRefused(t *testing.T) {
	w := newWorld(t)
	tokens, err := w.accounts.Tokens(t.Context(), w.ids["ada"])
	if err != nil {
		t.Fatal(err)
	}
	w.call("ada", "DELETE", "/api/v1/tokens/"+tokens[0].ID, "").is(204)
	w.call("ada", "GET", "/api/v1/users/me", "").problem(401, "unauthenticated", "")
	if err := w.accounts.SetDisabled(t.Context(), w.ids["bob"], true); err != nil {
		t.Fatal(err)
	}
	w.call("bob", "GET", "/api/v1/users/me", "").problem(401, "unauthenticated", "")
}

func TestToken_ExpiresInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tokens["short"] = w.token("ada", auth.NewToken{Name: "short", TTL: time.Hour})
		w.call("short", "GET", "/api/v1/users/me", "").is(200)
		time.Sleep(time.Hour) // of the bubble's time
		p := w.call("short", "GET", "/api/v1/users/me", "").problem(401, "unauthenticated", "")
		if !strings.Contains(p.Detail, "expired") {
			t.Errorf("got %+v", p)
		}
	})
}

func TestTokens_MakeListAndRevokeOnesOwn(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	got := w.call("ada", "POST", "/api/v1/tokens", `{"name":"ci","sandbox":"lab","ttl":3600}`).is(201)
	var made tokenShape
	got.into(&made)
	if made.Sandbox != "lab" || made.ExpiresAt == nil || got.Header().Get("Location") != "/api/v1/tokens/"+made.ID {
		t.Errorf("got %+v at %q", made, got.Header().Get("Location"))
	}
	w.tokens["ci"] = made.Secret
	w.call("ci", "GET", "/api/v1/sandboxes/lab", "").is(200)
	var list tokensShape
	w.call("ada", "GET", "/api/v1/tokens", "").is(200).into(&list)
	for _, token := range list.Tokens {
		if token.Secret != "" {
			t.Error("the list shows a secret")
		}
	}
	w.call("bob", "DELETE", "/api/v1/tokens/"+made.ID, "").problem(404, "not_found", "")
	w.call("ada", "DELETE", "/api/v1/tokens/"+made.ID, "").is(204)
	w.call("ci", "GET", "/api/v1/sandboxes/lab", "").problem(401, "unauthenticated", "")
	w.call("bob", "POST", "/api/v1/tokens", `{"name":"x","sandbox":"lab"}`).problem(404, "not_found", "")
	w.call("bob", "POST", "/api/v1/tokens", `{"name":""}`).problem(400, "invalid", "name")
	w.call("bob", "POST", "/api/v1/tokens", `{"name":"x","ttl":-5}`).problem(400, "invalid", "ttl")
	w.call("bob", "POST", "/api/v1/tokens", `{"name":"x","ttl":"soon"}`).problem(400, "invalid", "ttl")
}

// tokenRace deletes a sandbox while a token for it is being stored.
type tokenRace struct {
	auth.Store
	meanwhile func()
}

func (r tokenRace) InsertToken(ctx context.Context, key auth.Key, t auth.Token) error {
	r.meanwhile()
	return r.Store.InsertToken(ctx, key, t)
}

func TestTokens_OneForASandboxThatIsDeletedMeanwhileDoesNotStay(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.cfg.Accounts = auth.New(tokenRace{w.users, func() {
		w.call("ada", "DELETE", lab+"?wait=gone", "").is(http.StatusNoContent)
	}}, auth.Options{Log: slog.New(slog.DiscardHandler)})
	w.call("ada", "POST", "/api/v1/tokens", `{"name":"late","sandbox":"lab"}`).problem(410, "gone", "")
	list, err := w.accounts.Tokens(t.Context(), w.ids["ada"])
	if err != nil || slices.ContainsFunc(list, func(t auth.Token) bool { return t.Name == "late" }) {
		t.Errorf("there is %+v, %v", list, err)
	}
}

func TestSession_IsNotAcceptedAtTheAPI(t *testing.T) {
	w := newWorld(t)
	secret, _, err := w.accounts.Login(t.Context(), "127.0.0.1", "ada", testPassword, false)
	if err != nil {
		t.Fatal(err)
	}
	cookie := w.server.sessionCookie() + "=" + secret
	w.call("", "GET", "/api/v1/users/me", "", "Cookie", cookie).problem(401, "unauthenticated", "")
	w.call("", "POST", "/api/v1/sandboxes", `{"template":"base"}`, "Cookie", cookie).problem(401, "unauthenticated", "")
	w.call("", "GET", "/api/v1/users/me", "", "Authorization", "Bearer "+secret).problem(401, "unauthenticated", "")
}

func TestCrossSite_UnsafeMethodsAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, h := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "http://lab.localhost:8080"}, {"Origin", "null"},
	} {
		w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base"}`, h...).problem(403, "forbidden", "")
	}
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base"}`, "Sec-Fetch-Site", "same-origin").is(202)
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base"}`, "Origin", "http://localhost:8080").is(202)
}

// Sandboxes live on sibling hosts, and their pages' requests come with our cookie: an <img> alone would wake a sandbox or
// have a home packed, though its page sees nothing of the answer.
func TestCrossSite_WhatScriptsOfOursAskForNoOtherPageGets(t *testing.T) {
	s := newStage(t)
	s.put("ada", "lab", nil)
	for _, site := range []string{"same-site", "cross-site", "Same-Origin", "new-kind"} {
		for _, path := range []string{"/files?path=.&archive=zip", "/files?path=notes.txt", "/ports", "/ide", "/terminals/main/text"} {
			got := s.get("ada", "/sandboxes/lab"+path, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image").is(http.StatusForbidden)
			if got.Header().Get("Content-Type") != problemType {
				t.Errorf("%s of %s: %v", path, site, got.Header())
			}
		}
		s.get("ada", "/sandboxes/lab", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate").is(http.StatusOK) // a link to a page
	}
	for _, site := range []string{"same-origin", "none"} { // our own pages' links and pictures, and the address bar
		s.get("ada", "/sandboxes/lab/files?path=notes.txt", "Sec-Fetch-Site", site).is(http.StatusOK)
	}
}

func TestErrors_UnknownAddressesAndMethodsAreProblems(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "GET", "/api/v1/nothing", "").problem(404, "not_found", "")
	w.call("ada", "GET", "/api", "").problem(404, "not_found", "")
	got := w.call("ada", "PUT", "/api/v1/sandboxes", `{}`)
	if p := got.problem(405, "method_not_allowed", ""); p.Detail != "This address does not support PUT." {
		t.Errorf("says %q", p.Detail)
	}
	if allow := got.Header().Get("Allow"); !strings.Contains(allow, "POST") {
		t.Errorf("allow %q", allow)
	}
}

func TestErrors_EveryKindHasItsStatus(t *testing.T) {
	w := newWorld(t)
	for kind, status := range map[fault.Kind]int{
		fault.Invalid: 400, fault.Unauthenticated: 401, fault.Forbidden: 403, fault.NotFound: 404, fault.Conflict: 409,
		fault.TooLarge: 413, fault.Limited: 429, fault.Internal: 500, fault.Unavailable: 503, fault.Timeout: 504,
	} {
		got := w.failing("/api/v1/x", fault.New(kind, "A sentence."))
		p := got.problem(status, kind.String(), "")
		if p.Detail != "A sentence." || (got.Header().Get("Retry-After") != "") != (status == 429 || status == 503) {
			t.Errorf("%s: %+v, retry after %q", kind, p, got.Header().Get("Retry-After"))
		}
	}
}

// failing answers a request for path with err.
func (w *world) failing(path string, err error) answer {
	w.t.Helper()
	return w.handling(path, func(echo.Context) error { return err })
}

func (w *world) handling(path string, h echo.HandlerFunc) answer {
	w.t.Helper()
	s := New(w.server.cfg)
	s.echo.Add(http.MethodGet, path, h)
	got := answer{httptest.NewRecorder(), w.t}
	s.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "http://localhost:8080"+path+"?code=hush", nil))
	return got
}

func TestErrors_InternalDetailsStayInTheLog(t *testing.T) {
	w := newWorld(t)
	for name, h := range map[string]echo.HandlerFunc{
		"unclassified": func(echo.Context) error { return errors.New("disk sda1 is on fire") },
		"panic":        func(echo.Context) error { panic("disk sda1 is on fire") },
	} {
		p := w.handling("/api/v1/"+name, h).problem(500, "internal", "")
		if strings.Contains(p.Detail, "sda1") {
			t.Errorf("%s: told %q", name, p.Detail)
		}
		if log := w.log.String(); !strings.Contains(log, "sda1") || !strings.Contains(log, p.RequestID) {
			t.Errorf("%s: the log has no cause or no request id: %s", name, log)
		}
	}
}

func TestLog_HasNoSecrets(t *testing.T) {
	w := newWorld(t)
	secret, _, err := w.accounts.Login(t.Context(), "127.0.0.1", "ada", testPassword, false)
	if err != nil {
		t.Fatal(err)
	}
	w.call("ada", "GET", "/api/v1/sandboxes?q=hush", "", "Cookie", w.server.sessionCookie()+"="+secret).is(200)
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","env":{"KEY":"hush"}}`).is(201)
	w.failing("/api/v1/x", errors.New("boom"))
	log := w.log.String()
	if !strings.Contains(log, "/api/v1/sandboxes") {
		t.Fatalf("no access log: %s", log)
	}
	for _, hush := range []string{"hush", secret, w.tokens["ada"]} {
		if strings.Contains(log, hush) {
			t.Errorf("the log has %q", hush)
		}
	}
}

func TestHeaders_SayWhatABrowserMayDo(t *testing.T) {
	w := newWorld(t)
	got := w.call("", "GET", "/healthz", "", "X-Request-Id", "theirs").is(200).Header()
	for name, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if !strings.Contains(got.Get(name), want) {
			t.Errorf("%s: %q", name, got.Get(name))
		}
	}
	if id := got.Get("X-Request-Id"); id == "" || id == "theirs" {
		t.Errorf("request id %q", id)
	}
}

// TestServiceWorker_KnowsAnAnswerOfSandboxd: the worker lets itself be removed where answers have no such id.
func TestServiceWorker_KnowsAnAnswerOfSandboxd(t *testing.T) {
	s := newStage(t)
	worker := s.get("", "/service-worker.js").is(http.StatusOK)
	if worker.Header().Get("Cache-Control") != "no-cache" || !strings.HasPrefix(worker.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("served with %v", worker.Header())
	}
	for _, path := range []string{"/login", "/", "/no/such/page", "/service-worker.js", "/static/nothing.js"} {
		if s.get("", path).Header().Get("X-Request-Id") == "" {
			t.Errorf("%s has no id", path)
		}
	}
}

func TestReady_SaysWhichPartIsAway(t *testing.T) {
	w := newWorld(t)
	w.call("", "GET", "/readyz", "").is(200)
	w.engine.fail(errors.New("dial unix /run/secret.sock: no such file"))
	got := w.call("", "GET", "/readyz", "").is(503)
	var r readiness
	got.into(&r)
	if r.Ready || r.Checks["engine"] == "ok" || r.Checks["store"] != "ok" || strings.Contains(got.Body.String(), "secret.sock") {
		t.Errorf("got %s", got.Body)
	}
	w.call("", "GET", "/healthz", "").is(200)
	w.call("", "GET", "/readyz", "").is(503)
	if n := strings.Count(w.log.String(), "not ready"); n != 1 {
		t.Errorf("the log says so %d times, and anybody may ask", n)
	}
	w.engine.fail(nil)
	w.call("", "GET", "/readyz", "").is(200)
	if !strings.Contains(w.log.String(), "ready again") {
		t.Errorf("the log has %s", w.log)
	}
}

func TestHead_IsAnsweredAsGetWithoutABody(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	for path, status := range map[string]int{"/healthz": 200, "/api/v1/users/me": 401, "/api/v1/nothing": 404} {
		got, err := s.Client().Head(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != status || got.ContentLength <= 0 {
			t.Errorf("%s: %d with a length of %d", path, got.StatusCode, got.ContentLength)
		}
	}
}

func TestSessionCookie_TellsInstallationsApart(t *testing.T) {
	for public, want := range map[string]string{
		"http://localhost:8080": "sandboxd_8080", "http://localhost:9090": "sandboxd_9090", "http://box.example.com": "sandboxd",
		"https://box.example.com": "__Host-sandboxd", "https://box.example.com:8443": "__Host-sandboxd",
	} {
		hosts, err := hostname.New(public)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{cfg: Config{Hosts: hosts}}
		r := &request{head: http.Header{}}
		s.setSession(r, "secret", false)
		c, err := http.ParseSetCookie(r.head.Get("Set-Cookie"))
		if err != nil || c.Name != want || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.Secure != strings.HasPrefix(public, "https") {
			t.Errorf("%s: %v, %v", public, c, err)
		}
	}
}
