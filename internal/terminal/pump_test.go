package terminal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestPump_PassesATerminalsConversation(t *testing.T) {
	got := make(chan string, 10)
	w := ttydWorld(t, func(conn *websocket.Conn) {
		for range 3 {
			_, p, err := conn.ReadMessage()
			if err != nil {
				return
			}
			got <- string(p)
		}
		_ = say(conn, "1bash (box)\x1b[2J", `2{"fontSize":14}`, "0hel", "0lo", "9unknown", "", "2not json", "0!")
		goodbye(conn, websocket.CloseNormalClosure, "")
	})
	v := watch(t, w)
	v.send(`{"AuthToken":"forged","columns":120,"rows":32,"window":1}`)
	v.send("2")
	v.send("3")
	v.send("?")
	v.send(`{"columns":1,"rows":1}`)
	v.send("410")
	v.send("0ls\r")
	v.send(`1{"columns":99999,"rows":0,"x":[]}`)
	want := []string{`{"AuthToken":"","columns":120,"rows":32}`, "0ls\r", `1{"columns":1000,"rows":24}`}
	for _, m := range want {
		if g := <-got; g != m {
			t.Errorf("the terminal got %q, want %q", g, m)
		}
	}
	title, _ := v.next()
	prefs, _ := v.next()
	if title != "1bash (box)[2J" || prefs != `2{"fontSize":14}` {
		t.Errorf("title %q, preferences %q", title, prefs)
	}
	output, code, reason := v.end()
	if output != "hello!" || code != CloseEnded || reason == "" {
		t.Errorf("output %q, code %d %q", output, code, reason)
	}
	if err := v.result(); err != nil {
		t.Errorf("pump: %v", err)
	}
}

// TestPump_AnswersAPing also of a viewer that has not acknowledged what it got: its window is full.
func TestPump_AnswersAPing(t *testing.T) {
	w := ttydWorld(t, func(conn *websocket.Conn) {
		_, _, _ = conn.ReadMessage()
		_ = say(conn, "0"+strings.Repeat("x", minWindow))
		_, p, err := conn.ReadMessage()
		if err == nil {
			_ = say(conn, "0the terminal got "+string(p))
		}
	})
	v := watch(t, w)
	v.send(`{"columns":80,"rows":24,"window":1}`)
	for got := 0; got < minWindow; {
		m, err := v.next()
		if err != nil {
			t.Fatal(err)
		}
		got += len(m) - 1
	}
	v.send("6")
	if m, err := v.next(); m != "6" || err != nil {
		t.Errorf("got %q, %v", m, err)
	}
}

func TestPump_LosesNoByte(t *testing.T) {
	sum := sha256.New()
	w := ttydWorld(t, func(conn *websocket.Conn) {
		buf := make([]byte, 8192)
		buf[0] = wire.TTYOutput
		for i := range 4000 {
			n := 1 + (i*7919)%8191
			for j := 1; j < n; j++ {
				buf[j] = byte(i * j)
			}
			sum.Write(buf[1:n])
			if conn.WriteMessage(websocket.BinaryMessage, buf[:n]) != nil {
				return
			}
		}
		goodbye(conn, websocket.CloseNormalClosure, "")
	})
	output, code, _ := watch(t, w).end()
	if got := sha256.Sum256([]byte(output)); code != CloseEnded || !slices.Equal(got[:], sum.Sum(nil)) {
		t.Fatalf("code %d; %d bytes, and not those that were sent", code, len(output))
	}
}

func TestPump_SlowViewerHoldsTheTerminalBack(t *testing.T) {
	sent, stuck := 0, make(chan int, 1)
	w := ttydWorld(t, func(conn *websocket.Conn) {
		chunk := "0" + strings.Repeat("x", 60_000)
		for {
			_ = conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			if say(conn, chunk) != nil {
				stuck <- sent
				return
			}
			sent += len(chunk)
		}
	})
	v := watch(t, w)
	v.send(fmt.Sprintf(`{"columns":80,"rows":24,"window":%d}`, minWindow))
	if n := <-stuck; n > 64<<20 {
		t.Fatalf("%d bytes went into an unread window", n)
	}
	held := 0
	for held < minWindow {
		m, err := v.next()
		if err != nil {
			t.Fatal(err)
		}
		held += len(m) - 1
	}
	if held > minWindow+outputMessage {
		t.Fatalf("%d bytes are unacknowledged", held)
	}
}

func TestPump_SaysWhyTheTerminalIsGone(t *testing.T) {
	cases := []struct {
		name  string
		state sandbox.State
		gone  bool
		ended bool
		code  int
		text  string
	}{
		{"link", sandbox.Running, false, false, CloseInterrupted, "interrupted"},
		{"shell", sandbox.Running, false, true, CloseEnded, "ended"},
		{"stopped", sandbox.Stopped, false, true, CloseStopped, "stopped"},
		{"asleep", sandbox.Asleep, false, true, CloseAsleep, "wakes"},
		{"falling asleep", sandbox.Sleeping, false, true, CloseAsleep, "wakes"},
		{"frozen", sandbox.Frozen, false, false, CloseAsleep, "wakes"},
		{"failed", sandbox.Failed, false, true, CloseFailed, "out of memory"},
		{"deleted", sandbox.Running, true, false, CloseDeleted, "deleted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := ttydWorld(t, func(conn *websocket.Conn) { _ = say(conn, "0last words") })
			w.state, w.gone, w.ended = c.state, c.gone, c.ended
			output, code, reason := watch(t, w).end()
			if output != "last words" || code != c.code || !strings.Contains(reason, c.text) {
				t.Errorf("output %q, code %d %q", output, code, reason)
			}
		})
	}
}

func TestPump_PassesOnWhatTheGuestsOwnTerminalSays(t *testing.T) {
	for from, to := range map[int]int{websocket.CloseTryAgainLater: CloseSlow, websocket.CloseInternalServerErr: CloseProblem} {
		w := ttydWorld(t, func(conn *websocket.Conn) { goodbye(conn, from, "no \u202eshell") })
		_, code, reason := watch(t, w).end()
		if code != to || strings.Contains(reason, "\u202e") {
			t.Errorf("code %d %q", code, reason)
		}
	}
}

func TestPump_EndsWithItsContext(t *testing.T) {
	for _, c := range []struct {
		cause error
		code  int
	}{{nil, CloseGoingAway}, {fault.New(fault.Unauthenticated, "You have been signed out."), CloseAbuse}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := ttydWorld(t, func(conn *websocket.Conn) {
			_ = say(conn, "0there")
			_, _, _ = conn.ReadMessage()
		})
		v := watchUntil(t, w, ctx)
		if m, err := v.next(); m != "0there" {
			t.Fatalf("%q, %v", m, err)
		}
		cancel(c.cause)
		if _, code, _ := v.end(); code != c.code {
			t.Errorf("code %d, want %d", code, c.code)
		}
		if err := v.result(); err != nil {
			t.Errorf("pump: %v", err)
		}
	}
}

func TestPump_LetsTheTerminalGoWhenTheViewerLeaves(t *testing.T) {
	ended := make(chan error, 1)
	w := ttydWorld(t, func(conn *websocket.Conn) {
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				ended <- err
				return
			}
		}
	})
	v := watch(t, w)
	v.send(`{"columns":80,"rows":24}`)
	v.conn.Close()
	if err := v.result(); err != nil {
		t.Errorf("pump: %v", err)
	}
	select {
	case <-ended:
	case <-time.After(testLimit):
		t.Fatal("the terminal's connection stays")
	}
}

func TestPump_RefusesWhatIsNoViewer(t *testing.T) {
	huge := "0" + strings.Repeat("x", viewerMessage)
	for _, m := range []string{"0early", "{", `{"columns":"x"}`, `{"columns":1}` + strings.Repeat(" ", maxHello), huge} {
		w := ttydWorld(t, func(conn *websocket.Conn) {
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		})
		v := watch(t, w)
		v.send(m)
		if _, code, _ := v.end(); code != CloseAbuse && code != websocket.CloseMessageTooBig {
			t.Errorf("%.20q: code %d", m, code)
		}
	}
}

func TestAttach_ErrorsComeBeforeTheUpgrade(t *testing.T) {
	hangs := rawWorld(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	refused := &world{refuse: fault.New(fault.Conflict, "The sandbox is stopped. Start it first.")}
	unlinked := &world{dial: func(context.Context) (net.Conn, error) { return nil, errors.New("no link") }}
	for _, c := range []struct {
		name string
		w    *world
		tab  string
		kind fault.Kind
	}{
		{"bad tab", refused, "../x", fault.Invalid},
		{"stopped", refused, "main", fault.Conflict},
		{"no link", unlinked, "main", fault.Unavailable},
		{"silent", hangs, "main", fault.Timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := testLimit
			if c.kind == fault.Timeout {
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := New(c.w, slog.New(slog.DiscardHandler)).Attach(ctx, c.w.handle(), c.tab)
			if !fault.Is(err, c.kind) && !(c.kind == fault.Timeout && fault.Is(err, fault.Unavailable)) {
				t.Fatalf("error %v of kind %v, want %v", err, fault.KindOf(err), c.kind)
			}
		})
	}
}

func TestAttach_BoundsAHostileHandshake(t *testing.T) {
	accept := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	for name, talk := range map[string]func(net.Conn){
		"endless header": func(c net.Conn) {
			line := []byte("X-A: " + strings.Repeat("a", 4000) + "\r\n")
			_, err := c.Write([]byte(accept))
			for err == nil {
				_, err = c.Write(line)
			}
		},
		"garbage": func(c net.Conn) { _, _ = c.Write([]byte(strings.Repeat("\x00\xff", 1000))) },
		"refusal": func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")) },
		"nothing": func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := rawWorld(t, func(c net.Conn) {
				buf := make([]byte, 4096)
				_, _ = c.Read(buf)
				talk(c)
			})
			_, err := New(w, slog.New(slog.DiscardHandler)).Attach(t.Context(), w.handle(), "main")
			if !fault.Is(err, fault.Unavailable) {
				t.Fatalf("error %v", err)
			}
		})
	}
}

func TestAttach_RefusesCompressionThatNobodyOffered(t *testing.T) {
	w := rawWorld(t, nil)
	up := websocket.Upgrader{Subprotocols: []string{Subprotocol}}
	server := http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		head := http.Header{"Sec-Websocket-Extensions": {"permessage-deflate; server_no_context_takeover; client_no_context_takeover"}}
		if conn, err := up.Upgrade(rw, r, head); err == nil {
			conn.Close()
		}
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	w.dial = func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
	if _, err := New(w, slog.New(slog.DiscardHandler)).Attach(t.Context(), w.handle(), "main"); err == nil {
		t.Fatal("attached")
	}
}

// A hostile guest that has passed the handshake.
func TestPump_BoundsAHostileTerminal(t *testing.T) {
	frame := func(head byte, claimed uint64) []byte {
		return binary.BigEndian.AppendUint64([]byte{head, 127}, claimed)
	}
	flood := func(p []byte) func(net.Conn) {
		return func(c net.Conn) {
			for {
				_ = c.SetWriteDeadline(time.Now().Add(testLimit))
				if _, err := c.Write(p); err != nil {
					return
				}
			}
		}
	}
	cases := map[string]func(net.Conn){
		"huge frame":     func(c net.Conn) { _, _ = c.Write(frame(0x82, 1<<62)); flood([]byte("0000"))(c) },
		"negative frame": func(c net.Conn) { _, _ = c.Write(frame(0x82, 1<<63)); flood([]byte("0000"))(c) },
		"endless fragments": func(c net.Conn) {
			_, _ = c.Write([]byte{0x02, 1, '1'})
			flood(append([]byte{0x00, 126, 0x40, 0}, make([]byte, 0x4000)...))(c)
		},
		"garbage":      flood([]byte{0xff, 0x13, 0x00, 0x99}),
		"masked":       func(c net.Conn) { _, _ = c.Write([]byte{0x82, 0x81, 1, 2, 3, 4, 5}) },
		"bad close":    func(c net.Conn) { _, _ = c.Write([]byte{0x88, 2, 0x03, 0xee}) },
		"torn message": func(c net.Conn) { _, _ = c.Write([]byte{0x82, 100, '0', 'x'}) },
	}
	for name, talk := range cases {
		t.Run(name, func(t *testing.T) {
			w := ttydWorld(t, func(conn *websocket.Conn) { talk(conn.NetConn()) })
			v := watch(t, w)
			v.send(`{"columns":80,"rows":24}`)
			if _, code, _ := v.end(); code != CloseInterrupted {
				t.Errorf("code %d", code)
			}
			_ = v.result()
		})
	}
}
