package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// containers creates, starts and stops the containers of sandboxes. All its methods need the turn of the sandbox's name.
type containers struct {
	*operations
	*mounts
	settings  *settings
	runtime   Runtime
	guests    Guests
	images    Images
	labels    func(id, name string) map[string]string
	room      func(ctx context.Context) error      // may be nil
	leave     func(ctx context.Context, s Sandbox) // may be nil
	restarted sync.Map                             // when those were that have ended by themselves, by id
	made      sync.Map                             // Made, by id, as far as it is known
	held      sync.Map                             // held, by id, of those that are being updated
}

// held is what an update began with. The template may change meanwhile, or go.
type held struct {
	template catalog.Template
	image    string
}

// template gives what s is made from. No template is Invalid, as NotFound is about the engine.
func (c *containers) template(s Sandbox) (catalog.Template, error) {
	if h, ok := c.held.Load(s.ID); ok {
		return h.(held).template, nil
	}
	t, err := c.settings.template(s.Spec)
	return t, fault.Wrap(err, fault.Invalid, "Its template cannot be read: %s", fault.Message(err))
}

// checkRoom is Unavailable when the host has no room for another sandbox that runs.
func (c *containers) checkRoom(ctx context.Context) error {
	if c.room == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomLimit)
	defer cancel()
	return c.room(ctx)
}

// create creates and starts s, also when an interrupted create has left a part of it. When that fails, all of it is removed
// and s is stored as failed with the cause.
func (c *containers) create(ctx context.Context, s Sandbox) error {
	err := c.createContainer(ctx, s)
	if err == nil {
		err = c.checkRoom(ctx)
	}
	if err == nil {
		err = c.startContainer(ctx, s)
	}
	if err == nil {
		err = c.awaitReady(ctx, s)
	}
	if err == nil {
		_, err = c.set(ctx, s, Running, "")
		return err
	}
	if cause := context.Cause(ctx); ctx.Err() != nil && c.life.Err() == nil {
		err = cause
	}
	if c.life.Err() == nil {
		err = errors.Join(err, c.remove(context.WithoutCancel(ctx), s.ID))
	}
	if errors.Is(err, errDeleted) { // which did not fail, and is deleted next, also after a crash
		_, setErr := c.set(ctx, s, Deleting, "")
		return errors.Join(err, setErr)
	}
	return c.fail(ctx, s, err)
}

// createContainer gets the image, and then creates the container with its volume.
func (c *containers) createContainer(ctx context.Context, s Sandbox) error {
	return c.withSpec(ctx, s, func(ctx context.Context, spec ContainerSpec) error {
		c.made.Delete(s.ID) // it may be there already; the engine tells
		return c.runtime.Create(ctx, spec)
	})
}

// recreate puts another container in the place of one that does not run. The volume stays.
func (c *containers) recreate(ctx context.Context, s Sandbox) error {
	return c.withSpec(ctx, s, func(ctx context.Context, spec ContainerSpec) error {
		c.made.Delete(s.ID)
		err := c.runtime.Recreate(ctx, spec)
		if err == nil {
			c.made.Store(s.ID, Made{Image: spec.Image})
		}
		return err
	})
}

// withSpec gets the image, and then has the engine do something with what the container is to be.
func (c *containers) withSpec(ctx context.Context, s Sandbox, do func(context.Context, ContainerSpec) error) error {
	t, err := c.template(s)
	if err != nil {
		return err
	}
	ref, err := c.image(ctx, s, t)
	if err != nil {
		return err
	}
	c.report(s, Progress{Phase: PhaseVolume})
	folder, err := c.guests.Expect(s.ID, setup(s, t))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	spec := c.spec(s, t, ref, folder)
	if err = do(ctx, spec); err == nil {
		c.mounts.note(s.ID, spec.Volumes)
	}
	return err
}

// image gives what the container of s is made from.
func (c *containers) image(ctx context.Context, s Sandbox, t catalog.Template) (string, error) {
	if s.Root != "" {
		return s.Root, nil
	}
	if h, ok := c.held.Load(s.ID); ok {
		return h.(held).image, nil
	}
	c.report(s, Progress{Phase: PhaseImage})
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	reports := pacedReports{tell: func(p Progress) { c.report(s, p) }}
	defer reports.end()
	detail := ""
	return c.images.Ensure(ctx, t, func(e catalog.BuildEvent) {
		if !aside(e.Line) {
			detail = clean(e.Line)
		}
		reports.report(Progress{Phase: PhaseImage, Fraction: fraction(e), Detail: detail})
	})
}

// aside reports whether a line of a build is one of the builder's notes of ids, which say less than the line before.
func aside(line string) bool {
	return strings.HasPrefix(line, " ---> ") || strings.HasPrefix(line, "Removing intermediate container ")
}

// fraction gives the done part of a build, 0 when it is not known.
func fraction(e catalog.BuildEvent) float64 {
	within := 0.0
	if e.Total > 0 {
		within = min(float64(e.Done)/float64(e.Total), 1)
	}
	if e.Steps == 0 || e.Step == 0 {
		return within
	}
	return min((float64(e.Step-1)+within)/float64(e.Steps), 1)
}

// longestOutput bounds the foreign output in a Progress, in bytes.
const longestOutput = 200

// clean makes foreign output fit to be shown.
func clean(output string) string { return text.Excerpt(output, longestOutput) }

func (c *containers) spec(s Sandbox, t catalog.Template, ref, folder string) ContainerSpec {
	return ContainerSpec{
		ID: s.ID, Name: s.Name, Template: s.Spec.Template, Image: ref, Limits: s.Spec.Limits, Profile: t.Profile,
		Namespaces: t.Namespaces, Env: t.Env, Labels: c.labels(s.ID, s.Name), LinkPath: folder,
		Volumes: c.wanted(s),
	}
}

// fingerprint is the hash of all that a sandbox of a spec would be created from now: image, limits and setup. A pooled
// sandbox keeps it, so that it outlives a restart. It does not ask the engine.
func (c *containers) fingerprint(spec Spec) (string, error) {
	t, err := c.settings.template(spec)
	if err != nil {
		return "", err
	}
	ref, err := c.images.Reference(t)
	if err != nil {
		return "", err
	}
	s := Sandbox{ID: "0000000000000000", Name: "pool", Spec: spec}
	text, err := json.Marshal(struct {
		Container ContainerSpec
		Setup     Setup
	}{c.spec(s, t, ref, ""), setup(s, t)})
	if err != nil {
		return "", fmt.Errorf("fingerprint template %s: %w", t.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// remove removes the container, volume and link of a sandbox.
func (c *containers) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if err := c.runtime.Remove(ctx, id); err != nil {
		return err
	}
	c.restarted.Delete(id)
	c.made.Delete(id)
	c.mounts.drop(id)
	return c.guests.Forget(id)
}
