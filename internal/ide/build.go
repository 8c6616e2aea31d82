package ide

import (
	"context"
	"io"
	"strings"

	"sandboxd/internal/catalog"
)

// buildShare is how much of the whole the image is; the rest is taking the folder out of it.
const buildShare = 0.95

// stageName is what the Dockerfile marks its stage with.
const stageName = "ide"

// tagOf gives a reference's tag: the hash of everything that the image is made of.
func tagOf(ref string) string { return ref[strings.LastIndexByte(ref, ':')+1:] }

// build makes the image and takes the folder out of it.
func (s *Service) build(ctx context.Context, f *job) (version string, err error) {
	ref, err := s.cfg.Images.Ensure(ctx, catalog.Template{Name: Template}, func(e catalog.BuildEvent) { s.noteBuild(f, e) })
	if err != nil {
		return "", err
	}
	version = tagOf(ref)
	if s.tree.has(version) { // another process built it in the same data folder
		return version, nil
	}
	s.note(f, "Extracting", buildShare)
	err = s.tree.put(version, func(take func(io.Reader) error) error {
		return s.cfg.Engine.CopyOut(ctx, ref, imageFolder, s.cfg.Owner, take)
	})
	if err != nil {
		return "", err
	}
	if err := s.cfg.Engine.DropStages(ctx, stageName); err != nil {
		s.cfg.Log.Warn("what the build of VS Code has left on the engine", "error", err)
	}
	return version, nil
}

// noteBuild notes what the building of the image says.
func (s *Service) noteBuild(f *job, e catalog.BuildEvent) {
	if s.cfg.Report != nil {
		s.cfg.Report(e)
	}
	part := 0.0
	if e.Steps > 0 {
		part = buildShare * float64(max(e.Step-1, 0)) / float64(e.Steps)
	}
	s.note(f, e.Line, part)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.progress.Step, f.progress.Steps = e.Step, e.Steps
}

// note notes a line, if it is one, and how much of the whole is done.
func (s *Service) note(f *job, line string, part float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.progress.Part = max(f.progress.Part, part)
	if line != "" {
		f.progress.Line = line
	}
}
