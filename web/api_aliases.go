package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// aliasShape is a name for models as programs see it.
type aliasShape struct {
	Name    string           `json:"name"`
	Own     bool             `json:"own"`
	Targets []gateway.Target `json:"targets"`
	Changed time.Time        `json:"changed"`
}

func newAliasShape(a gateway.Alias) aliasShape {
	return aliasShape{Name: a.Name, Own: a.Owner != "", Targets: list(a.Targets), Changed: a.Changed.UTC()}
}

type aliasesShape struct {
	Aliases []aliasShape `json:"aliases"`
}

// offered are a user's names and then the server's.
func (s *aliasHandlers) offered(user string) []gateway.Alias {
	return slices.Concat(s.cfg.Models.Aliases(user), s.cfg.Models.Aliases(""))
}

// apiAliases lists the caller's names for models and then the server's.
func (s *aliasHandlers) apiAliases(_ context.Context, r *request, _ none) (reply, error) {
	out := aliasesShape{Aliases: []aliasShape{}}
	for _, a := range s.offered(r.who.User.ID) {
		out.Aliases = append(out.Aliases, newAliasShape(a))
	}
	return reply{body: out}, nil
}

// aliasName is the alias that the path names. A / in it is written %2F there, which the framework leaves as it is.
func aliasName(r *request) string {
	name := r.param("name")
	if r.http.URL.RawPath != "" {
		if plain, err := url.PathUnescape(name); err == nil { // else it is none of ours, and not found
			return plain
		}
	}
	return name
}

// alias finds a name of an owner's. Kind: NotFound.
func (s *aliasHandlers) alias(owner, name string) (gateway.Alias, error) {
	for _, a := range s.cfg.Models.Aliases(owner) {
		if a.Name == name {
			return a, nil
		}
	}
	return gateway.Alias{}, fault.New(fault.NotFound, "There is no alias %.64q.", name)
}

// apiAlias answers with one.
func (s *aliasHandlers) apiAlias(_ context.Context, r *request, _ none) (reply, error) {
	owner, err := askedOwner(r, false)
	if err != nil {
		return reply{}, err
	}
	a, err := s.alias(owner, aliasName(r))
	return reply{body: newAliasShape(a)}, err
}

type aliasBody struct {
	Targets []gateway.Target `json:"targets"`
	Own     *bool            `json:"own"`
}

// apiPutAlias adds or changes a name: 201 when it was added.
func (s *aliasHandlers) apiPutAlias(ctx context.Context, r *request, in aliasBody) (reply, error) {
	owner, err := modelOwner(r, in.Own, true)
	if err != nil {
		return reply{}, err
	}
	a := gateway.Alias{Owner: owner, Name: aliasName(r), Targets: in.Targets}
	_, err = s.alias(owner, a.Name)
	added := err != nil
	if a, err = s.cfg.Models.SetAlias(ctx, a); err != nil {
		return reply{}, err
	}
	out := reply{body: newAliasShape(a)}
	if added {
		out.status, out.location = http.StatusCreated, apiPrefix+"/models/aliases/"+url.PathEscape(a.Name)
	}
	return out, nil
}

// apiDeleteAlias deletes a name.
func (s *aliasHandlers) apiDeleteAlias(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Models.RemoveAlias(ctx, owner, aliasName(r))
}

// targetText is a target as people write it.
func targetText(t gateway.Target) string { return t.Provider + " / " + t.Model }

// enteredTargets reads targets as people write them: one per line, "provider / model". A model's name may have a / in it; a provider's
// has none.
func enteredTargets(text string) ([]gateway.Target, error) {
	var out []gateway.Target
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		provider, model, found := strings.Cut(line, "/")
		t := gateway.Target{Provider: strings.TrimSpace(provider), Model: strings.TrimSpace(model)}
		if !found || t.Provider == "" || t.Model == "" {
			return nil, fault.Field("targets", "Write a provider, a slash and a model on each line. This has no model or no provider: %.80q.", line)
		}
		out = append(out, t)
	}
	return out, nil
}
