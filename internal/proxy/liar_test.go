package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestLiar_NoProperAnswerIsABadGateway(t *testing.T) {
	w := newWorld(t)
	for what, text := range map[string]string{
		"nothing":         "",
		"not HTTP":        "+PONG\r\n",
		"half a head":     "HTTP/1.1 200 OK\r\nContent-",
		"a bad status":    "HTTP/1.1 999999 X\r\n\r\n",
		"status zero":     "HTTP/1.1 000 X\r\nContent-Length: 2\r\n\r\nok",
		"status 99":       "HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok",
		"a signed status": "HTTP/1.1 +99 X\r\nContent-Length: 2\r\n\r\nok",
		"status 600":      "HTTP/1.1 600 X\r\nContent-Length: 2\r\n\r\nok",
		"status 999":      "HTTP/1.1 999 X\r\nContent-Length: 2\r\n\r\nok",
		"two lengths":     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a flood of head": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 1000) + "\r\n",
		"endless hints":   strings.Repeat("HTTP/1.1 103 Early Hints\r\nX-A: "+strings.Repeat("a", 1000)+"\r\n\r\n", 1000),
		"endless waits":   strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"a switch":        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /",
		"a bare switch":   "HTTP/1.1 101 Switching Protocols\r\n\r\n",
	} {
		w.lie(portHost(3000), text)
		a := w.ask("GET", port3000+"/", append(header{"Accept", "text/html"}, bearer...))
		if a.StatusCode != 502 || !contains(a.body, "No proper answer from ml") {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
		}
	}
	w.wantReleased()
}

func TestLiar_AWebSocketAnsweredWithAnotherProtocolIsRefused(t *testing.T) {
	w := newWorld(t)
	w.lie(portHost(3000), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
	if _, res, err := w.dial(port3000+"/", bearer); err == nil || res == nil || res.StatusCode != 502 {
		t.Errorf("%v, %v", res, err)
	}
}

func TestLiar_ADeadLinkIsUnavailable(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		err    error
		status int
	}{
		{errors.New("stream reset"), 503},
		{fault.New(fault.Unavailable, "The guest is gone."), 503},
		{fault.New(fault.Timeout, "The guest is slow."), 504},
	} {
		w.session.err = c.err
		a := w.ask("GET", port3000+"/", bearer)
		if a.StatusCode != c.status || strings.Contains(a.body, "stream reset") {
			t.Errorf("%v: %d %s", c.err, a.StatusCode, a.body)
		}
	}
}

// pipes is a session whose far ends the test holds.
type pipes struct {
	*fakeSession
	far chan net.Conn
}

func (p pipes) DialPort(context.Context, int) (net.Conn, error) {
	near, far := net.Pipe()
	p.far <- far
	return near, nil
}

func (p pipes) DialIDE(ctx context.Context) (net.Conn, error) { return p.DialPort(ctx, 0) }

func (p pipes) Services(context.Context) ([]wire.ServiceStatus, error) { return nil, nil }

func (p pipes) DialTerminal(ctx context.Context, _ string) (net.Conn, error) {
	return p.DialPort(ctx, 0)
}

// inBubble runs one request of Ann's in fake time and gives the answer once it has ended.
func inBubble(t *testing.T, w *world, far func(net.Conn)) *httptest.ResponseRecorder {
	cfg := w.proxy.cfg
	p := pipes{w.session, make(chan net.Conn, 1)}
	cfg.Access = w.accessTo(p)
	proxy := New(cfg)
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, port3000+"/", nil)
	r.Header.Set("X-Api-Key", annToken)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // http.ErrAbortHandler
		proxy.ServeHTTP(rec, r)
	}()
	conn := <-p.far
	gone := make(chan struct{})
	go func() { defer close(gone); far(conn) }()
	<-done
	_ = conn.Close()
	<-gone
	synctest.Wait()
	return rec
}

func TestLiar_AHungProgramIsGivenUpButALongPollLives(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		rec := inBubble(t, w, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		if took := time.Since(start); rec.Code != 504 || took != headerLimit {
			t.Errorf("%d after %v", rec.Code, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		rec := inBubble(t, w, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1<<16))
			<-time.After(headerLimit - time.Second) // fake time: the program takes its time
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		})
		if rec.Code != 200 || rec.Body.String() != "ok" {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}

func TestLiar_AnImpossibleStatusBringsNothingAlong(t *testing.T) {
	w := newWorld(t)
	w.lie(portHost(3000), "HTTP/1.1 099 X\r\nSet-Cookie: a=1\r\nContent-Length: 2\r\n\r\nok")
	a := w.ask("GET", port3000+"/", bearer)
	if a.StatusCode != 502 || !contains(a.body, "bad_answer") || len(a.Cookies()) > 0 {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if _, res, err := w.dial(port3000+"/", bearer); err == nil || res == nil || res.StatusCode != 502 {
		t.Errorf("as a WebSocket: %v, %v", res, err)
	}
}

func TestForward_AStreamEndsSoonAfterItsVisitorHasLostTheRight(t *testing.T) {
	for what, lose := range map[string]func(*world){
		"signed out": func(w *world) { w.accounts.revoke("u-ann") },
		"locked out": func(w *world) {
			w.accounts.failWith(fault.New(fault.Forbidden, "Your account has been disabled."))
		},
		"handed over": func(w *world) { w.boxes.put("ml", sandbox.Sandbox{ID: "1", Name: "ml", Owner: "u-bob"}) },
		"removed":     func(w *world) { w.boxes.put("ml", sandbox.Sandbox{}) },
	} {
		t.Run(what, func(t *testing.T) {
			const after = 3 * time.Second
			w := newWorld(t)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				inBubble(t, w, func(conn net.Conn) {
					_, _ = conn.Read(make([]byte, 1<<16))
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nendless")
					time.AfterFunc(after, func() { lose(w) })
					_, _ = io.Copy(io.Discard, conn)
				})
				if took := time.Since(start); took < after || took > after+2*time.Second {
					t.Errorf("it went on for %v", took)
				}
			})
		})
	}
}

func TestForward_AStreamGoesOnWhileNobodyCanSayWhoMay(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Unavailable, fault.Timeout, fault.Internal} {
		w := newWorld(t)
		synctest.Test(t, func(t *testing.T) {
			rec := inBubble(t, w, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1<<16))
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\no")
				w.accounts.failWith(fault.New(kind, "The store does not answer."))
				<-time.After(5*askAgain + askAgain/2)
				w.accounts.failWith(nil)
				<-time.After(5 * askAgain)
				_, _ = io.WriteString(conn, "k")
			})
			if rec.Body.String() != "ok" {
				t.Errorf("%v: %q", kind, rec.Body)
			}
			if w.accounts.asked != 11 {
				t.Errorf("%v: asked %d times, not once at the start and at every turn", kind, w.accounts.asked)
			}
		})
	}
}

// broken is a connection whose link goes away once it has been written to.
type broken struct{ net.Conn }

func (b broken) Read([]byte) (int, error) {
	return 0, fault.New(fault.Unavailable, "The program inside the sandbox hung up.")
}

type brokenSession struct{ *fakeSession }

func (brokenSession) DialPort(context.Context, int) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }() // ends when the transport closes near
	return broken{near}, nil
}

func (brokenSession) Services(context.Context) ([]wire.ServiceStatus, error) { return nil, nil }

func (s brokenSession) DialIDE(ctx context.Context) (net.Conn, error) { return s.DialPort(ctx, 0) }

func (s brokenSession) DialTerminal(ctx context.Context, _ string) (net.Conn, error) {
	return s.DialPort(ctx, 0)
}

func TestLiar_ALinkThatBreaksUnderARequestIsUnavailable(t *testing.T) {
	w := newWorld(t)
	w.proxy.cfg.Access = w.accessTo(brokenSession{w.session})
	a := w.ask("GET", port3000+"/", append(header{"Accept", "text/html"}, bearer...))
	if a.StatusCode != 503 || !contains(a.body, "hung up", scriptPath) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestLiar_WhatThereIsOfAnAnswerThatBreaksOffArrives has a real program hang up in the midst of its answer.
func TestLiar_WhatThereIsOfAnAnswerThatBreaksOffArrives(t *testing.T) {
	w := newWorld(t)
	head := "HTTP/1.1 200 OK\r\nX-App: here\r\n"
	long := strings.Repeat("x", 3*bufferSize)
	for what, c := range map[string]struct{ answer, body string }{
		"of known length":          {head + "Content-Length: 100000000\r\n\r\nabc", "abc"},
		"in chunks":                {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "abc"},
		"within a chunk":           {head + "Transfer-Encoding: chunked\r\n\r\n64\r\nabc", "abc"},
		"with a chunk that is bad": {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", "abc"},
		"after its head":           {head + "Content-Length: 100000\r\n\r\n", ""},
		"after much":               {head + "Content-Length: 100000000\r\n\r\n" + long, long},
		"of events":                {head + "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "abc"},
	} {
		for range 5 { // it is cut at another moment each time
			w.lie(portHost(3000), c.answer)
			res, err := w.client.Do(w.request("GET", port3000+"/", nil, bearer))
			if err != nil {
				t.Errorf("%s: %v", what, err)
				break
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 200 || res.Header.Get("X-App") != "here" || string(body) != c.body || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %s, %d of %d bytes, %v", what, res.Status, len(body), len(c.body), err)
			}
		}
	}
	w.wantReleased()
}
