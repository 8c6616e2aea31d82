package template

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// MaxHome is how many bytes the home of a snapshot may have that becomes the first home of a template's sandboxes. Holes count: the engine
// fills them, and every new sandbox has a copy.
const MaxHome = 10 << 30

const sweepEvery = time.Hour // for images of roots that could not be removed, being in use

// Roots keeps images of snapshots for the templates that are made of them. All methods are safe for concurrent use and idempotent. Kinds as
// for sandbox.Runtime.
type Roots interface {
	// KeepRoot makes the image of a snapshot that of a root, with home also the files of its copy of a home, in the home's place. It needs
	// the snapshot no more afterwards. After an error a part of it may be left. Invalid with the field "home" when that cannot be taken, Unavailable
	// when the disk is full.
	KeepRoot(ctx context.Context, snapshot, id string, home bool) error
	// RemoveRoot removes a root, and the images that templates built on it. Removing a missing one is no error; Conflict when a sandbox is made
	// from one of those: then the root stays.
	RemoveRoot(ctx context.Context, id string) error
	// Roots lists the roots of this sandboxd, parts of interrupted ones included.
	Roots(ctx context.Context) (ids []string, err error)
}

// FromSnapshot asks for a template that is made of a snapshot.
type FromSnapshot struct {
	Name        string
	Description string // "" for one that says what it is made of
	Home        bool   // its files become the first home of new sandboxes
	Snapshot    string // its id; it must stay meanwhile
	Called      string // what it is, for people
	Spec        sandbox.Spec
	Overrides   sandbox.Overrides
	Rest        catalog.Rest
	Order       catalog.Order // of the image's first build
}

// MakeFrom makes a template of a snapshot, and begins to build its image. It blocks until the template is there. The settings are those of
// the sandbox then, and of its template now; variables that were set for that sandbox or its services are left out, since they may be
// secrets. When it fails no template is there. Kinds: Invalid with the field "name", "description" or "home", Conflict with the field "name" (it
// is taken), those of Roots.
func (s *Service) MakeFrom(ctx context.Context, f FromSnapshot) (Files, error) {
	if err := errors.Join(checkName(f.Name), f.checkDescription()); err != nil {
		return Files{}, err
	}
	made, err := s.change(ctx, f.Name, func() (Files, error) {
		if _, err := entryOf(s.c.Templates, f.Name); !fault.Is(err, fault.NotFound) {
			return Files{}, &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is a template " + f.Name + " already. Choose another name."}
		}
		root := sandbox.NewID()
		edit, err := f.files(s.c.Templates, root)
		if err != nil {
			return Files{}, err
		}
		s.sweeper.making(root, true)
		defer s.sweeper.making(root, false)
		if err := s.c.Roots.KeepRoot(ctx, f.Snapshot, root, f.Home); err != nil {
			return Files{}, err
		}
		return s.write(f.Name, Files{}, edit)
	})
	if err != nil {
		return Files{}, err
	}
	began := now()
	if err := s.c.Build(f.Name, f.Order); err != nil { // the template is there: its page says why it is not built
		s.unbuilt(f.Name, f.Order, began, err)
	}
	return made, nil
}

func (f FromSnapshot) checkDescription() error {
	switch {
	case utf8.RuneCountInString(f.Description) > catalog.MaxDescription:
		return fault.Field("description", "The description is longer than %d characters. Shorten it.", catalog.MaxDescription)
	case !utf8.ValidString(f.Description) || text.Unprintable(strings.NewReplacer("\r\n", " ", "\n", " ").Replace(f.Description)):
		return fault.Field("description", "The description has a character that cannot be shown. Remove it.")
	}
	return nil
}

// files gives those of the template, checked.
func (f FromSnapshot) files(all Templates, root string) (map[string]*string, error) {
	t := catalog.PlainImage(f.Spec.Image)
	if f.Spec.Template != "" {
		var err error
		if t, err = all.Template(f.Spec.Template); err != nil {
			return nil, fault.Wrap(err, fault.Conflict, "The template %.64s of the sandbox cannot be used, so its settings are not known: %s", f.Spec.Template, fault.Message(err))
		}
	}
	about := strings.TrimSpace(strings.ReplaceAll(f.Description, "\r\n", "\n"))
	if about == "" {
		about = text.Excerpt("Made from "+f.Called+".", catalog.MaxDescription)
	}
	t.Name, t.Title, t.Description, t.Source, t.Pool = f.Name, titleOf(f.Name), about, catalog.Source{Root: root}, 0
	t.Size = catalog.Size{CPUs: f.Spec.Limits.CPUs, Memory: f.Spec.Limits.Memory, Pids: f.Spec.Limits.Pids, Disk: f.Spec.Limits.Disk}
	if f.Rest.FreezeAfter != 0 {
		t.Rest.FreezeAfter = f.Rest.FreezeAfter
	}
	if f.Rest.StopAfter != 0 {
		t.Rest.StopAfter = f.Rest.StopAfter
	}
	if f.Overrides.IDE != nil {
		t.IDE = *f.Overrides.IDE
	}
	if f.Overrides.HasServices {
		t.Ports, t.Services = portsBeside(t, f.Overrides.Services), withoutSecrets(f.Overrides.Services, t.Services)
	}
	yaml, err := catalog.Manifest(t)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{
		manifest:   string(yaml),
		dockerFile: "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n\n# Add to what the snapshot has:\n# RUN sudo install-packages ripgrep\n",
		readme:     "# " + f.Name + "\n\nMade from " + f.Called + ". What that had in its root file system is in the image that `root` of template.yaml names.\n",
	}
	edit, files := map[string]*string{}, map[string][]byte{}
	for at, content := range texts {
		edit[at], files[at] = &content, []byte(content)
	}
	return edit, refusal(all.Check(f.Name, files))
}

// withoutSecrets leaves out the variables of services that their template does not have just so.
func withoutSecrets(services, known []catalog.Service) []catalog.Service {
	out := slices.Clone(services)
	for i, s := range out {
		at := slices.IndexFunc(known, func(k catalog.Service) bool { return k.Name == s.Name })
		env := map[string]string{}
		for key, value := range s.Env {
			if at < 0 {
				break
			}
			if public, ok := known[at].Env[key]; ok && public == value {
				env[key] = value
			}
		}
		out[i].Env = env
	}
	return out
}

// portsBeside gives a template's ports without those of services that the sandbox has no more.
func portsBeside(t catalog.Template, services []catalog.Service) []catalog.Port {
	return slices.DeleteFunc(slices.Clone(t.Ports), func(p catalog.Port) bool {
		ofIts := func(s catalog.Service) bool { return s.Port == p.Number }
		return slices.ContainsFunc(t.Services, ofIts) && !slices.ContainsFunc(services, ofIts)
	})
}

// sweeper removes roots that no version of a template names. Safe for concurrent use.
type sweeper struct {
	roots Roots
	disk  disk
	log   *slog.Logger

	mu      sync.Mutex
	unnamed map[string]bool // that are being made
	swept   time.Time       // zero for as soon as possible
}

// making notes which root no template names yet.
func (w *sweeper) making(root string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if is {
		w.unnamed[root] = true
	} else {
		delete(w.unnamed, root)
	}
}

// sweep removes roots, if it is time for that, and gives how long to wait then.
func (w *sweeper) sweep(ctx context.Context, at time.Time) time.Duration {
	w.mu.Lock()
	left := w.swept.Add(sweepEvery).Sub(at)
	if left <= 0 {
		w.swept = at
	}
	w.mu.Unlock()
	if left > 0 {
		return left
	}
	if err := w.remove(ctx); err != nil && ctx.Err() == nil {
		w.log.Warn("images of deleted templates cannot be removed yet", "error", err)
		w.soon()
		return lookEvery
	}
	return sweepEvery
}

// soon has the next sweep do something.
func (w *sweeper) soon() {
	w.mu.Lock()
	w.swept = time.Time{}
	w.mu.Unlock()
}

// remove lists the roots first: one that is made meanwhile is not among them, and what is named by the end stays.
func (w *sweeper) remove(ctx context.Context) error {
	ids, err := w.roots.Roots(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	unnamed := maps.Clone(w.unnamed)
	w.mu.Unlock()
	named, err := w.disk.manifests()
	for _, id := range ids {
		if err == nil && !unnamed[id] && !strings.Contains(named, id) {
			if one := w.roots.RemoveRoot(ctx, id); !fault.Is(one, fault.Conflict) {
				err = one
			}
		}
	}
	return err
}

// manifests gives the text of the template.yaml of all versions, also of broken ones.
func (d disk) manifests() (string, error) {
	paths, err := filepath.Glob(filepath.Join(d.folder, versionsFolder, "*", manifest))
	var all strings.Builder
	for _, path := range paths {
		content, one := os.ReadFile(path)
		if one != nil && !errors.Is(one, fs.ErrNotExist) {
			err = errors.Join(err, one)
		}
		all.Write(content)
	}
	return all.String(), err
}
