package repository

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"sandboxd/internal/fault"
)

// Put connects a repository, and remembers it under its name: one that is made in an empty place, or one that is there. A name that is
// known gets the new place and secrets; secrets that are left out stay as they are. A password that is left out is generated for a new
// repository, and given. takeOver takes a repository from another sandboxd. Nothing is remembered unless it can be used. It blocks up to
// five minutes. Invalid beside a field, and kinds as for Engine.
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
	gate := s.gateOf(a.Name)
	leave, err := gate.enter(ctx)
	if err != nil {
		return "", false, err
	}
	defer leave()
	created, err = s.Engine.Connect(ctx, a, takeOver)
	if password != "" && fault.FieldOf(err) == "password" {
		err = fault.Field("password", "There is a repository already. Enter its password.")
	}
	if err != nil {
		return "", false, err
	}
	if err := s.remember(ctx, a, gate); err != nil {
		return "", false, err
	}
	return password, created, s.Refresh(ctx, a.Name)
}

// gateOf gives the gate of the repository of that name, or a new one.
func (s *Service) gateOf(name string) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.all[name]; k != nil {
		return k.gate
	}
	return &gate{}
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
func (s *Service) remember(ctx context.Context, a Access, gate *gate) error {
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
	k := &known{Repository: Repository{Name: a.Name, Place: a.Place, Created: time.Now().UTC()}, access: a, gate: gate}
	if err := s.Store.Put(ctx, Record{Name: a.Name, Place: a.Place, Secrets: sealed, Created: k.Created}); err != nil {
		return err
	}
	s.mu.Lock()
	s.all[a.Name] = k
	s.mu.Unlock()
	return nil
}

// Forget forgets a repository. What is in it stays, and can be connected again with its password. Conflict while a backup is being
// written to it. NotFound if there is none of that name.
func (s *Service) Forget(ctx context.Context, name string) error {
	if _, err := s.known(name); err != nil {
		return err
	}
	release, free := s.writing.Try(name, 1)
	if !free {
		return fault.New(fault.Conflict, "A backup is being written to it. Wait for that, or cancel it.")
	}
	defer release()
	if err := s.Store.Delete(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.all, name)
	s.mu.Unlock()
	s.bus.Publish(Change{Name: name, Gone: true})
	return s.Engine.Forget(name)
}
