package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/tools/browser"
)

// server speaks the protocol as Playwright's does, and misbehaves where a test says so.
type server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	sessions int               // that were opened
	known    map[string]bool   // and not forgotten
	calls    []json.RawMessage // params of tools/call
	call     func(w http.ResponseWriter, id json.RawMessage)
	open     func(w http.ResponseWriter, id json.RawMessage) // in place of the right answer
}

func newServer(t *testing.T) *server {
	s := &server{t: t, known: map[string]bool{}, call: says(`{"content":[{"type":"text","text":"fine"}]}`)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.Header.Get("Mcp-Session-Id")
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	switch {
	case r.Host != "localhost:1" || r.URL.Path != "/mcp":
		w.WriteHeader(http.StatusForbidden)
		return
	case name != "" && !s.known[name]:
		http.Error(w, "Session not found", http.StatusNotFound)
		return
	case r.Method == http.MethodDelete:
		delete(s.known, name)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		s.t.Error(err)
	}
	switch {
	case m.Method == "initialize" && s.open != nil:
		s.open(w, m.ID)
	case m.Method == "initialize":
		s.sessions++
		name = fmt.Sprintf("session-%d", s.sessions)
		s.known[name] = true
		w.Header().Set("Mcp-Session-Id", name)
		says(`{"protocolVersion":"2025-06-18","capabilities":{}}`)(w, m.ID)
	case name == "":
		w.WriteHeader(http.StatusBadRequest)
	case m.Method == "notifications/initialized":
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call":
		s.calls = append(s.calls, m.Params)
		s.call(w, m.ID)
	}
}

// answers sets what comes next. The server may still be at what was before: a client that it hangs up on is gone at once.
func (s *server) answers(call, open func(w http.ResponseWriter, id json.RawMessage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call, s.open = call, open
}

// says answers with an event, after others that are none of ours.
func says(result string) func(w http.ResponseWriter, id json.RawMessage) {
	return func(w http.ResponseWriter, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprintf(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":9999,\"result\":{\"content\":[]}}\n\ndata: not json\n\n")
		fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\n", id, result)
	}
}

// raw answers with a body.
func raw(kind, body string) func(w http.ResponseWriter, id json.RawMessage) {
	return func(w http.ResponseWriter, id json.RawMessage) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", string(id))) // the client's end is tested
	}
}

func TestCall_OpensOneSessionAndGivesTextAndPictures(t *testing.T) {
	s := newServer(t)
	b := browser.NewSession("localhost:1")
	for range 2 {
		if a, err := b.Call(t.Context(), s.dial, "browser_click", map[string]any{"target": "e1"}); err != nil || a.Text != "fine" || a.Failed || a.Anew {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if s.sessions != 1 || len(s.calls) != 2 || string(s.calls[0]) != `{"arguments":{"target":"e1"},"name":"browser_click"}` {
		t.Errorf("%d sessions, %s", s.sessions, s.calls)
	}
	s.answers(says(`{"content":[{"type":"text","text":"one"},{"type":"image","data":"iVBORw==","mimeType":"text/html"},{"type":"audio","data":"AA=="},{"type":"text","text":"two"}],"isError":true}`), nil)
	if a, err := b.Call(t.Context(), s.dial, "x", nil); err != nil || a.Text != "one\ntwo" || !a.Failed || len(a.Pictures) != 1 || string(a.Pictures[0]) != "\x89PNG" {
		t.Errorf("%+v, %v", a, err)
	}
	s.answers(raw("application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such tool"}}`), nil)
	if a, err := b.Call(t.Context(), s.dial, "x", nil); err != nil || a.Text != "no such tool" || !a.Failed {
		t.Errorf("%+v, %v", a, err)
	}
	b.Close(t.Context(), s.dial)
	if len(s.known) != 0 {
		t.Error("the session is not closed")
	}
}

func TestCall_OfAForgottenSessionOpensAnotherAndSaysSo(t *testing.T) {
	s := newServer(t)
	b := browser.NewSession("localhost:1")
	for i, anew := range []bool{false, true, false} {
		if a, err := b.Call(t.Context(), s.dial, "x", nil); err != nil || a.Anew != anew {
			t.Errorf("call %d: %+v, %v", i, a, err)
		}
		if i == 0 {
			s.known = map[string]bool{}
		}
	}
	s.answers(func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusNotFound) }, nil)
	if _, err := b.Call(t.Context(), s.dial, "x", nil); !strings.Contains(fault.Message(err), "forgets") || s.sessions != 3 {
		t.Errorf("%d sessions, %v", s.sessions, err)
	}
}

func TestCall_OfAServerThatMisbehavesIsUnavailable(t *testing.T) {
	huge := strings.Repeat("x", 25<<20)
	for name, answers := range map[string]func(w http.ResponseWriter, id json.RawMessage){
		"status":    func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusInternalServerError) },
		"redirects": func(w http.ResponseWriter, _ json.RawMessage) { w.Header().Set("Location", "/mcp"); w.WriteHeader(302) },
		"a page":    raw("text/html", "<html>"),
		"no type":   raw("", "{}"),
		"half":      raw("application/json", `{"jsonrpc":"2.0","id":`),
		"empty":     raw("text/event-stream", ""),
		"others":    raw("text/event-stream", `data: {"jsonrpc":"2.0","id":"ID","result":{}}`+"\n\n"),
		"huge":      raw("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"`+huge+`"}]}}`),
		"long line": raw("text/event-stream", "data: "+huge),
		"lines":     raw("text/event-stream", strings.Repeat("data: x\n", 4<<20)),
		"form":      says(`{"content":"all"}`),
		"no list":   says(`[]`),
		"hangs up": func(w http.ResponseWriter, _ json.RawMessage) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		},
		"long head": func(w http.ResponseWriter, _ json.RawMessage) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.call = answers
			a, err := browser.NewSession("localhost:1").Call(t.Context(), s.dial, "x", nil)
			if !fault.Is(err, fault.Unavailable) || a.Text != "" || len(fault.Message(err)) > 300 {
				t.Errorf("%.100q, %v", a.Text, err)
			}
			s.answers(says(`{}`), answers)
			if _, err := browser.NewSession("localhost:1").Call(t.Context(), s.dial, "x", nil); !fault.Is(err, fault.Unavailable) {
				t.Errorf("while it opens: %v", err)
			}
		})
	}
}

func TestCall_EndsWithItsCaller(t *testing.T) {
	s := newServer(t)
	begun := make(chan struct{})
	end := make(chan struct{})
	s.call = func(w http.ResponseWriter, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		close(begun)
		<-end
	}
	defer close(end)
	b := browser.NewSession("localhost:1")
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-begun; cancel(stopped) }()
	if _, err := b.Call(ctx, s.dial, "x", nil); err != stopped {
		t.Errorf("it ended with %v", err)
	}
	ctx, over := context.WithTimeout(t.Context(), time.Millisecond)
	defer over()
	refused := fault.New(fault.NotFound, "Nothing listens.")
	if _, err := b.Call(t.Context(), func(context.Context) (net.Conn, error) { return nil, refused }, "x", nil); err != refused {
		t.Errorf("without a connection: %v", err)
	}
	b.Close(ctx, s.dial) // the server does not answer: it is not waited for
}

func TestCall_AnAnswerOfNothingsTakesLittle(t *testing.T) {
	for name, body := range map[string]string{
		"parts":       `{"content":[` + strings.Repeat("{},", 2<<20) + `{"type":"text","text":"late"}]}`,
		"empty lines": "",
	} {
		s := newServer(t)
		if s.call = says(body); body == "" {
			s.call = func(w http.ResponseWriter, _ json.RawMessage) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, strings.Repeat("\n", 6<<20)) // a client that has enough is what is wanted
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := browser.NewSession("localhost:1").Call(t.Context(), s.dial, "x", nil)
		if (err == nil) != (body != "") || a.Text != "" {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 160<<20 {
			t.Errorf("%s took %d MiB", name, n>>20)
		}
	}
}
