package web

import (
	"cmp"
	"context"

	"github.com/a-h/templ"

	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// paletteRows is how many sandboxes the palette has at once.
const paletteRows = 1000

// partPalette is what the command palette leads to from every page, for its script.
func (s *sandboxHandlers) partPalette(ctx context.Context, r *request) (templ.Component, error) {
	filter := sandbox.Filter{Limit: paletteRows}
	if !r.isAdmin() {
		filter.Owner = r.who.User.ID
	}
	boxes, total, err := s.cfg.Sandboxes.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	v := views.Palette{Frame: s.frame(r, "", ""), More: total > len(boxes)}
	for _, box := range boxes {
		t := s.workspace.templateOf(box.Spec)
		place := views.Place{URL: sandboxURL(box.Name), Title: cmp.Or(box.Label, box.Name), Icon: t.Icon, Text: cmp.Or(t.Title, t.Name)}
		if place.Title != box.Name {
			place.Text = box.Name + " · " + place.Text
		}
		v.Boxes = append(v.Boxes, place)
	}
	for _, e := range s.cfg.Templates.List() {
		v.Templates = append(v.Templates, views.Place{URL: "/templates/" + e.Name, Title: cmp.Or(e.Template.Title, e.Name), Icon: cmp.Or(e.Template.Icon, "box"), Text: e.Name})
	}
	return views.PaletteLinks(v), nil
}
