package web

import (
	"cmp"
	"context"
	"net/http"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// orphanShape is a sandbox on the engine that has no record, as programs see it. One of template and image is "".
type orphanShape struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Template string `json:"template"`
	Image    string `json:"image"`
	Running  bool   `json:"running"`
	Partial  bool   `json:"partial"` // only its volume is there
}

type orphansShape struct {
	Orphans []orphanShape `json:"orphans"`
}

// apiOrphans lists the orphans.
func (s *orphanHandlers) apiOrphans(context.Context, *request, none) (reply, error) {
	out := orphansShape{Orphans: []orphanShape{}}
	for _, i := range s.cfg.Sandboxes.Orphans() {
		image := i.Image
		if i.Template != "" {
			image = ""
		}
		out.Orphans = append(out.Orphans, orphanShape{i.ID, i.Name, i.Template, image, i.Running, i.Partial})
	}
	return reply{body: out}, nil
}

type adoptBody struct {
	Name string `json:"name"` // "" for its own
}

// adopt makes an orphan a user's sandbox. It may hold anything, so it counts as used.
func (s *orphanHandlers) adopt(ctx context.Context, id, name, owner string) (sandbox.Sandbox, error) {
	box, err := s.cfg.Sandboxes.Adopt(ctx, id, name, owner)
	if err == nil {
		s.cfg.LastUses.Note(box.ID)
	}
	return box, err
}

// apiAdoptOrphan makes an orphan the caller's sandbox.
func (s *orphanHandlers) apiAdoptOrphan(ctx context.Context, r *request, in adoptBody) (reply, error) {
	box, err := s.adopt(ctx, r.param("id"), in.Name, r.who.User.ID)
	if err != nil {
		return reply{}, err
	}
	r.about = box
	out, err := s.sandboxes.sandboxReply(ctx, http.StatusCreated, box)
	out.location = apiPrefix + "/sandboxes/" + box.Name
	return out, err
}

// apiRemoveOrphan removes an orphan with everything in it.
func (s *orphanHandlers) apiRemoveOrphan(ctx context.Context, r *request, _ none) (reply, error) {
	return reply{status: http.StatusNoContent}, s.cfg.Sandboxes.RemoveOrphan(ctx, r.param("id"))
}

// notice gives the orphans for the list of sandboxes, to admins only.
func (s *orphanHandlers) notice(r *request) []views.Orphan {
	if !r.isAdmin() {
		return nil
	}
	var all []views.Orphan
	for _, i := range s.cfg.Sandboxes.Orphans() {
		all = append(all, s.orphan(i))
	}
	return all
}

func (s *orphanHandlers) orphan(i sandbox.Instance) views.Orphan {
	t := s.workspace.templateOf(sandbox.Spec{Template: i.Template, Image: i.Image})
	v := views.Orphan{ID: i.ID, Name: i.Name, Kind: cmp.Or(t.Title, t.Name), State: "stopped"}
	switch {
	case i.Partial:
		v.State = "only its volume is left"
	case i.Running:
		v.State = "running"
	}
	return v
}

// form asks about the orphan of the address; name is for a form that has failed.
func (s *orphanHandlers) form(r *request, title string, show func(views.OrphanForm) templ.Component, name views.Field) (templ.Component, error) {
	for _, i := range s.cfg.Sandboxes.Orphans() {
		if i.ID == r.param("id") {
			name.Value = cmp.Or(name.Value, i.Name)
			return show(views.OrphanForm{Frame: s.frame(r, title+" "+i.Name, "sandboxes"), Orphan: s.orphan(i), NewName: name}), nil
		}
	}
	return nil, fault.New(fault.NotFound, "It has been adopted or removed already.")
}

// pageRemoveOrphan asks before an orphan is removed.
func (s *orphanHandlers) pageRemoveOrphan(_ context.Context, r *request) (templ.Component, error) {
	show := views.RemoveOrphanPage
	if r.byScript() {
		show = views.RemoveOrphanSheet
	}
	return s.form(r, "Remove", show, views.Field{})
}

// submitAdoptOrphan makes an orphan the person's sandbox, and leads there.
func (s *orphanHandlers) submitAdoptOrphan(ctx context.Context, r *request) (string, error) {
	box, err := s.adopt(ctx, r.param("id"), r.field("name"), r.who.User.ID)
	r.about = box
	return sandboxURL(box.Name), err
}

// againAdoptOrphan asks for another name.
func (s *orphanHandlers) againAdoptOrphan(_ context.Context, r *request, cause error) (templ.Component, error) {
	return s.form(r, "Adopt", views.AdoptOrphanPage, views.Field{Value: r.form("name"), Fault: fault.Message(cause)})
}

func (s *orphanHandlers) submitRemoveOrphan(ctx context.Context, r *request) (string, error) {
	return "/", s.cfg.Sandboxes.RemoveOrphan(ctx, r.param("id"))
}
