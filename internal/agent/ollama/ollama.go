// Package ollama is the driver for Ollama's /api/chat.
//
// It does not retry, load or pull models. It reads nothing from the environment, but for an address at ollama.com, where the SDK signs with
// the key of Ollama's own client: the gateway is between us and that.
//
// Invariant: an answer counts as complete only when the server has said so: the SDK loses errors of reading.
package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ollama/ollama/api"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
)

// Name is what agent.Opaque calls this driver.
const Name = "ollama"

// Model is a model behind /api/chat.
type Model struct {
	endpoint transport.Endpoint
	window   int
}

// New makes a Model. The endpoint's BaseURL is that of the server, without /api. window is the context that the server is asked to make
// room for; 0 leaves it to the server, which may take a small one.
func New(e transport.Endpoint, window int) *Model { return &Model{e, window} }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, r agent.Request, emit func(agent.Chunk) error) (agent.Finish, error) {
	base, err := url.Parse(m.endpoint.BaseURL)
	if err != nil {
		return agent.Finish{}, agent.Failure(agent.Unreachable, err, "The address of the provider is not valid.")
	}
	call := m.endpoint.Call("application/x-ndjson", "application/json")
	s := reader{emit: emit}
	err = api.NewClient(base, call.Client()).Chat(ctx, m.request(r), s.take)
	if s.stopped != nil {
		return s.finish, s.stopped
	}
	return s.finish, call.Outcome(ctx, s.failure(err), s.complete)
}

// failure classifies an error that came in the middle of a stream. The SDK has no type for it: all but its own and JSON's are the server's
// words.
func (s *reader) failure(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var known *agent.ModelError
	var status api.StatusError
	var sending *url.Error
	switch {
	case err == nil || errors.As(err, &syntax) || errors.As(err, &kind) || errors.As(err, &known) || errors.As(err, &sending):
		return err
	case errors.As(err, &status):
		return transport.Refusal(status.StatusCode, []byte(status.ErrorMessage), 0)
	}
	said, marshal := json.Marshal(map[string]string{"error": err.Error()})
	if marshal != nil || strings.HasPrefix(strings.TrimSpace(string(said)), `{"error":"{`) { // a line that is no JSON, such as the half of one
		return fmt.Errorf("read the answer: %w", err)
	}
	return transport.Refusal(http.StatusInternalServerError, said, 0)
}

// reader reads the lines of one answer.
type reader struct {
	emit     func(agent.Chunk) error
	stopped  error // emit's
	finish   agent.Finish
	complete bool
	calls    int
}

func (s *reader) take(r api.ChatResponse) error {
	for _, c := range s.chunks(r.Message) {
		if s.stopped = s.emit(c); s.stopped != nil {
			return s.stopped
		}
	}
	if !r.Done {
		return nil
	}
	s.complete = true
	s.finish.Usage = agent.Usage{Input: max(0, int64(r.PromptEvalCount)), Output: max(0, int64(r.EvalCount))}
	if r.DoneReason == "length" {
		s.finish.Stop = agent.StopLength
	}
	return nil
}

func (s *reader) chunks(m api.Message) []agent.Chunk {
	var all []agent.Chunk
	if m.Thinking != "" {
		all = append(all, agent.Chunk{Kind: agent.ChunkThinking, Text: m.Thinking})
	}
	if m.Content != "" {
		all = append(all, agent.Chunk{Kind: agent.ChunkText, Text: m.Content})
	}
	for _, call := range m.ToolCalls {
		arguments := "{}"
		if call.Function.Arguments.Len() > 0 {
			arguments = call.Function.Arguments.String()
		}
		all = append(all, agent.Chunk{Kind: agent.ChunkCall, Index: s.calls, ID: call.ID, Name: call.Function.Name},
			agent.Chunk{Kind: agent.ChunkArgs, Index: s.calls, Text: arguments})
		s.calls++
	}
	return all
}
