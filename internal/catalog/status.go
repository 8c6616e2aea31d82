package catalog

import (
	"context"
	"fmt"

	"sandboxd/internal/fault"
)

// Status says how the image of a template stands now. It asks the engine once, and some times more of an image that is not there. An engine that does not answer is
// told in Problem, with the state that is known without it.
func (i *Images) Status(ctx context.Context, name string) ImageStatus {
	i.mu.Lock()
	if f := i.jobOf(name); f != nil {
		defer i.mu.Unlock()
		return f.status()
	}
	last := history{}
	if h := i.past[name]; h != nil {
		last = history{ref: h.ref, problem: h.problem, since: h.since, cancelled: h.cancelled}
	}
	i.mu.Unlock()
	t, err := i.catalog.Template(name)
	if err != nil {
		return ImageStatus{State: ImageFailed, Problem: fault.Message(err)}
	}
	r, err := i.recipeOf(t)
	if err != nil {
		return ImageStatus{State: ImageFailed, Problem: fault.Message(err)}
	}
	present, older, err := i.lookUp(ctx, r)
	s := settled(r.ref, last, present, older, err)
	if s.State != ImageBuilt && err == nil {
		s.Expected = i.expected(ctx, r)
	}
	return s
}

// lookUp asks the engine for r's image, and for older ones of the same template.
func (i *Images) lookUp(ctx context.Context, r *recipe) (present, older bool, err error) {
	present, err = i.has(ctx, r.ref) // a list takes an engine with many images a hundred times as long
	if present || err != nil || r.docker == nil {
		return present, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	tags, err := i.engine.ImageTags(ctx, repositoryPrefix+r.name)
	if err != nil {
		return false, false, fmt.Errorf("list images of template %s: %w", r.name, err)
	}
	return false, len(tags) > 0, nil
}

// settled gives the status of an image that nobody is building.
func settled(ref string, last history, present, older bool, err error) ImageStatus {
	s := ImageStatus{State: ImageMissing, Ref: ref}
	if last.ref == ref {
		s.Since, s.Problem = last.since, last.problem
	}
	switch {
	case present: // whatever came of a later rebuild
		s.State, s.Progress = ImageBuilt, 1
	case s.Problem != "":
		s.State, s.Cancelled = ImageFailed, last.cancelled
	case err != nil:
		s.Problem = fault.Message(err)
	case older:
		s.State = ImageStale
	}
	return s
}

// Log gives the lines of the template's last build or pull, or of the one under way; the oldest are left out beyond
// some thousands. The slice is the caller's.
func (i *Images) Log(name string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if h := i.past[name]; h != nil {
		return h.log.all()
	}
	return nil
}

// jobOf gives a template's job, or nil. It needs mu.
func (i *Images) jobOf(name string) *job {
	if name == "" {
		return nil
	}
	for _, f := range i.jobs {
		if f.recipe.name == name {
			return f
		}
	}
	return nil
}
