package openai

import (
	"encoding/json"

	"sandboxd/internal/agent"
)

// chunk is one event of a stream.
type chunk struct {
	Choices []struct {
		Delta        delta `json:"delta"`
		FinishReason words `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

type delta struct {
	Content          words  `json:"content"`
	Refusal          words  `json:"refusal"`
	ReasoningContent words  `json:"reasoning_content"` // beside the protocol: thinking, as many servers send it
	Reasoning        words  `json:"reasoning"`         // as others do
	ToolCalls        []part `json:"tool_calls"`
}

// part is a part of a call of a tool.
type part struct {
	Index    int64 `json:"index"`
	ID       words `json:"id"`
	Function struct {
		Name      words `json:"name"`
		Arguments words `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// words is a string, or nothing where a server has something else.
type words string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*w = words(s)
	}
	return nil
}

// tokens gives usage without counting anything twice.
func (u usage) tokens() agent.Usage {
	prompt := max(0, u.Prompt)
	read := min(max(0, u.Details.Cached), prompt)
	write := min(max(0, u.Details.Written), prompt-read)
	return agent.Usage{Input: prompt - read - write, Output: max(0, u.Completion), CacheRead: read, CacheWrite: write}
}

// reader reads the events of one answer.
type reader struct {
	emit     func(agent.Chunk) error
	finish   agent.Finish
	complete bool
	calls    int
	at       map[int64]current // the call of each index
}

// current is the call that an index means. Some servers give all calls the same index, and tell them apart by their IDs.
type current struct {
	index int
	id    words
}

func (s *reader) take(c chunk) error {
	if c.Usage != nil {
		s.finish.Usage = c.Usage.tokens()
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := c.Choices[0]
	if err := s.delta(choice.Delta); err != nil {
		return err
	}
	switch choice.FinishReason {
	case "":
		return nil
	case "length":
		s.finish.Stop = agent.StopLength
	case "content_filter":
		s.finish.Stop = agent.StopDecline
	}
	s.complete = true
	return nil
}

func (s *reader) delta(d delta) error {
	thinking := d.ReasoningContent
	if thinking == "" {
		thinking = d.Reasoning
	}
	for _, c := range []agent.Chunk{
		{Kind: agent.ChunkThinking, Text: string(thinking)},
		{Kind: agent.ChunkText, Text: string(d.Content)},
		{Kind: agent.ChunkText, Text: string(d.Refusal)},
	} {
		if c.Text == "" {
			continue
		}
		if err := s.emit(c); err != nil {
			return err
		}
	}
	for _, p := range d.ToolCalls {
		if err := s.call(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *reader) call(p part) error {
	at, known := s.at[p.Index]
	if !known || p.ID != "" && p.ID != at.id && p.Function.Name != "" {
		if s.calls++; s.calls > maxCalls {
			return nil
		}
		at = current{index: s.calls, id: p.ID}
		s.at[p.Index] = at
		if err := s.emit(agent.Chunk{Kind: agent.ChunkCall, Index: at.index, ID: string(p.ID), Name: string(p.Function.Name)}); err != nil {
			return err
		}
	}
	if p.Function.Arguments == "" {
		return nil
	}
	return s.emit(agent.Chunk{Kind: agent.ChunkArgs, Index: at.index, Text: string(p.Function.Arguments)})
}

// maxCalls bounds what is kept of calls that the agent ignores anyway.
const maxCalls = 100 * agent.MaxCalls
