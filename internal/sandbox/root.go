package sandbox

import (
	"context"
	"io"
	"regexp"
	"strings"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
)

// Rootfs is what a root file system is made of.
type Rootfs struct {
	Base  string // reference of the image that Layer is above; the one that the template has now where that is not there
	Layer Layer
}

// rootfiles is the part of a keeper that works on root file systems.
type rootfiles struct{ *keeper }

// readLayer writes what s has changed of the image of its template, and gives the reference of that.
func (k rootfiles) readLayer(ctx context.Context, s Sandbox, to io.Writer) (base string, lost archive.Stats, err error) {
	base = k.containers.base(ctx, s)
	if s.Root == "" {
		lost, err = k.layers.ReadLayer(ctx, s.ID, "", to)
		return base, lost, err
	}
	if base != "" && !strings.HasSuffix(base, outdated) {
		if lost, err = k.layers.ReadLayer(ctx, s.ID, base, to); !fault.Is(err, fault.NotFound) {
			return base, lost, err
		}
	}
	if base, err = k.templatesImage(ctx, s); err != nil {
		return base, lost, err
	}
	lost, err = k.layers.ReadLayer(ctx, s.ID, base, to)
	return base, lost, err
}

// templatesImage gives the image that the template of s has now, which the engine has then.
func (k rootfiles) templatesImage(ctx context.Context, s Sandbox) (string, error) {
	t, err := k.containers.template(s)
	if err != nil {
		return "", err
	}
	s.Root = ""
	return k.containers.image(ctx, s, t)
}

// makeRoot makes an image of a root file system for s. The sweep of snapshots leaves it alone while the row of s has id.
func (k rootfiles) makeRoot(ctx context.Context, s Sandbox, id string, from Rootfs) (image, base string, err error) {
	k.report(s, Progress{Phase: PhaseImage})
	if base = from.Base; k.mayBeBase(s, base) {
		image, err = k.layers.MakeImage(ctx, id, base, from.Layer)
		if !fault.Is(err, fault.NotFound) {
			return image, base, err
		}
	}
	if base, err = k.templatesImage(ctx, s); err == nil {
		image, err = k.layers.MakeImage(ctx, id, base, from.Layer)
	}
	return image, base, err
}

// unsure is what is said of a restore that was cut off when it cannot be known whether the new home had just been finished.
const unsure = "sandboxd was ended while a backup was restored to it. Look at its home: that is the old one or the restored one. All else is as before. " +
	"Restore the backup again."

// endCutOff is endRestore after a crash. Where the home may be restored, but not the root file system, it says so.
func (k *keeper) endCutOff(ctx context.Context, s Sandbox) error {
	_, err := k.endRestore(ctx, s)
	if err != nil || s.Revert.Snapshot != "" || s.Revert.Base == "" || s.Revert.Filled {
		return err
	}
	now, err := k.rows.ByName(ctx, s.Name)
	if err == nil && now.ID == s.ID && now.State.Settled() && now.Root != s.Revert.Root && now.Problem == "" {
		_, err = k.set(ctx, now, now.State, unsure)
	}
	return err
}

// mayBeBase says whether an image is of the template of s: an archive may name any, such as another user's snapshot.
func (k rootfiles) mayBeBase(s Sandbox, image string) bool {
	t, err := k.containers.template(s)
	if err != nil {
		return false
	}
	now, err := k.containers.images.Reference(t)
	return err == nil && image != "" && !strings.HasSuffix(image, outdated) && (image == now || t.Image == "" && repository(image) != "" && repository(image) == repository(now))
}

// tagged is a reference with a tag.
var tagged = regexp.MustCompile(`^(.+):[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// repository gives a reference without its tag; "" when it has none.
func repository(image string) string {
	if m := tagged.FindStringSubmatch(image); m != nil {
		return m[1]
	}
	return ""
}
