package loop

import (
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
)

// DemoModel is the name of the demonstration.
const DemoModel = "demonstration"

// demoPace is the time between two words of it.
const demoPace = 15 * time.Millisecond

// Demo is a model that follows a script, to show the chat without a provider: it looks around, writes a program and runs it.
func Demo() Model {
	free := func(agent.Usage) (int64, bool) { return 0, true }
	return Model{Name: DemoModel, Window: agent.DefaultWindow, Price: free, Model: scripted.Playing(func(r agent.Request) scripted.Step {
		step := demoStep(r.Messages)
		step.Pace = demoPace
		return step
	})}
}

// demoStep gives the answer that is next: by how many there were since the person last said something.
func demoStep(messages []agent.Message) scripted.Step {
	said, answers := 0, 0
	for _, m := range messages {
		switch {
		case m.Role == agent.Assistant:
			answers++
		case isSaid(m):
			said, answers = said+1, 0
		}
	}
	if said > 1 {
		return scripted.Step{Text: "I am only a demonstration and know one script. For an agent that understands you, add a provider under **Settings → Models**, and start a new conversation."}
	}
	script := []scripted.Step{
		{Thinking: "The person wants to see what an agent can do here. I look at the computer first.",
			Text:  "This is a demonstration: I follow a script, but what I do in your sandbox is real. First I look around.",
			Calls: []scripted.Call{scripted.Use("run_command", map[string]string{"command": "uname -sr && ls -A ~ | head"})}},
		{Text: "Now I write a small program.",
			Calls: []scripted.Call{scripted.Use("write_file", map[string]string{"path": "demo/hello.sh", "content": "#!/bin/sh\n# Written by the demonstration.\nfor i in 1 2 3; do\n  echo \"hello $i\"\n  sleep 0.3\ndone\n"})}},
		{Text: "And run it. To run a script is one of the acts that I ask about first. Open it to see its output while it runs.",
			Calls: []scripted.Call{scripted.Use("run_command", map[string]string{"command": "sh ~/demo/hello.sh"})}},
		{Text: "That is all. What you have seen:\n\n- **Calls** fold open and show exactly what ran, its output, and what changed in files.\n- Before the first change a **checkpoint** was taken. *Undo* puts the files back.\n- Before **risky** acts an agent asks you. When it asks is your choice, above.\n\nTo work with a real model, add a provider under **Settings → Models**."},
	}
	return script[min(answers, len(script)-1)]
}

// isSaid reports whether a message has words of the person, and is not of results alone.
func isSaid(m agent.Message) bool {
	for _, p := range m.Parts {
		if p.Kind == agent.PartText && !m.Auto {
			return true
		}
	}
	return false
}
