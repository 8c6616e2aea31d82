package proxy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// script is how a page's script asks.
func script(cookie string) header {
	return header{"Cookie", cookie, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "empty"}
}

func TestPoll_WhoIsUnattended(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	cookie := w.signIn("3000-ml.localhost")
	byScript := script(cookie)
	for what, c := range map[string]struct {
		method, path string
		h            header
		unattended   bool // the second time
	}{
		"a script's GET":                  {"GET", "/api/status", byScript, true},
		"a script's HEAD":                 {"HEAD", "/api/status", byScript, true},
		"with another query":              {"GET", "/api/status?t=1", byScript, true},
		"a picture":                       {"GET", "/cam.jpg", header{"Cookie", cookie, "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Site", "same-origin"}, true},
		"a script's POST":                 {"POST", "/api/run", byScript, false},
		"a navigation":                    {"GET", "/", header{"Cookie", cookie, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "none"}, false},
		"a program with a token":          {"GET", "/api/t", bearer, false},
		"a token in a page":               {"GET", "/api/p", append(header{"Sec-Fetch-Mode", "cors"}, bearer...), false},
		"an old browser, or curl":         {"GET", "/api/c", header{"Cookie", cookie}, false},
		"a script's GET of something new": {"GET", "/api/", byScript, false},
	} {
		for i, path := range []string{c.path, c.path} {
			if path == "/api/" {
				path += strings.Repeat("x", i)
			}
			w.wantStatus(w.ask(c.method, port3000+path, c.h), 200)
			uses := w.boxes.usesSeen()
			if got := uses[len(uses)-1]; what != "with another query" && got.Unattended != (i > 0 && c.unattended) || got.Kind != idle.Web {
				t.Errorf("%s, time %d: %+v", what, i+1, got)
			}
		}
	}
}

func TestPoll_ARepeatedQueryStillRepeats(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	cookie := w.signIn("3000-ml.localhost")
	for i, query := range []string{"?t=1", "?t=2"} {
		w.wantStatus(w.ask("GET", port3000+"/poll"+query, script(cookie)), 200)
		if got := w.boxes.usesSeen()[i].Unattended; got != (i == 1) {
			t.Errorf("time %d: %v", i+1, got)
		}
	}
	w.wantStatus(w.ask("GET", port3000+"/poll", script(w.signIn("3000-ml.localhost"))), 200)
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
			w.wantStatus(poll(), 200) // somebody was here within the hour
			for range 4 {
				time.Sleep(20 * time.Minute)
				w.wantStatus(poll(), 200)
			}
			w.boxes.set("ml", state, "")
			a := poll()
			if a.StatusCode != 503 || a.Header.Get("Retry-After") != "60" || a.Header.Get(stateHeader) != string(state) ||
				!contains(a.body, `"code":"asleep"`, "ml is asleep. A page that only repeats the same request does not wake it.", "Reload the page.") {
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

func TestObserve_NeitherCountsNorWakes(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), reflect)
	w.serve(tabHost("main"), tty("main"))
	probe := append(header{observeHeader, "1"}, bearer...)
	a := w.ask("GET", port3000+"/health", probe)
	if s := w.seen(a); len(s.Header[observeHeader]) > 0 || a.Header.Get(stateHeader) != "running" {
		t.Errorf("the sandbox saw %v; %v", s.Header, a.Header)
	}
	w.wantStatus(w.ask("GET", terminal+"/", probe), 200)
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Asleep, sandbox.Sleeping, sandbox.Starting, sandbox.Creating, sandbox.Stopped, sandbox.Failed} {
		w.boxes.set("ml", state, "")
		a := w.ask("GET", port3000+"/health", probe)
		if a.StatusCode != 503 || a.Header.Get(stateHeader) != string(state) || state.Resting() != contains(a.body, `"code":"asleep"`) {
			t.Errorf("%s: %d %v %s", state, a.StatusCode, a.Header, a.body)
		}
	}
	if opened, _ := w.boxes.entered(); opened != 0 || w.boxes.woken() != 0 {
		t.Errorf("%d doors, %d wakes", opened, w.boxes.woken())
	}
	w.boxes.set("ml", sandbox.Running, "")
	w.wantStatus(w.ask("GET", port3000+"/health", header{observeHeader, "1"}), 401)
	if because := w.boxes.uses.Standing("ml").Because; len(because) != 0 {
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
		"/a\x00b\x1b[31m\r\nc":            "GET /ab[31mc",
		"/\xff\xfe/ü":                     "GET //ü",
		"/" + strings.Repeat("ü", 200):    "GET /" + strings.Repeat("ü", 79) + "…",
		"/\u202eevil":                     "GET /evil",
		"/" + strings.Repeat("a", 100000): "GET /" + strings.Repeat("a", 79) + "…",
	} {
		if got := detail("GET", path); got != want {
			t.Errorf("%.40q: %q, want %q", path, got, want)
		}
	}
}
