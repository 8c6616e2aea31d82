package client

import (
	"context"
	"net/http"
	"net/url"

	"sandboxd/internal/text"
)

// VolumePrefix before a volume's name makes of it what the methods for files take in place of a sandbox's name.
const VolumePrefix = "volume/"

// Volume is a folder that several sandboxes have.
type Volume struct {
	Name     string        `json:"name"`
	Note     string        `json:"note"`
	Mode     string        `json:"mode"`
	Path     string        `json:"path"`
	Size     *int64        `json:"size"`      // bytes; nil when it was not measured yet
	GivenTo  *VolumeGrants `json:"given_to"`  // nil unless the token is an admin's
	HostPath string        `json:"host_path"` // the same
}

// VolumeGrants say which sandboxes get a volume.
type VolumeGrants struct {
	All       bool     `json:"all"`
	Templates []string `json:"templates"`
	Sandboxes []string `json:"sandboxes"`
}

// VolumeChange is what is asked for of a volume. What is nil stays.
type VolumeChange struct {
	Name    *string       `json:"name,omitempty"`
	Note    *string       `json:"note,omitempty"`
	Mode    *string       `json:"mode,omitempty"`
	GivenTo *VolumeGrants `json:"given_to,omitempty"`
}

func (v *Volume) clean() {
	if v.GivenTo != nil {
		for _, list := range [][]string{v.GivenTo.Templates, v.GivenTo.Sandboxes} {
			for i := range list {
				list[i] = text.OneLine(list[i], maxDetail)
			}
		}
	}
	for _, field := range []*string{&v.Name, &v.Note, &v.Mode, &v.Path, &v.HostPath} {
		*field = text.OneLine(*field, maxDetail)
	}
}

func volumePath(name string) string { return "/volumes/" + url.PathEscape(name) }

// Volumes are the server's volumes.
type Volumes struct{ c *Client }

// Volumes gives them.
func (c *Client) Volumes() Volumes { return Volumes{c} }

// List lists those that the token's user may know of.
func (s Volumes) List(ctx context.Context) ([]Volume, error) {
	var list struct {
		Volumes []Volume `json:"volumes"`
	}
	err := s.c.get(ctx, "/volumes", nil, &list)
	for i := range list.Volumes {
		list.Volumes[i].clean()
	}
	return list.Volumes, err
}

// Create makes one. The change has its name.
func (s Volumes) Create(ctx context.Context, c VolumeChange) (v Volume, err error) {
	err = s.c.send(ctx, http.MethodPost, "/volumes", c, &v)
	v.clean()
	return v, err
}

// Change changes one.
func (s Volumes) Change(ctx context.Context, name string, c VolumeChange) (v Volume, err error) {
	err = s.c.send(ctx, http.MethodPatch, volumePath(name), c, &v)
	v.clean()
	return v, err
}

// Delete deletes one, with all that is in it.
func (s Volumes) Delete(ctx context.Context, name string) error {
	return s.c.del(ctx, volumePath(name))
}
