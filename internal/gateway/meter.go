package gateway

import (
	"cmp"
	"encoding/json"
)

// form is how an answer is written.
type form int

const (
	whole  form = iota // one JSON value
	lines              // a JSON value a line
	events             // server-sent events
)

// meter reads usage from an answer that passes by in pieces. It keeps a few values of it, whatever its length.
type meter struct {
	form    form
	find    finder
	at      int   // bytes of the field's name "data:" that were read on this line
	skip    bool  // the line is of another field
	size    int64 // bytes that have passed
	pieces  int64 // of a stream that have passed: about a token each
	tokens  Tokens
	input   int64  // with the cached ones of cached
	cached  int64  // that are counted in input
	ended   bool   // what ends a stream has come
	later   bool   // it is of a response that is made in the background, and asked for again
	problem string // the provider's own
}

const dataField = "data:"

func newMeter(form form) *meter {
	m := &meter{form: form}
	m.find.found = m.found
	return m
}

// read takes the next piece.
func (m *meter) read(piece []byte) {
	m.size += int64(len(piece))
	for _, c := range piece {
		switch {
		case m.form == whole:
			m.find.read(c)
		case c == '\n':
			m.find.read(c)
			if m.form == lines || m.at == len(dataField) && !m.skip {
				m.pieces++
			}
			if m.form == lines || m.at == 0 && !m.skip {
				m.find.reset() // so that broken JSON spoils no more than itself
			}
			m.at, m.skip = 0, false
		case m.form == lines:
			m.find.read(c)
		case m.skip || c == '\r':
		case m.at < len(dataField):
			m.skip = c != dataField[m.at]
			m.at++
		default:
			m.find.read(c)
		}
	}
}

// usage is what providers say of tokens, in all protocols. The counts of a stream only grow.
type usage struct {
	Input      float64 `json:"input_tokens"` // Messages: without the cached ones; Responses: with them
	Output     float64 `json:"output_tokens"`
	CacheWrite float64 `json:"cache_creation_input_tokens"`
	CacheRead  float64 `json:"cache_read_input_tokens"`
	Details    details `json:"input_tokens_details"`

	Prompt        float64 `json:"prompt_tokens"` // Chat Completions
	Completion    float64 `json:"completion_tokens"`
	PromptDetails details `json:"prompt_tokens_details"`

	PromptCount float64 `json:"promptTokenCount"` // Gemini
	ToolCount   float64 `json:"toolUsePromptTokenCount"`
	Candidates  float64 `json:"candidatesTokenCount"`
	Thoughts    float64 `json:"thoughtsTokenCount"`
	CachedCount float64 `json:"cachedContentTokenCount"`
}

type details struct {
	Cached float64 `json:"cached_tokens"`
}

// found takes a value of the answer.
func (m *meter) found(path string, value []byte) {
	switch path {
	case "usage", "message.usage", "response.usage", "usageMetadata":
		var u usage
		if json.Unmarshal(value, &u) == nil {
			m.count(u)
		}
	case "prompt_eval_count":
		m.count(usage{Input: number(value)})
	case "eval_count":
		m.count(usage{Output: number(value)})
	case "type":
		switch string(value) {
		case `"message_stop"`, `"response.completed"`, `"response.incomplete"`, `"response.failed"`:
			m.ended = true
		case `"error"`:
			m.ended, m.problem = true, cmp.Or(m.problem, unnamedError)
		}
	case "error", "response.error":
		m.complain(value)
	case "done":
		m.ended = m.ended || string(value) == "true"
	case "choices..finish_reason", "candidates..finishReason", "promptFeedback":
		m.ended = m.ended || string(value) != "null"
	case "background", "response.background":
		m.later = string(value) == "true"
	case doneWord:
		m.ended = true
	}
}

// estimate counts what an answer took whose provider did not tell it, or was cut before it could; asked is the size of the request. Or a
// client that always leaves before the end would meet no budget. What was told is at least as much.
func (m *meter) estimate(asked int) {
	const bytesPerToken, bytesPerPiece, most = 4, 256, 200_000
	if m.input+m.tokens.CacheRead+m.tokens.CacheWrite == 0 {
		m.tokens.Input = min(int64(asked/bytesPerToken), most)
	}
	said := max(m.pieces, m.size/bytesPerPiece)
	if m.form == whole {
		said = m.size / bytesPerToken
	}
	m.tokens.Output = max(m.tokens.Output, min(said, most))
}

// told reports whether the provider has said what its answer took.
func (m *meter) told() bool { return m.input+m.cached+m.tokens.Total() > 0 }

func (m *meter) count(u usage) {
	grow(&m.input, u.Input+u.Prompt+u.PromptCount+u.ToolCount)
	grow(&m.cached, u.Details.Cached+u.PromptDetails.Cached+u.CachedCount)
	grow(&m.tokens.Output, u.Output+u.Completion+u.Candidates+u.Thoughts)
	grow(&m.tokens.CacheWrite, u.CacheWrite)
	grow(&m.tokens.CacheRead, u.CacheRead+float64(m.cached))
	m.tokens.Input = max(m.input-m.cached, 0)
}

// grow sets a count unless it is higher already. A number that cannot be one is not believed.
func grow(to *int64, n float64) {
	if n > 0 && n <= maxCount {
		*to = max(*to, int64(n))
	}
}

func number(value []byte) float64 {
	var n float64
	_ = json.Unmarshal(value, &n) // what is no number counts as 0
	return n
}

// unnamedError is noted when a provider's error has no message that is understood.
const unnamedError = "The provider tells of an error in its answer."

// complain notes an error that the provider tells in an answer.
func (m *meter) complain(value []byte) {
	var shape struct{ Message string }
	var plain string
	switch {
	case json.Unmarshal(value, &plain) == nil && plain != "":
		m.problem = plain
	case json.Unmarshal(value, &shape) == nil && shape.Message != "":
		m.problem = shape.Message
	case string(value) != "null":
		m.problem = unnamedError
	}
	m.ended = m.ended || m.problem != ""
}
