package web

import (
	"context"
	"slices"

	"github.com/a-h/templ"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/volume"
	"sandboxd/views"
)

// Who gets a volume, as the form says it.
const (
	giveAll    = "all"
	giveChosen = "chosen"
)

// pageNewVolume shows the form of a new volume.
func (s *volumeHandlers) pageNewVolume(ctx context.Context, r *request) (templ.Component, error) {
	return s.form(ctx, r, volume.Volume{Mode: volume.ReadOnly}, nil)
}

// pageEditVolume shows the form of a volume that there is.
func (s *volumeHandlers) pageEditVolume(ctx context.Context, r *request) (templ.Component, error) {
	v, err := s.cfg.Volumes.Volume(r.param("name"))
	if err != nil {
		return nil, err
	}
	return s.form(ctx, r, v, nil)
}

// form is the form of a volume. mend may put in what is wrong.
func (s *volumeHandlers) form(ctx context.Context, r *request, v volume.Volume, mend func(*views.VolumeForm)) (templ.Component, error) {
	known := r.param("name")
	f := views.VolumeForm{Known: known, Fixed: known == volume.Shared, Name: views.Field{Value: v.Name}, Note: views.Field{Value: v.Note},
		Mode: choiceOf(string(v.Mode), []views.Option{{Value: string(volume.ReadOnly), Text: modeWords[volume.ReadOnly]}, {Value: string(volume.ReadWrite), Text: modeWords[volume.ReadWrite]}}),
		Give: choiceOf(giveAll, []views.Option{{Value: giveAll, Text: "All sandboxes"}, {Value: giveChosen, Text: "Chosen ones"}}), Next: r.origin(volumesPath)}
	if !v.Grants.All {
		f.Give.Value = giveChosen
	}
	for _, t := range s.cfg.Templates.List() {
		f.Templates = append(f.Templates, views.Tick{Value: t.Name, Text: t.Name, On: slices.Contains(v.Grants.Templates, t.Name)})
	}
	for _, name := range v.Grants.Templates {
		if !slices.ContainsFunc(f.Templates, func(t views.Tick) bool { return t.Value == name }) {
			f.Templates = append(f.Templates, views.Tick{Value: name, Text: name + " (not there)", On: true})
		}
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return nil, err
	}
	for _, b := range boxes {
		f.Sandboxes = append(f.Sandboxes, views.Tick{Value: b.ID, Text: b.Name, On: slices.Contains(v.Grants.Sandboxes, b.ID)})
	}
	if mend != nil {
		mend(&f)
	}
	if r.byScript() {
		return views.VolumeSheet(f), nil
	}
	f.Frame = s.frame(r, "Volume", "volumes")
	return views.VolumeFormPage(f), nil
}

// read puts a form's entries into a volume.
func (s *volumeHandlers) read(ctx context.Context, r *request, v *volume.Volume) error {
	v.Note = r.field("note")
	if v.IsShared() {
		return nil
	}
	v.Name, v.Mode, v.Grants = r.field("name"), volume.Mode(r.form("mode")), volume.Grants{All: r.form("give") == giveAll}
	if v.Grants.All {
		return nil
	}
	v.Grants.Templates = r.http.PostForm["templates"]
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	for _, b := range boxes { // one that was deleted meanwhile is left out
		if slices.Contains(r.http.PostForm["sandboxes"], b.ID) {
			v.Grants.Sandboxes = append(v.Grants.Sandboxes, b.ID)
		}
	}
	return err
}

// submitVolume makes a volume, or changes the one that the address names.
func (s *volumeHandlers) submitVolume(ctx context.Context, r *request) (string, error) {
	var entered volume.Volume
	known := r.param("name")
	if known != "" {
		old, err := s.cfg.Volumes.Volume(known)
		if err != nil {
			return "", err
		}
		entered = old
	}
	if err := s.read(ctx, r, &entered); err != nil {
		return "", err
	}
	if known == "" {
		v, err := s.cfg.Volumes.Create(ctx, entered)
		return volumeURL(v.Name), err
	}
	v, err := s.cfg.Volumes.Change(ctx, known, func(v *volume.Volume) {
		v.Name, v.Note, v.Mode, v.Grants = entered.Name, entered.Note, entered.Mode, entered.Grants
	})
	if err != nil {
		return "", err
	}
	if back := r.back(volumesPath); back != volumeURL(known) {
		return back, nil
	}
	return volumeURL(v.Name), nil
}

// againVolume shows the form again with what is wrong.
func (s *volumeHandlers) againVolume(ctx context.Context, r *request, cause error) (templ.Component, error) {
	var v volume.Volume
	if known := r.param("name"); known != "" {
		v.Name = known
	}
	if err := s.read(ctx, r, &v); err != nil {
		return nil, err
	}
	return s.form(ctx, r, v, func(f *views.VolumeForm) {
		var mode, given views.Field
		f.Fault = r.fill(map[string]*views.Field{"name": &f.Name, "note": &f.Note, "mode": &mode, "templates": &given, "sandboxes": &given}, cause)
		f.Mode.Fault, f.Give.Fault = mode.Fault, given.Fault
		if f.Fixed {
			f.Name.Value = volume.Shared
		}
	})
}
