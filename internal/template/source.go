package template

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/git"
	"sandboxd/internal/text"
)

// NewSource is a source as it is entered. Secrets and the host key that are left out stay, unless the address changes.
type NewSource struct {
	URL     string
	Ref     string
	Path    string
	Token   string
	Key     string
	HostKey string
}

// secrets is what is sealed of a source.
type secrets struct {
	Token string `json:"token,omitempty"`
	Key   string `json:"key,omitempty"`
}

func purpose(template string) string { return "template source " + template }

// source gives the source of a template, from memory.
func (s *Service) source(name string) (Source, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	src, ok := s.sources[name]
	return src, ok
}

// Source gives the source of a template that comes from git, without its secret. NotFound for others.
func (s *Service) Source(name string) (Source, error) {
	src, ok := s.source(name)
	if !ok {
		return src, fault.New(fault.NotFound, "The template %.64s does not come from a git repository.", name)
	}
	return src, nil
}

// Fetching reports whether a template is being fetched.
func (s *Service) Fetching(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetching[name]
}

// SetSource fetches a template from a git repository, and does so from now on. It blocks until that is done, for at most two minutes and a
// bit. When it fails nothing has changed. Kinds: those of git.Client.Fetch, Invalid with the field "name" or "path" (that has no template
// which can be used), Conflict (there is one that was written here).
func (s *Service) SetSource(ctx context.Context, name string, n NewSource) (Source, error) {
	if err := checkName(name); err != nil {
		return Source{}, err
	}
	old, had := s.source(name)
	src := Source{Template: name, URL: git.Address(n.URL), Ref: text.Trim(n.Ref), Path: strings.Trim(text.Trim(n.Path), "/"), HostKeys: text.Trim(n.HostKey)}
	from, err := s.c.entered(src, n, old)
	if err == nil {
		err = from.Check()
	}
	if err != nil {
		return src, err
	}
	src.HostKeys = from.HostKeys
	if src.Secret, err = s.c.seal(name, secrets{from.Token, from.Key}); err != nil {
		return src, err
	}
	_, err = s.turn(ctx, name, func() (none Files, err error) {
		if _, err := s.disk.current(name); err == nil && !had {
			return none, &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is a template of this name that was written here. Delete it first, or choose another name."}
		}
		if src, err = s.fetch(ctx, src, from); err != nil {
			return none, pathField(err)
		}
		return none, nil
	})
	return src, err
}

// pathField lets a mistake in the files of a revision be one of its path.
func pathField(err error) error {
	if fault.FieldOf(err) == "files" {
		return fault.Field("path", "This folder is no template that can be used. %s", fault.Message(err))
	}
	return err
}

// entered gives a source with its secrets: those that were entered, or those from before.
func (c Config) entered(src Source, n NewSource, old Source) (git.Source, error) {
	from := git.Source{URL: src.URL, Ref: src.Ref, Path: src.Path, Token: text.Trim(n.Token), Key: n.Key, HostKeys: src.HostKeys}
	if old.URL != src.URL {
		return from, nil
	}
	if from.HostKeys == "" {
		from.HostKeys = old.HostKeys
	}
	if from.Token+from.Key != "" {
		return from, nil
	}
	kept, err := c.unseal(old)
	from.Token, from.Key = kept.Token, kept.Key
	return from, err
}

func (c Config) seal(name string, k secrets) ([]byte, error) {
	if k == (secrets{}) {
		return nil, nil
	}
	key, err := c.Seal()
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	return key.Seal(purpose(name), plain)
}

func (c Config) unseal(src Source) (k secrets, err error) {
	if len(src.Secret) == 0 {
		return k, nil
	}
	key, err := c.Seal()
	if err != nil {
		return k, err
	}
	plain, err := key.Open(purpose(src.Template), src.Secret)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(plain, &k)
}

// Refetch looks whether there is a newer revision of a template from git, and takes it when it can be used. It blocks as SetSource does.
// What is wrong is kept with the source, and the former revision stays.
func (s *Service) Refetch(ctx context.Context, name string) error {
	_, err := s.turn(ctx, name, func() (none Files, err error) {
		src, err := s.Source(name)
		if err != nil {
			return none, err
		}
		k, err := s.c.unseal(src)
		if err == nil {
			_, err = s.fetch(ctx, src, git.Source{URL: src.URL, Ref: src.Ref, Path: src.Path, Token: k.Token, Key: k.Key, HostKeys: src.HostKeys})
		}
		if err == nil || ctx.Err() != nil {
			return none, err
		}
		src.Tried, src.Problem = now(), text.Excerpt(fault.Message(err), maxMessage)
		return none, errors.Join(err, s.keepSource(src))
	})
	return err
}

func now() time.Time { return time.Now().UTC().Round(0) }

// fetch gets a revision, checks it, and puts it into place with its record.
func (s *Service) fetch(ctx context.Context, src Source, from git.Source) (Source, error) {
	s.note(src.Template, true)
	defer s.note(src.Template, false)
	work, err := s.disk.begin(src.Template)
	if err != nil {
		return src, err
	}
	defer os.RemoveAll(work)
	at, err := s.c.Git.Fetch(ctx, from, work)
	if err != nil {
		return src, err
	}
	files := filepath.Join(work, git.FilesFolder)
	if err := refusal(s.c.Templates.CheckFolder(src.Template, files)); err != nil {
		return src, err
	}
	src.Commit, src.Date, src.HostKeys, src.Fetched, src.Tried, src.Problem = at.Commit, at.Date, at.HostKeys, now(), now(), ""
	return src, s.place(src, files)
}

// place puts fetched files into place. The record is first: a new template without one would look like one that was written here.
func (s *Service) place(src Source, files string) error {
	was, had := s.source(src.Template)
	if err := s.keepSource(src); err != nil {
		return err
	}
	version, err := s.disk.begin(src.Template)
	if err == nil {
		err = unwritten(errors.Join(os.Remove(version), os.Rename(files, version)))
	}
	if err == nil {
		err = s.disk.put(src.Template, version)
	}
	switch {
	case err == nil:
		return nil
	case had:
		return errors.Join(err, s.keepSource(was), os.RemoveAll(version))
	}
	return errors.Join(err, s.dropSource(src.Template), os.RemoveAll(version))
}

// keepSource stores a source.
func (s *Service) keepSource(src Source) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	if err := s.c.Store.PutSource(ctx, src); err != nil {
		return err
	}
	s.mu.Lock()
	s.sources[src.Template] = src
	s.mu.Unlock()
	s.tell(src.Template)
	return nil
}

func (s *Service) dropSource(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	if err := s.c.Store.DeleteSource(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.sources, name)
	s.mu.Unlock()
	return nil
}

func (s *Service) note(name string, fetching bool) {
	s.mu.Lock()
	if fetching {
		s.fetching[name] = true
	} else {
		delete(s.fetching, name)
	}
	s.mu.Unlock()
	s.tell(name)
}
