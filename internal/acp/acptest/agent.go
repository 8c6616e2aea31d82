// Package acptest has an agent for tests that speaks the Agent Client Protocol and follows the words of its prompts. It can also misbehave.
//
// It is no part of sandboxd, and written without package acp, so that both would have to be wrong in the same way.
//
// Invariant: what a prompt makes it do follows from its words alone, so that a test says what it meets.
package acptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Agent is one scripted agent.
type Agent struct {
	Loads bool // it can load sessions
	Fails bool // it dies when it does
	// Models are those that it offers, in the older way, or, with Newer, as an option "llm".
	Models []string
	Newer  bool
	// Run runs a command of a prompt, and tells its output.
	Run func(line string, out func(string)) error
	// Pause is between two words of a long answer.
	Pause time.Duration

	in      chan message
	out     io.Writer
	last    int
	session string
	mode    string
	model   string
	stop    bool // the turn was cancelled
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// ErrDied ends Serve when a prompt says so.
var ErrDied = errors.New("told to die")

// Shell is a Run that runs the command by a shell.
func Shell(line string, out func(string)) error {
	b, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
	out(string(b))
	return err
}

// Serve serves one client until its input ends.
func (a *Agent) Serve(in io.Reader, out io.Writer) error {
	a.in, a.out, a.mode = make(chan message, 1000), out, "code"
	end := make(chan struct{})
	defer close(end)
	go func() { // ends with the input, or with the agent
		defer close(a.in)
		for lines := bufio.NewReaderSize(in, 1<<20); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(line, &m) != nil {
				continue
			}
			select {
			case a.in <- m:
			case <-end:
				return
			}
		}
	}()
	for m := range a.in {
		if err := a.serve(m); err != nil {
			return err
		}
	}
	return nil
}

type object = map[string]any

func (a *Agent) serve(m message) error {
	switch m.Method {
	case "initialize":
		return a.answer(m, object{"protocolVersion": 1, "agentCapabilities": object{"loadSession": a.Loads, "promptCapabilities": object{"image": true}}})
	case "session/new":
		a.session = "s1"
		if err := a.answer(m, a.models(object{"sessionId": a.session, "modes": a.modes()})); err != nil {
			return err
		}
		return a.update(object{"sessionUpdate": "available_commands_update", "availableCommands": []object{{"name": "review", "description": "Look at it"}}})
	case "session/load":
		var p struct{ SessionID string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return err
		}
		if a.session = p.SessionID; a.Fails {
			return ErrDied
		}
		if err := a.Say("this was said before, and is replayed"); err != nil {
			return err
		}
		return a.answer(m, a.models(object{"modes": a.modes()}))
	case "session/set_mode":
		var p struct{ ModeID string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return err
		}
		if p.ModeID == "never" {
			return a.send(object{"id": m.ID, "error": object{"code": -32602, "message": "Never"}})
		}
		a.mode = p.ModeID
		return a.answer(m, object{})
	case "session/set_model", "session/set_config_option":
		var p struct{ ModelID, ConfigID, Value string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return err
		}
		a.model = p.ModelID + p.Value
		return a.answer(m, object{})
	case "session/prompt":
		return a.prompt(m)
	case "session/cancel", "":
		return nil
	}
	return a.send(object{"id": m.ID, "error": object{"code": -32601, "message": "Method not found"}})
}

func (a *Agent) modes() object {
	return object{"currentModeId": a.mode, "availableModes": []object{{"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan first"}, {"id": "never", "name": "Never"}}}
}

// models adds what it offers to a session.
func (a *Agent) models(session object) object {
	if len(a.Models) == 0 {
		return session
	}
	if a.model == "" {
		a.model = a.Models[0]
	}
	var older, newer []object
	for _, id := range a.Models {
		older = append(older, object{"modelId": id, "name": "The " + id})
		newer = append(newer, object{"value": id, "name": "The " + id})
	}
	if a.Newer {
		session["configOptions"] = []object{{"id": "llm", "name": "Model", "category": "model", "type": "select", "currentValue": a.model, "options": newer}}
	} else {
		session["models"] = object{"currentModelId": a.model, "availableModels": older}
	}
	return session
}

func (a *Agent) prompt(m message) error {
	var p struct{ Prompt []struct{ Text string } }
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	a.stop = false
	reason := "end_turn"
	for _, block := range p.Prompt {
		for line := range strings.Lines(block.Text) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			action := actions[word]
			if action == nil {
				action = (*Agent).echo
				rest = strings.TrimSpace(line)
			}
			if err := action(a, rest); err != nil {
				return err
			}
			if a.stop {
				reason = "cancelled"
			}
		}
	}
	return a.answer(m, object{"stopReason": reason, "usage": object{"inputTokens": 10, "outputTokens": 5}})
}

func (a *Agent) send(o object) error {
	o["jsonrpc"] = "2.0"
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return a.raw(string(line) + "\n")
}

func (a *Agent) raw(s string) error {
	_, err := io.WriteString(a.out, s)
	return err
}

func (a *Agent) answer(m message, result any) error {
	return a.send(object{"id": m.ID, "result": result})
}

func (a *Agent) update(u object) error {
	return a.send(object{"method": "session/update", "params": object{"sessionId": a.session, "update": u}})
}

// Say says a piece of text.
func (a *Agent) Say(s string) error {
	return a.update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": s}})
}

// ask asks the client, and waits for its answer. What else comes meanwhile is a cancel, or nothing.
func (a *Agent) ask(method string, params object) (message, error) {
	a.last++
	id := fmt.Sprint(a.last)
	params["sessionId"] = a.session
	if err := a.send(object{"id": a.last, "method": method, "params": params}); err != nil {
		return message{}, err
	}
	for m := range a.in {
		switch {
		case m.Method == "session/cancel":
			a.stop = true
		case m.Method == "" && string(m.ID) == id:
			return m, nil
		}
	}
	return message{}, io.EOF
}

// cancelled looks whether the turn was cancelled.
func (a *Agent) cancelled() bool {
	select {
	case m := <-a.in:
		a.stop = a.stop || m.Method == "session/cancel"
	default:
	}
	return a.stop
}
