package link

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// offers is the setup of a guest that knows of models.
func offers(w http.ResponseWriter, _ *http.Request) {
	h := goodHello()
	h.Models = true
	json.NewEncoder(w).Encode(h)
}

// caller is a guest that answers each accept with answer, and says of each request that it came.
func caller(t *testing.T, h *Hub, socket string, answer http.HandlerFunc) (*Session, *atomic.Int64) {
	t.Helper()
	var accepts atomic.Int64
	lie(t, socket, offers, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == wire.PathModels+"/accept":
			accepts.Add(1)
			answer(w, r)
		case r.URL.Path == wire.PathTerminals:
			io.WriteString(w, "[]")
		default:
			answer(w, r)
		}
	})
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return s, &accepts
}

// awaitCount waits until a number is reached.
func awaitCount(t *testing.T, n *atomic.Int64, want int64) {
	t.Helper()
	for late := time.After(patience); n.Load() < want; {
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			t.Fatalf("%d of %d", n.Load(), want)
		}
	}
}

// drainCalls accepts and closes whatever comes, after reading it.
func drainCalls(t *testing.T, h *Hub) *atomic.Int64 {
	t.Helper()
	var came atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := h.Models().Accept()
			if err != nil {
				return
			}
			came.Add(1)
			c.SetDeadline(time.Now().Add(patience))
			io.Copy(io.Discard, io.LimitReader(c, 1<<20))
			c.Close()
		}
	}()
	t.Cleanup(func() { h.Models().Close(); <-done })
	return &came
}

func TestModels_AGuestThatIsOlderIsNotAsked(t *testing.T) {
	h, socket := quick(t)
	asked := make(chan string, 10)
	lie(t, socket, nil, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		io.WriteString(w, "[]")
	})
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Terminals(within(t)); err != nil {
		t.Fatal(err)
	}
	if path := <-asked; path != wire.PathTerminals {
		t.Errorf("asked for %s", path)
	}
}

func TestModels_AGuestThatDoesNotKnowThemAfterAllIsAskedOnce(t *testing.T) {
	h, socket := quick(t)
	s, accepts := caller(t, h, socket, http.NotFound)
	awaitCount(t, accepts, 1)
	for range 20 {
		if _, err := s.Terminals(within(t)); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * h.pace.callPause / 10)
	}
	if n := accepts.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A guest's answers to accept that are no connection cost a pause each, and nothing else.
func TestModels_NonsenseFromTheGuestIsAskedForAgainAfterAPause(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"nothing":   func(http.ResponseWriter, *http.Request) {},
		"no number": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(wire.ModelsHeader, "x/../../exec") },
		"gone": func(w http.ResponseWriter, r *http.Request) {
			number(w, r, http.StatusNotFound, `{"code":"not_found"}`)
		},
		"cookie":     func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(wire.DescriptorHeader, "7") },
		"odd cookie": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(wire.DescriptorHeader, "-") },
		"refused":    func(w http.ResponseWriter, r *http.Request) { number(w, r, 503, `{"code":"unavailable"}`) },
		"an error":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"reset":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"endless 503": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			io.WriteString(w, strings.Repeat("x", 32<<10))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, socket := quick(t)
			drainCalls(t, h)
			began := time.Now()
			s, accepts := caller(t, h, socket, answer)
			awaitCount(t, accepts, 5)
			if d := time.Since(began); d < 4*h.pace.callPause {
				t.Errorf("asked 5 times in %v", d)
			}
			if _, err := s.Terminals(within(t)); err != nil {
				t.Error(err)
			}
			if n := len(s.slots); n > 1 {
				t.Errorf("%d requests are kept", n)
			}
		})
	}
}

// number answers an accept with a connection, and its dial with a problem.
func number(w http.ResponseWriter, r *http.Request, status int, problem string) {
	if strings.HasSuffix(r.URL.Path, "/accept") {
		w.Header().Set(wire.ModelsHeader, "1")
		return
	}
	w.WriteHeader(status)
	io.WriteString(w, problem)
}

// A sandbox that calls as fast as it can gets its share of accepts; others are served.
func TestModels_AFloodOfCallsIsTakenSlowly(t *testing.T) {
	h, socket := quick(t)
	h.pace.calls, h.pace.callMax = 50, 5
	if _, err := h.Expect("flood", wire.Setup{}); err != nil {
		t.Fatal(err)
	}
	came := drainCalls(t, h)
	flood := filepath.Join(filepath.Dir(filepath.Dir(socket)), "flood", wire.SocketName)
	began := time.Now()
	lie(t, flood, offers, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.ModelsHeader, "1")
		w.Write(wire.AppendFrame(nil, wire.FrameExit, []byte("nonsense")))
	})
	awaitCount(t, came, 15)
	if d := time.Since(began); d < 150*time.Millisecond { // 5 at once, 10 more at 50 a second
		t.Errorf("15 calls in %v", d)
	}
	var box atomic.Int64
	caller(t, h, socket, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.ModelsHeader, fmt.Sprint(box.Add(1)))
	})
	awaitCount(t, &box, 3)
}

// An accept that waits must not let the guest send what nobody has asked for.
func TestModels_AFloodBesideAnAcceptThatWaitsEndsTheConnection(t *testing.T) {
	h, socket := quick(t)
	waits := make(chan struct{}, 1)
	l := lie(t, socket, offers, func(w http.ResponseWriter, r *http.Request) {
		waits <- struct{}{}
		<-r.Context().Done()
	})
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	closed := string([]byte{0, 0x40, 0, 0, 0, 0, 0, 0, 1}) + strings.Repeat("\x00", 0x4000) // more of a reply that is over
	go endless(l, closed)
	awaitEnd(t, s)
}

func TestModels_AReplyThatGoesOnIsNoneOfAConnection(t *testing.T) {
	h, socket := quick(t)
	drainCalls(t, h)
	s, accepts := caller(t, h, socket, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/accept") {
			w.(http.Flusher).Flush()
			endless(w, strings.Repeat("x", 1000))
		}
	})
	awaitCount(t, accepts, 3)
	if _, err := s.Terminals(within(t)); err != nil && s.alive() {
		t.Error(err)
	}
}

func TestModels_APassedConnectionIsTheProgramsOwn(t *testing.T) {
	h, socket := quick(t)
	p := newPair(t)
	replies := make(chan func(http.ResponseWriter), 1)
	l := lie(t, socket, offers, func(w http.ResponseWriter, r *http.Request) {
		select {
		case reply := <-replies:
			reply(w)
		case <-r.Context().Done():
		}
	})
	if _, err := h.Session(within(t), "box"); err != nil {
		t.Fatal(err)
	}
	l.beside <- []int{p.fd()}
	replies <- numbered(p.cookie(t))
	conn, err := h.Models().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, ok := conn.(*ModelConn).Conn.(*passedConn); !ok {
		t.Errorf("it is a %T", conn.(*ModelConn).Conn)
	}
	say(t, conn, "ping")
	hear(t, p.peer, "ping")
}
