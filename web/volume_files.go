package web

import (
	"context"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/volume"
)

// find resolves whose files the request is about: a sandbox's, or a volume's.
func (s *fileHandlers) find(ctx context.Context, r *request) (access.Handle, error) {
	if !s.ofVolumes {
		return named(ctx, s.Server, r)
	}
	h, err := s.cfg.VolumeAccess.Resolve(ctx, r.param("name"), volume.By(r.who))
	if id := r.query("sandbox_id"); err == nil && id != "" && id != h.ID() {
		return access.Handle{}, fault.New(fault.Gone, "The volume %s that this page shows was deleted. Another one has its name now.", h.Name())
	}
	return h, err
}

// noteVolume has what is recorded of a request say whose files it is about.
func (s *fileHandlers) noteVolume(r *request, h access.Handle) {
	if s.ofVolumes && r.object != "" {
		r.object = h.Name() + ": " + r.object
	}
}

// volumePaths are the paths of a request to the files of a volume.
func volumePaths(r *request) string {
	return r.param("name") + ": " + strings.Join(r.http.URL.Query()["path"], ", ")
}
