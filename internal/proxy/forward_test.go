package proxy

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
)

func TestForward_BigBodiesPassBothWaysAtOnce(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(rw).EnableFullDuplex()
		_, _ = io.Copy(rw, r.Body)
	})
	const size = 32 << 20
	seed := [32]byte{1}
	sent, got := sha256.New(), sha256.New()
	body := io.TeeReader(io.LimitReader(rand.NewChaCha8(seed), size), sent)
	r := w.request("POST", port3000+"/", io.NopCloser(body), bearer)
	res, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	n, err := io.Copy(got, res.Body)
	if err != nil || n != size || fmt.Sprintf("%x", sent.Sum(nil)) != fmt.Sprintf("%x", got.Sum(nil)) {
		t.Errorf("%d bytes came back, %v", n, err)
	}
}

func TestForward_EventsArriveAsTheyAreSent(t *testing.T) {
	w := newWorld(t)
	next := make(chan string)
	w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case text := <-next:
				_, _ = fmt.Fprintf(rw, "data: %s\n\n", text)
				rw.(http.Flusher).Flush() // a test server's writer flushes
			case <-r.Context().Done():
				return
			}
		}
	})
	go func() { next <- "one" }()
	res, err := w.client.Do(w.request("GET", port3000+"/", nil, bearer))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{"one", "two", "three"} {
		if want != "one" {
			next <- want // only after the one before has arrived
		}
		line, err := lines.ReadString('\n')
		if err != nil || line != "data: "+want+"\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		_, _ = lines.ReadString('\n')
	}
	if _, inside := w.boxes.entered(); inside != 1 {
		t.Errorf("%d uses while the stream is open", inside)
	}
	_ = res.Body.Close()
	w.wantReleased()
}

// wantReleased waits until every use has ended, as it does soon after the client has left.
func (w *world) wantReleased() {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if _, inside := w.boxes.entered(); inside == 0 {
			return
		}
	}
	w.t.Fatal("the sandbox is still held")
}

func TestForward_TrailersPass(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(rw, "body")
		rw.Header().Set("X-Sum", "42")
	})
	a := w.ask("GET", port3000+"/", bearer)
	if a.Trailer.Get("X-Sum") != "42" {
		t.Errorf("trailer = %v", a.Trailer)
	}
}

func TestForward_TrailersCannotSetWhatHeadersCannot(t *testing.T) {
	w := newWorld(t)
	const harm = "Set-Cookie: sandboxd=x; Domain=localhost\r\nset-cookie: a=1\r\nClear-Site-Data: \"cookies\"\r\n" +
		"Alt-Svc: h3=\":1\"\r\nSandboxd-Notice: asleep\r\n"
	const names = "Set-Cookie, Clear-Site-Data, Alt-Svc, Sandboxd-Notice"
	for what, c := range map[string]struct{ announced, trailers string }{
		"announced":         {"Trailer: " + names + ", X-Sum\r\n", harm + "X-Sum: 42\r\n"},
		"unannounced":       {"", harm + "X-Sum: 42\r\n"},
		"half announced":    {"Trailer: X-Sum\r\n", "X-Sum: 42\r\n" + harm},
		"instead of X-Sum":  {"Trailer: " + names + "\r\n", harm + "X-Sum: 42\r\n"},
		"in small letters":  {"trailer: set-cookie,x-sum\r\n", strings.ToLower(harm) + "x-sum: 42\r\n"},
		"beside own cookie": {"Set-Cookie: a=1\r\nTrailer: Set-Cookie, X-Sum\r\n", harm + "X-Sum: 42\r\n"},
	} {
		w.lie(portHost(3000), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"+c.announced+"\r\n4\r\nbody\r\n0\r\n"+c.trailers+"\r\n")
		a := w.ask("GET", port3000+"/", bearer)
		if diff := cmp.Diff(http.Header{"X-Sum": {"42"}}, a.Trailer); a.body != "body" || diff != "" {
			t.Errorf("%s: %q, trailers %s", what, a.body, diff)
		}
	}
}

func TestForward_ConnectionsAreReused(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	for range 20 {
		w.wantStatus(w.ask("GET", port3000+"/", bearer), 200)
	}
	if w.session.dials != 1 {
		t.Errorf("dialled %d times", w.session.dials)
	}
}

func TestForward_ANewLinkIsUsedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.wantStatus(w.ask("GET", port3000+"/", bearer), 200)
	fresh := newSession()
	w.boxes.mu.Lock()
	w.boxes.session = fresh
	w.boxes.mu.Unlock()
	w.wantStatus(w.ask("GET", port3000+"/", bearer), 502)
	if fresh.dials != 1 {
		t.Errorf("the new link was dialled %d times", fresh.dials)
	}
}

func TestForward_IdlePoolsAreForgotten(t *testing.T) {
	p := newPools()
	old, now := newSession(), newSession()
	p.of("1", old)
	p.byID["1"].used = time.Now().Add(-2 * idlePool)
	p.swept = time.Time{}
	p.of("2", now)
	if len(p.byID) != 1 || p.byID["2"] == nil {
		t.Errorf("kept %v", p.byID)
	}
	if first, again := p.of("2", now), p.of("2", now); first != again {
		t.Error("one link has two transports")
	}
}

func TestForward_EveryUseIsReleased(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.lie(portHost(3001), "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
	w.wantStatus(w.ask("GET", port3000+"/", bearer), 200)
	w.wantStatus(w.ask("GET", "http://3002-ml.localhost:8080/", bearer), 502)
	res, err := w.client.Do(w.request("GET", "http://3001-ml.localhost:8080/", nil, bearer))
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("a cut answer looks whole")
	}
	w.wantReleased()
	if opened, _ := w.boxes.entered(); opened != 3 {
		t.Errorf("opened %d sessions", opened)
	}
}

// echoSocket answers a WebSocket with its own messages.
func echoSocket(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }, Subprotocols: []string{"tty"}}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}

// dial opens a WebSocket through the front.
func (w *world) dial(address string, h header) (*websocket.Conn, *http.Response, error) {
	transport, ok := w.client.Transport.(*http.Transport)
	if !ok {
		w.t.Fatal("no transport")
	}
	head := http.Header{}
	for i := 0; i < len(h); i += 2 {
		head.Add(h[i], h[i+1])
	}
	d := websocket.Dialer{NetDialContext: transport.DialContext, Subprotocols: []string{"tty"}, HandshakeTimeout: time.Minute}
	conn, res, err := d.DialContext(w.t.Context(), strings.Replace(address, "http", "ws", 1), head)
	if err == nil {
		w.t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	}
	return conn, res, err
}

func TestWebSocket_EchoesThroughTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), echoSocket)
	conn, _, err := w.dial(port3000+"/ws", header{"Cookie", w.signIn("3000-ml.localhost"), "Origin", port3000})
	if err != nil {
		t.Fatal(err)
	}
	if conn.Subprotocol() != "tty" {
		t.Errorf("subprotocol = %q", conn.Subprotocol())
	}
	for _, message := range []string{"hello", strings.Repeat("x", 1<<20)} {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != message {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	}
	if _, inside := w.boxes.entered(); inside != 1 {
		t.Errorf("%d uses while the socket is open", inside)
	}
	_ = conn.Close()
	w.wantReleased()
}

func TestWebSocket_NeedsTheVerySameOrigin(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), echoSocket)
	cookie := w.signIn("3000-ml.localhost")
	for _, c := range []struct {
		h  header
		ok bool
	}{
		{header{"Cookie", cookie, "Origin", port3000}, true},
		{bearer, true},
		{append(header{"Origin", port3000}, bearer...), true},
		{header{"Cookie", cookie}, false},
		{header{"Cookie", cookie, "Origin", "http://ml.localhost:8080"}, false},
		{header{"Cookie", cookie, "Origin", "http://3000-evil.localhost:8080"}, false},
		{header{"Cookie", cookie, "Origin", "http://localhost:8080"}, false},
		{header{"Cookie", cookie, "Origin", "http://3000-ml.localhost"}, false},
		{header{"Cookie", cookie, "Origin", "null"}, false},
		{header{"Cookie", cookie, "Origin", "http://3000-evil.localhost:8080", "Sec-Fetch-Site", "same-origin"}, false},
		{append(header{"Origin", "http://evil.com"}, bearer...), false},
		{header{"Origin", port3000}, false},
	} {
		conn, res, err := w.dial(port3000+"/ws", c.h)
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.h, err)
		}
		if err == nil {
			_ = conn.Close()
		} else if res == nil || res.StatusCode != 403 && res.StatusCode != 401 {
			t.Errorf("%v: %v", c.h, res)
		}
	}
}

func TestWebSocket_EndsWhenEitherSideEnds(t *testing.T) {
	w := newWorld(t)
	left := make(chan struct{}, 2)
	hang := make(chan struct{})
	w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if r.URL.Path == "/bye" {
			return
		}
		_, _, _ = conn.ReadMessage()
		left <- struct{}{}
		<-hang // holds its end open, as a hostile program would
	})
	defer close(hang)
	bye, _, err := w.dial(port3000+"/bye", bearer)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := bye.ReadMessage(); err == nil {
		t.Error("the socket outlives the program")
	}
	_ = bye.Close()
	stay, _, err := w.dial(port3000+"/stay", bearer)
	if err != nil {
		t.Fatal(err)
	}
	_ = stay.NetConn().Close()
	<-left
	w.wantReleased()
}

func TestWebSocket_WhereNothingListensFailsBeforeTheUpgrade(t *testing.T) {
	w := newWorld(t)
	_, res, err := w.dial(port3000+"/ws", bearer)
	if err == nil || res == nil || res.StatusCode != 502 || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v, %v", res, err)
	}
}

func TestForward_AnAnswerOfKnownLengthIsNotHeldBackEither(t *testing.T) {
	w := newWorld(t)
	next := make(chan struct{})
	w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "6")
		_, _ = io.WriteString(rw, "one")
		_ = http.NewResponseController(rw).Flush()
		<-next
		_, _ = io.WriteString(rw, "two")
	})
	res, err := w.client.Do(w.request("GET", port3000+"/", nil, bearer))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != "one" {
		t.Fatalf("%q %v", got, err)
	}
	close(next)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "two" {
		t.Errorf("%q %v", rest, err)
	}
}

func TestForward_ABodyThatIsNoneIsTheClientsFault(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for name, body := range map[string]string{"no size": "zz\r\nhello\r\n0\r\n\r\n", "after a good one": "3\r\nabc\r\n-1\r\n\r\n", "no end of one": "3\r\nabcdef\r\n0\r\n\r\n"} {
		conn := w.raw("POST /one HTTP/1.1\r\nHost: 3000-ml.localhost:8080\r\nX-API-Key: " + annToken +
			"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + body)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "The request's body is not sent as HTTP has it") {
			t.Errorf("%s: %d %s %v", name, res.StatusCode, text, err)
		}
	}
}
