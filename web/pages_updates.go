package web

import (
	"cmp"
	"context"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/update"
	"sandboxd/views"
)

var errNotAdmin = fault.New(fault.Forbidden, "Only admins can update the sandboxes of a template.")

// mark says in a few words that a sandbox is on an older image, or that its last update failed.
func (s *updateHandlers) mark(box sandbox.Sandbox) views.UpdateMark {
	standing := s.cfg.Updates.Standing(box)
	if !standing.Older || s.under(box) || box.State == sandbox.Deleting {
		return views.UpdateMark{}
	}
	m := views.UpdateMark{
		Text: "newer image", URL: sameURL(box, updatePart),
		Title: "It was made from " + cmp.Or(standing.Image, "an older image") + ". Its template gives " + standing.Newest + " now.",
	}
	if _, i, ok := s.cfg.Updates.LastOf(box.ID); ok && i.State == update.Broken {
		m.Text, m.Title, m.Bad = "update failed", i.Problem, true
	}
	return m
}

// under says whether an update of a sandbox is under way: it is in the hands of the Manager, or a snapshot is taken of it first.
func (s *updateHandlers) under(box sandbox.Sandbox) bool {
	if box.Updating() {
		return true
	}
	u, i, ok := s.cfg.Updates.LastOf(box.ID)
	return ok && u.State == update.Running && i.State == update.Updating && !box.State.Settled()
}

// pageUpdateSandbox asks before a sandbox is put on a newer image; a script gets the question as a sheet.
func (s *updateHandlers) pageUpdateSandbox(ctx context.Context, r *request) (templ.Component, error) {
	return s.updateForm(ctx, r, views.UpdateSandbox{})
}

func (s *updateHandlers) updateForm(ctx context.Context, r *request, v views.UpdateSandbox) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	standing := s.cfg.Updates.Standing(box)
	v.Name, v.ID, v.Template, v.Next = box.Name, box.ID, box.Spec.Template, r.origin(sandboxURL(box.Name))
	v.Image, v.Newest, v.Current = standing.Image, cmp.Or(standing.Newest, "not known"), standing.Known && !standing.Older
	v.Means = renewed(box)
	if because := s.workspace.outlook(box).Because; len(because) > 0 && box.State == sandbox.Running {
		v.Uses = allReasons(because)
	}
	if _, i, ok := s.cfg.Updates.LastOf(box.ID); ok && i.State == update.Broken && !v.Current {
		v.Failed, v.Log, v.Logs = i.Problem, i.Log, logsURL(box)
		if i.TakenBack {
			v.Failed += " It was put back as it was."
		}
	}
	if r.byScript() {
		return views.UpdateSandboxSheet(v), nil
	}
	v.Frame = s.frame(r, "Update "+box.Name, "sandboxes")
	return views.UpdateSandboxPage(v), nil
}

// renewed says what an update does to a sandbox in its present state.
func renewed(box sandbox.Sandbox) []string {
	means := []string{"The files in its home stay. Programs that were installed outside of it go; a snapshot that is taken first has them."}
	if box.Root != "" {
		means[0] = "The files in its home stay. It was made from a snapshot: what that has outside of the home goes, but for the snapshot that is taken first."
	}
	switch box.State {
	case sandbox.Running:
		means = append(means, "Its running programs and its terminals end. It is started again.")
	case sandbox.Frozen:
		means = append(means, "It is started, so that it can be checked, and is asleep afterwards. Its paused programs end.")
	default:
		means = append(means, "It is started, so that it can be checked, and stopped again.")
	}
	return append(means, "If it does not start, or a service that worked before does not work any more, it is put back as it was.")
}

// submitUpdateSandbox begins to update a sandbox. The page's live connection shows how far it is.
func (s *updateHandlers) submitUpdateSandbox(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	_, err = s.cfg.Updates.One(ctx, h.Sandbox(), r.who.User.ID, r.form("force") != "")
	return r.back(sandboxURL(h.Name())), err
}

func (s *updateHandlers) againUpdateSandbox(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.updateForm(ctx, r, views.UpdateSandbox{Force: r.form("force") != "", Fault: fault.Message(cause)})
}

// updated tells of a sandbox whose newer image is tried, if it is.
func (s *updateHandlers) updated(w *views.Work, box sandbox.Sandbox, p sandbox.Progress) {
	if !box.Updating() {
		return
	}
	w.Title, w.Text = beingUpdated, "Its container is made from the newest image of "+box.Spec.Template+", started and checked. If that fails, it is put back as it was."
	w.Acts, w.Detail = nil, p.Detail
	w.Phases = phases(p, sandbox.PhaseVolume, sandbox.PhaseStart, sandbox.PhaseReady, sandbox.PhaseCheck)
	if p.Phase == sandbox.PhaseRestore {
		w.Title, w.Text = "Being put back", "The update failed. The sandbox becomes what it was before."
		w.Phases = phases(p, sandbox.PhaseRestore, sandbox.PhaseVolume, sandbox.PhaseStart, sandbox.PhaseReady)
	}
}

// older says how many sandboxes of a template are on an older image; to one who may not see them all, of their own.
func (s *updateHandlers) older(ctx context.Context, r *request, template string) (views.OlderBoxes, error) {
	if t, err := s.cfg.Templates.Template(template); err != nil || t.Name == "" {
		return views.OlderBoxes{}, nil
	}
	list, all, err := s.mine(ctx, r, template)
	if err != nil || all == 0 {
		return views.OlderBoxes{}, err
	}
	v := views.OlderBoxes{Text: olderText(len(list), all)}
	if !r.isAdmin() {
		return v, nil
	}
	last, lastErr := s.cfg.Updates.Last(template)
	v.Busy = lastErr == nil && last.State == update.Running
	if len(list) > 0 || lastErr == nil {
		v.URL = "/templates/" + template + updatePart
	}
	return v, nil
}

// mine gives the sandboxes of a template that are on an older image and that may be seen, and how many of it may be seen.
func (s *updateHandlers) mine(ctx context.Context, r *request, template string) (list []sandbox.Sandbox, all int, err error) {
	if r.isAdmin() {
		return s.cfg.Updates.Older(ctx, template)
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: r.who.User.ID, Query: template})
	for _, b := range boxes {
		if b.Spec.Template != template {
			continue
		}
		if all++; s.cfg.Updates.Standing(b).Older {
			list = append(list, b)
		}
	}
	return list, all, err
}

func olderText(older, all int) string {
	switch {
	case older == 0 && all == 1:
		return "The one sandbox is on the newest image."
	case older == 0:
		return "All " + amount(int64(all), "sandbox", "sandboxes") + " are on the newest image."
	case older == 1:
		return "1 of " + amount(int64(all), "sandbox", "sandboxes") + " is on an older image."
	}
	return strconv.Itoa(older) + " of " + amount(int64(all), "sandbox", "sandboxes") + " are on an older image."
}

// templateTitle is what pages call a template.
func templateTitle(e catalog.Entry) string { return cmp.Or(e.Template.Title, e.Name) }
