// Package anthropic is the driver for providers that speak Anthropic's Messages.
//
// It does not retry, knows no key and reads nothing from the environment.
//
// Invariant: thinking is given back exactly as it was signed, and what was sent before stays the same byte for byte, so that the provider
// finds it in its cache.
package anthropic

import (
	"context"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
)

// Name is what agent.Opaque calls this driver.
const Name = "anthropic"

// defaultOutput is asked for when a request does not say: the protocol wants a number.
const defaultOutput = 16_000

// Model is a model behind /v1/messages.
type Model struct{ endpoint transport.Endpoint }

// New makes a Model. The endpoint's BaseURL is that of the server, without /v1.
func New(e transport.Endpoint) *Model { return &Model{e} }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, r agent.Request, emit func(agent.Chunk) error) (agent.Finish, error) {
	call := m.endpoint.Call("text/event-stream")
	messages := sdk.NewMessageService(option.WithBaseURL(m.endpoint.BaseURL), option.WithHTTPClient(call.Client()),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry())
	stream := messages.NewStreaming(ctx, m.params(r))
	defer func() { _ = stream.Close() }() // all of it was read, or is not wanted
	s := reader{emit: emit}
	for stream.Next() {
		if err := s.take(stream.Current()); err != nil {
			return s.finish, err
		}
	}
	return s.finish, call.Outcome(ctx, failure(stream.Err()), s.complete)
}

// failure classifies an error that came in the middle of a stream.
func failure(err error) error {
	var said *sdk.Error
	if !errors.As(err, &said) {
		return err
	}
	status := map[sdk.ErrorType]int{
		sdk.ErrorTypeAuthenticationError: http.StatusUnauthorized, sdk.ErrorTypePermissionError: http.StatusForbidden,
		sdk.ErrorTypeNotFoundError: http.StatusNotFound, sdk.ErrorTypeRateLimitError: http.StatusTooManyRequests,
		sdk.ErrorTypeInvalidRequestError: http.StatusBadRequest, sdk.ErrorTypeBillingError: http.StatusPaymentRequired,
		sdk.ErrorTypeOverloadedError: statusOverloaded,
	}[said.Type()]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	return transport.Refusal(status, []byte(said.RawJSON()), 0)
}

// statusOverloaded is Anthropic's.
const statusOverloaded = 529

// reader reads the events of one answer.
type reader struct {
	emit     func(agent.Chunk) error
	finish   agent.Finish
	complete bool
	thinking bool // a part of it is open
	sealed   string
}

func (s *reader) take(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		s.finish.Usage = agent.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens}
	case "content_block_start":
		return s.begin(int(e.Index), e.ContentBlock)
	case "content_block_delta":
		return s.delta(int(e.Index), e.Delta)
	case "content_block_stop":
		return s.close()
	case "message_delta":
		s.end(e)
	case "message_stop":
		s.complete = true
	}
	return nil
}

func (s *reader) begin(index int, b sdk.ContentBlockStartEventContentBlockUnion) error {
	switch b.Type {
	case "text":
		return s.emit(agent.Chunk{Kind: agent.ChunkText, Text: b.Text})
	case "thinking":
		s.thinking, s.sealed = true, b.Signature
		return s.emit(agent.Chunk{Kind: agent.ChunkThinking, Text: b.Thinking})
	case "redacted_thinking":
		return s.emit(agent.Chunk{Kind: agent.ChunkOpaque, Opaque: &agent.Opaque{By: Name, Signature: b.Data, Redacted: true}})
	case "tool_use":
		return s.emit(agent.Chunk{Kind: agent.ChunkCall, Index: index, ID: b.ID, Name: b.Name})
	}
	return nil // of a kind that was not asked for
}

func (s *reader) delta(index int, d sdk.MessageStreamEventUnionDelta) error {
	switch d.Type {
	case "text_delta":
		return s.emit(agent.Chunk{Kind: agent.ChunkText, Text: d.Text})
	case "thinking_delta":
		return s.emit(agent.Chunk{Kind: agent.ChunkThinking, Text: d.Thinking})
	case "signature_delta":
		s.sealed += d.Signature
	case "input_json_delta":
		return s.emit(agent.Chunk{Kind: agent.ChunkArgs, Index: index, Text: d.PartialJSON})
	}
	return nil
}

// close ends a block: thinking with its signature, without which it cannot be given back.
func (s *reader) close() error {
	if !s.thinking || s.sealed == "" {
		s.thinking = false
		return nil
	}
	o := &agent.Opaque{By: Name, Signature: s.sealed}
	s.thinking, s.sealed = false, ""
	return s.emit(agent.Chunk{Kind: agent.ChunkOpaque, Opaque: o})
}

// end takes what is known at the end. The counts are those of the whole answer.
func (s *reader) end(e sdk.MessageStreamEventUnion) {
	u := &s.finish.Usage
	u.Input, u.Output = max(u.Input, e.Usage.InputTokens), max(u.Output, e.Usage.OutputTokens)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, e.Usage.CacheReadInputTokens), max(u.CacheWrite, e.Usage.CacheCreationInputTokens)
	switch e.Delta.StopReason {
	case sdk.StopReasonMaxTokens:
		s.finish.Stop = agent.StopLength
	case sdk.StopReasonRefusal:
		s.finish.Stop = agent.StopDecline
	case sdk.StopReasonModelContextWindowExceeded:
		s.finish.Stop = agent.StopWindow
	}
}
