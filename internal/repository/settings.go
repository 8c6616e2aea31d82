package repository

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// Put connects a repository, and remembers it under its name: one that is made in an empty place, or one that is there. A name that is
// known can get another way to the same repository, or other secrets; those that are left out stay as they are. A password that is left
// out is generated for a new repository, and given. takeOver takes a repository from another sandboxd. Nothing is remembered unless it can
// be used. It blocks up to five minutes. Invalid beside a field, and kinds as for Engine.
func (s *Service) Put(ctx context.Context, a Access, takeOver bool) (password string, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := CheckName(a.Name); err != nil {
		return "", false, err
	}
	release, err := s.writing.Acquire(ctx, a.Name, 1, -1) // not while a backup is being written there
	if err != nil {
		return "", false, context.Cause(ctx)
	}
	defer release()
	a = a.completed()
	if password, err = s.fill(&a); err != nil {
		return "", false, err
	}
	if err := a.check(); err != nil {
		return "", false, err
	}
	if err := s.checkOutside(a.Place); err != nil {
		return "", false, err
	}
	leave, err := s.gateOf(a.Name).enter(ctx)
	if err != nil {
		return "", false, err
	}
	defer leave()
	made, err := s.connect(ctx, a, takeOver)
	if password != "" && fault.FieldOf(err) == "password" {
		err = fault.Field("password", "There is a repository already. Enter its password.")
	}
	if err != nil {
		return "", false, err
	}
	if err := s.remember(ctx, a, made.Identity); err != nil {
		return "", false, err
	}
	return password, made.Created, s.Refresh(ctx, a.Name)
}

// connect connects a repository that has no other name. A known name keeps its repository.
func (s *Service) connect(ctx context.Context, a Access, takeOver bool) (Connected, error) {
	before, err := s.known(a.Name)
	there := err == nil
	made, err := s.Engine.Connect(ctx, a, ConnectOptions{TakeOver: takeOver, Known: there})
	if err == nil {
		err = s.checkIdentity(a, made.Identity)
	}
	if err != nil && !there {
		return made, errors.Join(err, s.Engine.Forget(a.Name))
	}
	if err == nil && there && made.Identity != before.identity {
		err = fault.Field(a.Place.Kind.Field(), "That is another repository than %s. Give it a name of its own.", a.Name)
	}
	return made, err
}

// checkIdentity is Invalid when the repository has another name already: two would not know of each other's work.
func (s *Service) checkIdentity(a Access, identity string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.all {
		if name != a.Name && k.identity == identity {
			return fault.Field(a.Place.Kind.Field(), "That is the repository %s, which is in the list already.", name)
		}
	}
	return nil
}

// checkOutside is Invalid when a folder is in one of sandboxd's own, or has one of them in it, also by a symbolic link.
func (s *Service) checkOutside(p Place) error {
	if p.Kind != Folder {
		return nil
	}
	path := resolved(p.Path)
	for _, own := range s.Own {
		own = resolved(own)
		if path == own || strings.HasPrefix(path, own+"/") || strings.HasPrefix(own, path+"/") {
			return fault.Field("path", "sandboxd uses %s itself. Choose a folder outside of it, on another disk.", own)
		}
	}
	return nil
}

// resolved follows the symbolic links in a path, as far as that is there.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil || path == "/" {
		return to
	}
	return filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))
}

// gateOf gives the gate of the repository of that name.
func (s *Service) gateOf(name string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = &gate{}
	}
	return s.gates[name]
}

// fill puts in the secrets that were left out: those of the repository of that name, or a new password, which it gives.
func (s *Service) fill(a *Access) (generated string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.all[a.Name]
	if k == nil && len(s.all) >= maxKept {
		return "", fault.New(fault.TooLarge, "There are %d repositories already. Remove one first.", maxKept)
	}
	if k != nil && k.Place.Kind == a.Place.Kind {
		was := k.access.Secrets
		for _, secret := range []struct{ to, from *string }{{&a.Secrets.Password, &was.Password}, {&a.Secrets.SecretKey, &was.SecretKey}, {&a.Secrets.PrivateKey, &was.PrivateKey}} {
			if *secret.to == "" {
				*secret.to = *secret.from
			}
		}
	}
	if a.Secrets.Password == "" {
		generated = rand.Text()
		a.Secrets.Password = generated
	}
	return generated, nil
}

// remember stores a repository.
func (s *Service) remember(ctx context.Context, a Access, identity string) error {
	key, err := s.Seal()
	if err != nil {
		return err
	}
	text, err := json.Marshal(a.Secrets)
	if err != nil {
		return err
	}
	sealed, err := key.Seal(a.Name, text)
	if err != nil {
		return err
	}
	k := &known{Repository: Repository{Name: a.Name, Place: a.Place, Created: time.Now().UTC()}, identity: identity, access: a, gate: s.gateOf(a.Name)}
	if err := s.Store.Put(ctx, Record{Name: a.Name, Identity: identity, Place: a.Place, Secrets: sealed, Created: k.Created}); err != nil {
		return err
	}
	s.mu.Lock()
	s.all[a.Name] = k
	s.mu.Unlock()
	return nil
}

// Forget forgets a repository. What is in it stays, and can be connected again with its password. Conflict while a backup is being
// written to it. Maintenance is cut off first. NotFound if there is none of that name.
func (s *Service) Forget(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	k, err := s.known(name)
	if err != nil {
		return err
	}
	release, free := s.writing.Try(name, 1)
	if !free {
		return fault.New(fault.Conflict, "A backup is being written to it. Wait for that, or cancel it.")
	}
	defer release()
	leave, err := k.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.Store.Delete(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.all, name)
	s.mu.Unlock()
	s.bus.Publish(Change{Name: name, Gone: true})
	return s.Engine.Forget(name)
}
