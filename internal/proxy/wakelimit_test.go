package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

func TestOutsiders_WakeAPublicPortsSandbox(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Frozen, sandbox.Asleep} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), greet)
			w.expose(3000, sandbox.Public)
			w.boxes.set("ml", state, "")
			w.wantStatus(w.ask("GET", "http://3001-ml.localhost:8080/", nil), 401)
			if w.boxes.woken() != 0 {
				t.Fatal("another port has woken it")
			}
			w.wantStatus(w.ask("GET", port3000+"/", nil), 200)
			if w.boxes.woken() != 1 {
				t.Errorf("%d wakes", w.boxes.woken())
			}
		})
	}
}

func TestOutsiders_AForgottenPageKeepsNothingAwakeAndWakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.expose(3000, sandbox.Public)
		_, secret := w.shareLink(3001)
		w.serve(portHost(3001), greet)
		for what, h := range map[string]header{
			port3000:                          {"Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin"},
			port3000 + "/plain":               {"Accept", "*/*"},
			"http://3001-ml.localhost:8080/c": append(w.openLink("http://3001-ml.localhost:8080", secret), "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin"),
		} {
			w.boxes.set("ml", sandbox.Running, "")
			w.wantStatus(w.ask("GET", what, append(h, "Sec-Fetch-User", "?1")), 200)
			for range 59 { // within the hour it counts
				time.Sleep(time.Minute)
				w.wantStatus(w.ask("GET", what, h), 200)
			}
			for range 120 {
				time.Sleep(time.Minute)
				w.ask("GET", what, h)
			}
			if still := w.stillSince(); still < 90*time.Minute {
				t.Errorf("%s: still for %v only", what, still)
			}
			before := w.boxes.woken()
			w.boxes.set("ml", sandbox.Asleep, "")
			w.wantStatus(w.ask("GET", what, h), 503)
			if w.boxes.woken() != before {
				t.Errorf("%s: it wakes", what)
			}
		}
	})
}

func TestOutsiders_AProgramWithALinkIsNoForgottenPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		_, secret := w.shareLink(3000)
		for range 5 {
			time.Sleep(10 * time.Minute)
			w.boxes.set("ml", sandbox.Asleep, "")
			w.wantStatus(w.ask("GET", port3000+"/data", header{hostname.ShareHeader, secret}), 200)
		}
		if w.boxes.woken() != 5 {
			t.Errorf("%d wakes", w.boxes.woken())
		}
	})
}

func TestOutsiders_AreToldApartByWhereTheyComeFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.proxy.cfg.Trusted = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		w.serve(portHost(3000), greet)
		w.expose(3000, sandbox.Public)
		ask := func(from string) idle.Use {
			w.wantStatus(w.ask("GET", port3000+"/data", header{"X-Forwarded-For", from}), 200)
			uses := w.boxes.usesSeen()
			return uses[len(uses)-1]
		}
		for range 5 {
			ask("203.0.113.1")
			ask("2001:db8::1")
			time.Sleep(time.Minute)
		}
		for from, unattended := range map[string]bool{"203.0.113.1": true, "203.0.113.2": false, "2001:db8::2": true, "2001:db8:1::1": false} {
			if got := ask(from).Unattended; got != unattended {
				t.Errorf("from %s: %v", from, got)
			}
		}
	})
}

func TestWakeLimit_ManyAtOnceWakeOnceAndCountAsOneWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.expose(3000, sandbox.Public)
		w.boxes.takes = time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		done := make(chan int)
		const many = 3 * wakeBurst
		for i := range many {
			go func() { done <- w.ask("GET", fmt.Sprintf("%s/%d", port3000, i), nil).StatusCode }()
		}
		for range many {
			if status := <-done; status != 200 {
				t.Errorf("status %d", status)
			}
		}
		if w.boxes.woken() != 1 {
			t.Errorf("%d wakes", w.boxes.woken())
		}
	})
}

func TestWakeLimit_AWakeThatFailsIsNotRepeatedForEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.expose(3000, sandbox.Public)
		w.boxes.wakeErr = fault.New(fault.Unavailable, "This host has no room: 12 MiB are left.")
		w.boxes.set("ml", sandbox.Asleep, "")
		tried := func(h header) bool {
			before := len(w.boxes.usesSeen())
			a := w.ask("GET", fmt.Sprintf("%s/%d", port3000, time.Now().UnixNano()), h)
			w.wantStatus(a, 503)
			if len(h) == 0 && contains(a.body, "12 MiB") {
				t.Errorf("it tells too much: %s", a.body)
			}
			return len(w.boxes.usesSeen()) > before
		}
		for _, pause := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
			if !tried(nil) || tried(nil) || tried(nil) {
				t.Fatalf("after %ds: not one try", pause)
			}
			if !tried(bearer) {
				t.Error("the owner is held back")
			}
			time.Sleep(pause*time.Second - time.Millisecond)
			if tried(nil) {
				t.Fatalf("tried again before %ds are over", pause)
			}
			time.Sleep(time.Millisecond)
		}
		w.boxes.wakeErr = nil
		w.wantStatus(w.ask("GET", port3000+"/", nil), 200)
		w.boxes.wakeErr = fault.New(fault.Unavailable, "Full.")
		w.boxes.set("ml", sandbox.Asleep, "")
		tried(nil)
		time.Sleep(failedPause)
		if !tried(nil) {
			t.Error("a wake that succeeded has not ended the pause")
		}
	})
}

// The wake continues, and the sandbox may run before a pause would be over.
func TestWakeLimit_AnEngineThatDoesNotAnswerInTimeHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.expose(3000, sandbox.Public)
		w.boxes.wakeErr = fault.Wrap(sandbox.ErrNoAnswer, fault.Unavailable, "The container engine does not answer.")
		w.boxes.set("ml", sandbox.Asleep, "")
		for i := range 3 {
			w.wantStatus(w.ask("GET", port3000+"/", nil), 503)
			if got := len(w.boxes.usesSeen()); got != i+1 {
				t.Errorf("request %d: the sandbox was asked for %d times", i+1, got)
			}
		}
		w.boxes.wakeErr = nil
		w.wantStatus(w.ask("GET", port3000+"/", nil), 200)
	})
}

func TestWakeLimit_BoundsHowOftenOutsidersWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.expose(3000, sandbox.Public)
		asleep := func() { time.Sleep(time.Millisecond); w.boxes.set("ml", sandbox.Asleep, "") }
		visit := func(h header) int {
			return w.ask("GET", fmt.Sprintf("%s/%d", port3000, time.Now().UnixNano()), append(h, "Sec-Fetch-User", "?1")).StatusCode
		}
		for range wakeBurst {
			asleep()
			if status := visit(nil); status != 200 {
				t.Fatalf("status %d", status)
			}
		}
		asleep()
		if status := visit(nil); status != 429 {
			t.Errorf("one more: %d", status)
		}
		if status := visit(bearer); status != 200 {
			t.Errorf("the owner: %d", status)
		}
		asleep()
		time.Sleep(wakeEvery)
		if status := visit(nil); status != 200 {
			t.Errorf("after a while: %d", status)
		}
	})
}

// spend has outsiders wake the sandbox as often as they may.
func (w *world) spend() {
	w.t.Helper()
	for range wakeBurst {
		<-time.After(time.Millisecond)
		w.boxes.set("ml", sandbox.Frozen, "")
		w.wantStatus(w.ask("GET", fmt.Sprintf("%s/%d", port3000, time.Now().UnixNano()), header{"Sec-Fetch-User", "?1"}), 200)
	}
	<-time.After(time.Millisecond)
	w.boxes.set("ml", sandbox.Frozen, "")
}

// mirror answers a WebSocket's messages with the same, and every other request with nothing.
func mirror(rw http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
	for err == nil {
		var kind int
		var message []byte
		if kind, message, err = conn.ReadMessage(); err == nil {
			err = conn.WriteMessage(kind, message)
		}
	}
}

func TestOutsiders_MessagesOnAnOpenSocketAreLimitedAsNewRequestsAre(t *testing.T) {
	for beats, message := range map[bool]string{false: strings.Repeat("large ", 100), true: "x"} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
				if websocket.IsWebSocketUpgrade(r) {
					mirror(rw, r)
				}
			})
			w.expose(3000, sandbox.Public)
			conn, owners := w.socket(port3000+"/ws", nil), w.socket(port3000+"/ws", bearer)
			says := func(conn *websocket.Conn) error {
				err := conn.WriteMessage(websocket.TextMessage, []byte(message))
				if err == nil {
					_, _, err = conn.ReadMessage()
				}
				return err
			}
			for range 5 {
				time.Sleep(10 * time.Second)
				if err := says(conn); err != nil {
					t.Fatal(err)
				}
			}
			w.spend()
			before := w.boxes.woken()
			if beats {
				time.Sleep(10 * time.Second)
			}
			if err := says(conn); err == nil || w.boxes.woken() != before {
				t.Errorf("beats %v: %v, %d wakes more", beats, err, w.boxes.woken()-before)
			}
			if err := says(owners); err != nil || w.boxes.woken() != before+1 {
				t.Errorf("the owner: %v, %d wakes more", err, w.boxes.woken()-before)
			}
		})
	}
}

func TestOutsiders_AnUploadIsLimitedAsNewRequestsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), answersAs)
		w.expose(3000, sandbox.Public)
		body, feed := io.Pipe()
		go func() {
			_, _ = feed.Write([]byte("first "))
			time.Sleep(30 * time.Second)
			w.spend()
			_, _ = feed.Write([]byte("second"))
			_ = feed.Close()
		}()
		if a := w.send(w.request("POST", port3000+"/", body, nil)); a.StatusCode == 200 || w.boxes.woken() != wakeBurst {
			t.Errorf("%d %q, %d wakes", a.StatusCode, a.body, w.boxes.woken())
		}
	})
}

func TestWakeLimit_ForgetsOldSandboxes(t *testing.T) {
	s := newWakeLimiter()
	now := time.Now()
	for i := range 3 * maxLimited {
		if err := s.take(sandbox.Sandbox{ID: fmt.Sprint(i), Changed: now}, now); err != nil {
			t.Fatal(err)
		}
		if len(s.by) > maxLimited {
			t.Fatalf("%d are remembered", len(s.by))
		}
	}
}
