// Package openai is the driver for providers that speak OpenAI's Chat Completions: OpenAI, llama.cpp's and vLLM's servers, and many more.
//
// It does not retry, knows no key and does not speak Responses. Of OpenAI's SDK it takes the reader of streams only: all of it adds 20 MB to
// a program, because its packages register the types of every product of theirs, and it drops what other servers add to the protocol.
//
// Invariant: it relies only on what servers other than OpenAI's implement too, and passes over what it does not know.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
)

// Model is a model behind /chat/completions.
type Model struct{ endpoint transport.Endpoint }

// New makes a Model. The endpoint's BaseURL includes /v1, or what a server has instead.
func New(e transport.Endpoint) *Model { return &Model{e} }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, r agent.Request, emit func(agent.Chunk) error) (agent.Finish, error) {
	call := m.endpoint.Call("text/event-stream")
	answer, err := m.send(ctx, call, r)
	if err != nil {
		return agent.Finish{}, call.Outcome(ctx, err, false)
	}
	stream := ssestream.NewStream[chunk](ssestream.NewDecoder(answer), nil)
	defer func() { _ = stream.Close() }() // all of it was read, or is not wanted
	s := reader{emit: emit, at: map[int64]current{}}
	for stream.Next() {
		if err := s.take(stream.Current()); err != nil {
			return s.finish, err
		}
	}
	return s.finish, call.Outcome(ctx, failure(stream.Err()), s.complete)
}

// send sends a request. The answer's body is the stream's to close.
func (m *Model) send(ctx context.Context, call *transport.Call, r agent.Request) (*http.Response, error) {
	body, err := json.Marshal(m.request(r))
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(m.endpoint.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, agent.Failure(agent.Unreachable, err, "The address of the provider is not valid.")
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "text/event-stream")
	return call.Client().Do(q)
}

// failure classifies an error that came in the middle of a stream.
func failure(err error) error {
	var said *ssestream.StreamError
	if !errors.As(err, &said) {
		return err
	}
	var event struct {
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(said.Event.Data, &event) // other forms have no code
	status := http.StatusInternalServerError
	if code, ok := event.Error.Code.(float64); ok && code >= http.StatusBadRequest && code < 600 {
		status = int(code)
	} else if event.Error.Type == "rate_limit_error" || event.Error.Code == "rate_limit_exceeded" {
		status = http.StatusTooManyRequests
	} else if event.Error.Type == "invalid_request_error" {
		status = http.StatusBadRequest
	}
	return transport.Refusal(status, said.Event.Data, 0)
}
