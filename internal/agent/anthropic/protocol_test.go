package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/agenttest"
	"sandboxd/internal/agent/anthropic"
	"sandboxd/internal/agent/transport"
)

func open(e transport.Endpoint) agent.Model { return anthropic.New(e) }

// stream makes a stream of events.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var kind struct{ Type string }
		_ = json.Unmarshal([]byte(e), &kind) // the test's own
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind.Type, e)
	}
	return b.String()
}

const (
	begin = `{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1,"cache_read_input_tokens":3}}}`
	stop  = `{"type":"message_stop"}`
)

func TestModel_AsksInTheProtocolsFormAndMarksWhatIsCached(t *testing.T) {
	picture := agent.Image{MediaType: "image/png", Data: []byte("x")}
	look := func(id string) agent.Part {
		return agent.Part{Kind: agent.PartCall, Call: &agent.Call{ID: id, Name: "look", Arguments: json.RawMessage(`{"path":"/"}`)}}
	}
	seen := func(id string, status agent.Status, images ...agent.Image) agent.Part {
		return agent.Part{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: id, Status: status, Text: "seen", Images: images}}
	}
	mine := agent.Part{Kind: agent.PartThinking, Text: "Hm.", Opaque: &agent.Opaque{By: anthropic.Name, Signature: "sig"}}
	hidden := agent.Part{Kind: agent.PartThinking, Opaque: &agent.Opaque{By: anthropic.Name, Signature: "enc", Redacted: true}}
	foreign := agent.Part{Kind: agent.PartThinking, Text: "Not mine."}
	sent, _, _, err := agenttest.Exchange(t, open, agent.Request{
		System: "Be brief.", Output: 500, Effort: "high", Tools: []agent.ToolSpec{{Name: "bare", Description: "B."}, agenttest.Look},
		Messages: []agent.Message{
			agent.NewText(agent.User, "Look."), {Role: agent.Assistant, Parts: []agent.Part{mine, hidden, foreign, look("c1")}},
			{Role: agent.User, Parts: []agent.Part{seen("c1", agent.OK, picture)}}, {Role: agent.Assistant, Parts: []agent.Part{look("c2")}},
			{Role: agent.User, Parts: []agent.Part{seen("c2", agent.Denied)}},
		},
	}, "text/event-stream", stream(begin, stop))
	if err != nil {
		t.Fatal(err)
	}
	const cached = `"cache_control":{"type":"ephemeral"}`
	var got, want any
	if err := json.Unmarshal([]byte(sent), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"model":"m","stream":true,"max_tokens":500,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},
		"system":[{"type":"text","text":"Be brief.",`+cached+`}],
		"tools":[{"name":"bare","description":"B.","input_schema":{"type":"object","properties":{}}},
			{"name":"look","description":"Looks at something.","input_schema":`+string(agenttest.Look.Schema)+`,`+cached+`}],
		"messages":[{"role":"user","content":[{"type":"text","text":"Look."}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"redacted_thinking","data":"enc"},{"type":"tool_use","id":"c1","name":"look","input":{"path":"/"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":false,`+cached+`,"content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"look","input":{"path":"/"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","is_error":true,`+cached+`,"content":[{"type":"text","text":"seen"}]}]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
	if n := strings.Count(sent, cached); n != 4 {
		t.Errorf("%d places are marked, at most 4 are taken", n)
	}
}

func TestModel_ReadsThinkingOfAllSorts(t *testing.T) {
	_, chunks, finish, err := agenttest.Exchange(t, open, agent.Request{}, "text/event-stream", stream(begin,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"si"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"g"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"enc"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"from_the_future","data":"?"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"future_delta","text":"?"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"Yes."}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":40}}`, `{"type":"from_the_future"}`, stop))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range chunks {
		if c.Opaque != nil {
			got = append(got, fmt.Sprintf("%s %s %v", c.Opaque.By, c.Opaque.Signature, c.Opaque.Redacted))
		} else if c.Text != "" {
			got = append(got, c.Text)
		}
	}
	if all := strings.Join(got, ", "); all != "Hm., anthropic sig false, anthropic enc true, Yes." {
		t.Errorf("read %s", all)
	}
	if finish.Usage != (agent.Usage{Input: 9, CacheRead: 3, Output: 40}) {
		t.Errorf("usage %+v", finish.Usage)
	}
}

func TestModel_Stops(t *testing.T) {
	for reason, want := range map[string]agent.Stop{
		"end_turn": agent.StopEnd, "tool_use": agent.StopEnd, "max_tokens": agent.StopLength, "refusal": agent.StopDecline, "model_context_window_exceeded": agent.StopWindow,
	} {
		_, _, finish, err := agenttest.Exchange(t, open, agent.Request{}, "text/event-stream", stream(begin, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"},"usage":{"output_tokens":4}}`, stop))
		if err != nil || finish.Stop != want {
			t.Errorf("%s: %+v, %v", reason, finish, err)
		}
	}
}

func TestModel_ReadsNothingFromTheEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "theirs")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "theirs")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Theirs: theirs")
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	defer server.Close()
	_, err := open(transport.Endpoint{BaseURL: server.URL, Model: "m"}).Stream(t.Context(), agent.Request{Messages: []agent.Message{agent.NewText(agent.User, "Hi.")}}, func(agent.Chunk) error { return nil })
	if agent.CodeOf(err) != agent.Broken || len(seen) == 0 || strings.Contains(fmt.Sprint(seen), "theirs") {
		t.Errorf("%v: %v", err, seen)
	}
}
