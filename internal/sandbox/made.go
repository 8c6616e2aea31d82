package sandbox

import (
	"context"

	"sandboxd/internal/fault"
)

// Made says what the container of a sandbox was made from.
type Made struct {
	Image string // its reference then
	Moved bool   // Image names another image by now, or none
}

// note notes what the engine tells of an instance.
func (c *containers) note(i Instance) {
	if i.Image != "" && !i.Partial {
		c.made.Store(i.ID, Made{Image: i.Image, Moved: i.Moved})
	}
}

// noteEvent is note for an event, which does not tell whether the image's reference has moved.
func (c *containers) noteEvent(i Instance) {
	if old, known := c.made.Load(i.ID); known && old.(Made).Image == i.Image {
		return
	}
	c.note(i)
}

// Standing says how a sandbox stands to the image that its template gives now.
type Standing struct {
	Known  bool   // false when the engine has not told yet what its container was made from, or the template is gone or broken
	Older  bool   // it was made from another image than its template gives now
	Image  string // the one of its template that it was made from; "" when that is not known
	Newest string // the one that its template gives now
}

// Newest gives the reference of the image that a template gives now, from its files; "" when it is gone or broken.
func (c *containers) Newest(template string) string {
	t, err := c.settings.template(Spec{Template: template})
	if err != nil || template == "" {
		return ""
	}
	newest, err := c.images.Reference(t)
	if err != nil {
		return ""
	}
	return newest
}

// Standing tells how a sandbox stands without asking the engine: as the last pass of Reconcile, once a minute, has found it. A sandbox of a
// plain image is never older. It reads the template.
func (c *containers) Standing(s Sandbox) Standing { return c.StandingTo(s, c.Newest(s.Spec.Template)) }

// StandingTo is Standing for one who knows Newest of its template already. It is quick enough to be asked for every sandbox of a list.
func (c *containers) StandingTo(s Sandbox, newest string) Standing {
	if newest == "" || s.Pooled {
		return Standing{}
	}
	out := Standing{Newest: newest}
	if s.Root != "" {
		out.Image = s.Base
	} else if made, known := c.made.Load(s.ID); known {
		out.Image, out.Older = made.(Made).Image, made.(Made).Moved
	}
	out.Known = out.Image != ""
	out.Older = out.Known && (out.Older || out.Image != newest)
	return out
}

// Look is Standing as the engine says it now, once what is under way with the sandbox has ended. Kinds as for Runtime, and Gone.
func (c *containers) Look(ctx context.Context, ref Ref) (s Sandbox, out Standing, err error) {
	err = c.perform(ctx, ref, func(ctx context.Context) (err error) {
		if s, err = c.Current(ctx, ref); err != nil {
			return err
		}
		i, exists, err := c.find(ctx, s.ID)
		if err == nil && !exists {
			err = fault.New(fault.NotFound, "The container engine does not have this sandbox's container.")
		}
		if err == nil {
			c.note(i)
			out = c.Standing(s)
		}
		return err
	})
	return s, out, err
}

// outdated marks the reference of an image that has moved, so that it is told from the image that has it now.
const outdated = " (replaced)"

// base gives the image of its template that s comes from, as Sandbox.Base; "" when that cannot be told.
func (c *containers) base(ctx context.Context, s Sandbox) string {
	if s.Root != "" {
		return s.Base
	}
	made, known := c.made.Load(s.ID)
	if !known {
		if i, exists, err := c.find(ctx, s.ID); err == nil && exists {
			c.note(i)
			made, known = c.made.Load(s.ID)
		}
	}
	switch {
	case !known:
		return ""
	case made.(Made).Moved:
		return made.(Made).Image + outdated
	}
	return made.(Made).Image
}
