package gateway

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/publicaddr"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Bounds of what is entered, in bytes.
const (
	maxURL   = 2048
	maxModel = 200 // a model's or an alias's name
)

// Providers gives an owner's own ("" for those of the server), by name.
func (s *Service) Providers(owner string) []Provider {
	var list []Provider
	for _, p := range s.table().providers {
		if p.Owner == owner {
			list = append(list, p.shown())
		}
	}
	return list
}

// Offered gives what a user can use: their own, then the server's.
func (s *Service) Offered(user string) []Provider {
	own := s.Providers(user)
	if user == "" {
		return own
	}
	return append(own, s.Providers("")...)
}

// shown gives the provider for people: with the problem of its key, and a list of its own.
func (c configured) shown() Provider {
	p := c.Provider
	p.Models = slices.Clone(p.Models)
	if c.problem != nil {
		p.Problem = fault.Message(c.problem)
	}
	return p
}

// SetProvider adds a provider, or changes the one of its owner and name; its ID, HasKey, Problem and Changed are not looked at. A nil key
// keeps the one before, "" drops it. Kinds: Invalid, with a field; NotFound when the owner is gone; Conflict when there are too many.
func (s *Service) SetProvider(ctx context.Context, p Provider, key *string) (Provider, error) {
	var err error
	if p, err = checkedProvider(p); err != nil {
		return Provider{}, err
	}
	if p.Inside == (Inside{}) {
		if err := s.checkReach(p); err != nil {
			return Provider{}, err
		}
	}
	if key != nil {
		trimmed := strings.TrimSpace(*key)
		if err := checkKey(trimmed); err != nil {
			return Provider{}, err
		}
		key = &trimmed
	}
	err = s.change(ctx, func(ctx context.Context) error {
		var sealed []byte
		if p, sealed, err = s.prepare(p, key); err != nil {
			return err
		}
		return s.c.Store.PutProvider(ctx, p, sealed)
	})
	if err != nil {
		return Provider{}, fmt.Errorf("keep provider %s: %w", p.Name, err)
	}
	return s.provider(p.Owner, p.Name)
}

// prepare gives a provider as it is to be kept, with its sealed key: nil for the one before. It is called with the turn.
func (s *Service) prepare(p Provider, key *string) (Provider, []byte, error) {
	all := s.Providers(p.Owner)
	i := slices.IndexFunc(all, func(o Provider) bool { return o.Name == p.Name })
	before := Provider{ID: sandbox.NewID()}
	if i >= 0 {
		before = all[i]
	}
	switch {
	case i < 0 && len(all) >= MaxProviders:
		return p, nil, fault.New(fault.Conflict, "There are %d providers already. Remove one first.", MaxProviders)
	case key == nil && before.HasKey && (before.BaseURL != p.BaseURL || before.Inside != p.Inside):
		return p, nil, fault.Field("key", "Enter the key again: it is not sent to another address without that.")
	}
	p.ID, p.HasKey, p.Problem = before.ID, before.HasKey, ""
	p.Changed = s.c.Now().UTC().Truncate(time.Microsecond)
	if !p.Changed.After(before.Changed) {
		p.Changed = before.Changed.Add(time.Microsecond)
	}
	if key == nil {
		return p, nil, nil
	}
	p.HasKey = *key != ""
	if !p.HasKey {
		return p, []byte{}, nil
	}
	sealed, err := s.c.Sealer.Seal(keyPurpose(p.ID), []byte(*key))
	return p, sealed, err
}

func keyPurpose(id string) string { return "provider:" + id }

// provider gives one. Kind: NotFound.
func (s *Service) provider(owner, name string) (Provider, error) {
	c, err := s.table().provider(owner, name)
	return c.shown(), err
}

// provider gives an owner's own. Kind: NotFound.
func (t *table) provider(owner, name string) (configured, error) {
	for _, p := range t.providers {
		if p.Owner == owner && p.Name == name {
			return p, nil
		}
	}
	return configured{}, fault.New(fault.NotFound, "There is no provider named %q.", text.OneLine(name, maxModel))
}

// RemoveProvider removes an owner's provider and its key. Kinds: NotFound, Conflict while an alias of that owner names it.
func (s *Service) RemoveProvider(ctx context.Context, owner, name string) error {
	err := s.change(ctx, func(ctx context.Context) error {
		p, err := s.provider(owner, name)
		if err != nil {
			return err
		}
		for _, a := range s.table().aliases {
			if a.Owner == owner && slices.ContainsFunc(a.Targets, func(t Target) bool { return t.Provider == name }) {
				return fault.New(fault.Conflict, "The alias %q uses the provider %s. Change or remove the alias first.", a.Name, name)
			}
		}
		return s.c.Store.DeleteProvider(ctx, p.ID)
	})
	if err != nil {
		return fmt.Errorf("remove provider %s: %w", name, err)
	}
	return nil
}

// configure gives a provider with its key; had is what it was before, which may be nothing. A provider that was deleted meanwhile gives
// nothing. A key that cannot be opened is a problem of that provider alone.
func (s *Service) configure(ctx context.Context, p Provider, had configured) (configured, error) {
	c := configured{Provider: p}
	if had.ID == p.ID && had.Changed.Equal(p.Changed) && had.HasKey == p.HasKey {
		c.key, c.problem = had.key, had.problem
		return c, nil
	}
	if !p.HasKey {
		return c, nil
	}
	sealed, err := s.c.Store.ProviderKey(ctx, p.ID)
	if fault.Is(err, fault.NotFound) {
		return configured{}, nil
	}
	if err != nil {
		return c, err
	}
	key, err := s.c.Sealer.Open(keyPurpose(p.ID), sealed)
	if err != nil {
		c.problem = fault.Wrap(err, fault.Unavailable, "The key of the provider %s cannot be read, because the key file of sandboxd is another one now. Enter the key again.", p.Name)
		s.c.Log.Warn("cannot read the key of a provider of models", "provider", p.Name, "owner", p.Owner, "error", err)
		return c, nil
	}
	c.key = string(key)
	return c, nil
}

// checkedProvider gives what was entered as it is to be kept.
func checkedProvider(p Provider) (Provider, error) {
	base, placeErr := checkPlace(p)
	models, modelsErr := checkModels(p.Models)
	p.BaseURL, p.Models = base, models
	for _, err := range []error{checkName(p.Name), checkKind(p.Kind), placeErr, modelsErr} {
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// privateMessage refuses an address that only the server's providers may have.
const privateMessage = "The address is a private or local one, which your own providers cannot have. An admin can add it as a provider of the server, or allow these with --model-private-addresses."

// checkReach refuses a user's own provider whose address is private by what is written. What its name leads to is looked at when it is asked.
func (s *Service) checkReach(p Provider) error {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return fmt.Errorf("read the address of provider %s: %w", p.Name, err)
	}
	if p.Owner != "" && !s.c.Private && publicaddr.LiterallyPrivate(u.Hostname()) {
		return fault.Field("base_url", privateMessage)
	}
	return nil
}

func checkName(name string) error {
	const most = 63
	valid := len(name) <= most && !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, "-")
	for _, r := range name {
		valid = valid && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-')
	}
	if name == "" || !valid {
		return fault.Field("name", "Give the provider a name of a–z, digits and dashes, at most %d characters, which does not begin or end with a dash.", most)
	}
	return nil
}

func checkKind(k Kind) error {
	switch k {
	case Anthropic, OpenAI, Ollama, Gemini:
		return nil
	}
	return fault.Field("kind", "The kind is %s, %s, %s or %s.", Anthropic, OpenAI, Ollama, Gemini)
}

// checkURL gives an address without what adds nothing to it.
func checkURL(given string) (string, error) {
	const example = "such as https://api.example.com or http://host:11434"
	given = strings.TrimSpace(given)
	u, err := url.Parse(given)
	switch {
	case given == "":
		return "", fault.Field("base_url", "Enter the address of the provider, %s.", example)
	case len(given) > maxURL:
		return "", fault.Field("base_url", "The address is longer than %d characters.", maxURL)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !validPort(u.Port()) || text.Unprintable(given):
		return "", fault.Field("base_url", "This is not an address of the web: enter one with http:// or https:// in front, %s.", example)
	case u.User != nil:
		return "", fault.Field("base_url", "The address must not hold a user or password: enter the key in its own field.")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(given, "#"):
		return "", fault.Field("base_url", "The address must not hold a query or a fragment (what follows ? or #).")
	}
	if slices.Contains(strings.Split(u.Path, "/"), "..") {
		return "", fault.Field("base_url", "The address must not hold steps up (..).")
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/"), nil
}

// validPort accepts "" too.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func checkModels(given []string) (models []string, err error) {
	if len(given) > MaxModels {
		return nil, fault.Field("models", "List at most %d models.", MaxModels)
	}
	for _, name := range given {
		name = strings.TrimSpace(name)
		if err := checkModel("models", name); err != nil {
			return nil, err
		}
		if slices.Contains(models, name) {
			return nil, fault.Field("models", "The model %s is listed twice.", name)
		}
		models = append(models, name)
	}
	return models, nil
}

// checkModel checks a name as clients name models, for a field.
func checkModel(field, name string) error {
	switch {
	case name == "":
		return fault.Field(field, "The name of a model is missing.")
	case len(name) > maxModel:
		return fault.Field(field, "The name of a model is longer than %d characters.", maxModel)
	case text.Unprintable(name) || strings.ContainsAny(name, " \u00a0"):
		return fault.Field(field, "The name of a model has a space, or a character that cannot be shown. Remove it.")
	}
	return nil
}

// checkKey accepts what can be sent in a header: printable ASCII.
func checkKey(key string) error {
	if len(key) > MaxKey {
		return fault.Field("key", "The key is longer than %d characters.", MaxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fault.Field("key", "The key has a space, or a character that no key has. Copy it again.")
		}
	}
	return nil
}
