package proxy

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

const (
	codeHost   = "http://code-ml.localhost:8080"
	codeSocket = codeHost + "/stable-0/ws?reconnectionToken=t&reconnection=false&skipWebSocketFrames=false"
)

// ideMessage is a message of VS Code's protocol.
func ideMessage(kind byte, body string) []byte {
	head := append([]byte{kind}, make([]byte, ideHead-1)...)
	binary.BigEndian.PutUint32(head[ideLength:], uint32(len(body)))
	return append(head, body...)
}

func TestIDE_IsForWhoMayUseTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.serve(ideHost, reflect)
	s := w.seen(w.ask("GET", codeHost+"/?folder=/home/agent", bearer))
	if s.Host != "code-ml.localhost:8080" || s.URI != "/?folder=/home/agent" {
		t.Errorf("%+v", s)
	}
	w.wantStatus(w.ask("GET", codeHost, nil), 401)
	w.wantStatus(w.ask("GET", codeHost, header{"Authorization", "Bearer " + bobToken}), 404)
	w.wantStatus(w.ask("POST", codeHost, header{"Cookie", w.signIn("code-ml.localhost"), "Origin", port3000}), 403)
	w.wantStatus(w.ask("GET", codeHost, header{"Cookie", w.signIn("ml.localhost")}), 401)
	j := w.begin(codeHost+"/?folder=/srv", nil)
	a := w.ask("GET", j.mustPass(), append(header{"Cookie", j.nonce}, page...))
	if a.StatusCode != 303 || a.Header.Get("Location") != codeHost+"/?folder=/srv" {
		t.Errorf("back from the dashboard: %d %v", a.StatusCode, a.Header)
	}
}

func TestIDE_ATerminalsPasswordDoesNotOpenIt(t *testing.T) {
	w := newWorld(t)
	w.lock("guest", "hush")
	w.serve(ideHost, greet)
	r := w.request("GET", codeHost, nil, nil)
	r.SetBasicAuth("guest", "hush")
	w.wantStatus(w.send(r), 401)
}

func TestIDE_SaysWhatToDoWhereThereIsNone(t *testing.T) {
	w := newWorld(t)
	for what, c := range map[string]struct {
		err    error
		status int
		says   []string
		looks  bool
	}{
		"off":      {fault.New(fault.Conflict, "VS Code is switched off in this sandbox."), 409, []string{"VS Code is off in ml", "Switch it on", "/sandboxes/ml"}, false},
		"building": {fault.New(fault.Unavailable, "VS Code is being built: step 3 of 9."), 503, []string{"not ready", "step 3 of 9"}, true},
		"broken":   {io.ErrUnexpectedEOF, 503, []string{"not ready", "could not be started"}, true},
	} {
		w.session.err = c.err
		a := w.ask("GET", codeHost, header{"Accept", "text/html", "Cookie", w.signIn("code-ml.localhost")})
		if a.StatusCode != c.status || !contains(a.body, c.says...) || contains(a.body, scriptPath) != c.looks || strings.Contains(a.body, "unexpected EOF") {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
		}
		if p := w.ask("GET", codeHost, bearer); p.StatusCode != c.status || p.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s, a program: %d %s", what, p.StatusCode, p.body)
		}
	}
}

func TestIDE_WhereItIsOffNothingIsWoken(t *testing.T) {
	w := newWorld(t)
	w.boxes.ideOff = true
	w.boxes.set("ml", sandbox.Asleep, "")
	a := w.ask("GET", codeHost, append(page, "Cookie", w.signIn("code-ml.localhost")))
	if a.StatusCode != 409 || !contains(a.body, "VS Code is off in ml", "Switch it on", "/sandboxes/ml") || w.boxes.woken() != 0 || w.session.dials != 0 {
		t.Errorf("%d, %d wakes: %s", a.StatusCode, w.boxes.woken(), a.body)
	}
	w.serve(portHost(3000), greet)
	w.wantStatus(w.ask("GET", port3000, bearer), 200)
}

func TestIDE_IsNotCompressedOnItsWay(t *testing.T) {
	w := newWorld(t)
	var got http.Header
	w.serve(ideHost, func(rw http.ResponseWriter, r *http.Request) {
		got = r.Header
		echoSocket(rw, r)
	})
	dialer := websocket.Dialer{NetDialContext: w.client.Transport.(*http.Transport).DialContext, EnableCompression: true}
	conn, _, err := dialer.DialContext(t.Context(), strings.Replace(codeSocket, "http", "ws", 1), http.Header{"Authorization": {bearer[1]}})
	if err == nil {
		_ = conn.Close()
	}
	if got == nil || got.Get("Sec-Websocket-Extensions") != "" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestIDE_CountsWhileItIsUsedAndNotByBeingOpen(t *testing.T) {
	alive := func(c *websocket.Conn) error {
		both := append(ideMessage(ideLast, ""), ideMessage(3, "")...) // a keep-alive and an acknowledgement in one
		return c.WriteMessage(websocket.BinaryMessage, both)
	}
	written := 0
	for what, c := range map[string]struct {
		every  time.Duration
		send   func(*websocket.Conn) error
		counts bool
	}{
		"keep-alives":   {5 * time.Second, alive, false},
		"frequent ones": {10 * time.Millisecond, alive, false},
		"a person who writes": {7 * time.Second, func(c *websocket.Conn) error {
			written++
			return c.WriteMessage(websocket.BinaryMessage, ideMessage(1, strings.Repeat("x", 100+written*37%401)))
		}, true},
		"a beat in its talk": {30 * time.Second, func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.BinaryMessage, ideMessage(1, "are you there"))
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(ideHost, echoSocket)
			conn := w.socket(codeSocket, header{"Cookie", w.signIn("code-ml.localhost"), "Origin", codeHost, "Sec-Fetch-Mode", "websocket"})
			go drain(conn)
			for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); time.Sleep(c.every) {
				if err := c.send(conn); err != nil {
					t.Fatal(err)
				}
				if c.every < time.Second && time.Now().After(end.Add(-3*time.Hour+time.Minute)) {
					c.every = time.Second
				}
			}
			synctest.Wait()
			if got := w.because(); c.counts != (got == "stream VS Code") || c.counts == (got == "") {
				t.Errorf("%s: %q", what, got)
			}
			if still := w.stillSince(); !c.counts && still < 2*time.Hour-2*time.Minute {
				t.Errorf("%s: still for %v only", what, still)
			}
			_ = conn.Close()
			w.wantReleased()
		})
	}
}

func TestIDE_AKeepAliveThawsNothingAndAKeyDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(ideHost, echoSocket)
		conn := w.socket(codeSocket, header{"Cookie", w.signIn("code-ml.localhost"), "Origin", codeHost, "Sec-Fetch-Mode", "websocket"})
		go drain(conn)
		time.Sleep(time.Minute)
		w.boxes.set("ml", sandbox.Frozen, "")
		for range 100 {
			time.Sleep(5 * time.Second)
			if err := conn.WriteMessage(websocket.BinaryMessage, ideMessage(ideLast, "")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if w.boxes.woken() != 0 {
			t.Error("a keep-alive has thawed it")
		}
		if err := conn.WriteMessage(websocket.BinaryMessage, ideMessage(ideRegular, "a key")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if w.boxes.woken() != 1 || w.boxes.state("ml") != sandbox.Running {
			t.Errorf("after a key there were %d wakes, it is %s", w.boxes.woken(), w.boxes.state("ml"))
		}
		_ = conn.Close()
		w.wantReleased()
	})
}

func TestIDE_CountsForAnHourWhileItIsConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(ideHost, silentEditor(false))
		conn := w.socket(codeSocket, header{"Cookie", w.signIn("code-ml.localhost"), "Origin", codeHost, "Sec-Fetch-Mode", "websocket"})
		go drain(conn)
		w.boxes.uses.Touch("1", idle.Use{Kind: idle.Web}) // the page
		for _, want := range []string{"stream VS Code", ""} {
			time.Sleep(59 * time.Minute)
			if got := w.because(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		_ = conn.Close()
		w.wantReleased()
	})
}

func TestIDE_WhatASandboxSaysToAnEditorIsUnattended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(ideHost, func(rw http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(rw, r, nil)
			for err == nil {
				err = conn.WriteMessage(websocket.BinaryMessage, ideMessage(ideRegular, strings.Repeat("log", 100)))
				time.Sleep(time.Second)
			}
		})
		conn := w.socket(codeSocket, header{"Cookie", w.signIn("code-ml.localhost"), "Origin", codeHost, "Sec-Fetch-Mode", "websocket"})
		go drain(conn)
		time.Sleep(30 * time.Minute)
		if got := w.because(); got != "stream VS Code" {
			t.Errorf("within the hour: %q", got)
		}
		time.Sleep(2 * time.Hour)
		if got := w.because(); got != "" {
			t.Errorf("after hours: %q", got)
		}
		_ = conn.Close()
		w.wantReleased()
		time.Sleep(2 * time.Second) // the program notices
	})
}

// drain reads until the end.
func drain(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

func TestIDEProtocol_ContentIsWhatRegularMessagesHold(t *testing.T) {
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for what, c := range map[string]struct {
		stream []byte
		want   piece
	}{
		"a keep-alive":         {frame(binaryMessage, ideMessage(9, ""), 7), piece{}},
		"an acknowledgement":   {frame(binaryMessage, ideMessage(3, ""), 0), piece{}},
		"a regular one":        {frame(binaryMessage, ideMessage(1, "hello"), 7), piece{5, true, false}},
		"a greeting":           {frame(binaryMessage, ideMessage(2, `{"type":"auth"}`), 7), piece{}},
		"an empty regular one": {frame(binaryMessage, ideMessage(1, ""), 7), piece{}},
		"two in one":           {frame(binaryMessage, join(ideMessage(9, ""), ideMessage(1, "hello")), 99), piece{5, true, false}},
		"one in two":           {join(frame(binaryMessage, ideMessage(1, "hello")[:6], 3), frame(binaryMessage, ideMessage(1, "hello")[6:], 4)), piece{5, true, false}},
		"one in frames":        {join(frame(0x02, ideMessage(1, "hello")[:15], 3), frame(0x80, ideMessage(1, "hello")[15:], 4)), piece{5, true, false}},
		"no such protocol":     {frame(binaryMessage, []byte(strings.Repeat("GET / HTTP/1.1", 2)), 7), piece{28 - ideHead, true, false}},
		"an endless one":       {frame(binaryMessage, join(ideMessage(1, "")[:9], []byte{0xff, 0xff, 0xff, 0xff, 1, 2}), 7), piece{2, true, false}},
		"a ping":               {frame(ping, []byte("are you there"), 7), piece{}},
	} {
		for size := 1; size < 40; size++ {
			f := frames{inner: &ideProtocol{}}
			if got := readAll(&f, c.stream, size); got != c.want {
				t.Errorf("%s in pieces of %d: %+v, want %+v", what, size, got, c.want)
			}
		}
	}
}

func FuzzIDEProtocol_PiecesMakeNoDifference(f *testing.F) {
	f.Add(ideMessage(1, "hello"), byte(7), 3)
	f.Add(append(ideMessage(9, ""), ideMessage(2, "x")...), byte(0), 1)
	f.Fuzz(func(t *testing.T, stream []byte, key byte, size int) {
		if len(stream) > 1000 {
			return
		}
		mask := [maskLength]byte{key, key + 1, key + 2, key + 3}
		masked := make([]byte, len(stream))
		for i, b := range stream {
			masked[i] = b ^ mask[i%maskLength]
		}
		var whole, parts ideProtocol
		want := whole.read(masked, mask, 0)
		got, step := 0, max(1, size%50)
		for i := 0; i < len(masked); i += step {
			got += parts.read(masked[i:min(i+step, len(masked))], mask, i%maskLength)
		}
		if got != want || want > len(stream) || want < 0 {
			t.Fatalf("%d as a whole, %d in pieces of %d, of %d bytes", want, got, step, len(stream))
		}
	})
}

func TestPool_WaitsLongerForVSCodeToBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		dial := servePipes(t, http.HandlerFunc(greet))
		w.session.lead(ideHost, func(ctx context.Context) (net.Conn, error) {
			select {
			case <-time.After(ideLimit - time.Second):
				return dial(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		w.wantStatus(w.ask("GET", codeHost, bearer), 200)
	})
}
