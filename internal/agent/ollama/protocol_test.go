package ollama_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/agenttest"
	"sandboxd/internal/agent/ollama"
	"sandboxd/internal/agent/transport"
)

func open(e transport.Endpoint) agent.Model { return ollama.New(e, 8192) }

const done = `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":4}` + "\n"

func TestModel_AsksInTheProtocolsForm(t *testing.T) {
	picture := agent.Image{MediaType: "image/png", Data: []byte("x")}
	sent, _, finish, err := agenttest.Exchange(t, open, agent.Request{
		System: "Be brief.", Output: 500, Effort: "high", Tools: []agent.ToolSpec{agenttest.Look, {Name: "bare"}},
		Messages: []agent.Message{
			{Role: agent.User, Parts: []agent.Part{{Kind: agent.PartText, Text: "Look."}, {Kind: agent.PartImage, Image: &picture}}},
			{Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartThinking, Text: "Hm."}, {Kind: agent.PartThinking, Text: "Not mine.", Opaque: &agent.Opaque{By: "anthropic"}},
				{Kind: agent.PartText, Text: "I look."}, {Kind: agent.PartCall, Call: &agent.Call{ID: "c1", Name: "look", Arguments: json.RawMessage(`{"b":1,"a":[2]}`)}}}},
			{Role: agent.User, Parts: []agent.Part{{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: "c1", Status: agent.Error, Text: "No.", Images: []agent.Image{picture}}}, {Kind: agent.PartText, Text: "Well?"}}},
		},
	}, "application/x-ndjson", done)
	if err != nil || finish.Usage != (agent.Usage{Input: 9, Output: 4}) {
		t.Fatal(finish, err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(sent), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"model":"m","truncate":false,"shift":false,"think":"high","options":{"num_ctx":8192,"num_predict":500},
		"tools":[{"type":"function","function":{"name":"look","description":"Looks at something.","parameters":`+string(agenttest.Look.Schema)+`}},
			{"type":"function","function":{"name":"bare","parameters":{"type":"object","properties":{}}}}],
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Look.","images":["eA=="]},
			{"role":"assistant","content":"I look.","thinking":"Hm.","tool_calls":[{"id":"c1","function":{"index":0,"name":"look","arguments":{"b":1,"a":[2]}}}]},
			{"role":"tool","content":"Error: No.","tool_name":"look","tool_call_id":"c1","images":["eA=="]},{"role":"user","content":"Well?"}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
}

func TestModel_AnAnswerWithoutItsEndIsBroken(t *testing.T) {
	line := `{"message":{"role":"assistant","content":"Half"},"done":false}` + "\n"
	_, chunks, _, err := agenttest.Exchange(t, open, agent.Request{}, "application/x-ndjson", line)
	if agent.CodeOf(err) != agent.Broken || len(chunks) != 1 {
		t.Errorf("%v after %d chunks", err, len(chunks))
	}
	_, _, finish, err := agenttest.Exchange(t, open, agent.Request{}, "application/x-ndjson", strings.Replace(done, `"stop"`, `"length"`, 1))
	if err != nil || finish.Stop != agent.StopLength {
		t.Errorf("%+v, %v", finish, err)
	}
}

func TestModel_ManyCallsInOneAnswerStayApart(t *testing.T) {
	line := `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"look","arguments":{"x":1}}},{"function":{"name":"look","arguments":null}}]},"done":false}` + "\n"
	_, chunks, _, err := agenttest.Exchange(t, open, agent.Request{}, "application/x-ndjson", line+line+done)
	indexes := map[int]bool{}
	for _, c := range chunks {
		indexes[c.Index] = true
		if c.Kind == agent.ChunkArgs && !strings.HasPrefix(c.Text, "{") {
			t.Errorf("arguments %q", c.Text)
		}
	}
	if err != nil || len(indexes) != 4 {
		t.Errorf("%d calls, %v", len(indexes), err)
	}
}
