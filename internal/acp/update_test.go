package acp_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/acp"
)

func update(body string) (acp.Update, bool) {
	return acp.ReadUpdate(json.RawMessage(`{"sessionId":"s","update":` + body + `}`))
}

// TestUpdates has each update of version 1, with what is read of it.
func TestUpdates(t *testing.T) {
	text := func(kind, s string) acp.Update { return acp.Update{Session: "s", Kind: kind, Text: s} }
	for _, c := range []struct {
		body string
		want acp.Update
	}{
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},"messageId":"m"}`, text(acp.MessageChunk, "hi")},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"file:///x\u202e","name":"x"}}`, text(acp.MessageChunk, "`file:///x`")},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"audio","data":"eA==","mimeType":"audio/wav"}}`, text(acp.MessageChunk, "")},
		{`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`, text(acp.ThoughtChunk, "hm")},
		{`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"short"}}`, text(acp.SummaryChunk, "short")},
		{`{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}`, text(acp.Compacted, "")},
		{`{"sessionUpdate":"notice","severity":"warning","title":"Careful","description":"The disk is full"}`, text(acp.NoticeGiven, "Careful: The disk is full")},
		{`{"sessionUpdate":"notice","severity":"info","title":"Well","description":null}`, text(acp.NoticeGiven, "Well")},
		{`{"sessionUpdate":"notice","message":"older"}`, text(acp.NoticeGiven, "older")},
		{`{"sessionUpdate":"notice","content":{"type":"text","text":"other"}}`, text(acp.NoticeGiven, "other")},
		{`{"sessionUpdate":"plan","entries":[{"content":"Look","priority":"high","status":"pending"}]}`, acp.Update{Session: "s", Kind: acp.PlanChanged, Plan: []acp.Entry{{"Look", "pending"}}}},
		{`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review\u202e","description":"Look\nat it","input":{"hint":"x"}},{"name":""}]}`,
			acp.Update{Session: "s", Kind: acp.CommandsChanged, Commands: []acp.Command{{"review", "Look at it"}}}},
		{`{"sessionUpdate":"current_mode_update","currentModeId":"plan"}`, acp.Update{Session: "s", Kind: acp.ModeChanged, Mode: "plan"}},
		{`{"sessionUpdate":"config_option_update","configOptions":[{"id":"a","name":"A","type":"boolean","currentValue":true}]}`, acp.Update{Session: "s", Kind: acp.OptionsChanged,
			Options: []acp.Option{{ID: "a", Name: "A", Value: "true", Values: []acp.Value{{"true", "On"}, {"false", "Off"}}, Way: acp.SetOption, Flag: true}}}},
		{`{"sessionUpdate":"usage_update","used":5,"size":10}`, acp.Update{Session: "s", Kind: acp.UsageChanged, Usage: acp.Usage{Used: 5, Size: 10}}},
		{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run\u202e it","kind":"execute","status":"pending","rawInput":{"command":"ls"},"locations":[{"path":"/x","line":1}]}`,
			acp.Update{Session: "s", Kind: acp.ToolCallBegun, Tool: acp.ToolCall{ID: "c", Title: "Run it", Label: "Run\u202e it", Kind: "execute", Status: acp.Pending, Input: json.RawMessage(`{"command":"ls"}`), Paths: []string{"/x"}}}},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","title":null,"content":[{"type":"content","content":{"type":"text","text":"a"}},{"type":"content","content":{"type":"text","text":"b"}},
			{"type":"terminal","terminalId":"t"}],"locations":null,"_meta":{"terminal_output_delta":{"data":"c"}}}`,
			acp.Update{Session: "s", Kind: acp.ToolCallChanged, Tool: acp.ToolCall{ID: "c", Status: acp.Completed, Output: "a\nb", HasText: true, Added: "c"}}},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","path":"/x","oldText":null,"newText":"n"},{"type":"content","content":{"type":"image","data":"eA==","mimeType":"image/png"}}]}`,
			acp.Update{Session: "s", Kind: acp.ToolCallChanged, Tool: acp.ToolCall{ID: "c", Changes: []acp.FileChange{{"/x", nil, "n"}}, Pictures: []acp.Block{{Type: "image", Data: []byte("x"), MimeType: "image/png"}}}}},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","path":"/x","oldText":"","newText":"n"},{"type":"diff","path":"/y","newText":""}]}`,
			acp.Update{Session: "s", Kind: acp.ToolCallChanged, Tool: acp.ToolCall{ID: "c", Changes: []acp.FileChange{{"/x", nil, "n"}, {"/y", nil, ""}}}}},
	} {
		got, known := update(c.body)
		if !known || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", c.body, got, c.want)
		}
	}
	if u, known := update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}`); !known || u.Usage.Cost.Amount != 0.5 || u.Usage.Cost.Currency != "USD" {
		t.Errorf("%+v", u)
	}
}

// TestUpdates_PassedOver has what says nothing: what is not known, what a person said, and what cannot be read.
func TestUpdates_PassedOver(t *testing.T) {
	for _, body := range []string{
		`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}`, `{"sessionUpdate":"session_info_update","title":"x"}`, `{"sessionUpdate":"hologram"}`, `{"sessionUpdate":5}`, `5`, `null`, `{}`,
		`{"sessionUpdate":"agent_message_chunk","content":"hi"}`, `{"sessionUpdate":"plan","entries":5}`, `{"sessionUpdate":"plan","entries":[5]}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":{}}`, `{"sessionUpdate":"current_mode_update"}`, `{"sessionUpdate":"current_mode_update","currentModeId":"` + strings.Repeat("x", 1000) + `"}`,
		`{"sessionUpdate":"config_option_update"}`, `{"sessionUpdate":"config_option_update","configOptions":null}`, `{"sessionUpdate":"usage_update","used":-1,"size":1}`, `{"sessionUpdate":"usage_update","used":1e99,"size":1}`,
		`{"sessionUpdate":"tool_call","title":"x"}`, `{"sessionUpdate":"tool_call","toolCallId":"` + strings.Repeat("x", 1000) + `"}`, `{"sessionUpdate":"tool_call","toolCallId":"c","content":"x"}`,
	} {
		if u, known := update(body); known {
			t.Errorf("%.80s: %+v", body, u)
		}
	}
}

// TestToolCall_SaysWhenItHasMore has what cannot be judged, because not all of it was read.
func TestToolCall_SaysWhenItHasMore(t *testing.T) {
	long := strings.Repeat("x", 5000)
	diff := `{"type":"diff","path":"/x","newText":"n"}`
	for body, want := range map[string]bool{
		`"content":[` + diff + `]`:                                            false,
		`"content":[` + strings.Repeat(diff+",", 60) + diff + `]`:             true,
		`"content":[{"type":"diff","path":"/` + long + `","newText":"n"}]`:    true,
		`"content":[{"type":"diff","path":5,"newText":"n"}]`:                  true,
		`"content":[{"type":"diff","newText":"n"}]`:                           true,
		`"locations":[{"path":"/` + long + `"}]`:                              true,
		`"locations":[` + strings.Repeat(`{"path":"/x"},`, 60) + `{}]`:        true,
		`"rawInput":{"command":"ls","x":"` + strings.Repeat(long, 300) + `"}`: true,
		`"kind":"` + long + `","status":"` + long + `"`:                       false,
	} {
		c, ok := acp.ReadToolCall(json.RawMessage(`{"toolCallId":"c",` + body + `}`))
		if !ok || c.Cut != want || len(c.Kind)+len(c.Status) > 0 || len(c.Changes) > 50 || len(c.Paths) > 50 {
			t.Errorf("%.60s: %t", body, c.Cut)
		}
	}
	c, _ := acp.ReadToolCall(json.RawMessage(`{"toolCallId":"c","content":[{"type":"content","content":{"type":"text","text":"` + strings.Repeat("é", 200<<10) + `"}}]}`))
	if strings.ToValidUTF8(c.Output, "") != c.Output || !strings.HasSuffix(c.Output, "é…") {
		t.Errorf("%d bytes that end in %q", len(c.Output), c.Output[len(c.Output)-8:])
	}
}

func TestCommand_IsWhatRuns(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"ls -l"}`:                           "ls -l",
		`{"cmd":"ls"}`:                                  "ls",
		`{"command":["bash","-lc","ls | wc"]}`:          "ls | wc",
		`{"command":["/usr/bin/bash","-c","ls"]}`:       "ls",
		`{"command":["/tmp/bash","-c","ls"]}`:           "/tmp/bash -c ls",
		`{"command":["a/../bash","-c","ls"]}`:           "a/../bash -c ls",
		`{"command":["./sh","-c","ls"]}`:                "./sh -c ls",
		`{"command":["push","c","ls"]}`:                 "push c ls",
		`{"command":["bash","--rcfile=/tmp/c","ls"]}`:   "bash --rcfile=/tmp/c ls",
		`{"command":["find",".","#","-delete"]}`:        "find . '#' -delete",
		`{"command":["A=b","ls"]}`:                      "'A=b' ls",
		`{"command":["echo","it's","{a,b}","~",""]}`:    `echo 'it'\''s' '{a,b}' '~' ''`,
		`{"command":"rm -rf /","Command":"ls"}`:         "rm -rf /",
		`{"command":"rm -rf /","COMMAND":["ls"]}`:       "rm -rf /",
		`{"command":"ls","cmd":"rm -rf /"}`:             "ls\nrm -rf /",
		`{"command":"ls","cmd":"ls"}`:                   "ls",
		`{"Command":"ls"}`:                              "",
		`{"command":5}`:                                 "",
		`{"command":[5]}`:                               "",
		`{"command":[]}`:                                "",
		`[]`:                                            "",
		``:                                              "",
		`{"command":{"command":"ls"},"description":""}`: "",
	} {
		c := acp.ToolCall{Input: json.RawMessage(input)}
		if got := c.Command(); got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
	for input, want := range map[string]bool{`{"command":"ls","timeout":5,"description":"x","args":[],"env":null}`: false, `{"command":"sh","args":["-c","rm"]}`: true, `{"command":"ls","env":{"PATH":"/tmp"}}`: true, `{"command":"python","stdin":"x"}`: true} {
		if c := (acp.ToolCall{Input: json.RawMessage(input)}); c.HasMore() != want {
			t.Errorf("%s: %t", input, !want)
		}
	}
	c := acp.ToolCall{Input: json.RawMessage(`{"cwd":"/a","workdir":"/b","path":"/p","Path":"/q","destination":"/d"}`), Paths: []string{"/l"}, Changes: []acp.FileChange{{Path: "/c"}}}
	if got, folders := c.Files(), c.Folders(); !slices.Equal(got, []string{"/l", "/c", "/p", "/d"}) || !slices.Equal(folders, []string{"/a", "/b"}) {
		t.Error(got, folders)
	}
}

func TestPermission(t *testing.T) {
	const call = `"toolCall":{"toolCallId":"c","title":"x"}`
	p, err := acp.ReadPermission(json.RawMessage(`{"sessionId":"s",` + call + `,"options":[{"optionId":"a","name":"Allow\u202e","kind":"allow_once"}]}`))
	if err != nil || p.Tool.ID != "c" || !reflect.DeepEqual(p.Options, []acp.PermissionOption{{"a", "Allow", acp.AllowOnce}}) {
		t.Errorf("%+v %v", p, err)
	}
	for _, body := range []string{`5`, `{}`, `{` + call + `}`, `{` + call + `,"options":[]}`, `{"options":[{"optionId":"a"}]}`, `{` + call + `,"options":[{"name":"Allow","kind":"allow_once"}]}`,
		`{` + call + `,"options":[{"optionId":"` + strings.Repeat("x", 1<<20) + `"}]}`, `{` + call + `,"options":[` + strings.Repeat(`{"optionId":"a"},`, 30) + `{"optionId":"a"}]}`} {
		if p, err := acp.ReadPermission(json.RawMessage(body)); err == nil {
			t.Errorf("%.80s: %+v", body, p)
		}
	}
	for _, c := range []struct {
		got  any
		want string
	}{{acp.Selected("a"), `{"outcome":{"optionId":"a","outcome":"selected"}}`}, {acp.Selected(""), `{"outcome":{"outcome":"cancelled"}}`},
		{acp.Declined(true), `{"action":"cancel"}`}, {acp.Declined(false), `{"action":"decline"}`}, {acp.Accepted(map[string]json.RawMessage{"a": []byte("1")}), `{"action":"accept","content":{"a":1}}`}} {
		if got, err := json.Marshal(c.got); err != nil || string(got) != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestForm(t *testing.T) {
	f, err := acp.ReadForm(json.RawMessage(`{"sessionId":"s","mode":"form","message":"How?","requestedSchema":{"type":"object","required":["b","a"],"properties":{
		"b":{"type":"boolean","title":"B"},"a":{"type":"string","enum":["x","y"],"description":"Which"},"n":{"type":"number"},"i\nj":{"type":"integer"},"s":{"type":"string","oneOf":[{"const":"k","title":"K"}]}}}}`))
	if err != nil || f.Message != "How?" || len(f.Fields) != 5 {
		t.Fatalf("%+v %v", f, err)
	}
	want := []acp.FormField{
		{Name: "b", Title: "B", Type: "boolean", Values: []acp.Value{{"true", "Yes"}, {"false", "No"}}, Required: true},
		{Name: "a", Title: "a", About: "Which", Type: "string", Values: []acp.Value{{"x", "x"}, {"y", "y"}}, Required: true},
		{Name: "n", Title: "n", Type: "number"}, {Name: "i\nj", Title: "i j", Type: "integer"}, {Name: "s", Title: "s", Type: "string", Values: []acp.Value{{"k", "K"}}},
	}
	if !reflect.DeepEqual(f.Fields, want) {
		t.Errorf("%+v", f.Fields)
	}
	for _, c := range []struct {
		field  int
		answer string
		want   string // "" for an error
	}{{0, "true", "true"}, {0, "no", "false"}, {2, " 1.5 ", "1.5"}, {2, "NaN", ""}, {2, "Inf", ""}, {2, "x", ""}, {3, "7", "7"}, {3, "7.5", ""}, {4, `say "hi"`, `"say \"hi\""`}} {
		if got, err := f.Fields[c.field].Read(c.answer); (err != nil) != (c.want == "") || err == nil && string(got) != c.want {
			t.Errorf("%+v: %s %v", c, got, err)
		}
	}
	if f, err := acp.ReadForm(json.RawMessage(`{"mode":"url","message":"` + strings.Repeat("é", 3000) + `","url":"https://x"}`)); err != nil || f.URL != "https://x" || !strings.HasSuffix(f.Message, "é…") || len(f.Message) > 4100 {
		t.Errorf("%+v %v", f, err)
	}
	for _, body := range []string{`5`, `{}`, `{"mode":"url"}`, `{"mode":"url","url":"` + strings.Repeat("x", 5000) + `"}`, `{"requestedSchema":{"properties":[]}}`, `{"requestedSchema":{"properties":{"a":{"type":"array"}}}}`,
		`{"requestedSchema":{"properties":{"a":5}}}`, `{"message":"` + strings.Repeat("x", 1<<20) + `","requestedSchema":{"properties":{}}}`, `{"requestedSchema":{"properties":{"` + strings.Repeat("x", 1000) + `":{"type":"string"}}}}`,
		`{"requestedSchema":{"properties":{` + strings.Repeat(`"a":{"type":"string"},`, 30) + `"b":{"type":"string"}}}}`} {
		if f, err := acp.ReadForm(json.RawMessage(body)); err == nil {
			t.Errorf("%.80s: %+v", body, f)
		}
	}
}

// FuzzTake gives a Peer what an agent writes, and reads each message as what it may be. Nothing panics, and what is bounded stays so.
func FuzzTake(f *testing.F) {
	for _, s := range []string{`{"id":1,"result":{"sessionId":"s","configOptions":[{"id":"a","currentValue":true}]}}`, `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","rawInput":{"command":["a","b"]}}}}`,
		`{"id":"x","method":"session/request_permission","params":{"toolCall":{"toolCallId":"c"},"options":[{"optionId":"a"}]}}`, `{"id":2,"method":"elicitation/create","params":{"requestedSchema":{"properties":{"a":{"type":"string"}}}}}`, "a\n\n{}\n"} {
		f.Add([]byte(s + "\n"))
	}
	f.Fuzz(func(t *testing.T, written []byte) {
		var p acp.Peer
		p.Call(acp.NewSession, nil)
		lines, size, err := acp.NewLines(bytes.NewReader(written)).Next()
		if joined := bytes.Join(lines, nil); size != len(joined) || !bytes.HasPrefix(written, joined) {
			t.Fatalf("%d bytes of %q, %v", size, written, err)
		}
		for _, line := range lines {
			m, err := p.Take(line)
			if err != nil {
				continue
			}
			if len(p.Asked) > acp.MaxAsked || len(m.ID) > acp.MaxID {
				t.Fatalf("%+v", p)
			}
			var s acp.Session
			_ = json.Unmarshal(m.Body, &s)
			s.Options()
			acp.ReadUpdate(m.Body)
			if form, err := acp.ReadForm(m.Body); err == nil {
				for i := range form.Fields {
					_, _ = form.Fields[i].Read("1")
				}
			}
			if ask, err := acp.ReadPermission(m.Body); err == nil {
				ask.Tool.Command()
				ask.Tool.Files()
				ask.Tool.HasMore()
			}
			if m.Kind == acp.Request {
				if answer := p.Answer(m.ID, acp.Selected("x")); !json.Valid(answer) || bytes.Count(answer, []byte("\n")) != 1 {
					t.Fatalf("%q", answer)
				}
			}
		}
	})
}
