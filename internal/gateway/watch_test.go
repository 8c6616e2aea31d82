package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
)

// TestWatch_ACallerWhoMayNotAskAnyMoreIsCutOff has a token revoked, or a sandbox deleted, while a request is under way.
func TestWatch_ACallerWhoMayNotAskAnyMoreIsCutOff(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	const event = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	revoked := fault.New(fault.Unauthenticated, "This API token is not valid.")
	for name, c := range map[string]struct {
		answer string
		now    Caller
		err    error
		took   time.Duration
		status int
		says   string
	}{
		"in a stream":           {head + event, Caller{}, revoked, lookAgain, 200, "not valid"},
		"before the first byte": {"", Caller{}, revoked, lookAgain, 401, "not valid"},
		"the sandbox is gone":   {head + event, Caller{}, fault.New(fault.NotFound, "There is no such sandbox."), lookAgain, 200, "no such sandbox"},
		"of another user":       {head + event, Caller{User: "u2"}, nil, lookAgain, 200, "not of the same user"},
		"it cannot be told":     {head + event, Caller{}, errors.New("the disk is full"), silence, 200, "sent nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, h := silent(t, c.answer)
				var asked atomic.Int64
				h.(*plane).identify = func(r *http.Request) (Caller, error) {
					if asked.Add(1) == 1 {
						return CallerInTest(r)
					}
					return c.now, c.err
				}
				begun, w := time.Now(), httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/messages", strings.NewReader(`{"model":"m","stream":true}`)))
				if took := time.Since(begun); w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || took != c.took {
					t.Errorf("%d %s after %s", w.Code, w.Body, took)
				}
				if calls := s.Recorded(); len(calls) != 1 || calls[0].Status < 400 {
					t.Errorf("recorded %+v", calls)
				}
				h.(*plane).server.CloseIdleConnections()
			})
		})
	}
}

// TestHold_OneWhoAsksFromOutsideKeepsNoSandboxAwake has a token of a sandbox that is used elsewhere.
func TestHold_OneWhoAsksFromOutsideKeepsNoSandboxAwake(t *testing.T) {
	for _, outside := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, h := silent(t, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
			p, held := h.(*plane), 0
			p.c.Hold = func(string) func() { held++; return func() {} }
			p.identify = func(*http.Request) (Caller, error) { return Caller{User: "u1", Sandbox: "s1", Outside: outside}, nil }
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/v1/messages", strings.NewReader(`{"model":"m"}`)))
			if held > 0 == outside {
				t.Errorf("outside %v: %d holds", outside, held)
			}
			p.server.CloseIdleConnections()
		})
	}
}
