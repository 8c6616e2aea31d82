// Package browser is a client of the browser in a sandbox: of a server there that speaks the Model Context Protocol over HTTP, as
// Playwright's does.
//
// It is not a general client of that protocol: it opens a session and calls tools, and passes over all else that a server may say. It does
// not find or start the server, and does not judge what is done.
//
// Invariant: the server is a stranger. Whatever it answers is bounded in size and time, and is data: text, and pictures by their bytes.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// Bounds of what a server may answer.
const (
	maxAnswer   = 12 << 20 // bytes of one answer, all its events included: a large picture in base64, and a long page
	maxHead     = 64 << 10 // bytes of its headers
	maxSession  = 256      // bytes of the name of a session
	maxPictures = 4
	maxParts    = 32 // of one answer
	callLimit   = 90 * time.Second
)

// version is what we ask for. A server may choose an older one: what we use is in all of them.
const version = "2025-06-18"

// Dial connects to the server.
type Dial func(ctx context.Context) (net.Conn, error)

// Answer is what came of a call.
type Answer struct {
	Text     string
	Pictures [][]byte // of any type
	Failed   bool     // what was asked did not work; Text says why
	Anew     bool     // the server had forgotten the session of the call before, and what was open in it
}

// Session is one person's or agent's browser. The zero Session is one that is not opened yet. Safe for concurrent use: calls follow one
// another.
type Session struct {
	turn chan struct{} // holds one while a call is under way
	host string
	id   string // as the server named it; "" before the first call
	last int64  // id of the last request
}

// NewSession makes a Session with a server that knows itself by a host, such as localhost:8931. It does no I/O.
func NewSession(host string) *Session { return &Session{turn: make(chan struct{}, 1), host: host} }

// errForgotten says that the server knows no such session.
var errForgotten = errors.New("the server does not know the session")

// Call calls a tool. It opens the session first when there is none, or the server has forgotten it. Errors are ctx's, dial's, or of kind
// Unavailable or Timeout.
func (s *Session) Call(ctx context.Context, dial Dial, tool string, args map[string]any) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callLimit, fault.New(fault.Timeout, "The browser did not answer within %d seconds.", int(callLimit.Seconds())))
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	a, err := s.call(ctx, dial, tool, args)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a, err
}

func (s *Session) call(ctx context.Context, dial Dial, tool string, args map[string]any) (Answer, error) {
	ask := func() (message, error) {
		return s.request(ctx, dial, "tools/call", map[string]any{"name": tool, "arguments": args})
	}
	m, err, anew := message{}, errForgotten, false
	if s.id != "" {
		m, err = ask()
		anew = errors.Is(err, errForgotten)
	}
	if errors.Is(err, errForgotten) {
		if err := s.open(ctx, dial); err != nil {
			return Answer{}, err
		}
		m, err = ask()
	}
	switch {
	case errors.Is(err, errForgotten):
		return Answer{}, odd("it forgets its sessions")
	case err != nil:
		return Answer{}, err
	}
	a, err := m.answer()
	a.Anew = anew
	return a, err
}

// Close ends the session at the server, as far as it answers.
func (s *Session) Close(ctx context.Context, dial Dial) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return
	}
	if s.id == "" {
		return
	}
	if resp, err := s.send(ctx, dial, http.MethodDelete, message{}); err == nil {
		resp.Body.Close()
	}
	s.id = ""
}

// over is a client for one request over a connection, which ends with the answer: one that is kept would be lost when the sandbox sleeps.
func over(conn net.Conn) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		},
	}
}

// open opens a session.
func (s *Session) open(ctx context.Context, dial Dial) error {
	s.id = ""
	m, err := s.request(ctx, dial, "initialize", map[string]any{
		"protocolVersion": version, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "sandboxd", "version": "1"},
	})
	switch {
	case err != nil:
		return err
	case m.Error != nil || m.session == "" || len(m.session) > maxSession:
		return odd("it opens no session")
	}
	s.id = m.session
	return s.tell(ctx, dial, "notifications/initialized")
}

// message is one of JSON-RPC.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	session string // that its head names
}

func (s *Session) tell(ctx context.Context, dial Dial, method string) error {
	resp, err := s.send(ctx, dial, http.MethodPost, message{Version: "2.0", Method: method})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// request gives the answer to a request.
func (s *Session) request(ctx context.Context, dial Dial, method string, params any) (message, error) {
	s.last++
	id := json.RawMessage(fmt.Sprint(s.last))
	resp, err := s.send(ctx, dial, http.MethodPost, message{Version: "2.0", ID: id, Method: method, Params: params})
	if err != nil {
		return message{}, err
	}
	defer resp.Body.Close()
	m, err := read(resp, id)
	m.session = resp.Header.Get("Mcp-Session-Id")
	return m, err
}

// send sends a message. The answer is one of success.
func (s *Session) send(ctx context.Context, dial Dial, method string, m message) (*http.Response, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	if method == http.MethodDelete {
		body = nil
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://"+s.host+"/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		q.Header.Set("Mcp-Session-Id", s.id)
		q.Header.Set("MCP-Protocol-Version", version)
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := over(conn).Do(q)
	switch {
	case err != nil:
		conn.Close()
		return nil, lost(err)
	case resp.StatusCode == http.StatusNotFound && s.id != "":
		resp.Body.Close()
		return nil, errForgotten
	case resp.StatusCode/100 != 2:
		resp.Body.Close()
		return nil, odd(fmt.Sprintf("it answered with status %d", resp.StatusCode))
	}
	return resp, nil
}

// lost is the error of a connection that broke.
func lost(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The connection to the browser broke. It may have ended.")
}

func odd(what string) error {
	return fault.New(fault.Unavailable, "The browser's server does not answer as it should: %s.", what)
}

// read finds the answer to a request, in a body of its own or in a stream of events.
func read(resp *http.Response, id json.RawMessage) (message, error) {
	body := &io.LimitedReader{R: resp.Body, N: maxAnswer}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		data, err := io.ReadAll(body)
		if err != nil {
			return message{}, lost(err)
		}
		if m, ok := answers(data, id); ok {
			return m, nil
		}
	case err == nil && kind == "text/event-stream":
		m, found, err := stream(body, id)
		if found || err != nil {
			return m, err
		}
	default:
		return message{}, odd("its answer is neither JSON nor a stream of events")
	}
	if body.N <= 0 {
		return message{}, odd(fmt.Sprintf("its answer is larger than %d MiB", maxAnswer>>20))
	}
	return message{}, odd("its answer has no result")
}

// stream reads events until one has the answer.
func stream(body io.Reader, id json.RawMessage) (m message, found bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAnswer+1)
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if more, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(more, []byte(" "))...), '\n')
		}
		if len(line) > 0 || len(data) == 0 {
			continue
		}
		if m, found = answers(data, id); found {
			return m, true, nil
		}
		data = data[:0]
	}
	if err := lines.Err(); err != nil {
		return m, false, lost(err)
	}
	m, found = answers(data, id)
	return m, found, nil
}

func answers(data []byte, id json.RawMessage) (m message, ok bool) {
	err := json.Unmarshal(data, &m)
	return m, err == nil && bytes.Equal(m.ID, id) && m.Method == "" && (m.Error != nil || m.Result != nil)
}

// result is that of a call.
type result struct {
	Content [maxParts]part `json:"content"` // decoding drops further ones
	IsError bool           `json:"isError,omitempty"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"` // of an image
}

// answer gives the answer to a call. What the server refuses is one too, that failed.
func (m message) answer() (Answer, error) {
	if m.Error != nil {
		return Answer{Text: m.Error.Message, Failed: true}, nil
	}
	var r result
	if err := json.Unmarshal(m.Result, &r); err != nil {
		return Answer{}, odd("the result of a call has another form")
	}
	a := Answer{Failed: r.IsError}
	var text strings.Builder
	for _, p := range r.Content {
		switch {
		case p.Type == "text":
			text.WriteString(p.Text + "\n")
		case p.Type == "image" && len(p.Data) > 0 && len(a.Pictures) < maxPictures:
			a.Pictures = append(a.Pictures, p.Data)
		}
	}
	a.Text = strings.TrimSpace(text.String())
	return a, nil
}
