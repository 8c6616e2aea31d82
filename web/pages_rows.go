package web

import (
	"cmp"
	"context"

	"sandboxd/internal/auth"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// isAdmin says whether an admin asks.
func (r *request) isAdmin() bool { return r.who.User.Role == auth.Admin }

// row shows a sandbox. An owner who cannot be found now is left out: the list matters more.
func (p *presenter) row(ctx context.Context, box sandbox.Sandbox, progress sandbox.Progress) views.Row {
	s := p.server
	now := s.cfg.Now()
	t := s.workspace.templateOf(box.Spec)
	row := views.Row{
		ID: box.ID, Name: box.Name, Title: cmp.Or(box.Label, box.Name),
		Kind: cmp.Or(t.Title, t.Name), Icon: t.Icon, Tint: tintOf(t),
		State: s.workspace.state(box, progress), Made: timeOf(box.Created, now),
		Links: s.workspace.quickLinks(box, t), Acts: p.acts(box), Pick: choice{box.Name, box.ID}.value(),
		Meters: metersOf(s.cfg.Metrics, box), Update: s.updates.mark(box),
	}
	if at, used := s.cfg.LastUses.Last(box.ID); used {
		row.Used = timeOf(at, now)
	}
	if p.place == "list" {
		row.Badges = s.list.badges(box)
	}
	row.Tries = s.trials.tryBadge(box)
	if p.admin {
		row.Owner = "–"
		if name, err := p.names.name(ctx, box.Owner); err == nil && name != "" {
			row.Owner = name
		}
	}
	return row
}

func (p *presenter) rows(ctx context.Context, boxes []sandbox.Sandbox) []views.Row {
	rows := make([]views.Row, 0, len(boxes))
	for _, box := range boxes {
		rows = append(rows, p.row(ctx, box, p.server.cfg.Sandboxes.Progress(box.ID)))
	}
	return rows
}
