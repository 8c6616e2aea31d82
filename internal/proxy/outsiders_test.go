package proxy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/visibility"
)

// ml is the sandbox as the ports know it.
var ml = sandbox.Sandbox{ID: "1", Name: "ml", Owner: "u-ann", State: sandbox.Running}

func (w *world) expose(port int, v sandbox.Visibility) {
	w.t.Helper()
	if err := w.ports.Set(w.t.Context(), ml, port, v); err != nil {
		w.t.Fatal(err)
	}
}

// shareLink makes a link of Ann's to a port, for a day.
func (w *world) shareLink(port int) (sandbox.Share, string) {
	w.t.Helper()
	return w.briefLink(port, 24*time.Hour)
}

func (w *world) briefLink(port int, ttl time.Duration) (sandbox.Share, string) {
	w.t.Helper()
	s, secret, err := w.ports.Share(w.t.Context(), ml, visibility.NewShare{Port: port, By: "u-ann", TTL: ttl})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, secret
}

// openLink redeems a link as its page does, and gives the cookie.
func (w *world) openLink(host, secret string) header {
	w.t.Helper()
	r := w.request("POST", host+hostname.SharePath, strings.NewReader(secret), header{"Origin", host, "Sec-Fetch-Site", "same-origin"})
	a := w.send(r)
	w.wantStatus(a, 204)
	return header{"Cookie", a.Cookies()[0].Name + "=" + a.Cookies()[0].Value}
}

const sibling = "http://3000-evil.localhost:8080"

func TestPublic_AnybodyMayUseThatPortAndNothingElse(t *testing.T) {
	w := newWorld(t)
	for _, host := range []string{portHost(3000), portHost(3001), tabHost("main"), ideHost} {
		w.serve(host, greet)
	}
	w.boxes.declare("ml", map[string]int{"web": 3000, "db": 3001})
	w.expose(3000, sandbox.Public)
	for what, h := range map[string]header{
		"a program":                    nil,
		"a browser":                    page,
		"a bad token":                  {"Authorization", "Bearer sbx_bad"},
		"another's token":              {"Authorization", "Bearer " + bobToken},
		"another's browser":            {"Cookie", "sandboxd_host=whatever; sandboxd_share=whatever"},
		"a share that opens nothing":   {hostname.ShareHeader, strings.Repeat("A", 43)},
		"a foreign page":               {"Origin", sibling, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
		"a foreign page, with session": {"Origin", sibling, "Sec-Fetch-Site", "same-site", "Cookie", w.signIn("3000-ml.localhost")},
		"the owner":                    bearer,
	} {
		for _, address := range []string{port3000, "http://web--ml.localhost:8080"} {
			for _, method := range []string{"GET", "POST", "OPTIONS", "DELETE"} {
				if a := w.ask(method, address+"/x", h); a.StatusCode != 200 || a.body != "hello" {
					t.Errorf("%s: %s at %s: %d %s", what, method, address, a.StatusCode, a.body)
				}
			}
		}
	}
	for _, address := range []string{"http://3001-ml.localhost:8080", "http://db--ml.localhost:8080", "http://ml.localhost:8080", "http://code-ml.localhost:8080",
		"http://3000-other.localhost:8080", "http://ml.localhost:8080/t/x/"} {
		w.wantStatus(w.ask("GET", address, nil), 401)
		w.wantStatus(w.ask("GET", address, page), 303)
	}
	w.expose(3000, sandbox.Private)
	w.wantStatus(w.ask("GET", port3000, nil), 401)
	w.wantStatus(w.ask("GET", "http://web--ml.localhost:8080", page), 303)
}

func TestPublic_OnlyAsLongAsItsOwnerMayLetPeopleIn(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.expose(3000, sandbox.Public)
	w.accounts.revoke("u-ann")
	w.wantStatus(w.ask("GET", port3000, nil), 401)
	w.accounts.failWith(fault.New(fault.Unavailable, "The store is locked."))
	w.wantStatus(w.ask("GET", "http://3001-ml.localhost:8080", nil), 401)
	w = newWorld(t)
	w.expose(3000, sandbox.Public)
	w.accounts.failWith(fault.New(fault.Unavailable, "The store is locked."))
	w.wantStatus(w.ask("GET", port3000, nil), 503)
}

func TestPublic_APooledSandboxHasNoPublicPort(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.expose(3000, sandbox.Public)
	w.boxes.put("ml", sandbox.Sandbox{ID: "1", Name: "ml", Owner: "u-ann", State: sandbox.Running, Pooled: true})
	w.wantStatus(w.ask("GET", port3000, nil), 401)
}

func TestPublic_ANewSandboxOfTheSameNameIsPrivate(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.expose(3000, sandbox.Public)
	_, secret := w.shareLink(3000)
	w.boxes.put("ml", sandbox.Sandbox{ID: "9", Name: "ml", Owner: "u-ann", State: sandbox.Running})
	w.wantStatus(w.ask("GET", port3000, nil), 401)
	w.wantStatus(w.ask("GET", port3000, header{hostname.ShareHeader, secret}), 401)
}

func TestPublic_WebSocketsOfAnyOriginPass(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), echoSocket)
	w.expose(3000, sandbox.Public)
	for _, h := range []header{nil, {"Origin", port3000}, {"Origin", sibling}, {"Origin", "https://elsewhere.example"}} {
		conn, _, err := w.dial(port3000+"/ws", h)
		if err != nil {
			t.Fatalf("%v: %v", h, err)
		}
		_ = conn.Close()
	}
}

func TestShare_TheLinkGivesACookieForItsPortAlone(t *testing.T) {
	w := newWorld(t)
	w.boxes.declare("ml", map[string]int{"web": 3000})
	for _, host := range []string{portHost(3000), portHost(3001), tabHost("main"), ideHost} {
		w.serve(host, greet)
	}
	share, secret := w.shareLink(3000)
	r := w.request("POST", port3000+hostname.SharePath, strings.NewReader(secret), header{"Origin", port3000})
	a := w.send(r)
	w.wantStatus(a, 204)
	if len(a.Cookies()) != 1 || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%v", a.Header)
	}
	c := a.Cookies()[0]
	left, month := int(time.Until(share.Expires).Seconds()), 30*24*60*60 // then it still says that the link has expired
	if c.Name != "sandboxd_share" || !c.HttpOnly || c.Domain != "" || c.Path != "/" || c.SameSite != http.SameSiteLaxMode || c.MaxAge > left+month+1 ||
		c.MaxAge < left+month-5 || c.Value == secret {
		t.Errorf("cookie %q", c.Raw)
	}
	cookie := header{"Cookie", c.Name + "=" + c.Value}
	w.wantStatus(w.ask("GET", port3000, cookie), 200)
	w.wantStatus(w.ask("GET", port3000, header{hostname.ShareHeader, secret}), 200)
	for _, address := range []string{"http://3001-ml.localhost:8080", "http://ml.localhost:8080", "http://code-ml.localhost:8080", "http://web--ml.localhost:8080",
		"http://3000-other.localhost:8080"} {
		w.wantStatus(w.ask("GET", address, cookie), 401)
		w.wantStatus(w.ask("GET", address, header{hostname.ShareHeader, secret}), 401)
		w.wantStatus(w.send(w.request("POST", address+hostname.SharePath, strings.NewReader(secret), nil)), 404)
	}
	w.wantStatus(w.ask("GET", port3000, header{hostname.ShareHeader, c.Value}), 401)
	w.wantStatus(w.ask("GET", port3000, header{"Cookie", c.Name + "=" + secret}), 401)
	w.wantStatus(w.ask("GET", port3000, header{hostname.ShareHeader, secret, hostname.ShareHeader, secret}), 401)
	tossed := strings.Repeat("sandboxd_share=evil; ", 2)
	w.wantStatus(w.ask("GET", port3000, header{"Cookie", tossed + cookie[1]}), 200)
}

func TestShare_OnHTTPSTheCookieIsBoundToTheHost(t *testing.T) {
	w := newWorldAt(t, "https://box.example.com")
	_, secret := w.shareLink(3000)
	a := w.send(w.request("POST", "http://3000-ml.box.example.com"+hostname.SharePath, strings.NewReader(secret), nil))
	w.wantStatus(a, 204)
	if raw := a.Header.Get("Set-Cookie"); !strings.HasPrefix(raw, "__Host-sandboxd_share=") || !contains(raw, "Secure", "HttpOnly", "Path=/", "SameSite=Lax") {
		t.Errorf("Set-Cookie = %q", raw)
	}
}

func TestShare_OnlyThePortsOwnPagesUseItsCookie(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), echoSocket)
	_, secret := w.shareLink(3000)
	cookie := w.openLink(port3000, secret)
	w.serve(portHost(3000), greet)
	for _, c := range []struct {
		method string
		h      header
		status int
	}{
		{"POST", header{"Origin", port3000, "Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", header{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"POST", header{"Origin", sibling, "Sec-Fetch-Site", "same-site"}, 403},
		{"GET", header{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"POST", header{"Origin", "null"}, 403},
	} {
		a := w.ask(c.method, port3000+"/", append(c.h, cookie...))
		if a.StatusCode != c.status {
			t.Errorf("%s %v: %d", c.method, c.h, a.StatusCode)
		}
	}
	w.wantStatus(w.ask("POST", port3000, header{hostname.ShareHeader, secret, "Origin", sibling}), 200) // no browser's doing
	w.wantStatus(w.ask("OPTIONS", port3000, header{"Origin", sibling, "Access-Control-Request-Headers", hostname.ShareHeader}), 401)
	w.serve(portHost(3000), echoSocket)
	for origin, ok := range map[string]bool{port3000: true, sibling: false, "": false} {
		h := cookie
		if origin != "" {
			h = append(header{"Origin", origin}, cookie...)
		}
		if conn, _, err := w.dial(port3000+"/ws", h); (err == nil) != ok {
			t.Errorf("a WebSocket of %q: %v", origin, err)
		} else if err == nil {
			_ = conn.Close()
		}
	}
	conn, _, err := w.dial(port3000+"/ws", header{hostname.ShareHeader, secret})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestShare_ThePageAsksNothingOfTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.boxes.set("ml", sandbox.Asleep, "")
	_, secret := w.shareLink(3000)
	var first string
	for _, host := range []string{port3000, "http://3000-nope.localhost:8080", "http://ml.localhost:8080", "http://code-ml.localhost:8080"} {
		a := w.ask("GET", host+hostname.SharePath, page)
		w.wantStatus(a, 200)
		if first == "" {
			first = a.body
		}
		if a.body != first || a.Header.Get("Referrer-Policy") != "no-referrer" || a.Header.Get("Cache-Control") != "no-store" || len(a.Cookies()) != 0 {
			t.Errorf("%s: %v", host, a.Header)
		}
		policy := a.Header.Get("Content-Security-Policy")
		if !contains(policy, "default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", shareHash, styleHash) ||
			strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src 'self'") {
			t.Errorf("policy %q", policy)
		}
		if !strings.Contains(a.body, ">"+shareJS+"<") {
			t.Error("the script is not as its hash says")
		}
	}
	w.openLink(port3000, secret)
	w.wantStatus(w.ask("PUT", port3000+hostname.SharePath, nil), 405)
	w.wantStatus(w.ask("GET", port3000+hostname.SharePath+"/x", nil), 404)
	if opened, _ := w.boxes.entered(); opened != 0 || w.boxes.woken() != 0 || w.boxes.uses.Status("1").Because != nil {
		t.Error("it has used the sandbox")
	}
}

func TestShare_WhatOpensNothingIsToldInTheSameWords(t *testing.T) {
	w := newWorld(t)
	_, secret := w.shareLink(3000)
	ended, endedSecret := w.shareLink(3000)
	if err := w.ports.Revoke(t.Context(), ml, 3000, ended.ID); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, c := range [][2]string{{port3000, endedSecret}, {port3000, ""}, {port3000, "x"}, {"http://3001-ml.localhost:8080", secret},
		{"http://3000-nope.localhost:8080", secret}, {"http://ml.localhost:8080", secret}} {
		a := w.send(w.request("POST", c[0]+hostname.SharePath, strings.NewReader(c[1]), nil))
		w.wantStatus(a, 404)
		if first == "" {
			first = a.body
		}
		if a.body != first || len(a.Cookies()) != 0 {
			t.Errorf("%v: %v %s", c, a.Header, a.body)
		}
	}
	w.wantStatus(w.send(w.request("POST", port3000+hostname.SharePath, strings.NewReader(strings.Repeat("x", 1000)), nil)), 400)
	for _, h := range []header{{"Origin", sibling}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site", "Origin", port3000}} {
		a := w.send(w.request("POST", port3000+hostname.SharePath, strings.NewReader(secret), h))
		if a.StatusCode != 403 || len(a.Cookies()) != 0 {
			t.Errorf("%v: %d", h, a.StatusCode)
		}
	}
}

func TestShare_WhoseEndHasComeIsToldSo(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	share, secret := w.shareLink(3000)
	cookie := w.openLink(port3000, secret)
	if err := w.ports.Revoke(t.Context(), ml, 3000, share.ID); err != nil {
		t.Fatal(err)
	}
	a := w.ask("GET", port3000+"/x", append(page, cookie...))
	w.wantStatus(a, 401)
	if !contains(a.body, "This link was revoked", "Sign in", w.hosts.DashboardURL()+"/handover") || strings.Contains(a.body, "/sandboxes/ml") {
		t.Error(a.body)
	}
	for _, c := range a.Cookies() {
		if c.Name == "sandboxd_share" {
			t.Errorf("the next reload would show the sign-in: %v", a.Header)
		}
	}
	again := w.send(w.request("POST", port3000+hostname.SharePath, strings.NewReader(secret), cookie))
	if again.StatusCode != 404 || !contains(again.body, `"code":"share_revoked"`) {
		t.Errorf("the link again: %d %s", again.StatusCode, again.body)
	}
	_, other := w.shareLink(3001)
	w.wantStatus(w.send(w.request("POST", port3000+hostname.SharePath, strings.NewReader(other), cookie)), 404)
	elsewhere := w.ask("GET", "http://3000-nope.localhost:8080/x", append(page, cookie...))
	if elsewhere.StatusCode != 401 || a.Header.Get(noticeHeader) != elsewhere.Header.Get(noticeHeader) {
		t.Errorf("where there is no sandbox: %d", elsewhere.StatusCode)
	}
	p := w.ask("GET", port3000+"/x", header{hostname.ShareHeader, secret})
	if p.StatusCode != 401 || !contains(p.body, `"code":"share_ended"`) {
		t.Errorf("a program: %d %s", p.StatusCode, p.body)
	}
	w.wantStatus(w.ask("GET", port3000+"/x", append(header{"Cookie", w.signIn("3000-ml.localhost") + "; " + cookie[1]}, page...)), 200)
}

func TestShare_AnExpiredOneIsToldSoAlsoWhereTheSandboxIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		_, secret := w.briefLink(3000, time.Minute)
		cookie := w.openLink(port3000, secret)
		time.Sleep(time.Hour)
		for _, host := range []string{port3000, "http://3000-nope.localhost:8080"} {
			a := w.ask("GET", host+"/x", append(page, cookie...))
			if a.StatusCode != 401 || !strings.Contains(a.body, "This link has expired") {
				t.Errorf("%s: %d %s", host, a.StatusCode, a.body)
			}
			again := w.send(w.request("POST", host+hostname.SharePath, strings.NewReader(secret), cookie))
			if again.StatusCode != 404 || !contains(again.body, `"code":"share_expired"`) {
				t.Errorf("the link again at %s: %d %s", host, again.StatusCode, again.body)
			}
		}
		unknown := w.ask("GET", port3000+"/x", append(page, "Cookie", "sandboxd_share=x"))
		if unknown.StatusCode != 401 || !strings.Contains(unknown.body, "This link no longer works") {
			t.Errorf("a cookie without a time: %d %s", unknown.StatusCode, unknown.body)
		}
	})
}

func TestShare_OnlyAsLongAsItsMakerMayUseTheSandbox(t *testing.T) {
	for what, lose := range map[string]func(*world){
		"locked out": func(w *world) { w.accounts.revoke("u-ann") },
		"another's now": func(w *world) {
			w.boxes.put("ml", sandbox.Sandbox{ID: "1", Name: "ml", Owner: "u-bob", State: sandbox.Running})
		},
		"made by a ghost": func(w *world) { w.accounts.remove("u-ann") },
	} {
		w := newWorld(t)
		w.serve(portHost(3000), greet)
		_, secret := w.shareLink(3000)
		lose(w)
		w.wantStatus(w.ask("GET", port3000, header{hostname.ShareHeader, secret}), 401)
		if a := w.send(w.request("POST", port3000+hostname.SharePath, strings.NewReader(secret), nil)); a.StatusCode != 404 {
			t.Errorf("%s: %d", what, a.StatusCode)
		}
	}
}

func TestOutsiders_NothingOfOursReachesTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	_, secret := w.shareLink(3000)
	cookie := w.openLink(port3000, secret)[1]
	for range 2 {
		for _, h := range []header{{"Cookie", "a=1; " + cookie + "; __Host-" + cookie}, {hostname.ShareHeader, secret}, {"x-sandboxd-share", secret, "X_Sandboxd_Share", secret}} {
			s := w.seen(w.ask("GET", port3000+"/", h))
			for name, values := range s.Header {
				all := strings.Join(values, " ")
				if strings.Contains(strings.ToLower(name), "share") || strings.Contains(all, "sandboxd_share") || strings.Contains(all, secret) {
					t.Errorf("the sandbox got %s: %s", name, all)
				}
			}
		}
		w.expose(3000, sandbox.Public)
	}
}

func TestOutsiders_AStreamEndsSoonAfterItsEnd(t *testing.T) {
	for what, c := range map[string]struct {
		by  func(w *world) header // opens the port and gives what to come with
		end func(w *world)
	}{
		"public, then private": {
			func(w *world) header { w.expose(3000, sandbox.Public); return nil },
			func(w *world) { w.expose(3000, sandbox.Private) }},
		"public, then shared": {
			func(w *world) header { w.expose(3000, sandbox.Public); return nil },
			func(w *world) { w.expose(3000, sandbox.Shared) }},
		"a share, revoked": {
			func(w *world) header { _, s := w.shareLink(3000); return header{hostname.ShareHeader, s} },
			func(w *world) {
				for _, p := range w.ports.List("1") {
					if err := w.ports.Revoke(w.t.Context(), ml, p.Number, p.Shares[0].ID); err != nil {
						w.t.Error(err)
					}
				}
			}},
		"a share, then private": {
			func(w *world) header { _, s := w.shareLink(3000); return header{hostname.ShareHeader, s} },
			func(w *world) { w.expose(3000, sandbox.Private) }},
		"a share, expired": {
			func(w *world) header {
				_, s := w.briefLink(3000, 10*time.Minute)
				return header{hostname.ShareHeader, s}
			},
			func(*world) { time.Sleep(10*time.Minute - 10*time.Second) }},
		"public, its owner locked out": {
			func(w *world) header { w.expose(3000, sandbox.Public); return nil },
			func(w *world) { w.accounts.revoke("u-ann") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), echoSocket)
			conn := w.socket(port3000+"/ws", c.by(w))
			time.Sleep(10 * time.Second)
			if err := conn.WriteMessage(websocket.TextMessage, []byte("here")); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if _, _, err := conn.ReadMessage(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			c.end(w)
			begun := time.Now()
			if _, _, err := conn.ReadMessage(); err == nil {
				t.Errorf("%s: it continues", what)
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("%s: it ends after %v", what, took)
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}

func TestOutsiders_AStreamOfAnInsiderGoesOnWhenThePortIsPrivateAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), echoSocket)
		w.expose(3000, sandbox.Public)
		conn := w.socket(port3000+"/ws", bearer)
		w.expose(3000, sandbox.Private)
		time.Sleep(10 * time.Second)
		if err := conn.WriteMessage(websocket.TextMessage, []byte("here")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		w.wantReleased()
	})
}

func TestOutsiders_NoticesTellThemWhatIsTheirs(t *testing.T) {
	w := newWorld(t)
	w.expose(3000, sandbox.Public)
	for what, c := range map[string]struct {
		state  sandbox.State
		status int
	}{
		"nothing listens": {sandbox.Running, 502}, "stopped": {sandbox.Stopped, 503}, "failed": {sandbox.Failed, 503}, "deleting": {sandbox.Deleting, 410},
	} {
		w.boxes.set("ml", c.state, "image s3cr3t:latest is broken")
		for _, h := range []header{asPerson[:2], asProgram[:2]} {
			h = header{"Accept", h[1]}
			a := w.ask("GET", port3000+"/", h)
			w.wantStatus(a, c.status)
			if strings.Contains(a.body, "s3cr3t") || strings.Contains(a.body, w.hosts.DashboardURL()+"/sandboxes") || strings.Contains(a.body, "dashboard") ||
				strings.Contains(a.body, "terminal") {
				t.Errorf("%s: %s", what, a.body)
			}
		}
	}
}
