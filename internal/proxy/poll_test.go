package proxy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// script is how a page's script asks.
func script(cookie string) header {
	return header{"Cookie", cookie, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "empty"}
}

func TestPoll_AForgottenPageDoesNotWakeAndAPersonDoes(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Asleep} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), greet)
			cookie := w.signIn("3000-ml.localhost")
			poll := func() answer { return w.ask("GET", port3000+"/api/status", script(cookie)) }
			w.wantStatus(poll(), 200)
			time.Sleep(20 * time.Minute)
			w.boxes.set("ml", state, "")
			want := map[sandbox.State]int{sandbox.Frozen: 200, sandbox.Asleep: 503}[state] // used within the hour
			w.wantStatus(poll(), want)
			w.boxes.set("ml", sandbox.Running, "")
			for range 4 {
				time.Sleep(20 * time.Minute)
				w.wantStatus(poll(), 200)
			}
			w.boxes.set("ml", state, "")
			a := poll()
			if a.StatusCode != 503 || a.Header.Get("Retry-After") != "60" || a.Header.Get(stateHeader) != string(state) ||
				!contains(a.body, `"code":"`+string(state)+`"`, "ml is "+string(state)+". What a page asks for by itself does not wake it.", "Reload the page.") {
				t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
			}
			if _, res, err := w.dial(port3000+"/api/status", append(script(cookie), "Origin", port3000)); err == nil || res.StatusCode != 503 {
				t.Errorf("a socket that connects again: %v %v", res, err)
			}
			if w.boxes.state("ml") != state {
				t.Error("it was woken")
			}
			w.wantStatus(w.ask("GET", port3000+"/", append(page, "Cookie", cookie)), 200)
			w.wantStatus(poll(), 200)
		})
	}
}

// TestPoll_WhatConnectsAgainByItselfWakesNobody has a WebSocket open for hours when a stop cuts it, and looks at what its
// page asks for next, while all that is unattended counts.
func TestPoll_WhatConnectsAgainByItselfWakesNobody(t *testing.T) {
	origin := func(address string) header { return header{"Origin", address} }
	for what, c := range map[string]struct {
		address string
		h       header // beside the cookie
		path    string // of what is asked for next
		plain   bool   // it is no WebSocket
		wakes   bool
	}{
		"ttyd's page, Chrome":             {address: terminal, h: origin(terminal), path: "/ws"},
		"ttyd's page, Firefox":            {address: terminal, h: append(header{"Sec-Fetch-Mode", "websocket"}, origin(terminal)...), path: "/ws"},
		"ttyd's page in another tab":      {address: terminal, h: origin(terminal), path: "/t/two/ws"},
		"ttyd's token":                    {address: terminal, h: header{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin"}, path: "/token", plain: true},
		"ttyd's token on plain HTTP":      {address: terminal, h: header{"Referer", terminal + "/", "Accept", "*/*"}, path: "/token", plain: true},
		"our page, by itself":             {address: terminal, h: origin(terminal), path: "/ws?page=sandboxd&wake=0"},
		"our page, for its person":        {address: terminal, h: origin(terminal), path: "/ws?page=sandboxd", wakes: true},
		"a person who reloads":            {address: terminal, h: header{"Sec-Fetch-Mode", "navigate", "Accept", "text/html"}, path: "/", plain: true, wakes: true},
		"one who reloads on plain HTTP":   {address: terminal, h: header{"Referer", terminal + "/", "Accept", "text/html"}, path: "/", plain: true, wakes: true},
		"a program's page":                {address: port3000, h: origin(port3000), path: "/ws"},
		"a program's page, Firefox":       {address: port3000, h: append(header{"Sec-Fetch-Mode", "websocket"}, origin(port3000)...), path: "/ws"},
		"a socket that the page has anew": {address: port3000, h: origin(port3000), path: "/other"},
		"a program with a token":          {address: port3000, h: bearer, path: "/ws", wakes: true},
		"a program at a terminal":         {address: terminal, h: bearer, path: "/ws", wakes: true},
		"its page's script":               {address: port3000, h: header{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin"}, path: "/ws", plain: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStillWorld(t)
				for _, host := range []string{portHost(3000), tabHost("main"), tabHost("two")} {
					w.serve(host, func(rw http.ResponseWriter, r *http.Request) {
						if isWebSocket(r) {
							echoSocket(rw, r)
						}
					})
				}
				host := strings.TrimSuffix(strings.TrimPrefix(c.address, "http://"), ":8080")
				cookie := header{"Cookie", w.signIn(host)}
				h := append(cookie, c.h...)
				conn := w.socket(c.address+"/ws", append(cookie, "Origin", c.address))
				time.Sleep(5 * time.Hour)
				w.boxes.uses.Touch("1", idle.Use{Kind: idle.Exec}) // a person is there
				w.boxes.set("ml", sandbox.Sleeping, "")
				_ = conn.Close()
				synctest.Wait()
				for range 3 {
					if c.plain {
						w.ask("GET", c.address+c.path, h)
					} else if conn, _, err := w.dial(c.address+c.path, h); err == nil {
						_ = conn.Close()
					}
					synctest.Wait()
				}
				if got := w.boxes.state("ml") == sandbox.Running; got != c.wakes {
					t.Errorf("woken: %v, want %v", got, c.wakes)
				}
			})
		})
	}
}

func TestStream_TheLastWordsOfOneThatIsStoppedDoNotWakeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), drip(1000, time.Second))
		stop := w.stream("/feed", bearer)
		time.Sleep(time.Minute)
		w.boxes.uses.Dismiss("1")
		w.boxes.set("ml", sandbox.Sleeping, "")
		time.Sleep(time.Minute)
		if w.boxes.state("ml") != sandbox.Sleeping || w.boxes.uses.Counts("1") {
			t.Errorf("%s; counts: %v", w.boxes.state("ml"), w.boxes.uses.Counts("1"))
		}
		stop()
	})
}

func TestObserve_NeitherCountsNorWakes(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	w.serve(tabHost("main"), tty("main"))
	probe := append(header{hostname.ObserveHeader, "1"}, bearer...)
	a := w.ask("GET", port3000+"/health", probe)
	if s := w.seen(a); len(s.Header[hostname.ObserveHeader]) > 0 || a.Header.Get(stateHeader) != "running" {
		t.Errorf("the sandbox saw %v; %v", s.Header, a.Header)
	}
	w.wantStatus(w.ask("GET", terminal+"/", probe), 200)
	for state, says := range map[sandbox.State][2]string{
		sandbox.Frozen: {"frozen", "ml is frozen. A request"}, sandbox.Asleep: {"asleep", "ml is asleep. A request"},
		sandbox.Sleeping: {"asleep", "ml is asleep. A request"}, sandbox.Starting: {"starting", "ml is not awake. It is starting."},
		sandbox.Creating: {"creating", "ml is not awake."}, sandbox.Stopped: {"stopped", "ml is stopped."}, sandbox.Failed: {"failed", "ml has failed."},
	} {
		w.boxes.set("ml", state, "")
		a := w.ask("GET", port3000+"/health", probe)
		if a.StatusCode != 503 || a.Header.Get(stateHeader) != string(state) || !contains(a.body, `"code":"`+says[0]+`"`, says[1]) ||
			state.Resting() && a.Header.Get("Retry-After") != "60" {
			t.Errorf("%s: %d %v %s", state, a.StatusCode, a.Header, a.body)
		}
	}
	if uses := w.boxes.usesSeen(); len(uses) != 0 || w.boxes.woken() != 0 {
		t.Errorf("uses %v, %d wakes", uses, w.boxes.woken())
	}
	w.boxes.set("ml", sandbox.Running, "")
	w.wantStatus(w.ask("GET", port3000+"/health", header{hostname.ObserveHeader, "1"}), 401)
	if because := w.boxes.uses.Status("1").Because; len(because) != 0 {
		t.Errorf("it is in use: %v", because)
	}
}

func TestObserve_ASandboxCannotClaimAState(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set(stateHeader, "asleep")
		rw.Header().Set(noticeHeader, "asleep")
	})
	a := w.ask("GET", port3000+"/", bearer)
	if a.Header.Get(stateHeader) != "" || a.Header.Get(noticeHeader) != "" {
		t.Error(a.Header)
	}
}

func TestDetail_IsOneShortCleanLineWithoutTheQuery(t *testing.T) {
	for path, want := range map[string]string{
		"/lab/tree":                       "GET /lab/tree",
		"/a\x00b\x1b[31m\r\nc":            "GET /ab[31m c",
		"/\xff\xfe/ü":                     "GET /?/ü",
		"/" + strings.Repeat("ü", 200):    "GET /" + strings.Repeat("ü", 39) + "…",
		"/\u202eevil":                     "GET /evil",
		"/" + strings.Repeat("a", 100000): "GET /" + strings.Repeat("a", 79) + "…",
	} {
		if got := detail("GET", path); got != want {
			t.Errorf("%.40q: %q, want %q", path, got, want)
		}
	}
}
