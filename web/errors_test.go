package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

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
