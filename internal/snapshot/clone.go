package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sandboxd/internal/archive"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// Clone makes new sandboxes as a sandbox is, or as a snapshot of it is, and returns when they run or ctx ends; then it continues. It
// gives those that were made, in their order, also when others have failed. What is bound to the sandbox itself is not copied: its shares,
// public ports, holds and tokens. Invalid names the field that is wrong, before anything is done; NotFound when it is no snapshot of this
// sandbox, Conflict when that is not ready; other kinds as for sandbox.Manager's.
func (s *Service) Clone(ctx context.Context, box sandbox.Sandbox, a CloneAsk) ([]sandbox.Sandbox, error) {
	names, err := a.names()
	if err == nil {
		err = s.free(ctx, names)
	}
	if err != nil {
		return nil, err
	}
	var from Snapshot
	begin := func() (err error) {
		if a.Snapshot != "" {
			from, err = s.use(a.Snapshot, box.ID)
		}
		if err == nil {
			s.setProblem(box.ID, nil)
		}
		return err
	}
	return detached(ctx, s, begin, func(life context.Context) ([]sandbox.Sandbox, error) {
		made, err := s.clone(life, box, from, a.Owner, names)
		s.unheard(ctx, box, causeOf(life, err))
		return made, err
	})
}

// names gives those of the clones, or says what is wrong with a.
func (a CloneAsk) names() ([]string, error) {
	if a.Count < 1 || a.Count > MaxClones {
		return nil, fault.Field("count", "The number of clones must be between 1 and %d.", MaxClones)
	}
	names := make([]string, a.Count)
	for i := range names {
		if a.Name == "" {
			continue
		}
		if names[i] = a.Name; a.Count > 1 {
			names[i] = fmt.Sprintf("%s-%d", a.Name, i+1)
		}
		if err := hostname.CheckName(names[i]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// free is a Conflict when all names are taken, so that no sandbox is frozen for nothing.
func (s *Service) free(ctx context.Context, names []string) error {
	boxes, err := s.Sandboxes.All(ctx)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, b := range boxes {
		taken[b.Name] = true
	}
	if slices.ContainsFunc(names, func(name string) bool { return !taken[name] }) {
		return nil
	}
	return &fault.Error{Kind: fault.Conflict, Field: "name", Message: fmt.Sprintf("There is a sandbox %q already. Choose another name.", names[0])}
}

// clone makes clones of a snapshot that is in use, or of one that it takes first when that is the zero value.
func (s *Service) clone(ctx context.Context, box sandbox.Sandbox, from Snapshot, owner string, names []string) ([]sandbox.Sandbox, error) {
	if from.ID != "" {
		if err := s.whole(ctx, from); err != nil {
			s.release(from.ID)
			return nil, err
		}
	} else {
		var err error
		if from, err = s.taken(ctx, box, Passing); err != nil {
			s.mu.Lock()
			s.setProblem(box.ID, causeOf(ctx, err))
			s.mu.Unlock()
			return nil, err
		}
	}
	defer s.done(context.WithoutCancel(ctx), from)
	made, errs := make([]sandbox.Sandbox, len(names)), make([]error, len(names))
	var works sync.WaitGroup
	for i, name := range names {
		works.Go(func() { made[i], errs[i] = s.cloneOne(ctx, box, from, owner, name) })
	}
	works.Wait()
	var all []sandbox.Sandbox
	var failed []error
	for i, err := range errs {
		if err != nil {
			failed = append(failed, err)
		} else {
			all = append(all, made[i])
		}
	}
	if len(failed) == 0 || len(names) == 1 {
		return all, errors.Join(failed...)
	}
	return all, fault.Wrap(errors.Join(failed...), fault.KindOf(failed[0]), "%d of %d clones could not be made: %s",
		len(failed), len(names), fault.Message(failed[0]))
}

// done ends the use of a snapshot for clones. One that was taken for them goes.
func (s *Service) done(ctx context.Context, from Snapshot) {
	s.release(from.ID)
	if from.Kind != Passing {
		return
	}
	s.mu.Lock()
	e := s.all[from.ID]
	s.mu.Unlock()
	if e == nil {
		return
	}
	if err := s.remove(ctx, e, ""); err != nil {
		s.Log.Warn("snapshot for a clone is not deleted yet", "error", err)
		s.mu.Lock()
		delete(s.all, e.ID)
		s.owed.deletes[e.ID] = true
		s.mu.Unlock()
	}
}

func (s *Service) cloneOne(ctx context.Context, box sandbox.Sandbox, from Snapshot, owner, name string) (sandbox.Sandbox, error) {
	release, err := s.places.Acquire(ctx, "clone", clonedAtOnce, -1)
	if err != nil {
		return sandbox.Sandbox{}, context.Cause(ctx)
	}
	defer release()
	o := from.Origin
	made, err := s.Sandboxes.CreateFrom(ctx, sandbox.Request{
		Name: name, Owner: owner, Template: o.Spec.Template, Image: o.Spec.Image, Limits: o.Spec.Limits, Env: o.Spec.Env,
		Rest: catalog.Rest{FreezeAfter: catalog.After(o.Rest.FreezeAfter), StopAfter: catalog.After(o.Rest.StopAfter)},
	}, sandbox.Origin{
		Overrides: o.Overrides, Memory: from.Memory > 0, Snapshot: from.ID, Root: from.Image, Base: o.Base, ClonedFrom: box.Name,
		Fill: func(ctx context.Context, h sandbox.Home) error {
			_, err := h.CopyIn(ctx, func(archive.Stats) {})
			return err
		},
	})
	if err == nil && from.Kind != Passing {
		err = s.setHead(context.WithoutCancel(ctx), made.ID, Head{Snapshot: from.ID})
	}
	return made, err
}
