package web

import (
	"context"
	"net/http"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// providerShape is a provider of models as programs see it. Its key is never in it.
type providerShape struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	BaseURL string    `json:"base_url,omitempty"` // for those who may change it
	Sandbox string    `json:"sandbox,omitempty"`  // likewise: the name of the one in which it is, in place of an address
	Port    int       `json:"port,omitempty"`
	Models  []string  `json:"models"`
	Own     bool      `json:"own"` // the caller's, and not the server's
	HasKey  *bool     `json:"has_key,omitempty"`
	Problem string    `json:"problem"` // why it cannot be used
	Changed time.Time `json:"changed"`
}

func newProviderShape(r *request, p gateway.Provider) providerShape {
	out := providerShape{Name: p.Name, Kind: string(p.Kind), Models: list(p.Models), Own: p.Owner != "", Changed: p.Changed.UTC(), Problem: providerProblem(r, p)}
	if mayChangeModels(r, p.Owner) {
		out.BaseURL, out.HasKey = p.BaseURL, &p.HasKey
		out.Sandbox, out.Port = p.Inside.Name, p.Inside.Port
	}
	return out
}

// list is a list that is [] in JSON when there is nothing in it.
func list[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}

// providerProblem says why a provider cannot be used, or "". What is wrong with the server's is for admins.
func providerProblem(r *request, p gateway.Provider) string {
	if p.Problem != "" && !mayChangeModels(r, p.Owner) {
		return "It cannot be used now. An admin is told why."
	}
	return p.Problem
}

type providersShape struct {
	Providers []providerShape `json:"providers"`
}

// mayChangeModels says whether the caller may change what belongs to an owner, who is "" for the server.
func mayChangeModels(r *request, owner string) bool {
	return owner == r.who.User.ID || owner == "" && r.isAdmin()
}

// modelOwner says whose providers and names are meant: the caller's own, or the server's, which is "". Left out, admins mean the server's
// and others their own. Kind: Forbidden when they are to be changed and the caller may not.
func modelOwner(r *request, own *bool, change bool) (owner string, err error) {
	if own == nil && !r.isAdmin() || own != nil && *own {
		return r.who.User.ID, nil
	}
	r.ofAll = true
	if change && !r.isAdmin() {
		return "", fault.New(fault.Forbidden, "Only an admin may change what belongs to the server. Yours have own true.")
	}
	return "", nil
}

// askedOwner is modelOwner for what the query says.
func askedOwner(r *request, change bool) (string, error) {
	if r.query("own") == "" {
		return modelOwner(r, nil, change)
	}
	own, err := r.boolQuery("own")
	if err != nil {
		return "", err
	}
	return modelOwner(r, &own, change)
}

// provider finds a provider of an owner's. Kind: NotFound.
func (s *providerHandlers) provider(owner, name string) (gateway.Provider, error) {
	for _, p := range s.cfg.Models.Providers(owner) {
		if p.Name == name {
			return p, nil
		}
	}
	return gateway.Provider{}, fault.New(fault.NotFound, "There is no provider %.64q.", name)
}

// apiProviders lists the caller's providers and then the server's.
func (s *providerHandlers) apiProviders(_ context.Context, r *request, _ none) (reply, error) {
	out := providersShape{Providers: []providerShape{}}
	for _, p := range s.cfg.Models.Offered(r.who.User.ID) {
		out.Providers = append(out.Providers, newProviderShape(r, p))
	}
	return reply{body: out}, nil
}

// apiProvider answers with one.
func (s *providerHandlers) apiProvider(_ context.Context, r *request, _ none) (reply, error) {
	owner, err := askedOwner(r, false)
	if err != nil {
		return reply{}, err
	}
	p, err := s.provider(owner, r.param("name"))
	return reply{body: newProviderShape(r, p)}, err
}

// providerBody says what a provider is. A key that is left out stays; an empty one drops it.
type providerBody struct {
	Kind    string   `json:"kind"`
	BaseURL string   `json:"base_url"`
	Sandbox string   `json:"sandbox"` // its name; with Port in place of BaseURL
	Port    int      `json:"port"`
	Key     *string  `json:"key"`
	Models  []string `json:"models"`
	Own     *bool    `json:"own"`
}

// apiPutProvider adds or changes a provider: 201 when it was added.
func (s *providerHandlers) apiPutProvider(ctx context.Context, r *request, in providerBody) (reply, error) {
	owner, err := modelOwner(r, in.Own, true)
	if err != nil {
		return reply{}, err
	}
	p := gateway.Provider{Owner: owner, Name: r.param("name"), Kind: gateway.Kind(in.Kind), BaseURL: in.BaseURL, Models: in.Models}
	if in.Sandbox != "" || in.Port != 0 {
		if p.Inside, err = s.insideOf(ctx, r, owner, in.Sandbox, in.Port); err != nil {
			return reply{}, err
		}
	}
	_, err = s.provider(owner, p.Name)
	added := err != nil
	if p, err = s.cfg.Models.SetProvider(ctx, p, in.Key); err != nil {
		return reply{}, err
	}
	out := reply{body: newProviderShape(r, p)}
	if added {
		out.status, out.location = http.StatusCreated, apiPrefix+"/providers/"+p.Name
	}
	return out, nil
}

// apiDeleteProvider deletes a provider with its key.
func (s *providerHandlers) apiDeleteProvider(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Models.RemoveProvider(ctx, owner, r.param("name"))
}

// offerLimit bounds a check of a provider.
const offerLimit = 10 * time.Second

// offerShape is what a provider answered.
type offerShape struct {
	Models []string `json:"models"`
	Took   int64    `json:"took_ms"`
}

// apiCheckProvider asks a provider for its models.
func (s *providerHandlers) apiCheckProvider(ctx context.Context, r *request, _ none) (reply, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return reply{}, err
	}
	models, took, err := s.checkProvider(ctx, r, owner, r.param("name"))
	return reply{body: offerShape{Models: list(models), Took: took.Milliseconds()}}, err
}

// checkProvider asks a provider of an owner's for its models, and says how long that took. What goes wrong there is recorded as a failure.
func (s *providerHandlers) checkProvider(ctx context.Context, r *request, owner, name string) (models []string, took time.Duration, err error) {
	p, err := s.provider(owner, name)
	if err != nil {
		return nil, 0, err
	}
	limit := s.limit
	if p.Inside != (gateway.Inside{}) {
		limit += wakeAllowance
		r.liftDeadlines()
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	models, err = s.cfg.Models.CheckProvider(within, owner, name)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fault.Wrap(err, fault.Timeout, "The provider %s did not answer within %s. Check its address, and that its server runs.", name, spanWords(limit))
	}
	r.failed = err != nil
	return models, time.Since(begun), err
}
