//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/acp/install"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// chattingAgent is an agent of the catalog, with how its model has it write a file and run a command.
type chattingAgent struct {
	id    string
	kind  gateway.Kind
	write gatewaytest.Call // writes hello.txt
	run   gatewaytest.Call // runs agentCommand
}

// What the agents are to do.
const (
	agentFile    = "/home/agent/hello.txt"
	agentText    = "from the model\n"
	agentCommand = "echo from a command > again.txt\n: " + aLongText // of two lines, as no title is
	aLongText    = "this is only here so that the command is longer than what is shown as a title, which has at most three hundred bytes, and so that " +
		"a person who is asked is shown all of it, up to its very last word, however long it may be, as what is not shown could be what matters " +
		"most, and leave for one command is not leave for another one that only begins like it, and the last word is here"
)

// Codex puts commands that do more than look into a sandbox of its own, which cannot be made in one of ours; its model is told so and asks for
// leave to run them without.
var chattingAgents = []chattingAgent{
	{"claude", gateway.Anthropic, callOf("Write", "file_path", agentFile, "content", agentText), callOf("Bash", "command", agentCommand, "description", "Write")},
	{"codex", gateway.OpenAI, callOf("exec_command", "cmd", codexPatch), callOf("exec_command", "cmd", agentCommand, "sandbox_permissions", "require_escalated", "justification", "Write")},
	{"opencode", gateway.OpenAI, callOf("write", "filePath", agentFile, "content", agentText), callOf("bash", "command", agentCommand, "description", "Write")},
	{"gemini", gateway.Gemini, callOf("write_file", "file_path", agentFile, "content", agentText), callOf("run_shell_command", "command", agentCommand, "description", "Write")},
	{"qwen", gateway.OpenAI, callOf("write_file", "file_path", agentFile, "content", agentText), callOf("run_shell_command", "command", agentCommand, "description", "Write", "is_background", false)},
}

const codexPatch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: hello.txt\n+from the model\n*** End Patch\nEOF\n"

// callOf is a call of a tool with names and values of its arguments.
func callOf(tool string, args ...any) gatewaytest.Call {
	in := map[string]any{}
	for pair := range slices.Chunk(args, 2) {
		in[pair[0].(string)] = pair[1]
	}
	return gatewaytest.Call{Name: tool, Args: in}
}

// placeAgent puts an agent, with its id and its version, where an installation would, as install.sh does.
const placeAgent = `set -e; root=~/.local/share/sandboxd/agents; mkdir -p $root/%[1]s; cd $root
[ -e .node ] || ln -s ~/agents/node_modules/node-linux-* .node
ln -s ~/agents/node_modules %[1]s/node_modules; echo %[2]s >%[1]s/version
cat >%[1]s/run <<'END'
#!/bin/sh
dir=${0%%/*}
export PATH="$dir/../.node/bin:$dir/node_modules/.bin:$PATH"
exec "$@"
END
chmod 755 %[1]s/run`

// TestAgents_WorkInTheChat has each agent of the catalog ask before it writes a file and before it runs a command, with a restart of sandboxd
// between the two, and stops it.
func TestAgents_WorkInTheChat(t *testing.T) {
	s := newAgentsServer(t)
	catalog := install.NewCatalog("", nil)
	for _, c := range chattingAgents {
		t.Run(c.id, func(t *testing.T) {
			defer func(all testing.TB) { s.t = all }(s.t)
			s.t = t
			e, err := catalog.Entry(c.id)
			if err != nil {
				t.Fatal(err)
			}
			if out := s.exec("lab", map[string]any{"command": fmt.Sprintf(placeAgent, c.id, e.Version) + "; rm -f ~/hello.txt ~/again.txt"}); out.ExitCode != 0 {
				t.Fatalf("put it into the sandbox: %s", out.Stderr)
			}
			if a := s.agent(c.id); a.State != "installed" || a.Installed != e.Version {
				t.Fatalf("it is %+v", a)
			}
			providers := map[gateway.Kind]*gatewaytest.Provider{} // of its own, as what an agent asks on the side can come late
			for _, kind := range []gateway.Kind{gateway.Anthropic, gateway.OpenAI, gateway.Gemini} {
				providers[kind] = s.offersModels(kind)
			}
			c.worksInTheChat(&asker{server: s, provider: providers[c.kind]})
		})
	}
}

func (c chattingAgent) worksInTheChat(a *asker) {
	all := "/sandboxes/lab/conversations"
	var made struct{ ID string }
	if status := a.call("POST", all, map[string]any{"agent": c.id, "mode": "ask"}, &made); status != http.StatusCreated {
		a.t.Fatalf("create: %d", status)
	}
	k := &talk{a: a, path: all + "/" + made.ID, items: map[int64]*talkItem{}}
	defer func() {
		if a.t.Failed() {
			a.t.Logf("the conversation:\n%s", k)
		}
		if status, text := a.raw("DELETE", k.path, nil); status != http.StatusNoContent {
			a.t.Errorf("delete: %d %s", status, text)
		}
	}()
	c.turn(k, c.write, agentFile, agentText, agentFile, "+from the model")
	a.stop()
	a.start()
	c.turn(k, c.run, "again.txt", "from a command\n", agentCommand)
	if c.id == "codex" {
		c.looks(k)
	}
	c.isStopped(k)
	c.speaks(k)
}

// turn has the agent make a call of a tool that writes a file, with leave.
func (c chattingAgent) turn(k *talk, call gatewaytest.Call, file, text string, shows ...string) {
	t, p := k.a.t, k.a.provider
	t.Helper()
	please, said := "Please write "+file, fmt.Sprintf("%s is written.", file)
	p.Play(
		gatewaytest.Script{Text: "I write it. ", Calls: []gatewaytest.Call{call}, For: func(r gatewaytest.Request) bool {
			return slices.Contains(r.Tools, call.Name) && saying(please)(r) // not what it asks on the side after the turn before
		}},
		gatewaytest.Script{Text: said, For: gatewaytest.AfterResult},
	)
	k.post("/messages", map[string]any{"text": please})
	k.until("it asks", func() bool {
		id, _ := k.asks()
		return id != "" || k.idle() && strings.HasSuffix(strings.TrimSpace(k.text()), said) || strings.HasPrefix(k.state, "failed")
	})
	q := k.openQuestion()
	if q.ID == "" {
		t.Fatalf("it did not ask; it is %s", k.state)
	}
	if out := k.a.exec("lab", map[string]any{"command": "ls ~/" + strings.TrimPrefix(file, "/home/agent/")}); out.ExitCode == 0 {
		t.Error("the file is there before the person has answered")
	}
	for _, want := range shows {
		if !strings.Contains(q.Text, want) && !strings.Contains(k.data(q.Call), want) {
			t.Errorf("the question does not have %q", want)
		}
	}
	allow := slices.IndexFunc(q.Choices, func(c agentChoice) bool { return c.Style == "allow" })
	if allow < 0 {
		t.Fatalf("there is no way to allow it: %+v", q.Choices)
	}
	k.post("/approvals/"+q.ID, map[string]any{"answer": q.Choices[allow].ID})
	k.until("it is done", k.idle)
	if k.state != "idle" || !strings.HasSuffix(strings.TrimSpace(k.text()), said) {
		t.Errorf("it is %s, and said %q", k.state, k.text())
	}
	if out := k.a.exec("lab", map[string]any{"command": "cat ~/" + strings.TrimPrefix(file, "/home/agent/")}); out.Stdout != text {
		t.Errorf("the file has %q: %s", out.Stdout, out.Stderr)
	}
	if n := p.Waiting(); n > 0 {
		t.Errorf("%d answers were not asked for", n)
	}
}

// looks has the agent run a command that only looks, without a question, and one that would write, which fails.
func (c chattingAgent) looks(k *talk) {
	t, p := k.a.t, k.a.provider
	t.Helper()
	p.Play(
		gatewaytest.Script{Calls: []gatewaytest.Call{callOf("exec_command", "cmd", "cd / && cat "+agentFile+" | tr a-z A-Z")}, For: saying("Please look")},
		gatewaytest.Script{Calls: []gatewaytest.Call{callOf("exec_command", "cmd", "cat "+agentFile+" > unasked.txt")}, For: gatewaytest.AfterResult},
		gatewaytest.Script{Text: "That is all.", For: gatewaytest.AfterResult},
	)
	k.post("/messages", map[string]any{"text": "Please look"})
	k.until("it has looked", func() bool {
		return k.state == "asking" || k.idle() && strings.HasSuffix(strings.TrimSpace(k.text()), "That is all.")
	})
	if k.state != "idle" || !strings.Contains(k.String(), "FROM THE MODEL") {
		t.Errorf("after a look it is %s", k.state)
	}
	if out := k.a.exec("lab", map[string]any{"command": "ls ~/unasked.txt"}); out.ExitCode == 0 {
		t.Error("it has written a file without a question")
	}
}

type agentChoice struct{ ID, Label, Style string }

// agentQuestion is what an agent asks a person.
type agentQuestion struct {
	ID, Title, Text string
	Call            int64
	Reasons         []string
	Choices         []agentChoice
}

func (k *talk) openQuestion() (q agentQuestion) {
	for _, it := range k.items {
		if it.Kind == "question" && it.Open {
			if err := json.Unmarshal(it.Data, &q); err != nil {
				k.a.t.Fatal(err)
			}
		}
	}
	return q
}

func (k *talk) data(n int64) string {
	if it := k.items[n]; it != nil {
		return string(it.Data)
	}
	return ""
}

// isStopped stops the agent while its model speaks.
func (c chattingAgent) isStopped(k *talk) {
	t, p := k.a.t, k.a.provider
	t.Helper()
	gate := make(chan struct{})
	defer close(gate)
	p.Play(gatewaytest.Script{Text: "Listen to what I say.", Gate: gate, For: saying("Please speak")})
	k.post("/messages", map[string]any{"text": "Please speak"})
	k.until("it speaks", func() bool { return strings.HasSuffix(k.text(), "Listen ") || strings.HasPrefix(k.state, "failed") })
	k.post("/cancel", nil)
	k.until("it is stopped", k.idle)
	if got := k.String(); k.state != "idle" || !strings.Contains(got, "notice: Stopped.") {
		t.Errorf("after the stop it is %s", k.state)
	}
	p.AwaitLeft(1)
}

// saying fits requests of an agent at work, for a message of the person's.
func saying(text string) func(gatewaytest.Request) bool {
	return func(r gatewaytest.Request) bool {
		return len(r.Tools) > 0 && !r.Listed && bytes.Contains(r.Body, []byte(text))
	}
}

// speaks has the agent answer after a turn that was stopped.
func (c chattingAgent) speaks(k *talk) {
	k.a.t.Helper()
	k.a.provider.Play(gatewaytest.Script{Text: "I am here.", For: saying("Are you there?")})
	k.post("/messages", map[string]any{"text": "Are you there?"})
	k.until("it answers", func() bool {
		return strings.HasSuffix(strings.TrimSpace(k.text()), "I am here.") && k.idle() || k.idle() && strings.HasSuffix(strings.TrimSpace(k.text()), "ok") || strings.HasPrefix(k.state, "failed")
	})
	if k.state != "idle" {
		k.a.t.Errorf("after a turn that was stopped it is %s", k.state)
	}
}
