package main

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/chat"
	"sandboxd/internal/tools"
)

// codeRunner runs code of conversations in their sandboxes, with the tools of agents.
type codeRunner struct {
	a       *app
	control *access.Control
}

var _ chat.Runner = codeRunner{}

// Runs implements chat.Runner.
func (codeRunner) Runs(language string) bool { return tools.RunsCode(language) }

// Risky implements chat.Runner.
func (codeRunner) Risky(language, code string) bool { return tools.RiskyCode(language, code) }

// Run implements chat.Runner.
func (r codeRunner) Run(ctx context.Context, c chat.Conversation, run chat.Run, out func(chat.Field, string)) (chat.Ran, error) {
	h, err := handleOf(ctx, r.a, r.control, c)
	if err != nil {
		return chat.Ran{}, err
	}
	exit, pictures, err := r.a.tools.RunCode(ctx, h, run.Language, run.Code, func(stderr bool, text string) {
		if stderr {
			out(chat.InText, text)
		} else {
			out(chat.InOutput, text)
		}
	})
	ran := chat.Ran{Exit: exit}
	for _, p := range pictures {
		ran.Pictures = append(ran.Pictures, chat.File{Type: p.MIME, Data: p.Bytes})
	}
	return ran, err
}
