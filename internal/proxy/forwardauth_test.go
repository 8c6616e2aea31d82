package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// question is how Traefik asks about a request.
func (w *world) question(method, host, uri string, h header) *http.Request {
	r := w.request("GET", "http://127.0.0.1:7881/", nil, h)
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("X-Forwarded-Method", method)
	r.Header.Set("X-Forwarded-Proto", "http")
	r.Header.Set("X-Forwarded-Host", host)
	r.Header.Set("X-Forwarded-Uri", uri)
	r.Header.Set("X-Forwarded-For", "198.51.100.7")
	return r
}

func (w *world) decide(r *http.Request) answer {
	rec := httptest.NewRecorder()
	w.proxy.ForwardAuth().ServeHTTP(rec, r)
	res := rec.Result()
	res.Request = r
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res, string(body)}
}

const direct3000 = "3000-ml.localhost:8080"

func TestForwardAuth_GivesAPassAndOnlyWhatMayReachTheSandbox(t *testing.T) {
	w := newWorld(t)
	a := w.decide(w.question("GET", direct3000, "/lab?x=1", header{"Cookie", "a=1; " + w.signIn("3000-ml.localhost"), "Cookie", "b=2",
		"Authorization", "Basic abc", "X-Api-Key", "mine", "X-Sandboxd-Unattended", "1", "Remote-User", "root"}))
	w.wantStatus(a, 200)
	pass := a.Header.Get(wire.PassHeader)
	if err := wire.CheckPass(w.boxes.GatewayKey("1"), pass, direct3000, time.Now()); err != nil {
		t.Errorf("the pass %q: %v", pass, err)
	}
	if wire.IsOutsiderPass(pass) {
		t.Error("who may use the sandbox is taken for an outsider")
	}
	if wire.CheckPass(w.boxes.GatewayKey("1"), pass, "3001-ml.localhost:8080", time.Now()) == nil ||
		wire.CheckPass(w.boxes.GatewayKey("2"), pass, direct3000, time.Now()) == nil {
		t.Error("the pass opens other gateways")
	}
	a.Header.Del(wire.PassHeader)
	want := http.Header{"Cookie": {"a=1; b=2"}, "Authorization": {"Basic abc"}, "X-Api-Key": {"mine"},
		"X-Forwarded-Host": {direct3000}, "X-Forwarded-Proto": {"http"}}
	if diff := cmp.Diff(want, a.Header); diff != "" || a.body != "" {
		t.Errorf("%s\n%q", diff, a.body)
	}
	a = w.decide(w.question("GET", direct3000, "/", bearer))
	if a.Header.Get("Authorization") != "" || a.StatusCode != 200 {
		t.Errorf("our token goes on: %v", a.Header)
	}
	if because := w.boxes.uses.Status("ml").Because; len(because) != 1 || because[0].Kind != idle.Direct || because[0].Detail != "GET /" {
		t.Errorf("it counts as %v", because)
	}
	if opened, _ := w.boxes.entered(); opened != 0 {
		t.Error("a door was opened for one that is awake")
	}
}

func TestForwardAuth_RefusesAsTheProxyDoes(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	cookie := w.signIn("3000-ml.localhost")
	for what, c := range map[string]struct {
		method string
		h      header
		status int
	}{
		"nobody's page":         {"GET", page, 303},
		"nobody's request":      {"POST", header{"Accept", "application/json"}, 401},
		"a stranger":            {"GET", header{"Authorization", "Bearer " + bobToken}, 404},
		"a bad token":           {"GET", header{"Authorization", "Bearer sbx_bad"}, 401},
		"a foreign page":        {"POST", header{"Cookie", cookie, "Origin", "http://evil.com"}, 403},
		"its own page":          {"POST", header{"Cookie", cookie, "Origin", port3000}, 200},
		"a foreign navigation":  {"GET", header{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		"a method for proxies":  {"TRACE", header{"Cookie", cookie}, 405},
		"a HEAD that may not":   {"HEAD", header{"Authorization", "Bearer " + bobToken}, 404},
		"an anonymous OPTIONS":  {"OPTIONS", nil, 401},
		"a program with a key":  {"DELETE", header{"X-Api-Key", annToken}, 200},
		"another sandbox's key": {"GET", header{"X-Api-Key", oneToken}, 404},
	} {
		a := w.decide(w.question(c.method, direct3000, "/x", c.h))
		if a.StatusCode != c.status || c.status != 200 && a.Header.Get(wire.PassHeader) != "" {
			t.Errorf("%s: %d %v", what, a.StatusCode, a.Header)
		}
		if c.status >= 400 && (a.body == "" || a.Header.Get(noticeHeader) == "") {
			t.Errorf("%s: no notice: %v %q", what, a.Header, a.body)
		}
		if c.method == "GET" && c.status != 200 {
			plain := w.ask("GET", port3000+"/x", c.h)
			if plain.StatusCode != a.StatusCode || plain.body != a.body {
				t.Errorf("%s: the proxy says %d %s", what, plain.StatusCode, plain.body)
			}
		}
	}
}

func TestForwardAuth_WhatTraefikMustNotAskIsMisdirected(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		host, uri string
		status    int
	}{
		{"ml.localhost:8080", "/", 421}, {"localhost:8080", "/", 421}, {"evil.com", "/", 421}, {"3000-ml.evil.com", "/", 421}, {"", "/", 421},
		{direct3000, "/.sandboxd/auth", 421}, {direct3000, "/x/../.sandboxd/notice.js", 421}, {direct3000, "/%2esandboxd/auth", 421},
		{direct3000, "", 400}, {direct3000, "no path", 400}, {direct3000, "*", 405},
	} {
		if a := w.decide(w.question("GET", c.host, c.uri, bearer)); a.StatusCode != c.status {
			t.Errorf("%s%s: %d", c.host, c.uri, a.StatusCode)
		}
	}
	r := w.question("GET", direct3000, "/", bearer)
	r.Method = "POST"
	w.wantStatus(w.decide(r), 400)
}

func TestForwardAuth_EveryState(t *testing.T) {
	for what, c := range map[string]struct {
		state  sandbox.State
		takes  time.Duration
		err    error
		page   int
		api    int
		within time.Duration // of the program's answer
	}{
		"running":                {sandbox.Running, 0, nil, 200, 200, 0},
		"frozen":                 {sandbox.Frozen, 20 * time.Millisecond, nil, 200, 200, 20 * time.Millisecond},
		"asleep":                 {sandbox.Asleep, time.Second, nil, 200, 200, time.Second},
		"slow":                   {sandbox.Asleep, 10 * time.Second, nil, 503, 200, 10 * time.Second},
		"slower than Traefik is": {sandbox.Asleep, time.Hour, nil, 503, 504, directLimit},
		"starting":               {sandbox.Starting, time.Hour, nil, 503, 504, directLimit},
		"stopped":                {sandbox.Stopped, 0, nil, 503, 503, 0},
		"failed":                 {sandbox.Failed, 0, nil, 503, 503, 0},
		"deleting":               {sandbox.Deleting, 0, nil, 410, 410, 0},
		"on a full host":         {sandbox.Asleep, 0, fault.New(fault.Unavailable, "Full."), 503, 503, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.boxes.takes, w.boxes.wakeErr = c.takes, c.err
			w.boxes.set("ml", c.state, "")
			begun := time.Now()
			if a := w.decide(w.question("POST", direct3000, "/", bearer)); a.StatusCode != c.api || time.Since(begun) != c.within {
				t.Errorf("%s, a program: %d after %v", what, a.StatusCode, time.Since(begun))
			}
			w.boxes.set("ml", c.state, "")
			begun = time.Now()
			if a := w.decide(w.question("GET", direct3000, "/", asPerson)); a.StatusCode != c.page || time.Since(begun) > pageAfter {
				t.Errorf("%s, a person: %d after %v", what, a.StatusCode, time.Since(begun))
			}
			time.Sleep(2 * time.Hour) // all wakes have ended
			w.wantReleased()
		})
	}
}

func TestForwardAuth_WaitsForADeclaredServiceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.declare(wire.ServiceRunning)
		w.boxes.set("ml", sandbox.Frozen, "")
		time.AfterFunc(3*time.Second, func() { w.serve(portHost(3000), greet) })
		begun := time.Now()
		w.wantStatus(w.decide(w.question("POST", direct3000, "/", bearer)), 200)
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("after %v", took)
		}
		dials := w.session.dials
		for range 10 {
			w.wantStatus(w.decide(w.question("POST", direct3000, "/", bearer)), 200)
		}
		if opened, _ := w.boxes.entered(); w.session.dials != dials || opened != 1 {
			t.Errorf("%d more dials, %d doors", w.session.dials-dials, opened)
		}
		w.boxes.set("ml", sandbox.Frozen, "")
		w.wantStatus(w.decide(w.question("POST", direct3000, "/", bearer)), 200)
		if opened, _ := w.boxes.entered(); w.session.dials != dials+1 || opened != 2 {
			t.Errorf("after the next thaw %d more dials, %d doors", w.session.dials-dials, opened)
		}
	})
}

func TestForwardAuth_ProbesAndPollsNeitherWakeNorCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		probe := append(header{hostname.ObserveHeader, "1"}, bearer...)
		a := w.decide(w.question("GET", direct3000, "/", probe))
		if a.StatusCode != 200 || a.Header.Get(wire.UnattendedHeader) != "1" || w.because() != "" {
			t.Errorf("a probe: %d %v %q", a.StatusCode, a.Header, w.because())
		}
		cookie := w.signIn("3000-ml.localhost")
		if a := w.decide(w.question("GET", direct3000, "/events", append(script(cookie), "Accept", "text/event-stream"))); a.StatusCode != 200 || a.Header.Get(wire.UnattendedHeader) != "" {
			t.Errorf("events, which the gateway counts: %d %v", a.StatusCode, a.Header)
		}
		for i := range 10 {
			a := w.decide(w.question("GET", direct3000, "/poll", script(cookie)))
			if a.StatusCode != 200 || a.Header.Get(wire.UnattendedHeader) != "1" {
				t.Errorf("poll %d: %d %v", i, a.StatusCode, a.Header)
			}
			time.Sleep(20 * time.Minute)
		}
		w.boxes.set("ml", sandbox.Frozen, "")
		for _, h := range []header{probe, script(cookie)} {
			a := w.decide(w.question("GET", direct3000, "/poll", h))
			if a.StatusCode != 503 || a.Header.Get(stateHeader) != "frozen" || a.Header.Get("Retry-After") != "60" || !contains(a.body, `"code":"frozen"`, "ml is frozen. ") {
				t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
			}
		}
		if w.boxes.woken() != 0 {
			t.Error("it was woken")
		}
	})
}

func TestForwardAuth_ADeletedSandboxIsGone(t *testing.T) {
	w := newWorld(t)
	w.boxes.put("ml", sandbox.Sandbox{})
	w.boxes.tombstones["ml"] = sandbox.Tombstone{Name: "ml", Owner: "u-ann"}
	w.wantStatus(w.decide(w.question("GET", direct3000, "/", bearer)), 410)
}

func TestForwardAuth_AGatewayThatHasNotTheKeyYetIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.boxes.strange = true
	w.wantStatus(w.decide(w.question("GET", direct3000, "/", header{"Authorization", "Bearer " + annToken, "X-Sandboxd-Observe", "1"})), 503)
	a := w.decide(w.question("GET", direct3000, "/", bearer))
	w.wantStatus(a, 200)
	if opened, _ := w.boxes.entered(); opened != 1 || a.Header.Get(wire.PassHeader) == "" {
		t.Errorf("%d doors were opened for it, and the pass is %q", opened, a.Header.Get(wire.PassHeader))
	}
}

func TestForwardAuth_WithoutKeysThereIsNoDirectWay(t *testing.T) {
	w := newWorld(t)
	w.proxy.cfg.Keys = nil
	a := w.decide(w.question("GET", direct3000, "/", bearer))
	if a.StatusCode != 503 || a.Header.Get(wire.PassHeader) != "" || !contains(a.body, "no direct way") {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
}

func TestForwardAuth_TellsTheClientBehindATrustedProxyOnly(t *testing.T) {
	w := newWorld(t)
	r := w.question("GET", direct3000, "/", bearer)
	r.Header.Set("X-Forwarded-For", "6.6.6.6, 198.51.100.7")
	if got := w.decide(r).Header.Get("X-Forwarded-For"); got != "" {
		t.Errorf("untrusted: %q", got)
	}
	w.proxy.cfg.Trusted = append(w.proxy.cfg.Trusted, netip.MustParsePrefix("198.51.100.0/24"))
	if got := w.decide(r).Header.Get("X-Forwarded-For"); got != "6.6.6.6" {
		t.Errorf("trusted: %q", got)
	}
}

func TestForwardAuth_AnAnswerToHEADIsWholeForTraefik(t *testing.T) {
	w := newWorld(t)
	s := httptest.NewServer(w.proxy.ForwardAuth())
	defer s.Close()
	r := w.question("HEAD", direct3000, "/", header{"Authorization", "Bearer " + bobToken})
	r.URL.Host = strings.TrimPrefix(s.URL, "http://")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != 404 || len(body) == 0 {
		t.Errorf("%d %q %v", res.StatusCode, body, err)
	}
}

// BenchmarkForwardAuth measures one answer about an awake sandbox.
func BenchmarkForwardAuth(b *testing.B) {
	w := newWorld(b)
	cookie := w.signIn("3000-ml.localhost")
	r := w.question("GET", direct3000, "/api/status?t=1", script(cookie))
	h := w.proxy.ForwardAuth()
	b.ReportAllocs()
	for b.Loop() {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != 200 {
			b.Fatal(rec.Code)
		}
	}
}
