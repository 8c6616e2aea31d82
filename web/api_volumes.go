package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/volume"
)

// volumeShape is a volume as programs see it.
type volumeShape struct {
	Name      string      `json:"name"`
	Note      string      `json:"note"`
	Mode      string      `json:"mode"`
	Path      string      `json:"path"` // in sandboxes
	Size      *int64      `json:"size"` // bytes, when it was last measured
	CreatedAt time.Time   `json:"created_at"`
	GivenTo   *givenShape `json:"given_to,omitempty"`  // for admins
	HostPath  string      `json:"host_path,omitempty"` // for admins
}

// givenShape says which sandboxes get a volume.
type givenShape struct {
	All       bool     `json:"all"`
	Templates []string `json:"templates"`
	Sandboxes []string `json:"sandboxes"` // names
}

type volumesShape struct {
	Volumes []volumeShape `json:"volumes"`
}

// volumeShape gives a volume as programs see it. names are those of sandboxes by id, for admins; else nil.
func (s *volumeHandlers) shape(v volume.Volume, names map[string]string) volumeShape {
	out := volumeShape{Name: v.Name, Note: v.Note, Mode: string(v.Mode), Path: v.Target(), Size: s.size(v), CreatedAt: v.Created.UTC()}
	if names == nil {
		return out
	}
	out.HostPath = s.cfg.Volumes.Folder(v)
	out.GivenTo = &givenShape{All: v.Grants.All, Templates: append([]string{}, v.Grants.Templates...), Sandboxes: []string{}}
	for _, id := range v.Grants.Sandboxes {
		if name, ok := names[id]; ok { // else it was deleted
			out.GivenTo.Sandboxes = append(out.GivenTo.Sandboxes, name)
		}
	}
	slices.Sort(out.GivenTo.Sandboxes)
	return out
}

func (s *volumeHandlers) size(v volume.Volume) *int64 {
	if bytes, ok := s.cfg.Volumes.Size(v); ok {
		return &bytes
	}
	return nil
}

// names gives the names of all sandboxes by id to an admin, and nil to others.
func (s *volumeHandlers) names(ctx context.Context, r *request) (map[string]string, error) {
	if !r.isAdmin() || r.who.LimitedToken() {
		return nil, nil
	}
	list, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{})
	names := make(map[string]string, len(list))
	for _, b := range list {
		names[b.ID] = b.Name
	}
	return names, err
}

// visible gives the volumes that the caller may know of: admins all of them, others those of their sandboxes.
func (s *volumeHandlers) visible(ctx context.Context, r *request) ([]volume.Volume, error) {
	all := s.cfg.Volumes.List()
	if r.isAdmin() && !r.who.LimitedToken() {
		return all, nil
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: ownerFilter(r)})
	return slices.DeleteFunc(all, func(v volume.Volume) bool {
		return !slices.ContainsFunc(boxes, func(b sandbox.Sandbox) bool { return r.who.May(b.Owner, b.ID) && v.Grants.Covers(b) })
	}), err
}

// ownerFilter is the owner whose sandboxes the caller may see, "" for all.
func ownerFilter(r *request) string {
	if r.isAdmin() {
		return ""
	}
	return r.who.User.ID
}

// apiVolumes lists volumes.
func (s *volumeHandlers) apiVolumes(ctx context.Context, r *request, _ none) (reply, error) {
	list, err := s.visible(ctx, r)
	if err != nil {
		return reply{}, err
	}
	names, err := s.names(ctx, r)
	out := volumesShape{Volumes: []volumeShape{}}
	for _, v := range list {
		out.Volumes = append(out.Volumes, s.shape(v, names))
	}
	return reply{body: out}, err
}

// apiVolume answers with one.
func (s *volumeHandlers) apiVolume(ctx context.Context, r *request, _ none) (reply, error) {
	list, err := s.visible(ctx, r)
	if err != nil {
		return reply{}, err
	}
	i := slices.IndexFunc(list, func(v volume.Volume) bool { return v.Name == r.param("name") })
	if i < 0 {
		return reply{}, volume.NotFound(r.param("name"))
	}
	return s.volumeReply(ctx, r, http.StatusOK, list[i])
}

func (s *volumeHandlers) volumeReply(ctx context.Context, r *request, status int, v volume.Volume) (reply, error) {
	names, err := s.names(ctx, r)
	return reply{status: status, body: s.shape(v, names)}, err
}

// volumeBody is what is asked for. What a change leaves out stays.
type volumeBody struct {
	Name    *string     `json:"name"`
	Note    *string     `json:"note"`
	Mode    *string     `json:"mode"`
	GivenTo *givenShape `json:"given_to"`
}

// change gives what the body makes of a volume. A sandbox that there is not is Invalid.
func (s *volumeHandlers) change(ctx context.Context, r *request, in volumeBody) (func(*volume.Volume), error) {
	var grants *volume.Grants
	if in.GivenTo != nil {
		grants = &volume.Grants{All: in.GivenTo.All, Templates: in.GivenTo.Templates}
		for _, name := range in.GivenTo.Sandboxes {
			h, err := s.resolve(ctx, r.who, name)
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Gone) {
				err = fault.Field("sandboxes", "%s", fault.Message(err))
			}
			if err != nil {
				return nil, err
			}
			grants.Sandboxes = append(grants.Sandboxes, h.ID())
		}
	}
	return func(v *volume.Volume) {
		if in.Name != nil {
			v.Name = *in.Name
		}
		if in.Note != nil {
			v.Note = *in.Note
		}
		if in.Mode != nil {
			v.Mode = volume.Mode(*in.Mode)
		}
		if grants != nil {
			v.Grants = *grants
		}
	}, nil
}

// apiCreateVolume makes a volume: read-only and for no sandbox, unless the body says otherwise.
func (s *volumeHandlers) apiCreateVolume(ctx context.Context, r *request, in volumeBody) (reply, error) {
	if in.Name != nil {
		r.object = *in.Name
	}
	change, err := s.change(ctx, r, in)
	if err != nil {
		return reply{}, err
	}
	n := volume.Volume{Mode: volume.ReadOnly}
	change(&n)
	v, err := s.cfg.Volumes.Create(ctx, n)
	if err != nil {
		return reply{}, err
	}
	out, err := s.volumeReply(ctx, r, http.StatusCreated, v)
	out.location = apiPrefix + volumeURL(v.Name)
	return out, err
}

// apiChangeVolume changes what the body has of a volume.
func (s *volumeHandlers) apiChangeVolume(ctx context.Context, r *request, in volumeBody) (reply, error) {
	change, err := s.change(ctx, r, in)
	if err != nil {
		return reply{}, err
	}
	v, err := s.cfg.Volumes.Change(ctx, r.param("name"), change)
	if err != nil {
		return reply{}, err
	}
	return s.volumeReply(ctx, r, http.StatusOK, v)
}

// apiDeleteVolume deletes a volume. Sandboxes that have it lose it when they start next.
func (s *volumeHandlers) apiDeleteVolume(ctx context.Context, r *request, _ none) (reply, error) {
	_, err := s.cfg.Volumes.Delete(ctx, r.param("name"))
	return reply{status: http.StatusNoContent}, err
}
