package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/agenttest"
	"sandboxd/internal/agent/openai"
	"sandboxd/internal/agent/transport"
)

func open(e transport.Endpoint) agent.Model { return openai.New(e) }

// stream makes a stream of chunks.
func stream(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"
}

func TestModel_ReadsWhatOtherServersMakeOfTheProtocol(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"reasoning beside it": {
			stream(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"Hm."}}]}`, `{"choices":[{"delta":{"reasoning":"So."}}]}`,
				`{"choices":[{"delta":{"content":"Yes."},"finish_reason":"stop"}]}`),
			"thinking Hm. thinking So. text Yes.",
		},
		"one index for all calls": {
			stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"see","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}]}`),
			`call a look args {} call b see args {"x":1}`,
		},
		"ID and name in each part": {
			stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"}"}}]},"finish_reason":"stop"}]}`),
			"call a look args { args }",
		},
		"no index, and objects for words": {
			stream(`{"choices":[{"delta":{"reasoning":{"effort":"high"},"tool_calls":[{"id":7,"function":{"name":"look","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":null}`),
			"call  look args {}",
		},
		"no end marker, comments and no space": {
			": hello\n\ndata:{\"choices\":[{\"delta\":{\"content\":\"Yes.\"}}]}\r\n\r\ndata:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
			"text Yes.",
		},
		"a refusal": {stream(`{"choices":[{"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}`), "text I will not."},
	} {
		_, chunks, _, err := agenttest.Exchange(t, open, agent.Request{}, "text/event-stream", c.body)
		var got []string
		for _, c := range chunks {
			switch c.Kind {
			case agent.ChunkText:
				got = append(got, "text "+c.Text)
			case agent.ChunkThinking:
				got = append(got, "thinking "+c.Text)
			case agent.ChunkCall:
				got = append(got, fmt.Sprintf("call %s %s", c.ID, c.Name))
			case agent.ChunkArgs:
				got = append(got, "args "+c.Text)
			}
		}
		if all := strings.Join(got, " "); all != c.want || err != nil {
			t.Errorf("%s: %s, %v", name, all, err)
		}
	}
}

func TestModel_StopsAndUsage(t *testing.T) {
	for reason, want := range map[string]agent.Stop{"stop": agent.StopEnd, "tool_calls": agent.StopEnd, "length": agent.StopLength, "content_filter": agent.StopDecline} {
		_, _, finish, err := agenttest.Exchange(t, open, agent.Request{}, "text/event-stream", stream(`{"choices":[{"delta":{"content":"x"},"finish_reason":"`+reason+`"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":999}}}`))
		if err != nil || finish.Stop != want || finish.Usage != (agent.Usage{CacheRead: 100, Output: 7}) {
			t.Errorf("%s: %+v, %v", reason, finish, err)
		}
	}
}

func TestModel_AsksInTheProtocolsForm(t *testing.T) {
	picture := agent.Image{MediaType: "image/png", Data: []byte("x")}
	sent, _, _, err := agenttest.Exchange(t, open, agent.Request{
		System: "Be brief.", Output: 500, Effort: "high", Tools: []agent.ToolSpec{agenttest.Look, {Name: "bare"}},
		Messages: []agent.Message{
			agent.NewText(agent.User, "Look."),
			{Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartThinking, Text: "Hm."}, {Kind: agent.PartCall, Call: &agent.Call{ID: "c1", Name: "look", Arguments: json.RawMessage(`{"path":"<&>"}`)}}}},
			{Role: agent.User, Parts: []agent.Part{{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: "c1", Status: agent.Denied, Text: "No.", Images: []agent.Image{picture}}}, {Kind: agent.PartText, Text: "Well?"}}},
		},
	}, "text/event-stream", stream(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(sent), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":500,"reasoning_effort":"high",
		"tools":[{"type":"function","function":{"name":"look","description":"Looks at something.","parameters":`+string(agenttest.Look.Schema)+`}},{"type":"function","function":{"name":"bare"}}],
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Look."},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"path\":\"<&>\"}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"Error: No.\n(Pictures follow in the next message.)"},
			{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}},{"type":"text","text":"Well?"}]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
}
