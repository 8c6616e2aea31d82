package acptest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// actions are what the first word of a line of a prompt has the agent do.
var actions = map[string]func(a *Agent, rest string) error{
	"count": (*Agent).count, "run": (*Agent).run, "plan": (*Agent).plan, "think": (*Agent).think, "form": (*Agent).form, "edit": (*Agent).edit,
	"mode":  func(a *Agent, _ string) error { return a.Say("mode " + a.mode) },
	"model": func(a *Agent, _ string) error { return a.Say("model " + a.model) },
	"die":   func(*Agent, string) error { return ErrDied },
	"hang":  (*Agent).hang,
	"late":  (*Agent).late,
	"deaf":  func(*Agent, string) error { time.Sleep(time.Hour); return nil },
	"flood": (*Agent).flood,
	"raw":   func(a *Agent, rest string) error { return a.raw(rest + "\n") },
	"noise": func(a *Agent, rest string) error {
		n, _ := strconv.Atoi(rest)
		return a.raw(strings.Repeat("a log line\n", n))
	},
	"deep": func(a *Agent, _ string) error {
		return a.raw(`{"method":"x","params":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}\n")
	},
	"long": func(a *Agent, _ string) error {
		return a.raw(`{"method":"x","params":"` + strings.Repeat("x", 9<<20) + "\"}\n")
	},
	"calls": (*Agent).calls,
	"large": func(a *Agent, rest string) error {
		id, size, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(size)
		return a.update(object{"sessionUpdate": "tool_call", "toolCallId": id, "title": "Large", "kind": "edit", "content": []object{{"type": "diff", "path": "x", "newText": strings.Repeat("x", n)}}})
	},
	"clock": (*Agent).clock,
	"slowly": func(a *Agent, rest string) error {
		a.Pause = pace
		return a.count(rest)
	},
}

// pace is between two words of a slow answer.
const pace = 20 * time.Millisecond

func (a *Agent) echo(line string) error { return a.Say("You said: " + line) }

// Word is a word of a long answer.
func Word(i int) string { return fmt.Sprintf("w%05d ", i) }

func (a *Agent) count(rest string) error {
	n, _ := strconv.Atoi(rest)
	for i := 0; i < n && !a.cancelled(); i++ {
		if err := a.Say(Word(i)); err != nil {
			return err
		}
		if a.Pause > 0 {
			time.Sleep(a.Pause)
		}
	}
	return nil
}

// clock says the time, in nanoseconds, again and again, in paragraphs of ten words.
func (a *Agent) clock(rest string) error {
	n, _ := strconv.Atoi(rest)
	for i := range n {
		end := " "
		if i%10 == 9 {
			end = "\n\n"
		}
		if err := a.Say(fmt.Sprintf("%d%s", time.Now().UnixNano(), end)); err != nil {
			return err
		}
		time.Sleep(pace)
	}
	return nil
}

func (a *Agent) think(rest string) error {
	return a.update(object{"sessionUpdate": "agent_thought_chunk", "content": object{"type": "text", "text": rest}})
}

func (a *Agent) plan(string) error {
	for _, state := range []string{"in_progress", "completed"} {
		if err := a.update(object{"sessionUpdate": "plan", "entries": []object{{"content": "Look", "status": state, "priority": "high"}}}); err != nil {
			return err
		}
	}
	return nil
}

// run asks for leave to run a command, and runs it.
func (a *Agent) run(line string) error {
	id := fmt.Sprintf("call-%d", a.last)
	call := object{"toolCallId": id, "title": "`" + line + "`", "kind": "execute", "status": "pending", "rawInput": object{"command": line}}
	begun := object{"sessionUpdate": "tool_call"}
	for k, v := range call {
		begun[k] = v
	}
	if err := a.update(begun); err != nil {
		return err
	}
	m, err := a.ask("session/request_permission", object{"toolCall": call, "options": []object{{"optionId": "always", "name": "Always allow", "kind": "allow_always"},
		{"optionId": "once", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Refuse", "kind": "reject_once"}}})
	if err != nil {
		return err
	}
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		return err
	}
	changed := object{"sessionUpdate": "tool_call_update", "toolCallId": id}
	status, out := "completed", ""
	if o := r.Outcome.OptionID; o != "once" && o != "always" {
		status = "failed"
	} else if err := a.Run(line, func(s string) {
		out += s
		_ = a.update(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "content": texts(out)})
	}); err != nil {
		status = "failed"
	}
	changed["status"] = status
	if err := a.update(changed); err != nil {
		return err
	}
	return a.Say(fmt.Sprintf("(%s %s) ", r.Outcome.Outcome+r.Outcome.OptionID, status))
}

func texts(s string) []object {
	return []object{{"type": "content", "content": object{"type": "text", "text": s}}}
}

func (a *Agent) edit(path string) error {
	return a.update(object{"sessionUpdate": "tool_call", "toolCallId": "edit-1", "title": "Edit " + path, "kind": "edit", "status": "completed",
		"locations": []object{{"path": path}}, "content": []object{{"type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\n2\n"}}})
}

func (a *Agent) form(string) error {
	schema := json.RawMessage(`{"type":"object","required":["name","size"],"properties":{"name":{"type":"string","title":"Name"},
		"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},"tests":{"type":"boolean"},"count":{"type":"integer"}}}`)
	m, err := a.ask("elicitation/create", object{"mode": "form", "message": "How shall it be?", "requestedSchema": schema})
	if err != nil {
		return err
	}
	return a.Say("filled " + string(m.Result))
}

// hang never answers, but obeys.
func (a *Agent) hang(string) error {
	for m := range a.in {
		if m.Method == "session/cancel" {
			a.stop = true
			return nil
		}
	}
	return nil
}

// late asks for leave to run a command once it was told to stop.
func (a *Agent) late(line string) error {
	if err := a.hang(""); err != nil {
		return err
	}
	return a.run(line)
}

// calls begins calls that it never ends.
func (a *Agent) calls(rest string) error {
	n, _ := strconv.Atoi(rest)
	for i := range n {
		if err := a.update(object{"sessionUpdate": "tool_call", "toolCallId": fmt.Sprint("c", i), "title": "Call", "kind": "other", "status": "pending"}); err != nil {
			return err
		}
	}
	return nil
}

// flood asks what the client does not know, and reads no answer.
func (a *Agent) flood(rest string) error {
	n, _ := strconv.Atoi(rest)
	for i := range n {
		if err := a.send(object{"id": fmt.Sprint("f", i), "method": "craft/flood", "params": object{}}); err != nil {
			return err
		}
	}
	return nil
}
