package web

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
	"sandboxd/views"
)

// pageClone is the form that clones a sandbox, as it is or as ?snapshot= has it; a script gets it as a sheet.
func (s *snapshotFormHandlers) pageClone(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	name, err := s.backupForms.freeName(ctx, h.Name())
	if err != nil {
		return nil, err
	}
	return s.cloneForm(r, h, views.CloneSandbox{Name: views.Field{Value: name}, Count: views.Field{Value: "1"}})
}

func (s *snapshotFormHandlers) cloneForm(r *request, h access.Handle, v views.CloneSandbox) (templ.Component, error) {
	box := h.Sandbox()
	v.Box, v.Most, v.Next, v.URL = box.Name, strconv.Itoa(snapshot.MaxClones), r.origin(snapshotsURL(box.Name)), sameURL(box, clonePart)
	if id := r.query("snapshot"); id != "" {
		n, err := s.snapshots.ofBox(h, id)
		if err != nil {
			return nil, err
		}
		v.Memory = n.Memory > 0
		v.About, v.URL = s.snapshots.about(n), v.URL+"&snapshot="+n.ID
	} else if v.Now = true; box.State == sandbox.Running {
		v.Means = "While it is copied, " + box.Name + " is paused."
	}
	if r.byScript() {
		return views.CloneSandboxSheet(v), nil
	}
	v.Frame = s.frame(r, "Clone "+box.Name, "sandboxes")
	return views.CloneSandboxPage(v), nil
}

// submitClone begins to clone a sandbox, and leads to the clone, or to the list when there are several, as soon as they exist.
func (s *snapshotFormHandlers) submitClone(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	ask := snapshot.CloneAsk{Owner: r.who.User.ID, Name: r.field("name"), Count: 1, Snapshot: r.query("snapshot")}
	r.object = ask.Name
	if entered := r.field("count"); entered != "" {
		if ask.Count, err = strconv.Atoi(entered); err != nil {
			ask.Count = 0
		}
	}
	if err := s.snapshots.checkClone(h, ask); err != nil {
		return "", err
	}
	if _, err := s.resolve(ctx, r.who, ask.Name); err == nil && ask.Count == 1 && ask.Name != "" {
		return "", fault.Field("name", "There is already a sandbox with this name. Choose another one.")
	}
	made, err := s.clone(ctx, h, ask)
	switch {
	case err != nil:
		return "", err
	case len(made) == 0: // it takes longer to copy
		return snapshotsURL(h.Name()), nil
	}
	r.object = namesOf(made)
	if ask.Count == 1 {
		return sandboxURL(made[0].Name), nil
	}
	return "/", nil
}

// clone begins to make clones, and gives them as soon as they exist. What is made of them continues.
func (s *snapshotFormHandlers) clone(ctx context.Context, h access.Handle, ask snapshot.CloneAsk) (made []sandbox.Sandbox, err error) {
	ctx, cancel := context.WithTimeout(ctx, newTime)
	boxes := s.cfg.Sandboxes.Subscribe()
	var watching sync.WaitGroup
	seen := map[string]sandbox.Sandbox{}
	watching.Go(func() {
		for e := range boxes.C {
			if e.Sandbox.ClonedFrom != h.Name() || e.Sandbox.Owner != ask.Owner || e.Deleted || e.Sandbox.State != sandbox.Restoring {
				continue
			}
			if seen[e.Sandbox.ID] = e.Sandbox; len(seen) == ask.Count {
				cancel()
			}
		}
	})
	made, err = s.cfg.Snapshots.Clone(ctx, h.Sandbox(), ask)
	underway := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
	boxes.Close()
	watching.Wait()
	cancel()
	if !underway {
		return made, err
	}
	for _, box := range seen {
		made = append(made, box)
	}
	return made, nil
}

func (s *snapshotFormHandlers) againClone(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	v := views.CloneSandbox{}
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "count": &v.Count}, cause)
	return s.cloneForm(r, h, v)
}
