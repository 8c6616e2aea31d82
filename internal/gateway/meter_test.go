package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestMeter_ReadsUsageOfEachProtocolHoweverItIsCut(t *testing.T) {
	long := strings.Repeat(`x\"{[`, 20000)
	for name, c := range map[string]struct {
		form   form
		answer string
		want   Tokens
	}{
		"messages, streamed": {events, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\\"usage\\\":{\\\"input_tokens\\\":999}\"}}\n\n" +
			": a comment\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", Tokens{10, 20, 4, 3}},
		"messages, whole": {whole, `{"id":"m","content":[{"type":"tool_use","input":{"usage":{"input_tokens":999}}}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":null}}`, Tokens{Input: 10, Output: 5}},
		"chat, streamed": {events, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\r\n\r\n" +
			"data:{\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\r\n\r\ndata: [DONE]\r\n\r\n", Tokens{6, 5, 4, 0}},
		"responses, streamed, with a long end": {events, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"instructions\":\"" + long + "\",\"output\":[{\"usage\":{\"input_tokens\":7}}],\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":3},\"output_tokens\":5}}}\n\n", Tokens{7, 5, 3, 0}},
		"ollama": {lines, "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5}\n", Tokens{Input: 10, Output: 5}},
		"gemini, streamed": {events, "data: {\"candidates\":[{\"content\":{}}],\"usageMetadata\":{\"promptTokenCount\":10}}\r\n\r\n" +
			"data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":10,\"cachedContentTokenCount\":4,\"candidatesTokenCount\":5,\"thoughtsTokenCount\":2}}\r\n\r\n", Tokens{6, 7, 4, 0}},
		"gemini, an array":    {whole, "[{\"candidates\":[{}]},\n{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":5}}]", Tokens{Input: 10, Output: 5}},
		"embeddings":          {whole, `{"data":[{"embedding":[` + strings.Repeat("0.1,", 5000) + `0]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, Tokens{Input: 8}},
		"lies":                {whole, `{"usage":{"input_tokens":-5,"output_tokens":1e300,"cache_read_input_tokens":2.9}}`, Tokens{CacheRead: 2}},
		"after a broken line": {events, "data: {\"a\":{\"b\n\ndata: {\"usage\":{\"input_tokens\":1}}\n\n", Tokens{Input: 1}},
		"of a wrong type":     {whole, `{"usage":{"input_tokens":"5"}}`, Tokens{}},
		"long usage":          {whole, `{"usage":{"x":"` + long + `","input_tokens":5}}`, Tokens{}},
	} {
		for _, size := range []int{1, 2, 7, 4096, len(c.answer)} {
			m := newMeter(c.form)
			for piece := range chunks(c.answer, size) {
				m.read(piece)
			}
			if m.tokens != c.want {
				t.Errorf("%s, %d bytes at once: %+v, want %+v", name, size, m.tokens, c.want)
			}
		}
	}
}

func chunks(text string, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield([]byte(text[:n])) {
				return
			}
			text = text[n:]
		}
	}
}

func TestMeter_SeesTheEndOfEachStream(t *testing.T) {
	for end, form := range map[string]form{
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n": events,
		"data: [DONE]\n\n": events,
		"data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n":       events,
		"data: {\"type\":\"response.incomplete\",\"response\":{}}\n\n": events,
		"data: {\"error\":{\"message\":\"no\"}}\n\n":                   events,
		"{\"done\":true}\n":    lines,
		"{\"error\":\"no\"}\n": lines,
		"data: {\"candidates\":[{\"content\":{},\"finishReason\":\"MAX_TOKENS\"}]}\n\n": events,
		"data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n":                   events,
	} {
		m := newMeter(form)
		m.read([]byte(end))
		if !m.ended {
			t.Errorf("%q is no end", end)
		}
	}
	m := newMeter(events)
	m.read([]byte("data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"message_stop\"}}\n\ndata: {\"choices\":[{\"finish_reason\":null}],\"done\":false}\n\n"))
	if m.ended {
		t.Error("it ended early")
	}
}

func TestMeter_KeepsLittleOfALongAnswer(t *testing.T) {
	m := newMeter(whole)
	m.read([]byte(`{"usage":{"x":"`))
	piece := bytes.Repeat([]byte("y"), 1<<20)
	for range 8 {
		m.read(piece)
	}
	if n := cap(m.find.value); n > 4*maxValue {
		t.Errorf("%d bytes are kept", n)
	}
}

// FuzzMeter reads anything the same in pieces as at once, and finds usage behind any JSON.
func FuzzMeter(f *testing.F) {
	for _, seed := range []string{`{"usage":{"input_tokens":3}}`, "data: {\"usage\":{\"input_tokens\":3}}\n\n", `{"message":{"usage":{"input_tokens":4}},"a":[[{"usage":1}]]}`,
		`[[[[[[{"usage":{}}]]]]]]`, `]}{"usage":{"input_tokens":1}}`, `"\"}\\"`, `-1e5`} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, answer []byte, size int) {
		for _, form := range []form{whole, lines, events} {
			one, many := newMeter(form), newMeter(form)
			one.read(answer)
			for piece := range chunks(string(answer), max(size%64, 1)) {
				many.read(piece)
			}
			if one.tokens != many.tokens || one.ended != many.ended || one.problem != many.problem {
				t.Fatalf("cut into pieces it reads %+v, else %+v", many, one)
			}
		}
		if !json.Valid(answer) {
			return
		}
		m := newMeter(whole)
		m.read(fmt.Appendf(nil, `{"x":%s,"usage":{"x":%[1]s,"input_tokens":5},"y":%[1]s}`, answer))
		if m.tokens != (Tokens{Input: 5}) && len(answer) < maxValue-100 {
			t.Fatalf("behind %s it reads %+v", answer, m.tokens)
		}
	})
}
