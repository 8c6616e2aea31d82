// Package scripted is a language model that plays a script: for tests, and for the demonstration that shows the chat without a provider.
//
// It is not a provider's server and speaks no protocol; that is package gatewaytest. It understands nothing that it is told.
//
// Invariant: it keeps to agent.Model's contract, so that what works with it works with a driver.
package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/agent"
)

// Step is one answer. Its parts come in the order of the fields.
type Step struct {
	Thinking string
	Text     string
	Calls    []Call
	Stop     agent.Stop
	Usage    agent.Usage
	Pace     time.Duration   // between two words
	Gate     <-chan struct{} // waited for before Err, or before the end
	Err      error           // instead of the end
}

// Call is a call of a tool. Arguments is sent as it is, so that it may be broken.
type Call struct {
	ID, Name, Arguments string
}

// Use makes a call; arguments is any value that becomes a JSON object.
func Use(name string, arguments any) Call {
	data, err := json.Marshal(arguments)
	if err != nil {
		data = []byte(err.Error()) // no JSON, so the turn says so
	}
	return Call{Name: name, Arguments: string(data)}
}

// Model plays steps. Safe for concurrent use.
type Model struct {
	next func(agent.Request) Step

	mu       sync.Mutex
	requests []agent.Request // the newest maxRequests
}

// Sizes.
const (
	maxRequests   = 1000 // that a Model keeps
	argumentPiece = 64   // characters of arguments that come at once
)

// New makes a model that plays steps in order, one a request, and then ends each turn at once.
func New(steps ...Step) *Model {
	var mu sync.Mutex
	return Playing(func(agent.Request) Step {
		mu.Lock()
		defer mu.Unlock()
		if len(steps) == 0 {
			return Step{Text: "That is the end of the script."}
		}
		s := steps[0]
		steps = steps[1:]
		return s
	})
}

// Playing makes a model that answers each request with the step that next gives. next is safe for concurrent use.
func Playing(next func(agent.Request) Step) *Model { return &Model{next: next} }

// Requests gives the newest requests, the oldest first.
func (m *Model) Requests() []agent.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Stream plays a step.
func (m *Model) Stream(ctx context.Context, r agent.Request, emit func(agent.Chunk) error) (agent.Finish, error) {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	m.requests = m.requests[max(0, len(m.requests)-maxRequests):]
	m.mu.Unlock()
	s := m.next(r)
	finish := agent.Finish{Stop: s.Stop, Usage: s.Usage}
	for _, c := range s.chunks() {
		if err := s.wait(ctx); err != nil {
			return finish, err
		}
		if err := emit(c); err != nil {
			return finish, err
		}
	}
	if s.Gate != nil {
		select {
		case <-s.Gate:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return finish, context.Cause(ctx)
	}
	return finish, s.Err
}

// wait keeps the pace.
func (s *Step) wait(ctx context.Context) error {
	if s.Pace > 0 {
		timer := time.NewTimer(s.Pace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// chunks gives the pieces of an answer, text by its words.
func (s *Step) chunks() []agent.Chunk {
	var all []agent.Chunk
	for word := range strings.SplitAfterSeq(s.Thinking, " ") {
		all = append(all, agent.Chunk{Kind: agent.ChunkThinking, Text: word})
	}
	for word := range strings.SplitAfterSeq(s.Text, " ") {
		all = append(all, agent.Chunk{Kind: agent.ChunkText, Text: word})
	}
	all = slices.DeleteFunc(all, func(c agent.Chunk) bool { return c.Text == "" })
	for i, call := range s.Calls {
		all = append(all, agent.Chunk{Kind: agent.ChunkCall, Index: i, ID: call.ID, Name: call.Name})
		for piece := range slices.Chunk([]rune(call.Arguments), argumentPiece) {
			all = append(all, agent.Chunk{Kind: agent.ChunkArgs, Index: i, Text: string(piece)})
		}
	}
	return all
}

// Failing makes a step that fails with a code before anything comes of it.
func Failing(code agent.Code, wait time.Duration) Step {
	return Step{Err: agent.Failure(code, nil, fmt.Sprintf("The provider says %s.", code)).With(0, wait)}
}
