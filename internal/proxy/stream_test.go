package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// because tells what uses the sandbox, in a word.
func (w *world) because() string {
	var kinds []string
	for _, r := range w.boxes.uses.Status("1").Because {
		kinds = append(kinds, string(r.Kind)+" "+r.Detail)
	}
	return strings.Join(kinds, ", ")
}

// stillSince tells how long nothing has used the sandbox.
func (w *world) stillSince() time.Duration {
	if since := w.boxes.uses.Status("1").Idle; !since.IsZero() {
		return time.Since(since)
	}
	return 0
}

// drip serves a page without end: n bytes every pause.
func drip(n int, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for r.Context().Err() == nil {
			_, _ = w.Write(bytes.Repeat([]byte("x"), n))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
			}
		}
	}
}

// stream opens an endless answer, and reads it until stop.
func (w *world) stream(path string, h header) (stop func()) {
	w.t.Helper()
	res, err := w.client.Do(w.request("GET", port3000+path, nil, h))
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, res.Body) }()
	return func() { _ = res.Body.Close(); <-done; w.wantReleased() }
}

func TestStream_CountsWhileBytesFlow(t *testing.T) {
	for what, c := range map[string]struct {
		bytes  int
		pause  time.Duration
		counts bool
	}{
		"a download":              {10_000, time.Second, true},
		"a slow feed":             {200, 9 * time.Second, true},
		"small events, often":     {20, time.Second, true},
		"a heartbeat":             {20, 5 * time.Second, false},
		"an event now and then":   {60, 6 * time.Second, false},
		"nothing after the start": {1000, 10 * time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), drip(c.bytes, c.pause))
			stop := w.stream("/feed", bearer)
			time.Sleep(time.Second)
			if got := w.because(); got != "web GET /feed" {
				t.Errorf("%s: at first %q", what, got)
			}
			time.Sleep(3 * time.Hour)
			if got := w.because(); c.counts != (got == "stream GET /feed") || c.counts == (got == "") {
				t.Errorf("%s: after hours %q", what, got)
			}
			if still := w.stillSince(); !c.counts && (still < 3*time.Hour-time.Minute) {
				t.Errorf("%s: still for %v only", what, still)
			}
			stop()
		})
	}
}

func TestStream_AProgramThatThinksIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(headerLimit - time.Minute)
			_, _ = io.WriteString(rw, "thought")
		})
		time.AfterFunc(headerLimit-2*time.Minute, func() {
			if got := w.because(); got != "web POST /think" {
				t.Errorf("while it thinks: %q", got)
			}
		})
		slow := &slowBody{pieces: 20, pause: time.Second} // it is an upload before
		r := w.request("POST", port3000+"/think", io.NopCloser(slow), bearer)
		time.AfterFunc(15*time.Second, func() {
			if got := w.because(); got != "stream POST /think" {
				t.Errorf("while it is sent: %q", got)
			}
		})
		if a := w.send(r); a.body != "thought" {
			t.Errorf("%d %q", a.StatusCode, a.body)
		}
		w.wantReleased()
	})
}

// slowBody gives a piece after each pause.
type slowBody struct {
	pieces int
	pause  time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.pieces == 0 {
		return 0, io.EOF
	}
	b.pieces--
	<-time.After(b.pause)
	return copy(p, strings.Repeat("x", 100)), nil
}

func TestStream_AnUploadThatStallsIsNoUseAndGoesOnAfterAThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), answersAs)
		w.boxes.takes = 20 * time.Millisecond
		body, feed := io.Pipe()
		go func() {
			_, _ = feed.Write([]byte("first "))
			time.Sleep(time.Hour)
			if got := w.because(); got != "" || w.stillSince() < 59*time.Minute {
				t.Errorf("while it stalls: %q", got)
			}
			w.boxes.set("ml", sandbox.Frozen, "")
			_, _ = feed.Write([]byte("second"))
			_ = feed.Close()
		}()
		if a := w.send(w.request("POST", port3000+"/", body, bearer)); a.body != "POST first second" {
			t.Errorf("%d %q", a.StatusCode, a.body)
		}
		if got := w.boxes.woken(); got != 1 {
			t.Errorf("%d wakes", got)
		}
	})
}

// socket opens a WebSocket in fake time.
func (w *world) socket(address string, h header) *websocket.Conn {
	w.t.Helper()
	conn, _, err := w.dial(address, h)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return conn
}

func TestWebSocket_CountsByContentAndNotByPings(t *testing.T) {
	pings := func(c *websocket.Conn) error {
		return c.WriteControl(websocket.PingMessage, bytes.Repeat([]byte("p"), 100), time.Now().Add(time.Minute))
	}
	says := func(n int) func(*websocket.Conn) error {
		return func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte("x"), n))
		}
	}
	for what, c := range map[string]struct {
		every  time.Duration
		send   func(*websocket.Conn) error
		counts bool
	}{
		"pings only":                 {5 * time.Second, pings, false},
		"a heartbeat of the page's":  {25 * time.Second, says(30), false},
		"a frequent heartbeat":       {5 * time.Second, says(2), false},
		"one like a terminal's key":  {25 * time.Second, func(c *websocket.Conn) error { return c.WriteMessage(websocket.TextMessage, []byte("0l")) }, false},
		"large messages":             {9 * time.Second, says(5000), true},
		"much in small messages":     {time.Second, says(20), true},
		"one large message a minute": {time.Minute, says(200), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), echoSocket)
			conn := w.socket(port3000+"/ws", bearer)
			go func() {
				for {
					if _, _, err := conn.ReadMessage(); err != nil {
						return
					}
				}
			}()
			for begun := time.Now(); time.Since(begun) < 3*time.Hour; time.Sleep(c.every) {
				if err := c.send(conn); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if still := w.stillSince(); c.counts != (still < 2*time.Minute) {
				t.Errorf("%s: still for %v, because %q", what, still, w.because())
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}

func TestWebSocket_OfAPageCountsByWhatAPersonSays(t *testing.T) {
	for what, c := range map[string]struct {
		pause func() time.Duration
		bytes int
		there bool
	}{
		"a timer":                    {steady(25*time.Second, time.Second), 20, false},
		"a timer that says much":     {steady(time.Minute, time.Second), 5000, false},
		"a person":                   {moody(2 * time.Minute), 20, true},
		"a person who says much":     {moody(10 * time.Minute), 5000, true},
		"what only the sandbox says": {func() time.Duration { return time.Minute }, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
				conn, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
				if err != nil {
					return
				}
				go drain(conn)
				for err == nil {
					err = conn.WriteMessage(websocket.TextMessage, make([]byte, 500))
					time.Sleep(20 * time.Second)
				}
			})
			conn := w.socket(port3000+"/ws", header{"Sec-Fetch-Mode", "websocket", "Origin", port3000, "Cookie", w.signIn("3000-ml.localhost")})
			go drain(conn)
			for begun := time.Now(); time.Since(begun) < 3*time.Hour; time.Sleep(c.pause()) {
				if c.bytes > 0 {
					if err := conn.WriteMessage(websocket.TextMessage, make([]byte, c.bytes)); err != nil {
						t.Fatal(err)
					}
				}
			}
			synctest.Wait()
			if still := w.stillSince(); w.boxes.uses.Counts("1") != c.there || still > time.Minute == c.there {
				t.Errorf("%s: counts %v, still for %v", what, w.boxes.uses.Counts("1"), still)
			}
			_ = conn.Close()
			w.wantReleased()
			time.Sleep(time.Minute) // the program notices
		})
	}
}

func TestWebSocket_AMessageThawsBeforeItIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			for {
				kind, message, err := conn.ReadMessage()
				if err != nil {
					return
				}
				if state := w.boxes.state("ml"); state != sandbox.Running {
					t.Errorf("%q arrives while it is %s", message, state)
				}
				_ = conn.WriteMessage(kind, message)
			}
		})
		w.boxes.takes = 20 * time.Millisecond
		conn := w.socket(port3000+"/ws", bearer)
		for i, message := range []string{"x", strings.Repeat("large ", 100), ""} {
			time.Sleep(2 * time.Hour)
			w.boxes.set("ml", sandbox.Frozen, "")
			if err := conn.WriteControl(websocket.PongMessage, []byte("there"), time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if w.boxes.state("ml") != sandbox.Frozen {
				t.Error("a pong thaws")
			}
			if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := conn.ReadMessage(); err != nil || string(got) != message || w.boxes.woken() != i+1 {
				t.Errorf("%q, %v, %d wakes", got, err, w.boxes.woken())
			}
		}
		_ = conn.Close()
		w.wantReleased()
	})
}

// beats sends the same every pause, as often as fits into that time.
func (w *world) beats(conn *websocket.Conn, pause, during time.Duration) {
	w.t.Helper()
	for begun := time.Now(); time.Since(begun) < during; {
		time.Sleep(pause)
		if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"type": "ping", 1}`)); err != nil {
			w.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func TestWebSocket_AHeartbeatThawsAsLongAsAPersonMayBeThere(t *testing.T) {
	for _, pause := range []time.Duration{5 * time.Second, 25 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), echoSocket)
			conn := w.socket(port3000+"/ws", bearer)
			echoes := 0
			go func() {
				for {
					if _, _, err := conn.ReadMessage(); err != nil {
						return
					}
					echoes++
				}
			}()
			w.beats(conn, pause, 10*time.Minute)
			if still := w.stillSince(); still > pause {
				t.Errorf("every %v: still for %v", pause, still)
			}
			w.boxes.set("ml", sandbox.Frozen, "")
			before := echoes
			w.beats(conn, pause, pause)
			if w.boxes.state("ml") != sandbox.Running || echoes != before+1 {
				t.Errorf("every %v: %s, %d echoes", pause, w.boxes.state("ml"), echoes-before)
			}
			w.beats(conn, pause, 2*time.Hour)
			if still := w.stillSince(); still < time.Hour || w.because() != "" {
				t.Errorf("every %v: after hours still for %v, %q", pause, still, w.because())
			}
			w.boxes.set("ml", sandbox.Frozen, "")
			w.beats(conn, pause, 10*time.Minute)
			if w.boxes.state("ml") != sandbox.Frozen {
				t.Errorf("every %v: a forgotten page's thaws", pause)
			}
			time.Sleep(2*pause + time.Second) // a person presses the button that says the same
			w.beats(conn, time.Nanosecond, time.Nanosecond)
			if w.boxes.state("ml") != sandbox.Running {
				t.Errorf("every %v: a person's message does not thaw", pause)
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}

// After "sleep now" nobody is taken to be there. A message that is no heartbeat shows a person.
func TestWebSocket_WhatThawsAfterAFreezeByHandCountsAsBefore(t *testing.T) {
	for name, h := range map[string]func(w *world) header{
		"a program": func(*world) header { return bearer },
		"a page": func(w *world) header {
			return append(header{"Sec-Fetch-Mode", "websocket", "Origin", port3000}, "Cookie", w.signIn("3000-ml.localhost"))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), echoSocket)
			conn := w.socket(port3000+"/ws", h(w))
			go func() { _, _ = io.Copy(io.Discard, conn.NetConn()) }()
			time.Sleep(20 * time.Second)
			w.boxes.uses.Dismiss("1")
			w.boxes.set("ml", sandbox.Frozen, "")
			w.beats(conn, 7*time.Second, 7*time.Second)
			if w.boxes.state("ml") != sandbox.Running {
				t.Fatalf("%s does not thaw it", name)
			}
			w.beats(conn, 5*time.Second, 10*time.Minute)
			if still := w.stillSince(); still > 10*time.Second {
				t.Errorf("%s: still for %v under messages", name, still)
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}

func TestWebSocket_WhatAReconnectSaysByItselfIsUnattended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), echoSocket)
		h := append(header{"Sec-Fetch-Mode", "websocket", "Origin", port3000}, "Cookie", w.signIn("3000-ml.localhost"))
		for i := range 300 { // five hours
			conn, res, err := w.dial(port3000+"/ws", h)
			if err != nil {
				if res == nil || res.StatusCode != 503 {
					t.Fatalf("%v %v", res, err)
				}
				time.Sleep(time.Minute)
				continue
			}
			_ = conn.WriteMessage(websocket.TextMessage, bytes.Repeat([]byte("hello "), 100))
			_, _, _ = conn.ReadMessage()
			_ = conn.Close()
			w.wantReleased()
			time.Sleep(time.Minute)
			if i == 200 {
				w.boxes.set("ml", sandbox.Frozen, "")
			}
		}
		if w.boxes.state("ml") != sandbox.Frozen || w.stillSince() < 3*time.Hour {
			t.Errorf("%s, still for %v", w.boxes.state("ml"), w.stillSince())
		}
	})
}

func TestWebSocket_OnATerminalOnlyTypingIsAttended(t *testing.T) {
	for what, c := range map[string]struct {
		message              string
		attended, unattended bool
	}{
		"typing":          {"0l", true, false},
		"resizing":        {`1{"columns":80,"rows":24}`, false, false},
		"the first words": {`{"AuthToken":"","columns":80}`, false, false},
		"much output":     {"1" + strings.Repeat("x", 500), false, true}, // the server here says what it hears
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(tabHost("main"), tty("main"))
			conn := w.socket(terminal+"/ws", bearer)
			if uses := w.boxes.usesSeen(); uses[0].Kind != idle.Terminal || uses[0].Detail != "main" {
				t.Errorf("%+v", uses[0])
			}
			time.Sleep(slotLength)
			if err := conn.WriteMessage(websocket.BinaryMessage, []byte(c.message)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := conn.ReadMessage(); err != nil || string(got) != c.message {
				t.Errorf("%q, %v", got, err)
			}
			attended, unattended := w.boxes.touches()
			if attended > 0 != c.attended || unattended > 0 != c.unattended {
				t.Errorf("%s: %d attended, %d unattended", what, attended, unattended)
			}
			w.boxes.set("ml", sandbox.Frozen, "")
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte(c.message))
			synctest.Wait()
			if woken := w.boxes.state("ml") == sandbox.Running; woken != c.attended {
				t.Errorf("%s: woken %v", what, woken)
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}

func TestWebSocket_CompressionIsLeftOutOnATerminalOnly(t *testing.T) {
	w := newWorld(t)
	w.serve(tabHost("main"), reflect)
	w.serve(portHost(3000), reflect)
	for address, want := range map[string]string{terminal: "", port3000: "permessage-deflate"} {
		s := w.seen(w.ask("GET", address+"/ws", append(header{"Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-Websocket-Extensions", "permessage-deflate"}, bearer...)))
		if got := s.Header.Get("Sec-Websocket-Extensions"); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestSlot_CountsOnceInEachSlotWithEnough(t *testing.T) {
	var s slot
	now := time.Now()
	for i, c := range []struct {
		after time.Duration
		bytes int
		want  bool
	}{
		{0, 127, false}, {time.Second, 1, true}, {0, 1000, false}, {slotLength, 127, false}, {slotLength, 127, false},
		{0, 1 << 40, true}, {0, 1 << 40, false}, {slotLength, 128, true},
	} {
		now = now.Add(c.after)
		if got := s.add(c.bytes, now); got != c.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
