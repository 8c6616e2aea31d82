package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/sandbox"
)

var ideVisitor = func(w *world) header {
	return header{"Cookie", w.signIn("code-ml.localhost"), "Origin", codeHost, "Sec-Fetch-Mode", "websocket"}
}

// silentEditor says one word and then nothing; what it says first it leaves unfinished, where half is set.
func silentEditor(half bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		word := ideMessage(ideRegular, "hello")
		if half {
			word = word[:ideHead+2]
		}
		_ = conn.WriteMessage(websocket.BinaryMessage, word)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}
}

// heard counts the keep-alives that come within some time, and fails for anything else but the first word.
func heard(t *testing.T, conn *websocket.Conn, during time.Duration) (alive int) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(during))
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return alive
		}
		switch {
		case bytes.Equal(message, ideMessage(ideLast, "")):
			alive++
		case !bytes.HasPrefix(ideMessage(ideRegular, "hello"), message):
			t.Errorf("%q came", message)
		}
	}
}

func TestKeepAlive_SaysForAFrozenSandboxThatItIsThere(t *testing.T) {
	for _, c := range []struct {
		state    sandbox.State
		half     bool
		min, max int
	}{
		{sandbox.Running, false, 0, 0}, // one that runs has to say so itself
		{sandbox.Frozen, false, 11, 12},
		{sandbox.Frozen, true, 0, 0}, // in the middle of a word there is no place for another
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(ideHost, silentEditor(c.half))
			conn := w.socket(codeSocket, ideVisitor(w))
			time.Sleep(time.Second)
			w.boxes.set("ml", c.state, "")
			if got := heard(t, conn, time.Minute); got < c.min || got > c.max {
				t.Errorf("%s, half %t: %d words in a minute", c.state, c.half, got)
			}
			_ = conn.Close()
			w.wantReleased()
			if w.boxes.woken() != 0 {
				t.Errorf("%d wakes", w.boxes.woken())
			}
		})
	}
}

func TestKeepAlive_WhatComesAfterAThawIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(ideHost, echoSocket)
		conn := w.socket(codeSocket, ideVisitor(w))
		for i := range 5 {
			time.Sleep(time.Minute)
			w.boxes.set("ml", sandbox.Frozen, "")
			time.Sleep(time.Minute)
			sent := ideMessage(ideRegular, strings.Repeat(fmt.Sprint(i), 100_000))
			if err := conn.WriteMessage(websocket.BinaryMessage, sent); err != nil {
				t.Fatal(err)
			}
			for {
				_, got, err := conn.ReadMessage()
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Equal(got, sent) {
					break
				}
				if !bytes.Equal(got, ideMessage(ideLast, "")) {
					t.Fatalf("%.50q came", got)
				}
			}
		}
		_ = conn.Close()
		w.wantReleased()
	})
}

func TestKeepAlive_EndsWithEitherEnd(t *testing.T) {
	for what, end := range map[string]func(w *world, conn *websocket.Conn, server *websocket.Conn){
		"the client leaves":    func(_ *world, conn, _ *websocket.Conn) { _ = conn.Close() },
		"the sandbox hangs up": func(_ *world, _, server *websocket.Conn) { _ = server.NetConn().Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			served := make(chan *websocket.Conn, 1)
			w.serve(ideHost, func(rw http.ResponseWriter, r *http.Request) {
				conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(rw, r, nil)
				if err == nil {
					served <- conn
				}
			})
			conn := w.socket(codeSocket, ideVisitor(w))
			server := <-served
			w.boxes.set("ml", sandbox.Frozen, "")
			time.Sleep(12 * time.Second)
			end(w, conn, server)
			synctest.Wait()
			w.wantReleased()
			if err := conn.WriteMessage(websocket.BinaryMessage, nil); err == nil {
				_, _, err = conn.ReadMessage()
				if err == nil {
					t.Errorf("%s, and the other end lives on", what)
				}
			}
			_, _ = conn.Close(), server.Close()
		})
	}
}

func TestIDEWords_WhatThePageSaysByItselfIsNobodys(t *testing.T) {
	call := func(method, args string) string {
		return "\x01\x00\x00\x00\xf6f" + string(rune(len(method))) + method + "\x00\x00\x00" + string(rune(len(args))) + args
	}
	for body, own := range map[string]bool{
		call("$onFileEvent", `[{"created":[],"changed":[{"path":"/20261121T205814/window.log","scheme":"vscode-log"}]}]`): true,
		call("$onDidChangeWindowActive", "[false]"):                                      true,
		call("$onDidChangeWindowActive", "[true]"):                                       false,
		call("$onDidChangeWindowFocus", "[true]"):                                        false,
		call("$acceptModelChanged", `[{"$onFileEven`):                                    false,
		"\x04\x04\x06d\x06\xb7\x05\x01\ttelemetry\x01\x04ping\x00":                       true,
		"\x04\x04\x06d\x06\xc4\x02\x01\x0eremoteterminal\x01\x06$input\x04\x04\x01\x01a": false,
		"\x05\x00\x00\x00\x48":                                                           true,
		"\x0c\x00\x00\x00\x48":                                                           true,
		"\x0d\x00\x00\x00\x48":                                                           false,
		"hello":                                                                          false,
		strings.Repeat("long ", 50):                                                      false,
	} {
		mask := [maskLength]byte{1, 20, 77, 200}
		message := ideMessage(ideRegular, body)
		for i := range message {
			message[i] ^= mask[i%maskLength]
		}
		for size := 1; size < 80; size += 3 {
			p, said := ideProtocol{page: true}, 0
			for i := 0; i < len(message); i += size {
				said += p.read(message[i:min(i+size, len(message))], mask, i%maskLength)
			}
			want := len(body)
			if own {
				want = 0
			}
			if said != want || !p.rests() {
				t.Errorf("%q in pieces of %d: %d, want %d", body, size, said, want)
			}
		}
		if said := (&ideProtocol{}); said.read(message, mask, 0) != len(body) {
			t.Errorf("%q of a sandbox's does not count", body)
		}
	}
}
