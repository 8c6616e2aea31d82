package web

import (
	"context"
	"fmt"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/ide"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// ideSize is what VS Code takes on the server, once for all sandboxes.
const ideSize = "210 MiB"

// ideWait is how long a page waits to hear how VS Code stands.
const ideWait = time.Second

// ideURL is the page of a sandbox's VS Code.
func ideURL(name string) string { return sandboxURL(name) + "/vscode" }

// ideHead is what the workspace's head says of VS Code. It wakes and begins nothing.
func (s *ideHandlers) ideHead(ctx context.Context, h access.Handle) views.IDE {
	ctx, cancel := context.WithTimeout(ctx, ideWait)
	defer cancel()
	st, err := s.cfg.IDE.Status(ctx, h)
	if err != nil { // the page is of use without
		s.log.Debug("ask for VS Code", "sandbox", h.Name(), "err", err)
		return views.IDE{}
	}
	return views.IDE{On: st.Enabled, URL: st.URL, Sheet: sameURL(h.Sandbox(), "/vscode")}
}

// ideLooks are the words, tones and shapes of how VS Code stands.
var ideLooks = map[ide.State]views.State{
	ide.Off:      {Tone: "still", Icon: "state-stopped", Text: "Off"},
	ide.Building: {Tone: "busy", Icon: "state-busy", Text: "Building (once per server)"},
	ide.Failed:   {Tone: "bad", Icon: "state-failed", Text: "It could not be built"},
	ide.Ready:    {Tone: "good", Icon: "state-done", Text: "Ready: it starts when it is opened"},
	ide.Starting: {Tone: "busy", Icon: "state-busy", Text: "Starting"},
	ide.Running:  {Tone: "good", Icon: "state-running", Text: "Running"},
}

func ideStand(box sandbox.Sandbox, st ide.Status) views.IDEStand {
	v := views.IDEStand{Box: box.Name, State: ideLooks[st.State], Problem: st.Problem}
	v.State.Bar = views.BarNone
	switch st.State {
	case ide.Building:
		v.Moving, v.Line, v.State.Bar = true, st.Progress.Line, views.BarUnknown
		if st.Progress.Part > 0 {
			v.State.Bar = percent(st.Progress.Part)
		}
		if p := st.Progress; p.Steps > 0 {
			v.State.Text += fmt.Sprintf(": step %d of %d", p.Step, p.Steps)
		}
	case ide.Starting:
		v.Moving = true
	}
	return v
}

// ideOf gives the sandbox that the path names, and the state of its VS Code.
func (s *ideHandlers) ideOf(ctx context.Context, r *request) (box sandbox.Sandbox, st ide.Status, err error) {
	h, err := named(ctx, s.Server, r)
	if err == nil {
		st, err = s.cfg.IDE.Status(ctx, h)
	}
	return h.Sandbox(), st, err
}

// pageIDE shows what VS Code is and how it stands, and switches it; a script gets it as a sheet.
func (s *ideHandlers) pageIDE(ctx context.Context, r *request) (templ.Component, error) {
	return s.ideForm(ctx, r, "")
}

func (s *ideHandlers) ideForm(ctx context.Context, r *request, problem string) (templ.Component, error) {
	box, st, err := s.ideOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.IDESheet{
		Box: box.Name, ID: box.ID, On: st.Enabled, URL: st.URL, Size: ideSize, Stand: ideStand(box, st), Fault: problem,
		Next: r.origin(sandboxURL(box.Name)),
	}
	if r.byScript() {
		return views.IDEPart(v), nil
	}
	v.Frame = s.frame(r, "VS Code in "+box.Name, "sandboxes")
	return views.IDEPage(v), nil
}

// partIDE is how VS Code stands, for the sheet that asks for it again and again.
func (s *ideHandlers) partIDE(ctx context.Context, r *request) (templ.Component, error) {
	box, st, err := s.ideOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return views.IDEStandPart(ideStand(box, st)), nil
}

// submitIDE switches VS Code on or off, and shows the sheet again. The page's live connection brings the link to it.
func (s *ideHandlers) submitIDE(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	r.object = onOff[r.field("on") == "yes"]
	if _, err := s.cfg.IDE.Enable(ctx, h, r.field("on") == "yes"); err != nil {
		return "", err
	}
	if r.byScript() {
		r.answer, err = s.ideForm(ctx, r, "")
	}
	return ideURL(box.Name), err
}

func (s *ideHandlers) againIDE(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.ideForm(ctx, r, fault.Message(cause))
}
