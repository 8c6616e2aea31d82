package program_test

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/chat"
)

// TestHostile_EachHasAClearError has an agent break every rule. The turn fails with a sentence, the program is ended, and the next message
// is answered by another one.
func TestHostile_EachHasAClearError(t *testing.T) {
	for name, c := range map[string]struct{ prompt, want string }{
		"dies":               {"die", "ended in the middle of its turn, with exit code 3. It last wrote: the reason why"},
		"broken JSON":        {`raw {"method": "session/upd`, "no valid JSON"},
		"unknown id":         {`raw {"id":99,"result":{}}`, "answers what it was not asked"},
		"id of a wrong kind": {`raw {"id":"1","result":{}}`, "answers what it was not asked"},
		"repeated answer":    {`raw {"id":1,"result":{}}`, "answers what it was not asked"},
		"repeated request":   {"raw {\"id\":7,\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"x\"}}\nraw {\"id\":7,\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"x\"}}", "two requests have the id"},
		"id is an object":    {`raw {"id":{"a":1},"method":"x"}`, "a request has the id"},
		"too many questions": {strings.Repeat("raw {\"id\":N,\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"x\"}}\n", 33), "more than 32 requests open"},
		"deep":               {"deep", "nested more than 64"},
		"long":               {"long", "longer than 8 MiB"},
		"noise":              {"noise 101", "text that is no message"},
		"silence":            {"deaf", "has written nothing for"},
		"reads no answers":   {"flood 100000\ndeaf", "does not read the answers"},
		"an error":           {`raw {"id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"no money left"}}}` + "\ndie", "no money left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, chat.Auto)
			w.end()
			if name == "silence" {
				w.c.Silence = 500 * time.Millisecond
			}
			w.start()
			prompt := c.prompt
			for i := 0; strings.Contains(prompt, "N"); i++ {
				prompt = strings.Replace(prompt, "N", string(rune('1'+i/10))+string(rune('0'+i%10)), 1)
			}
			w.send(prompt)
			v := w.ends(chat.Failed, 1)
			if !strings.Contains(v.c.Problem, c.want) || len(v.c.Problem) > 1500 {
				t.Errorf("%q", v.c.Problem)
			}
			w.send("and now")
			if v := w.ends(chat.Idle, 2); !strings.Contains(v.text(), "You said: and now") {
				t.Error(v)
			}
		})
	}
}

// TestHostile_WhatIsUnknownIsPassedOver sends what another version may have.
func TestHostile_WhatIsUnknownIsPassedOver(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send(strings.Join([]string{"noise 100", `raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"hologram","content":{"type":"text","text":"bad"}}}}`,
		`raw {"method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"bad"}}}}`,
		`raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan","entries":"bad"}}}`,
		`raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"none","title":"bad"}}}`,
		`raw {"method":"notice/unknown","params":5}`, `raw {"id":"q","method":"craft/x"}`, `raw {"id":"r","method":"session/request_permission","params":{"bad":1}}`, "flood 100", "calls 1000", "end"}, "\n"))
	v := w.ends(chat.Idle, 1)
	if v.text() != "You said: end" || len(v.kinds(chat.CallItem)) != 1000 || len(v.kinds(chat.Plan)) > 0 {
		t.Error(len(v.kinds(chat.CallItem)), v.text())
	}
	for _, it := range v.kinds(chat.CallItem) {
		if it.Open {
			t.Fatal("a call is open after the turn")
		}
	}
}

// TestHostile_AFloodIsReadAtItsPace has an agent say more than is read at once: all of it arrives, later.
func TestHostile_AFloodIsReadAtItsPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, chat.Auto)
	began := time.Now()
	w.send("count 50000")
	v := w.ends(chat.Idle, 1)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := strings.Count(v.text(), " "); n != 50_000 {
		t.Errorf("%d words arrived", n)
	}
}
