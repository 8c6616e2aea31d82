package web

import (
	"context"
	"fmt"
	"slices"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// submitPower starts, stops or restarts a sandbox and comes back to where the button was.
func (s *workspaceHandlers) submitPower(act change) func(context.Context, *request) (string, error) {
	return func(ctx context.Context, r *request) (string, error) {
		h, err := named(ctx, s.Server, r)
		if err != nil {
			return "", err
		}
		box := h.Sandbox()
		ctx, cancel := context.WithTimeout(ctx, acceptTime)
		defer cancel()
		if _, err := act(ctx, h.Ref()); err != nil {
			return "", err
		}
		return r.back(sandboxURL(box.Name)), nil
	}
}

// pageRename shows the form for the label; a script gets it as a sheet.
func (s *workspaceHandlers) pageRename(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return s.renameForm(r, box, views.Field{Value: box.Label}), nil
}

func (s *workspaceHandlers) renameForm(r *request, box sandbox.Sandbox, label views.Field) templ.Component {
	v := views.Rename{Name: box.Name, ID: box.ID, Label: label, Next: r.origin(sandboxURL(box.Name))}
	if r.byScript() {
		return views.RenameSheet(v)
	}
	v.Frame = s.frame(r, "Edit label of "+box.Name, "sandboxes")
	return views.RenamePage(v)
}

// submitRename changes the label.
func (s *workspaceHandlers) submitRename(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if _, err := s.cfg.Sandboxes.Rename(ctx, h.Ref(), r.field("label")); err != nil {
		return "", err
	}
	return r.back(sandboxURL(box.Name)), nil
}

func (s *workspaceHandlers) againRename(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return s.renameForm(r, box, views.Field{Value: r.form("label"), Fault: fault.Message(cause)}), nil
}

// pageDelete asks before a sandbox goes; a script gets the question as a sheet.
func (s *workspaceHandlers) pageDelete(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return s.deleteForm(r, box, views.Field{}), nil
}

func (s *workspaceHandlers) deleteForm(r *request, box sandbox.Sandbox, typed views.Field) templ.Component {
	title := box.Name
	if box.Label != "" {
		title = fmt.Sprintf("%s (%s)", box.Label, box.Name)
	}
	v := views.Delete{Name: box.Name, ID: box.ID, Title: title, Typed: typed, Keep: r.form("keep_log") != "", Next: r.origin("/"), Lost: s.lost(box),
		Backups: s.backups.keptBackups(box, s.cfg.Now())}
	if neverUsed(s.Server, box) {
		v.Unused = whyUnused
	}
	if v.Next == sandboxURL(box.Name) { // that page will be gone
		v.Next = "/"
	}
	if r.byScript() {
		return views.DeleteSheet(v)
	}
	v.Frame = s.frame(r, "Delete "+box.Name, "sandboxes")
	return views.DeletePage(v)
}

// lost says what goes with a sandbox.
func (s *workspaceHandlers) lost(box sandbox.Sandbox) []string {
	lost := []string{"Everything in /home/agent and /workspace (its volume)."}
	if slices.Contains([]sandbox.State{sandbox.Running, sandbox.Frozen, sandbox.Starting}, box.State) {
		lost = append(lost, "All its terminals, and every program that runs in them.")
	}
	if snapshots := s.snapshots.lostSnapshots(box); snapshots != "" {
		lost = append(lost, snapshots)
	}
	return append(lost, "Everything installed or changed in its system.", "Its addresses, such as "+s.cfg.Hosts.TerminalURL(box.Name),
		"Tokens limited to it, and links to its ports.", "Its log, unless you keep it.")
}

// submitDelete deletes a sandbox whose name was typed, or that nobody has used.
func (s *workspaceHandlers) submitDelete(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if r.field("confirm") != box.Name && !neverUsed(s.Server, box) {
		return "", fault.Field("confirm", "This is not its name. Type %s to delete it.", box.Name)
	}
	if err := keepLog(ctx, s.Server, box, r.form("keep_log") != ""); err != nil {
		return "", err
	}
	if _, err := s.cfg.Sandboxes.Delete(ctx, h.Ref()); err != nil {
		return "", err
	}
	return r.back("/"), nil
}

func (s *workspaceHandlers) againDelete(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return s.deleteForm(r, box, views.Field{Value: r.form("confirm"), Fault: fault.Message(cause)}), nil
}
