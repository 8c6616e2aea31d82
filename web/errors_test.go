package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/fault"
)

func TestLog_ClientThatHangsUpIsNoError(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/login", "/theme"} {
		conn, handled := w.raw(slow("POST", path, "application/x-www-form-urlencoded", ""))
		conn.Close()
		<-handled
	}
	log := w.log.String()
	if strings.Contains(log, "level=ERROR") || strings.Count(log, "msg=request ") != strings.Count(log, "status=499 bytes") {
		t.Errorf("the log has %s", log)
	}
}

func TestLog_ClientThatLeavesItsCommandIsStatus499(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	started := w.guests.onStart()
	body := `{"command":["hang"]}`
	head := "POST /api/v1/sandboxes/lab/exec HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\nContent-Length: 20\r\nX-Api-Key: "
	conn, handled := w.raw(head + w.tokens["ada"] + "\r\n\r\n" + body)
	<-started
	conn.Close()
	<-handled
	if log := w.log.String(); !strings.Contains(log, "status=499 bytes") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has %s", log)
	}
}

// TestErrors_ACommandThatTheServersStopEndsSaysSo stops the server under a command.
func TestErrors_ACommandThatTheServersStopEndsSaysSo(t *testing.T) {
	for accept, status := range map[string]int{"application/json": http.StatusServiceUnavailable, lineType: http.StatusOK} {
		w := newWorld(t)
		w.box("ada", "lab")
		base, stop := context.WithCancelCause(context.Background())
		defer stop(nil)
		began := w.guests.onStart()
		server := httptest.NewUnstartedServer(w.server)
		server.Config.BaseContext = func(net.Listener) context.Context { return base }
		server.Start()
		defer server.Close()
		go func() {
			<-began
			stop(ErrStopping)
		}()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+lab+"/exec", strings.NewReader(`{"command":["hang"],"timeout":"1m"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "localhost:8080"
		r.Header = http.Header{"X-Api-Key": {w.tokens["ada"]}, "Content-Type": {"application/json"}, "Accept": {accept}}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		const says = "sandboxd is stopping, so the command was ended. Try again in a moment."
		if err != nil || res.StatusCode != status || !strings.Contains(string(text), says) || !strings.Contains(string(text), `"code":"unavailable"`) {
			t.Errorf("%s: %s %s, %v", accept, res.Status, text, err)
		}
		if status != http.StatusOK && res.Header.Get("Retry-After") == "" {
			t.Errorf("%v", res.Header)
		}
	}
}

func TestErrors_AWaitThatTheServersStopEndsSaysSo(t *testing.T) {
	w := newWorld(t)
	for cause, want := range map[error]int{ErrStopping: http.StatusServiceUnavailable, nil: statusLeft} {
		got := w.handling("/api/v1/x", func(c echo.Context) error {
			ctx, end := context.WithCancelCause(c.Request().Context())
			end(cause)
			c.SetRequest(c.Request().WithContext(ctx))
			return fault.Wrap(ctx.Err(), fault.Timeout, "lab is still being worked on.")
		})
		if got.Code != want {
			t.Errorf("%v: status %d: %s", cause, got.Code, got.Body)
		}
	}
}

func TestLog_OnlyWhatIsOursIsAnError(t *testing.T) {
	for kind, level := range map[fault.Kind]string{
		fault.Internal: "ERROR", fault.Unavailable: "WARN", fault.Timeout: "WARN",
	} {
		w := newWorld(t)
		w.failing("/api/v1/x", fault.New(kind, "A sentence."))
		if log := w.log.String(); !strings.Contains(log, "level="+level+` msg="request failed"`) {
			t.Errorf("%s: the log has %s", kind, log)
		}
	}
}

func TestLog_AClientThatDoesNotTakeItsAnswerIsNoError(t *testing.T) {
	w := newWorld(t)
	w.handling("/api/v1/x", func(echo.Context) error { return fmt.Errorf("%w: broken pipe", errNotTaken) })
	if log := w.log.String(); !strings.Contains(log, `level=DEBUG msg="request failed"`) {
		t.Errorf("the log has %s", log)
	}
}

func TestErrors_PageIsShownAlsoWhenTheRequestHasEnded(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:8080/nothing", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.send(r, "").is(http.StatusNotFound)
	if log := w.log.String(); strings.Contains(log, "render error page") {
		t.Errorf("the log has %s", log)
	}
}
