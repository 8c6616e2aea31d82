package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/hostname"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/template"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// templatePart is the form that makes a template of a snapshot, below that.
const templatePart = "/template"

// snapshotTemplateBody says what a template of a snapshot is called, and whether it has the snapshot's home.
type snapshotTemplateBody struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Home        bool   `json:"home"`
}

// apiMakeTemplate makes a template of a snapshot, begins to build its image, and answers once the template is there. That continues when
// the caller leaves.
func (s *snapshotHandlers) apiMakeTemplate(ctx context.Context, r *request, in snapshotTemplateBody) (reply, error) {
	h, n, err := s.snapshot(ctx, r)
	if err == nil {
		err = s.makeTemplate(ctx, r, lent{h, n}, in)
	}
	if err != nil {
		return reply{}, err
	}
	e, err := s.templates.entry(in.Name)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusCreated, location: apiPrefix + templateURL(in.Name, ""), body: s.templates.templateShape(ctx, e, nil)}, nil
}

// lent is a snapshot of a sandbox that something is made of.
type lent struct {
	box access.Handle
	of  snapshot.Snapshot
}

// makeTemplate makes a template of a snapshot, for the caller.
func (s *snapshotHandlers) makeTemplate(ctx context.Context, r *request, l lent, in snapshotTemplateBody) error {
	r.object = text.Excerpt(in.Name, hostname.MaxName)
	order := orderOf(r, catalog.Order{})
	return s.cfg.Snapshots.Lend(ctx, l.box.Sandbox(), l.of.ID, func(ctx context.Context, n snapshot.Snapshot) error {
		_, err := s.cfg.OwnTemplates.MakeFrom(ctx, template.FromSnapshot{
			Name: in.Name, Description: in.Description, Home: in.Home, Snapshot: n.ID, Called: calledWhole(n), Spec: n.Origin.Spec, Overrides: n.Origin.Overrides, Order: order,
			Rest: catalog.Rest{FreezeAfter: catalog.After(n.Origin.Rest.FreezeAfter), StopAfter: catalog.After(n.Origin.Rest.StopAfter)},
		})
		return err
	})
}

// calledWhole names a snapshot, and its sandbox as that was called then, in a sentence.
func calledWhole(n snapshot.Snapshot) string {
	name := called(n)
	if n.Name != "" {
		name = "the snapshot " + name
	}
	return name + " of the sandbox " + n.Origin.Name
}

// pageMakeTemplate is the form that makes a template of a snapshot; a script gets it as a sheet.
func (s *snapshotFormHandlers) pageMakeTemplate(ctx context.Context, r *request) (templ.Component, error) {
	return s.templateForm(ctx, r, views.SnapshotTemplate{Home: true})
}

func (s *snapshotFormHandlers) templateForm(ctx context.Context, r *request, v views.SnapshotTemplate) (templ.Component, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return nil, err
	}
	v.About, v.URL, v.Next = s.snapshots.about(n), actURL(h.Sandbox(), n, templatePart), r.origin(snapshotsURL(h.Name()))
	v.Takes, v.Most = takenFrom(n), text.Size(template.MaxHome)
	if r.byScript() {
		return views.SnapshotTemplateSheet(v), nil
	}
	v.Frame = s.frame(r, "Make a template of a snapshot of "+h.Name(), "sandboxes")
	return views.SnapshotTemplatePage(v), nil
}

// takenFrom says what a template gets of a snapshot.
func takenFrom(n snapshot.Snapshot) string {
	said := "It gets what was installed or changed outside of the home, and the size, services, ports and sleep settings of the sandbox"
	if from := n.Origin.Spec.Template; from != "" {
		said += ", with the environment variables of its template " + from
	}
	return said + "."
}

// submitMakeTemplate makes a template and leads to it; or to all, when that takes longer.
func (s *snapshotFormHandlers) submitMakeTemplate(ctx context.Context, r *request) (string, error) {
	h, n, err := s.snapshots.snapshot(ctx, r)
	if err != nil {
		return "", err
	}
	in := snapshotTemplateBody{Name: r.field("name"), Description: r.field("description"), Home: r.form("home") != ""}
	waiting, cancel := context.WithTimeout(ctx, newTime)
	defer cancel()
	err = s.snapshots.makeTemplate(waiting, r, lent{h, n}, in)
	if err != nil && waiting.Err() != nil && errors.Is(err, waiting.Err()) { // it is under way
		return done(templatesPath, "template-begun"), nil
	}
	return templateURL(in.Name, ""), err
}

func (s *snapshotFormHandlers) againMakeTemplate(ctx context.Context, r *request, cause error) (templ.Component, error) {
	v := views.SnapshotTemplate{Home: r.form("home") != ""}
	var home views.Field
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "description": &v.Description, "home": &home}, cause)
	v.HomeFault = home.Fault
	return s.templateForm(ctx, r, v)
}
