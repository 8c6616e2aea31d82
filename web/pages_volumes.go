package web

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/internal/volume"
	"sandboxd/views"
)

// volumesPath is the page of the volumes.
const volumesPath = "/volumes"

// volumeURL is the page of one, and under apiPrefix its resource.
func volumeURL(name string) string { return volumesPath + "/" + name }

// modeWords are how a mode is shown.
var modeWords = map[volume.Mode]string{volume.ReadOnly: "Read-only", volume.ReadWrite: "Read and write"}

// pageVolumes lists the volumes.
func (s *volumeHandlers) pageVolumes(ctx context.Context, r *request) (templ.Component, error) {
	list, err := s.list(ctx, r)
	if err != nil {
		return nil, err
	}
	v := views.Volumes{Done: outcomes[r.query("done")], List: list, Frame: s.frame(r, "Volumes", "volumes")}
	v.Frame.Live = views.Live{Topic: volumesPath, Seen: "seen=" + printOf(list)}
	return views.VolumesPage(v), nil
}

func (s *volumeHandlers) list(ctx context.Context, r *request) ([]views.Volume, error) {
	names, err := s.names(ctx, r)
	if err != nil {
		return nil, err
	}
	var list []views.Volume
	for _, v := range s.cfg.Volumes.List() {
		list = append(list, s.item(v, names))
	}
	return list, nil
}

// item makes a volume ready to show.
func (s *volumeHandlers) item(v volume.Volume, names map[string]string) views.Volume {
	return views.Volume{Name: v.Name, Note: v.Note, Mode: modeWords[v.Mode], Path: v.Target(), Size: s.sizeText(v), GivenTo: givenText(v.Grants, names),
		HostPath: s.cfg.Volumes.Folder(v), Fixed: v.IsShared()}
}

func (s *volumeHandlers) sizeText(v volume.Volume) string {
	if bytes, ok := s.cfg.Volumes.Size(v); ok {
		return text.Size(bytes)
	}
	return ""
}

// mostNamed is how many sandboxes and templates are named of those that get a volume.
const mostNamed = 6

// givenText says who gets a volume.
func givenText(g volume.Grants, names map[string]string) string {
	if g.All {
		return "All sandboxes"
	}
	var words []string
	for _, t := range g.Templates {
		words = append(words, "Template "+t)
	}
	for _, id := range g.Sandboxes {
		if name, ok := names[id]; ok {
			words = append(words, name)
		}
	}
	if len(words) == 0 {
		return "No sandbox"
	}
	more := len(words) - mostNamed
	if more > 0 {
		words = append(words[:mostNamed], strconv.Itoa(more)+" more")
	}
	return strings.Join(words, ", ")
}

// pageVolume is the page of one volume: its files.
func (s *volumeHandlers) pageVolume(ctx context.Context, r *request) (templ.Component, error) {
	v, item, err := s.one(ctx, r)
	if err != nil {
		return nil, err
	}
	r.head.Set("Content-Security-Policy", workspacePolicy)
	_, preferences := s.workspace.layout(ctx, r.who)
	p := views.VolumeDetail{Frame: s.frame(r, v.Name, "volumes"), Volume: item, Preferences: preferences,
		Files: views.Files{Base: volumeURL(v.Name) + filesPart, Home: v.Target(), Whole: true, State: string(sandbox.Running), Box: v.ID}}
	p.Frame.Live = views.Live{Topic: volumeURL(v.Name), Seen: "seen=" + printOf(item)}
	return views.VolumePage(p), nil
}

func (s *volumeHandlers) one(ctx context.Context, r *request) (volume.Volume, views.Volume, error) {
	v, err := s.cfg.Volumes.Volume(r.param("name"))
	if err != nil {
		return v, views.Volume{}, err
	}
	names, err := s.names(ctx, r)
	return v, s.item(v, names), err
}

// pageDeleteVolume asks before a volume is deleted.
func (s *volumeHandlers) pageDeleteVolume(ctx context.Context, r *request) (templ.Component, error) {
	return s.deleteForm(ctx, r, nil)
}

func (s *volumeHandlers) againDeleteVolume(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.deleteForm(ctx, r, cause)
}

func (s *volumeHandlers) deleteForm(ctx context.Context, r *request, cause error) (templ.Component, error) {
	v, item, err := s.one(ctx, r)
	if err != nil {
		return nil, err
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	if err != nil {
		return nil, err
	}
	d := views.DeleteVolume{Volume: item, Typed: views.Field{Value: r.form("confirm")}, Next: volumesPath}
	if cause != nil {
		d.Typed.Fault = fault.Message(cause)
	}
	for _, b := range boxes {
		have, _ := s.cfg.Sandboxes.Mounted(b.ID)
		if slices.ContainsFunc(have, func(m sandbox.Mount) bool { return m.Volume == v.ID }) {
			d.Sandboxes = append(d.Sandboxes, b.Name)
		}
	}
	if r.byScript() {
		return views.DeleteVolumeSheet(d), nil
	}
	d.Frame = s.frame(r, "Delete a volume", "volumes")
	return views.DeleteVolumePage(d), nil
}

// submitDeleteVolume deletes a volume, once its name was typed.
func (s *volumeHandlers) submitDeleteVolume(ctx context.Context, r *request) (string, error) {
	name := r.param("name")
	if _, err := s.cfg.Volumes.Volume(name); err != nil {
		return "", err
	}
	if r.field("confirm") != name {
		return "", fault.Field("confirm", "Type %s to confirm.", name)
	}
	if _, err := s.cfg.Volumes.Delete(ctx, name); err != nil {
		return "", err
	}
	return done(volumesPath, "volume-deleted"), nil
}

// pageBoxVolumes shows the volumes of a sandbox to its owner.
func (s *volumeHandlers) pageBoxVolumes(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.BoxVolumes{Name: box.Name, Next: r.origin(sandboxURL(box.Name)), Items: s.boxVolumes(box)}
	if s.volumeSign(box).Text != "" && box.State.Settled() {
		v.Restart = sameURL(box, "/restart")
		if box.State != sandbox.Running && box.State != sandbox.Frozen {
			v.Restart = ""
		}
		v.Changes = true
	}
	if r.byScript() {
		return views.BoxVolumesSheet(v), nil
	}
	v.Frame = s.frame(r, "Volumes of "+box.Name, "sandboxes")
	return views.BoxVolumesPage(v), nil
}

func (s *volumeHandlers) boxVolumes(box sandbox.Sandbox) (list []views.BoxVolume) {
	for _, one := range s.volumesOf(box) {
		list = append(list, views.BoxVolume{Name: one.volume.Name, Note: one.volume.Note, Mode: modeWords[one.volume.Mode], Path: one.path,
			Size: s.sizeText(one.volume), State: one.state})
	}
	return list
}

// volumeSign says what a restart of a sandbox changes of its volumes, if anything. One whose programs do not run gets it by itself.
func (s *volumeHandlers) volumeSign(box sandbox.Sandbox) views.VolumeSign {
	v := views.VolumeSign{URL: sameURL(box, "/volumes")}
	if box.State != sandbox.Running && box.State != sandbox.Frozen {
		return v
	}
	var gets, loses []string
	for _, one := range s.volumesOf(box) {
		switch one.state {
		case volumeComes:
			gets = append(gets, one.volume.Name)
		case volumeLeaves:
			loses = append(loses, one.volume.Name)
		}
	}
	switch {
	case len(gets) == 1:
		v.Text, v.Short = "Restart to get volume "+gets[0], "Restart for volume"
	case len(gets) > 1:
		v.Text, v.Short = "Restart to get volumes "+strings.Join(gets, ", "), "Restart for volumes"
	case len(loses) > 0:
		v.Text, v.Short = "A restart takes away: "+strings.Join(loses, ", "), "Volumes changed"
	}
	return v
}
