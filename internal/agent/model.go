package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sandboxd/internal/fault"
)

// Model is a language model of a provider. Implementations pass agenttest.ModelContract. Safe for concurrent use.
type Model interface {
	// Stream sends a request and gives each piece of the answer to emit as it comes, from the calling goroutine. It returns when the
	// answer is complete, ctx ends, or emit returns an error, which it then returns as it is. It does not retry. The Finish is of what
	// came so far also when there is an error: a *ModelError, or ctx's cause when ctx has ended.
	//
	// A nil error means that the provider said that its answer is complete. Sizes are bounded, and so is the time without a byte.
	Stream(ctx context.Context, r Request, emit func(Chunk) error) (Finish, error)
}

// Request is what a model is asked. A Model does not change it.
type Request struct {
	System   string
	Messages []Message // begin with the user; roles alternate; no marks
	Tools    []ToolSpec
	Output   int    // as Turn has it
	Effort   string // as Turn has it
}

// ToolSpec is what a model is told about a tool.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of an object
}

// ChunkKind says what a chunk is.
type ChunkKind uint8

// The kinds of chunks.
const (
	ChunkText     ChunkKind = iota // more text
	ChunkThinking                  // more thinking
	ChunkOpaque                    // the end of a part of thinking, with what the provider wants back
	ChunkCall                      // a call begins, with ID and Name
	ChunkArgs                      // more of the arguments of the call with that Index
)

// Chunk is a piece of an answer.
type Chunk struct {
	Kind   ChunkKind
	Text   string
	Opaque *Opaque
	Index  int    // of calls: tells those of one answer apart
	ID     string // of a call, as the provider named it; may be ""
	Name   string // of a call
}

// Stop says why a model stopped.
type Stop uint8

// The reasons.
const (
	StopEnd     Stop = iota // it is done, or waits for results
	StopLength              // it may not give out more
	StopDecline             // it will not answer
	StopWindow              // its window is full
)

// Finish is what is known at the end of a stream.
type Finish struct {
	Stop  Stop
	Usage Usage // zero when the provider did not say
}

// Code says what went wrong with a provider.
type Code string

// The codes.
const (
	Unauthorized Code = "unauthorized"  // 401, 403: the key is wrong, or may not do this; not retried
	NotThere     Code = "not_found"     // 404: no such model, or not the address of such a provider
	Rejected     Code = "rejected"      // another 4xx: the provider does not take this request
	Overflow     Code = "overflow"      // the request is longer than the model's window
	RateLimited  Code = "rate_limited"  // 429; retried
	Overloaded   Code = "overloaded"    // 5xx; retried
	Unreachable  Code = "unreachable"   // no connection, or it ended before the answer began; retried
	NoAnswer     Code = "no_answer"     // not one byte in time; retried once
	Silent       Code = "silent"        // the answer stopped coming
	Broken       Code = "broken_stream" // the answer ended in its middle
	BadProtocol  Code = "bad_protocol"  // what came is not of the protocol: wrong address or kind
	TooLarge     Code = "too_large"     // the answer broke a bound
)

// ModelError is a provider's failure. Its Unwrap gives a *fault.Error with a sentence for a person.
type ModelError struct {
	Code   Code
	Status int           // of HTTP; 0 when there was none
	Wait   time.Duration // the provider asked for it; 0 when it did not
	Final  bool          // the provider says that another try is useless
	err    error
}

// kinds are the fault kinds of codes.
var kinds = map[Code]fault.Kind{
	Unauthorized: fault.Forbidden, NotThere: fault.NotFound, Rejected: fault.Invalid, Overflow: fault.TooLarge, RateLimited: fault.Limited,
	Overloaded: fault.Unavailable, Unreachable: fault.Unavailable, NoAnswer: fault.Timeout, Silent: fault.Timeout, Broken: fault.Unavailable,
	BadProtocol: fault.Unavailable, TooLarge: fault.TooLarge,
}

// Failure makes a ModelError; message is a whole sentence for a person, cause is for the log and may be nil.
func Failure(code Code, cause error, message string) *ModelError {
	return &ModelError{Code: code, err: &fault.Error{Kind: kinds[code], Message: message, Err: cause}}
}

// With adds what HTTP said.
func (e *ModelError) With(status int, wait time.Duration) *ModelError {
	e.Status, e.Wait = status, wait
	var f *fault.Error
	if errors.As(e.err, &f) {
		f.Wait = wait
	}
	return e
}

// Error is text for the log.
func (e *ModelError) Error() string { return string(e.Code) + ": " + e.err.Error() }

// Unwrap gives the *fault.Error.
func (e *ModelError) Unwrap() error { return e.err }

// CodeOf gives the code of a provider's failure; "" for other errors.
func CodeOf(err error) Code {
	var m *ModelError
	if errors.As(err, &m) {
		return m.Code
	}
	return ""
}
