package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// declare says that a service is to listen at port 3000.
func (w *world) declare(state wire.ServiceState) {
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	w.session.services = []wire.ServiceStatus{{Name: "db", Port: 5432, State: wire.ServiceRunning},
		{Name: "lab", Port: 3000, State: state, Since: time.Now().Add(-time.Minute)}}
}

func TestReady_ADeclaredServiceIsWaitedForAndAllFollowTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.declare(wire.ServiceRunning)
		w.boxes.takes = time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		const listens = 4 * time.Second
		time.AfterFunc(listens, func() { w.serve(portHost(3000), answersAs) })
		begun := time.Now()
		var asking sync.WaitGroup
		for range 50 {
			asking.Go(func() {
				a := w.send(w.request("POST", port3000+"/", strings.NewReader("body"), bearer))
				if took := time.Since(begun); a.body != "POST body" || took < listens || took > listens+longPause+50*time.Millisecond {
					t.Errorf("%d %q after %v", a.StatusCode, a.body, took)
				}
			})
		}
		asking.Wait()
		if w.session.dials > 250 {
			t.Errorf("%d dials", w.session.dials)
		}
	})
}

func TestReady_WhatIsKnownNotToListenIsToldAtOnce(t *testing.T) {
	for what, c := range map[string]func(*world){
		"no such service":        func(w *world) { w.boxes.set("ml", sandbox.Running, "") },
		"a service that is off":  func(w *world) { w.declare(wire.ServiceStopped); w.boxes.set("ml", sandbox.Running, "") },
		"awake for long already": func(w *world) { w.declare(wire.ServiceRunning); w.boxes.settle("ml") },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			c(w)
			begun := time.Now()
			if a := w.ask("GET", port3000+"/", asPerson); a.StatusCode != 502 || time.Since(begun) != 0 || !contains(a.body, "Nothing is listening on port 3000") {
				t.Errorf("%s: %d after %v: %s", what, a.StatusCode, time.Since(begun), a.body)
			}
		})
	}
}

func TestReady_AServiceThatNeverListensIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.declare(wire.ServiceWaiting)
		w.boxes.set("ml", sandbox.Running, "")
		begun := time.Now()
		if a := w.ask("GET", port3000+"/", asProgram); a.StatusCode != 504 || time.Since(begun) != wakeLimit {
			t.Errorf("%d after %v: %s", a.StatusCode, time.Since(begun), a.body)
		}
		if a := w.ask("GET", port3000+"/", asPerson); a.StatusCode != 502 { // it is not fresh any more
			t.Errorf("%d: %s", a.StatusCode, a.body)
		}
		w.wantReleased()
	})
}

func TestReady_AHangUpRightAfterTheWakeIsTriedAgainWhereThatIsSafe(t *testing.T) {
	for _, c := range []struct {
		method, body string
		hangUps      int
		status       int
	}{
		{"GET", "", 1, 200}, {"GET", "", 2, 200}, {"GET", "", 3, 502}, {"HEAD", "", 1, 200},
		{"POST", "", 1, 502}, {"POST", "body", 1, 502}, {"GET", "body", 1, 502}, {"DELETE", "", 1, 502},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			var mu sync.Mutex
			tries := 0
			w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if tries++; tries <= c.hangUps {
					conn, _, err := http.NewResponseController(rw).Hijack()
					if err == nil {
						_ = conn.Close()
					}
				}
			})
			w.boxes.set("ml", sandbox.Asleep, "")
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			if a := w.send(w.request(c.method, port3000+"/", body, bearer)); a.StatusCode != c.status {
				t.Errorf("%s %q hung up %d times: %d", c.method, c.body, c.hangUps, a.StatusCode)
			}
		})
	}
}

func TestReady_AServiceThatGoesAwayAgainIsNotDialledWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.declare(wire.ServiceRunning)
		w.serve(portHost(3000), greet)
		w.boxes.set("ml", sandbox.Asleep, "")
		w.wantStatus(w.ask("GET", port3000+"/", bearer), 200)
		w.session.lead(portHost(3000), nil)
		for _, p := range w.proxy.pools.byID {
			p.gate(3000).pass() // as if one had waited
			p.close()
		}
		before := w.session.dials
		time.AfterFunc(10*time.Second, func() { w.serve(portHost(3000), greet) })
		if a := w.ask("GET", port3000+"/", bearer); a.body != "hello" || w.session.dials-before > 150 {
			t.Errorf("%d %q after %d dials", a.StatusCode, a.body, w.session.dials-before)
		}
	})
}
