package gateway

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

// silent gives a Handler of one provider after the other, each of which sends what is said and then nothing, and keeps the connection.
func silent(t *testing.T, answers ...string) (*Service, http.Handler) {
	alias := Alias{Name: "m"}
	var setup Setup
	byHost := map[string]string{}
	for i, answer := range answers {
		name := string(rune('a' + i))
		setup.Providers = append(setup.Providers, Provider{ID: name, Name: name, Kind: Anthropic, BaseURL: "http://" + name})
		alias.Targets = append(alias.Targets, Target{Provider: name, Model: "m"})
		byHost[name+":80"] = answer
	}
	setup.Aliases = []Alias{alias}
	s := NewTestService(setup)
	h := s.Handler(CallerInTest).(*plane)
	h.server.Proxy = nil
	h.server.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			r, err := http.ReadRequest(bufio.NewReader(far))
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err == nil {
				_, err = io.WriteString(far, byHost[address])
			}
			if err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, far) // until the other end is closed
		}()
		return near, nil
	}
	t.Cleanup(h.server.CloseIdleConnections)
	return s, h
}

func TestSilence_OfAProviderEnds(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	const event = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	const whole = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"
	for _, c := range []struct {
		name    string
		answers []string
		status  int
		body    string
		took    time.Duration
		record  int
	}{
		{"nothing", []string{""}, 504, "sent nothing for 10 minutes", silence, 504},
		{"a head", []string{head}, 504, "sent nothing for 10 minutes", silence, 504},
		{"a stream that stops", []string{head + event}, 200, "event: error\ndata: {\"error\":{\"message\":\"The model provider \\\"a\\\" sent nothing", silence, 504},
		{"half JSON", []string{whole[:len(whole)-2]}, 504, "sent nothing for 10 minutes", silence, 504},
		{"nothing, then an answer", []string{"", whole}, 200, `{"ok":true}`, silence, 200},
		{"a head, then an answer", []string{head, whole}, 200, `{"ok":true}`, silence, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, h := silent(t, c.answers...)
				begun, w := time.Now(), httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/messages", strings.NewReader(fmt.Sprintf(`{"model":"m","stream":%t}`, c.name != "half JSON"))))
				if took := time.Since(begun); w.Code != c.status || !strings.Contains(w.Body.String(), c.body) || took != c.took {
					t.Errorf("%d %s after %s", w.Code, w.Body, took)
				}
				if calls := s.Recorded(); len(calls) != 1 || calls[0].Status != c.record {
					t.Errorf("recorded %+v", calls)
				}
				h.(*plane).server.CloseIdleConnections()
			})
		})
	}
}

func TestSilence_OfAClientThatSendsHalfABodyEnds(t *testing.T) {
	_, h := silent(t, "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(impatient{w}, r)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"model\":"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || len(answer) > 0 {
		t.Errorf("%q, %v", answer, err)
	}
}

// impatient makes each deadline for reading one that is over.
type impatient struct {
	http.ResponseWriter
}

// SetReadDeadline is http.ResponseController's.
func (w impatient) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		at = time.Now()
	}
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(at)
}
