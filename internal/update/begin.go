package update

import (
	"context"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Ask asks for an update of all sandboxes of a template that are on an older image.
type Ask struct {
	Template    string
	By          string // user id
	Force       bool   // also those that are in use
	MaxFailures int    // 1 to MaxFailures
}

// One begins the update of a sandbox, which continues when the caller leaves, and gives the run. Conflict when it is on the newest image,
// something else is under way with it, or it is in use and force is false; Invalid for one of a plain image; other kinds as for Store.
func (s *Service) One(ctx context.Context, box sandbox.Sandbox, by string, force bool) (Run, error) {
	if box.Spec.Template == "" {
		return Run{}, fault.New(fault.Invalid, "%s is made from a plain image, not from a template: there is nothing to update it to.", box.Name)
	}
	if _, err := s.c.Templates.Template(box.Spec.Template); err != nil {
		return Run{}, err
	}
	if standing := s.standing(box); standing.Known && !standing.Older {
		return Run{}, fault.New(fault.Conflict, "%s runs the newest image of %s already.", box.Name, box.Spec.Template)
	}
	if !box.State.Settled() {
		return Run{}, fault.New(fault.Conflict, "%s is %s. Try again in a moment.", box.Name, box.State)
	}
	if !force {
		if because := s.c.InUse(ctx, box); len(because) > 0 {
			return Run{}, Used(box, because)
		}
	}
	return s.begin(ctx, Run{Template: box.Spec.Template, SandboxID: box.ID, By: by, Force: force, MaxFailures: 1}, []sandbox.Sandbox{box})
}

// All begins the update of all sandboxes of a template that are on an older image, and gives the run. Invalid names the field that is
// wrong; NotFound when there is no such template, Conflict when none is on an older image or an update of one is under way.
func (s *Service) All(ctx context.Context, a Ask) (Run, error) {
	if a.MaxFailures < 1 || a.MaxFailures > MaxFailures {
		return Run{}, fault.Field("max_failures", "The number of failures is 1 to %d.", MaxFailures)
	}
	if _, err := s.c.Templates.Template(a.Template); err != nil {
		return Run{}, err
	}
	older, _, err := s.Older(ctx, a.Template)
	if err == nil && len(older) == 0 {
		err = fault.New(fault.Conflict, "No sandbox of %s is on an older image.", a.Template)
	}
	if err != nil {
		return Run{}, err
	}
	return s.begin(ctx, Run{Template: a.Template, By: a.By, Force: a.Force, MaxFailures: a.MaxFailures}, older)
}

// begin keeps a run for sandboxes, and starts its work.
func (s *Service) begin(ctx context.Context, r Run, boxes []sandbox.Sandbox) (Run, error) {
	select {
	case s.begun <- struct{}{}:
		defer func() { <-s.begun }()
	case <-ctx.Done():
		return Run{}, ctx.Err()
	}
	if err := s.free(boxes); err != nil {
		return Run{}, err
	}
	r.ID, r.State, r.Began = sandbox.NewID(), Running, now()
	for _, b := range boxes {
		r.Items = append(r.Items, Item{SandboxID: b.ID, Sandbox: b.Name, Owner: b.Owner, State: Waiting})
	}
	if err := s.put(ctx, r); err != nil {
		return Run{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return Run{}, errClosing // the next start marks it as cut off
	}
	s.remember(r)
	life, cancel := context.WithCancelCause(sandbox.Asked(s.life, ctx))
	a := &active{cancel: cancel, done: make(chan struct{})}
	s.active[r.ID] = a
	w := &work{Service: s, life: sandbox.Asked(s.life, ctx), wanted: life, run: r, boxes: boxes}
	w.run.Items = slices.Clone(r.Items) // those of r are read by others from here on
	s.works.Go(func() {
		defer cancel(nil)
		w.do()
		s.mu.Lock()
		delete(s.active, r.ID)
		s.mu.Unlock()
		close(a.done)
		s.bus.Publish(Change{w.run})
	})
	s.bus.Publish(Change{r})
	return r, nil
}

// free is a Conflict when a run under way has one of the sandboxes still before it.
func (s *Service) free(boxes []sandbox.Sandbox) error {
	for _, r := range s.Runs() {
		if r.State != Running {
			continue
		}
		for _, i := range r.Items {
			if i.Ended.IsZero() && slices.ContainsFunc(boxes, func(b sandbox.Sandbox) bool { return b.ID == i.SandboxID }) {
				return fault.New(fault.Conflict, "An update of %s is under way or in line already.", i.Sandbox)
			}
		}
	}
	return nil
}

// put stores a run. It works under its own deadline, so that it is stored also when ctx has ended.
func (s *Service) put(ctx context.Context, r Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	return s.c.Store.Put(ctx, r)
}

// keep keeps how far a run is, and tells of it. What cannot be stored is logged: the run continues.
func (s *Service) keep(ctx context.Context, r Run) {
	r.Items = slices.Clone(r.Items)
	if err := s.put(ctx, r); err != nil {
		s.c.Log.Warn("update of sandboxes cannot be kept", "template", r.Template, "error", err)
	}
	s.mu.Lock()
	s.remember(r)
	s.mu.Unlock()
	s.bus.Publish(Change{r})
}

// remember puts a run in its place. It needs mu.
func (s *Service) remember(r Run) {
	if at := slices.IndexFunc(s.runs, func(old Run) bool { return old.ID == r.ID }); at >= 0 {
		s.runs[at] = r
		return
	}
	s.runs = slices.Insert(s.runs, 0, r)
	s.runs = s.runs[:min(len(s.runs), KeptRuns)]
}
