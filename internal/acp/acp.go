// Package acp is the client's side of the Agent Client Protocol, version 1: JSON-RPC as lines between sandboxd and an agent that runs as a
// program in a sandbox.
//
// It starts no program and shows nothing: a Peer turns lines into messages and back, whatever carries them, and Lines reads them from any
// io.Reader. It has no goroutines, and a Peer is plain data, so that its owner can store it and continue after a restart.
//
// Invariant: all that an agent sends is bounded (the length and depth of a line, requests that wait, the length of each text), and what
// this version does not know is passed over: an unknown update is nothing, an unknown request is answered with MethodNotFound.
package acp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sandboxd/internal/fault"
)

// Version is the protocol's version that is spoken here.
const Version = 1

// Bounds of what an agent sends.
const (
	MaxLine  = 8 << 20 // bytes of one message: a picture as base64 fits
	MaxDepth = 64      // of nested objects and arrays
	MaxAsked = 32      // requests of the agent that wait for an answer
	MaxID    = 128     // bytes of the id of a request, and of the ids of sessions and calls
	MaxNoise = 100     // lines in a row that are no messages
)

// Codes of errors.
const (
	AuthRequired   = -32000
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// Kind is what a Message is.
type Kind uint8

// The kinds.
const (
	Noise        Kind = iota // a line that is no message, such as a log line
	Response                 // to a call of ours
	Request                  // of the agent; it waits for Answer or Refuse
	Notification             // of the agent
)

// Message is a line of the agent.
type Message struct {
	Kind   Kind
	ID     string          // Request: its id, as JSON
	Call   int64           // Response: the call's number
	Method string          // of what is asked, also of a Response
	Body   json.RawMessage // parameters, or the result
	Err    *Error          // Response: that it failed
}

// Error is a failed answer.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Peer is one conversation in the protocol. Its fields are only for storing it. Not safe for concurrent use.
type Peer struct {
	Last  int64            `json:"last"`            // number of our last call
	Calls map[int64]string `json:"calls,omitempty"` // methods of ours that wait for an answer
	Asked []string         `json:"asked,omitempty"` // ids of the agent's requests that wait
	Noise int              `json:"noise,omitempty"` // lines in a row that were no messages
}

// frame is a message on its way.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

func (f frame) line() []byte {
	f.Version = "2.0"
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(f); err != nil {
		panic(fmt.Sprintf("encode a message: %v", err)) // our own types always can be
	}
	return b.Bytes()
}

// Call gives the line of a call, and its number.
func (p *Peer) Call(method string, params any) (line []byte, number int64) {
	p.Last++
	if p.Calls == nil {
		p.Calls = map[int64]string{}
	}
	p.Calls[p.Last] = method
	return frame{ID: fmt.Append(nil, p.Last), Method: method, Params: params}.line(), p.Last
}

// Notify gives the line of a notification.
func (p *Peer) Notify(method string, params any) []byte {
	return frame{Method: method, Params: params}.line()
}

// Answer gives the line that answers a request of the agent; nil when it does not wait.
func (p *Peer) Answer(id string, result any) []byte {
	if !p.drop(id) {
		return nil
	}
	return frame{ID: json.RawMessage(id), Result: result}.line()
}

// Refuse gives the line that answers a request of the agent with an error; nil when it does not wait.
func (p *Peer) Refuse(id string, code int, message string) []byte {
	if !p.drop(id) {
		return nil
	}
	return frame{ID: json.RawMessage(id), Error: &Error{Code: code, Message: message}}.line()
}

func (p *Peer) drop(id string) bool {
	for i, other := range p.Asked {
		if other == id {
			p.Asked = append(p.Asked[:i:i], p.Asked[i+1:]...)
			return true
		}
	}
	return false
}

// Take takes a line of the agent in. A line that does not begin as an object is Noise, as programs write it to their output by mistake. All
// that a Message has is valid UTF-8. An error says, for a person, how the agent breaks the protocol: nothing more that it sends can be trusted to mean what it seems to.
func (p *Peer) Take(line []byte) (Message, error) {
	line = bytes.TrimSpace(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	if len(line) == 0 || line[0] != '{' {
		if p.Noise++; p.Noise > MaxNoise {
			return Message{}, broken("it writes text that is no message")
		}
		return Message{}, nil
	}
	p.Noise = 0
	if deep(line) {
		return Message{}, broken("a message is nested more than %d levels deep", MaxDepth)
	}
	var f struct {
		ID     json.RawMessage
		Method *string
		Params json.RawMessage
		Result json.RawMessage
		Error  *Error
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return Message{}, broken("a message is no valid JSON")
	}
	if f.Method == nil {
		return p.response(f.ID, f.Result, f.Error)
	}
	m := Message{Kind: Notification, Method: *f.Method, Body: f.Params}
	if len(f.ID) == 0 {
		return m, nil
	}
	m.Kind, m.ID = Request, string(f.ID)
	return m, p.asks(m.ID)
}

// response matches an answer with the call that it is for.
func (p *Peer) response(id, result json.RawMessage, failed *Error) (Message, error) {
	var number int64
	if err := json.Unmarshal(id, &number); err != nil || p.Calls[number] == "" {
		if failed != nil {
			return Message{}, broken("it did not understand a message: %s", failed.Text())
		}
		return Message{}, broken("it answers what it was not asked (id %.20q)", string(id))
	}
	m := Message{Kind: Response, Call: number, Method: p.Calls[number], Body: result, Err: failed}
	delete(p.Calls, number)
	return m, nil
}

// asks notes a request of the agent.
func (p *Peer) asks(id string) error {
	var number int64
	var text string
	if len(id) > MaxID || json.Unmarshal([]byte(id), &number) != nil && json.Unmarshal([]byte(id), &text) != nil || id == "null" {
		return broken("a request has the id %.20q", id)
	}
	for _, other := range p.Asked {
		if other == id {
			return broken("two requests have the id %.20q", id)
		}
	}
	if len(p.Asked) >= MaxAsked {
		return broken("it has more than %d requests open", MaxAsked)
	}
	p.Asked = append(p.Asked, id)
	return nil
}

// broken says how the agent breaks the protocol.
func broken(format string, args ...any) error {
	return fault.New(fault.Invalid, "The agent does not keep to the Agent Client Protocol: %s.", fmt.Sprintf(format, args...))
}

// deep reports whether JSON is nested more than MaxDepth.
func deep(line []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
