package web

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/ide"
)

// ideShape is what programs see of VS Code in a sandbox.
type ideShape struct {
	Enabled  bool         `json:"enabled"`
	State    string       `json:"state"`
	URL      string       `json:"url"`
	Progress *ideProgress `json:"progress"` // null unless it is being built
	Problem  string       `json:"problem"`
}

type ideProgress struct {
	Step    int    `json:"step"` // 0 while it waits in line
	Steps   int    `json:"steps"`
	Percent int    `json:"percent"`
	Line    string `json:"line"`
}

type ideBody struct {
	Enabled *bool `json:"enabled"`
}

func ideReply(st ide.Status) reply {
	out := ideShape{Enabled: st.Enabled, State: string(st.State), URL: st.URL, Problem: st.Problem}
	if st.State == ide.Building {
		p := st.Progress
		out.Progress = &ideProgress{Step: p.Step, Steps: p.Steps, Percent: int(100 * p.Part), Line: p.Line}
	}
	return reply{body: out}
}

// onIDE answers with how VS Code stands for the sandbox that the path names, after act.
func (s *ideHandlers) onIDE(ctx context.Context, r *request, act func(ctx context.Context, h access.Handle) (ide.Status, error)) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	st, err := act(ctx, h)
	if err != nil {
		return reply{}, err
	}
	return ideReply(st), nil
}

// apiIDE tells how VS Code stands. It wakes and begins nothing.
func (s *ideHandlers) apiIDE(ctx context.Context, r *request, _ none) (reply, error) {
	return s.onIDE(ctx, r, s.cfg.IDE.Status)
}

// apiSetIDE switches VS Code on or off.
func (s *ideHandlers) apiSetIDE(ctx context.Context, r *request, in ideBody) (reply, error) {
	if in.Enabled == nil {
		return reply{}, fault.Field("enabled", "enabled must be true or false.")
	}
	r.object = onOff[*in.Enabled]
	return s.onIDE(ctx, r, func(ctx context.Context, h access.Handle) (ide.Status, error) {
		return s.cfg.IDE.Enable(ctx, h, *in.Enabled)
	})
}
