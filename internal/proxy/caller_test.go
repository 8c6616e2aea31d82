package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

const port3000 = "http://3000-ml.localhost:8080"

// greet is a program in the sandbox that only says hello.
func greet(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestAccess_ByTokenInEitherHeader(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	for _, h := range []header{bearer, {"X-API-Key", annToken}, {"Authorization", "bearer " + rootToken}} {
		if a := w.ask("GET", port3000+"/", h); a.StatusCode != 200 || a.body != "hello" {
			t.Errorf("%v: %d %s", h, a.StatusCode, a.body)
		}
	}
}

func TestAccess_ByCookieOfThisHostOnly(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.wantStatus(w.ask("GET", port3000+"/", header{"Cookie", w.signIn("3000-ml.localhost")}), 200)
	for _, host := range []string{"ml.localhost", "3001-ml.localhost", "localhost", "3000-other.localhost"} {
		w.wantStatus(w.ask("GET", port3000+"/", header{"Cookie", w.signIn(host)}), 401)
	}
}

func TestAccess_TossedCookiesOfTheSameNameLockNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	tossed := w.cookie(hostCookie) + "=evil; "
	for _, many := range []int{2, 9, auth.MaxShown - 1} {
		w.wantStatus(w.ask("GET", port3000+"/", header{"Cookie", strings.Repeat(tossed, many) + w.signIn("3000-ml.localhost")}), 200)
	}
}

func TestAccess_TossedCookiesBeyondMeasureAndOfTwoUsersAreRemoved(t *testing.T) {
	w := newWorldAt(t, "http://box.example.com")
	w.serve(portHost(3000), greet)
	const host = "3000-ml.box.example.com"
	mine, theirs := w.signIn(host), random()
	w.accounts.sessions[host+" "+theirs] = auth.Principal{User: people[rootToken].User, SandboxID: "1"}
	for _, cookies := range []string{
		strings.Repeat(w.cookie(hostCookie)+"=evil; ", auth.MaxShown) + mine,
		mine + "; " + w.cookie(hostCookie) + "=" + theirs, w.cookie(hostCookie) + "=" + theirs + "; " + mine,
	} {
		a := w.ask("GET", "http://"+host+"/app/x", append(header{"Cookie", cookies}, page...))
		w.wantStatus(a, 409)
		gone := map[string]bool{}
		for _, c := range a.Cookies() {
			gone[c.Domain+c.Path] = c.Name == w.cookie(hostCookie) && c.MaxAge < 0
		}
		for _, key := range []string{"/", "/app", "/app/", "/app/x", host + "/", "box.example.com/", "box.example.com/app", "example.com/app/x/"} {
			if !gone[key] {
				t.Errorf("%s stays", key)
			}
		}
	}
}

func TestAccess_AnothersSandboxLooksLikeNone(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	theirs := w.ask("GET", port3000+"/", header{"Authorization", "Bearer " + bobToken})
	none := w.ask("GET", "http://3000-nope.localhost:8080/", header{"Authorization", "Bearer " + bobToken})
	limited := w.ask("GET", port3000+"/", header{"Authorization", "Bearer " + oneToken})
	for _, a := range []answer{theirs, none, limited} {
		w.wantStatus(a, 404)
		if a.body != none.body || a.Header.Get("Content-Type") != none.Header.Get("Content-Type") {
			t.Errorf("answers differ:\n%s\n%s", a.body, none.body)
		}
	}
	if opened, _ := w.boxes.entered(); opened != 0 {
		t.Errorf("a session was opened %d times", opened)
	}
}

func TestAccess_ABadTokenIsRefusedEvenWithAGoodCookie(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	h := header{"Authorization", "Bearer sbx_revoked", "Cookie", w.signIn("3000-ml.localhost"), "Accept", "text/html"}
	a := w.ask("GET", port3000+"/", h)
	w.wantStatus(a, 401)
}

func TestAccess_WithoutCredentialProgramsGetAHint(t *testing.T) {
	w := newWorld(t)
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		a := w.ask(method, port3000+"/x", header{"Accept", "application/json"})
		w.wantStatus(a, 401)
		if a.Header.Get("WWW-Authenticate") == "" || a.Header.Get("Content-Type") != "application/problem+json" ||
			!contains(a.body, `"code":"unauthenticated"`, `"hint":"Open http://3000-ml.localhost:8080/`) {
			t.Errorf("%s: %v %s", method, a.Header, a.body)
		}
	}
	w.wantStatus(w.ask("POST", port3000+"/x", header{"Accept", "text/html", "Sec-Fetch-Mode", "navigate"}), 401)
	w.wantStatus(w.ask("GET", port3000+"/x", header{"Accept", "text/html", "Sec-Fetch-Mode", "cors"}), 401)
}

func TestAccess_WhenAccountsDoNotAnswerNobodyIsSentToSignIn(t *testing.T) {
	w := newWorld(t)
	w.accounts.failWith(fault.New(fault.Unavailable, "The store does not answer."))
	h := header{"Accept", "text/html", "Cookie", w.signIn("3000-ml.localhost")}
	a := w.ask("GET", port3000+"/", h)
	w.wantStatus(a, 503)
	if !contains(a.body, "The store does not answer.") {
		t.Error(a.body)
	}
}

func TestOrigin_RefusesWhatForeignPagesMakeABrowserSend(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	cookie := w.signIn("3000-ml.localhost")
	const sibling = "http://3000-evil.localhost:8080"
	cases := []struct {
		method string
		h      header
		status int
	}{
		{"POST", header{"Sec-Fetch-Site", "same-origin", "Origin", port3000}, 200},
		{"POST", header{"Sec-Fetch-Site", "none"}, 200},
		{"POST", header{}, 200}, // a program with a cookie jar
		{"POST", header{"Origin", port3000}, 200},
		{"GET", header{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"GET", header{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"POST", header{"Sec-Fetch-Site", "same-site", "Origin", sibling}, 403},
		{"POST", header{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"DELETE", header{"Sec-Fetch-Site", "same-site"}, 403},
		{"OPTIONS", header{"Sec-Fetch-Site", "same-site"}, 403},
		{"POST", header{"Origin", sibling}, 403},
		{"POST", header{"Origin", "null"}, 403},
		{"POST", header{"Origin", "http://3000-ml.localhost"}, 403},       // another port is another server
		{"POST", header{"Origin", "https://3000-ml.localhost:8080"}, 403}, // so is another scheme
		{"POST", header{"Origin", port3000, "Origin", sibling}, 403},
		{"GET", header{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"GET", header{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", sibling}, 403},
		{"GET", header{"Sec-Fetch-Site", "nonsense"}, 403},
	}
	for _, c := range cases {
		a := w.ask(c.method, port3000+"/", append(c.h, "Cookie", cookie))
		if a.StatusCode != c.status {
			t.Errorf("%s %v: status %d, want %d", c.method, c.h, a.StatusCode, c.status)
		}
	}
	a := w.ask("POST", port3000+"/", append(header{"Origin", sibling, "Sec-Fetch-Site", "same-site"}, bearer...))
	w.wantStatus(a, 200) // a token is not sent by accident
}

func TestPublic_TossedCookiesKeepNobodyFromAPublicPort(t *testing.T) {
	w := newWorldAt(t, "http://box.example.com")
	w.serve(portHost(3000), greet)
	w.expose(3000, sandbox.Public)
	many := strings.Repeat(w.cookie(hostCookie)+"=evil; ", auth.MaxShown+1)
	w.wantStatus(w.ask("GET", "http://3000-ml.box.example.com/", append(header{"Cookie", many}, page...)), 200)
}
