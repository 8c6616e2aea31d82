package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// raw opens a connection to a server of the world's, sends text and gives what reads the answer. handled is closed once
// the first request has been handled.
func (w *world) raw(text string) (conn net.Conn, handled <-chan struct{}) {
	w.t.Helper()
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(done)
		w.server.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(s.Close)
	var d net.Dialer
	conn, err := d.DialContext(w.t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	return conn, done
}

// slow is a request that says it has a body of 1000 bytes and has one.
func slow(method, path, kind, token string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: %s\r\nX-Api-Key: %s\r\nContent-Length: 1000\r\n\r\n{",
		method, path, kind, token)
}

func TestArrival_SlowBodyHoldsNoConnection(t *testing.T) {
	const asForm, asJSON = "application/x-www-form-urlencoded", "application/json"
	w := newWorld(t)
	w.server.arrival = 30 * time.Millisecond
	for _, c := range []struct {
		method, path, kind, user string
		status                   int
	}{
		{"POST", "/login", asForm, "", 408},
		{"POST", "/setup", asForm, "", 408},
		{"POST", "/theme", asForm, "", 408},
		{"POST", "/theme", "multipart/form-data; boundary=x", "", 303},
		{"POST", "/api/v1/sandboxes", asJSON, "ada", 408},
		{"POST", "/api/v1/sandboxes", asJSON, "", 401},
		{"POST", "/nothing", asForm, "", 404},
		{"GET", "/login", asForm, "", 200},
		{"GET", "/api/v1/events", asJSON, "ada", 200},
	} {
		conn, _ := w.raw(slow(c.method, c.path, c.kind, w.tokens[c.user]))
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		got.Body.Close()
		if got.StatusCode != c.status || !got.Close {
			t.Errorf("%+v: got %d, closing %v", c, got.StatusCode, got.Close)
		}
	}
	if log := w.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
		t.Errorf("the log has %s", log)
	}
}

func TestArrival_IsNoLimitForWhatGoesOn(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.server.arrival, w.server.beat = 100*time.Millisecond, 20*time.Millisecond
	for _, c := range []struct{ method, path, body, accept, beat string }{
		{"POST", "/api/v1/sandboxes/lab/exec", `{"command":["hang"]}`, lineType, "heartbeat"},
		{"GET", "/api/v1/events", "", "text/event-stream", ": beat"},
		{"GET", "/api/v1/events", "a body that nobody wants", "text/event-stream", ": beat"},
	} {
		scan := bufio.NewScanner(w.open(t.Context(), "ada", c.method, c.path, c.body, c.accept).Body)
		for n := 0; n < 10; {
			if !scan.Scan() {
				t.Fatalf("%+v: cut after %d keep-alives: %v", c, n, scan.Err())
			}
			if strings.Contains(scan.Text(), c.beat) {
				n++
			}
		}
	}
	conn := w.execSocket(`{"type":"start","command":["hang"]}`)
	said(t, conn)
	n := 0
	conn.SetPingHandler(func(string) error {
		if n++; n == 10 {
			return io.EOF
		}
		return nil
	})
	if _, _, err := conn.ReadMessage(); n != 10 {
		t.Errorf("the websocket was cut after %d pings: %v", n, err)
	}
}

// readerFunc reads as it says.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// timed is a connection that remembers its deadline for reading.
type timed struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (t *timed) SetReadDeadline(to time.Time) error {
	t.deadline = to
	return nil
}

func TestForm_TimeCountsFromWhenTheBodyIsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWorld(t).server
		conn := &timed{ResponseRecorder: httptest.NewRecorder()}
		began := time.Now()
		body := strings.NewReader("a=b")
		slowly := readerFunc(func(p []byte) (int, error) {
			if want := began.Add(arrivalLimit); conn.deadline != want {
				t.Errorf("the body may take until %s, want %s", conn.deadline, want)
			}
			time.Sleep(arrivalLimit / 4) // of the bubble's time
			return body.Read(p)
		})
		s.echo.POST("/slow", form(func(ctx context.Context, _ *request) (string, error) {
			if end, _ := ctx.Deadline(); time.Until(end) != handlerTime || !conn.deadline.IsZero() {
				t.Errorf("the handler has %s, reading until %s", time.Until(end), conn.deadline)
			}
			return "/", nil
		}, nil))
		r := httptest.NewRequest(http.MethodPost, "/slow", slowly)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		s.ServeHTTP(conn, r)
		if conn.Code != http.StatusSeeOther {
			t.Errorf("got %d", conn.Code)
		}
	})
}

func TestArrival_ABodyWithDamagedChunksIsTheClientsMistake(t *testing.T) {
	w := newFilesWorld(t)
	for _, chunks := range []string{"zz\r\nhello", "5\nhello\n0\n\n", strings.Repeat("1", 10000) + "\r\n", "5\r\nhelloXX"} {
		conn, _ := w.raw("PUT " + labFiles + "?path=a HTTP/1.1\r\nHost: localhost:8080\r\nX-Api-Key: " + w.tokens["ada"] +
			"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%.10q: %v", chunks, err)
			continue
		}
		got.Body.Close()
		if got.StatusCode != http.StatusBadRequest {
			t.Errorf("%.10q: got %d", chunks, got.StatusCode)
		}
	}
	if log := w.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has %s", log)
	}
}

// Many clients read nothing before all of their body is sent.
func TestArrival_WhyAnUploadIsRefusedCanBeReadAfterIt(t *testing.T) {
	w := newWorld(t)
	const size = 32 << 20 // more than the kernel takes for a server that does not read
	conn, _ := w.raw(fmt.Sprintf("PUT /api/v1/sandboxes/lab/files?path=x HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: %d\r\n\r\n", size))
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(make([]byte, size)); err != nil {
		t.Fatalf("the connection is cut: %v", err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text, err := io.ReadAll(got.Body); err != nil || got.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), `"code":"unauthenticated"`) {
		t.Errorf("got %d %s %v", got.StatusCode, text, err)
	}
}
