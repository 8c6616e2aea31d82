package guest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/wire"
)

func TestGateway_TakesSoManyConnectionsAndNoMore(t *testing.T) {
	_, address := openGateway(t)
	host := program(t, func(http.ResponseWriter, *http.Request) {})
	var idle []net.Conn
	for range gatewayConns {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	answered := make(chan int, 1)
	r := direct(t, http.MethodGet, address, host, "/", nil)
	go func() {
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	select {
	case status := <-answered:
		t.Fatalf("one too many is answered: %d", status)
	case <-time.After(100 * time.Millisecond):
	}
	idle[0].Close()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("got %d", status)
	}
}

func TestGateway_WaitsForItsPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	g := newGateway(address, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.run(ctx) }()
	g.take(gatewayKey)
	taken := make(chan struct{})
	go func() { // the sandbox's own program has the port for a while
		defer close(taken)
		c, err := l.Accept()
		if err == nil {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
			c.Close()
		}
	}()
	host := program(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ours") })
	if _, body := do(t, direct(t, http.MethodGet, address, host, "/", nil)); body != "mine" {
		t.Errorf("got %q", body)
	}
	<-taken
	l.Close()
	within(t, "the gateway", func() bool {
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(direct(t, http.MethodGet, address, host, "/", nil))
		if err != nil {
			return false
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b) == "ours"
	})
	cancel()
	<-done
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("it listens on after its end")
	}
}

func TestGateway_DoesNotListenWithoutAKeyOrAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, address := range []string{"", "127.0.0.1:0"} {
			g := newGateway(address, func() {})
			if address == "" {
				g.take(gatewayKey)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			g.run(ctx)
			cancel()
		}
	})
}

// pipes is a listener for connections within fake time.
type pipes struct{ conns chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestGateway_SlowOnesLoseTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		time time.Duration
	}{
		"nothing at all":  {"", gatewayHeaderTime},
		"half a header":   {"GET / HTTP/1.1\r\nHost: a\r\nX-", gatewayHeaderTime},
		"half a body":     {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc", gatewayHeaderTime},
		"an endless body": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", gatewayHeaderTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGateway("", func() {})
				g.take(gatewayKey)
				ctx, cancel := context.WithCancel(t.Context())
				l := &pipes{conns: make(chan net.Conn)}
				done := make(chan struct{})
				go func() { defer close(done); g.serve(ctx, l) }()
				near, far := net.Pipe()
				l.conns <- far
				began := time.Now()
				go io.WriteString(near, c.says)
				if _, err := io.Copy(io.Discard, bufio.NewReader(near)); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d > c.time+time.Second {
					t.Errorf("it was kept for %v", d)
				}
				cancel()
				close(l.conns)
				<-done
			})
		})
	}
}

// Whoever is let in because a port is public or shared may have lost that since: it is asked anew soon.
func TestGateway_WhatOutsidersHaveBegunEndsAndWhatOthersHaveGoesOn(t *testing.T) {
	g, address := openGateway(t)
	g.outside = 100 * time.Millisecond
	more := make(chan struct{})
	host := program(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.WriteString(w, "a")
		http.NewResponseController(w).Flush()
		if r.Method == http.MethodPost {
			io.Copy(io.Discard, r.Body)
			return
		}
		select {
		case <-more:
			io.WriteString(w, "b")
		case <-r.Context().Done():
		}
	})
	begin := func(method string, pass func([]byte, string, time.Time) string, body io.Reader) *http.Response {
		r := direct(t, method, address, host, "/", body)
		r.Header.Set(wire.PassHeader, pass(gatewayKey, host, time.Now().Add(wire.PassLife)))
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	inside := begin(http.MethodGet, wire.NewPass, nil)
	silent, never := io.Pipe()
	t.Cleanup(func() { never.Close() })
	for what, res := range map[string]*http.Response{
		"a stream":                  begin(http.MethodGet, wire.NewOutsiderPass, nil),
		"an upload that never ends": begin(http.MethodPost, wire.NewOutsiderPass, silent),
	} {
		if b, err := io.ReadAll(res.Body); err == nil || string(b) != "a" {
			t.Errorf("%s ends with %q, %v", what, b, err)
		}
	}
	within(t, "the end of the outsiders' requests", func() bool { g.flow.mu.Lock(); defer g.flow.mu.Unlock(); return len(g.flow.calls) == 1 })
	close(more)
	if b, err := io.ReadAll(inside.Body); err != nil || string(b) != "ab" {
		t.Errorf("who may use the sandbox gets %q, %v", b, err)
	}
}

func TestCall_EndsWhenItsProgramIsSilentForTooLong(t *testing.T) {
	for what, c := range map[string]struct {
		bytes, answered time.Duration // until when
		want            time.Duration // 0 for never
	}{
		"silent":         {0, 0, answerLimit},
		"slowly sent":    {25 * time.Minute, 0, 25*time.Minute + answerLimit},
		"answered":       {0, 9 * time.Minute, 0},
		"slow to answer": {15 * time.Minute, 24 * time.Minute, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			call := newFlow().begin(httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body")))
			defer call.end()
			ctx, over := call.bound(t.Context())
			defer over()
			began := time.Now()
			for time.Since(began) < c.bytes {
				time.Sleep(5 * time.Minute)
				call.touch()
			}
			if c.answered > 0 {
				time.AfterFunc(c.answered-time.Since(began), func() { call.answered.Store(true) })
			}
			if c.want > 0 && !call.waits() {
				t.Errorf("%s: nothing waits", what)
			}
			limit := time.After(5 * time.Hour)
			select {
			case <-ctx.Done():
				if took := time.Since(began).Round(time.Millisecond); took != c.want || context.Cause(ctx) != errSilent || call.waits() {
					t.Errorf("%s: after %v, %v", what, took, context.Cause(ctx))
				}
			case <-limit:
				if c.want != 0 {
					t.Errorf("%s: it goes on", what)
				}
			}
		})
	}
}

func FuzzGatewayTarget(f *testing.F) {
	f.Add("8080-box.example.com:80")
	f.Add("-")
	f.Add("1-\x00.")
	f.Fuzz(func(t *testing.T, host string) {
		port, name := target(host)
		if port == 0 && name == "" {
			return
		}
		if port < 1 || port > 65535 || name == "" || !strings.HasPrefix(host, strconv.Itoa(port)+"-") || len(name) > 63 {
			t.Fatalf("%q leads to %d of %q", host, port, name)
		}
	})
}
