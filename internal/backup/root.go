package backup

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// rootName is the entry, before those of the home, with what a sandbox has changed of its root file system: a layer of an image.
const rootName = "root.tar"

// rootVersion is the version of the format of backups that have such an entry. What knows only the one before refuses them.
const rootVersion = 2

// RootManifest is what a manifest says of a root file system.
type RootManifest struct {
	Base  string        `json:"base,omitempty"` // reference of the image that it is above; "" when that is not known
	Size  int64         `json:"size"`           // bytes of the entry
	Stats archive.Stats `json:"stats"`          // what is in it, files that it removes included

	lost archive.Stats // what of it is not in it; listed with what of the home is not
}

// roots is the part of a Service that works on root file systems.
type roots struct{ *Service }

// readLayer reads the root file system of a sandbox into a file that has no name, and notes it in the manifest.
func (s roots) readLayer(ctx context.Context, e *entry, c sandbox.Capture, m *Manifest) (f *os.File, err error) {
	s.update(e, func(b *Backup) { b.Comparing = true })
	defer s.update(e, func(b *Backup) { b.Comparing = false })
	m.Root = &RootManifest{}
	f, err = s.unnamed(e.Owner, func(to io.Writer) (err error) {
		m.Root.Base, m.Root.lost, err = c.ReadLayer(ctx, to)
		return err
	})
	if err != nil {
		return nil, s.unwritable(causeOf(ctx, err))
	}
	if m.Root.Size, err = f.Seek(0, io.SeekEnd); err == nil {
		m.Root.Stats, err = archive.Check(ctx, tar.NewReader(io.NewSectionReader(f, 0, m.Root.Size)), archive.Options{}, passOver)
	}
	if err != nil {
		return nil, errors.Join(s.unwritable(err), f.Close())
	}
	m.Version, m.NotIncluded = rootVersion, notIncluded[:1]
	return f, nil
}

// unnamed gives a file without a name that write has filled, of which there is nothing when sandboxd is ended. All of an owner's
// that are written at one time may take what the owner's backups may. After an error it is nil.
func (s *Service) unnamed(owner string, write func(io.Writer) error) (*os.File, error) {
	f, err := os.CreateTemp(s.Folder, uploadName)
	if err != nil {
		return nil, s.unwritable(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(s.unwritable(err), f.Close())
	}
	count := &entry{Backup: Backup{Owner: "unnamed of " + owner}}
	defer s.ungrow(count)
	if err := write(&bounded{file: f, may: func(n int64) error { return s.grow(count, n) }, fail: s.unwritable}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// writeRoot writes the entry.
func (m *Manifest) writeRoot(to io.Writer, f io.ReaderAt) error {
	w := tar.NewWriter(to)
	err := w.WriteHeader(&tar.Header{Name: rootName, Mode: 0o600, Size: m.Root.Size, ModTime: m.Made, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(w, io.NewSectionReader(f, 0, m.Root.Size))
	}
	return errors.Join(err, w.Flush())
}

func passOver(*tar.Header, io.Reader) error { return nil }

// checkEntries is archive.Check of the entries of an archive, most bytes of them, of which m is the manifest; nil for none.
func checkEntries(ctx context.Context, r *tar.Reader, prefix string, m *Manifest, most int64) (archive.Stats, error) {
	root := &rootCheck{most: most}
	if m != nil {
		root.want = m.Root
	}
	stats, err := archive.Check(ctx, r, archive.Options{Prefix: prefix, MaxBytes: most}, root.beside(ctx))
	if err == nil {
		err = root.end()
	}
	return stats, err
}

// rootCheck looks at what is beside the home in an archive.
type rootCheck struct {
	want *RootManifest // nil for none
	most int64         // bytes of its files; 0 for no bound
	seen bool
}

func (r *rootCheck) beside(ctx context.Context) func(*tar.Header, io.Reader) error {
	return func(h *tar.Header, content io.Reader) error {
		if r.want == nil || h.Name != rootName {
			return nil
		}
		if r.seen {
			return fault.New(fault.Invalid, "The backup has two root file systems.")
		}
		r.seen = true
		found, err := archive.Check(ctx, tar.NewReader(content), archive.Options{MaxBytes: r.most}, passOver)
		if err == nil && (h.Size != r.want.Size || !same(found, r.want.Stats)) {
			err = fault.New(fault.Invalid, "The backup is not complete: its manifest tells of another root file system.")
		}
		return err
	}
}

// end says whether there was what the manifest tells of.
func (r *rootCheck) end() error {
	if r.want != nil && !r.seen {
		return fault.New(fault.Invalid, "The backup is not complete: its manifest tells of a root file system that it does not have.")
	}
	return nil
}

// HasRoot says whether the archive has a root file system, which is restored unless HomeOnly is set.
func (a *Archive) HasRoot() bool { return a.Manifest != nil && a.Manifest.Root != nil }

func (a *Archive) restoresRoot() bool { return a.HasRoot() && !a.HomeOnly }

// rootFits is Invalid when a root file system is to be restored to what is not made from the same template or image: it would lack what that has.
func (a *Archive) rootFits(template, image string) error {
	if !a.restoresRoot() || a.Manifest.Sandbox.Template == template && a.Manifest.Sandbox.Image == image {
		return nil
	}
	return fault.Field("template", "The root file system in the backup is for %s, and this sandbox is made from %s. Restore only the home (home_only), or make a sandbox from %s.",
		cmp.Or(a.Manifest.Sandbox.Template, a.Manifest.Sandbox.Image), cmp.Or(template, image), cmp.Or(a.Manifest.Sandbox.Template, a.Manifest.Sandbox.Image))
}

// withRootfs has do do something with the root file system of an archive that has one, which is in a file without a name meanwhile.
func (s roots) withRootfs(ctx context.Context, owner string, a *Archive, do func(sandbox.Rootfs) error) error {
	content, closeContent, err := a.content(ctx)
	if err != nil {
		return err
	}
	defer closeContent()
	f, err := s.unnamed(owner, func(to io.Writer) error {
		in := tar.NewReader(content)
		for {
			h, err := in.Next()
			if err != nil {
				return unreadable(ctx, forPeople(err))
			}
			if h.Name == rootName {
				_, err = io.Copy(to, in)
				return err
			}
		}
	})
	if err != nil {
		return s.unwritable(err)
	}
	err = do(sandbox.Rootfs{Base: a.Manifest.Root.Base, Layer: sandbox.Layer{Content: f, Size: a.Manifest.Root.Size}})
	return errors.Join(err, f.Close())
}

// rootFor is readLayer for what asks for it; else it gives nil.
func (s roots) rootFor(ctx context.Context, e *entry, c sandbox.Capture, m *Manifest) (*os.File, error) {
	if !e.Root {
		return nil, nil
	}
	return s.readLayer(ctx, e, c, m)
}

// entries writes the entries of a backup but for its manifest.
func (s roots) entries(ctx context.Context, e *entry, c sandbox.Capture, m *Manifest, root *os.File, to io.Writer) (archive.Stats, error) {
	if root != nil {
		if err := m.writeRoot(to, root); err != nil {
			return archive.Stats{}, err
		}
	}
	stats, err := c.Home.Read(ctx, to, homePrefix, func(st archive.Stats) { s.update(e, func(b *Backup) { b.Stats = st }) })
	if m.Root != nil {
		for _, l := range m.Root.lost.Lost {
			stats.Lose(l.Path, l.Reason)
		}
		stats.MoreLost += m.Root.lost.MoreLost
	}
	return stats, err
}

// createFrom makes a sandbox with the root file system of an archive, if that is restored.
func (s roots) createFrom(ctx context.Context, r sandbox.Request, from sandbox.Origin, a *Archive) (box sandbox.Sandbox, err error) {
	if !a.restoresRoot() {
		return s.Sandboxes.CreateFrom(ctx, r, from)
	}
	err = s.withRootfs(ctx, r.Owner, a, func(root sandbox.Rootfs) (err error) {
		from.Rootfs = &root
		box, err = s.Sandboxes.CreateFrom(ctx, r, from)
		return err
	})
	return box, err
}
