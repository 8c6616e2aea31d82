package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/seal"
)

// modelGateway is what gives models to programs in sandboxes, and to those outside that have a token.
type modelGateway struct {
	models *gateway.Service
}

// pricesPath is a file with prices of models that takes precedence over the built-in ones.
func pricesPath(c *Config) string { return filepath.Join(c.Data, "prices.json") }

// modelFlags adds what the gateway of models needs.
func (c *Config) modelFlags(f *pflag.FlagSet) {
	f.BoolVar(&c.ModelPrivateAddresses, "model-private-addresses", false, "let users' own providers of models have private and local addresses, this host's among them")
}

// newModels reads the providers of models and what was used of them.
func newModels(ctx context.Context, a *app) (*gateway.Service, error) {
	control := access.New(a.manager, access.FromHub(a.links), access.Tracked(a.tracker)).Noting(a.uses.Note)
	inside := &insideModels{sandboxes: a.db.Sandboxes(), control: control}
	return gateway.Open(ctx, gateway.Config{
		Dial:  inside.Dial,
		Store: a.db.Gateway(), Sealer: sealedBy(keyFile(a.config)), Prices: pricesPath(a.config), Hold: holding(a, idle.Model), Log: a.log,
		Private: a.config.ModelPrivateAddresses,
	})
}

// sealedBy seals with the key in a file, which is made when the first key of a provider is kept.
type sealedBy string

// Seal implements gateway.Sealer.
func (f sealedBy) Seal(purpose string, text []byte) ([]byte, error) {
	key, err := seal.Open(string(f))
	if err != nil {
		return nil, err
	}
	return key.Seal(purpose, text)
}

// Open implements gateway.Sealer.
func (f sealedBy) Open(purpose string, sealed []byte) ([]byte, error) {
	key, err := seal.Open(string(f))
	if err != nil {
		return nil, err
	}
	return key.Open(purpose, sealed)
}

// holding keeps a sandbox awake for something of a kind.
func holding(a *app, kind idle.Kind) func(sandbox string) (release func()) {
	return func(sandbox string) func() { return a.tracker.Begin(sandbox, idle.Use{Kind: kind}).End }
}

// serveAll runs the gateway of models, its server for programs in sandboxes, the conversations with agents, and the server of dashboard, API
// and sandboxes' hosts. The gateway ends after all others, so that it keeps the last of their calls.
func serveAll(ctx context.Context, a *app, l net.Listener) error {
	if err := errors.Join(a.doing.Load(ctx), a.trials.Load(ctx)); err != nil {
		return err
	}
	under, last := context.WithCancel(context.WithoutCancel(ctx))
	defer last()
	var all errgroup.Group
	all.Go(func() error { return a.models.Run(under) })
	all.Go(func() error {
		defer last()
		servers, ctx := errgroup.WithContext(ctx)
		servers.Go(func() error { return serveHTTP(ctx, l, a.handler, a.log) })
		servers.Go(func() error { return serveModels(ctx, a) })
		servers.Go(func() error { return a.chat.Run(ctx) })
		servers.Go(func() error { return a.trials.Run(ctx) })
		servers.Go(func() error { return a.tools.Run(ctx) })
		servers.Go(func() error { return a.others.Run(ctx) })
		return servers.Wait()
	})
	return all.Wait()
}

// askingKey is the key of the id of the sandbox whose program asks, in the context of its requests.
type askingKey struct{}

// serveModels answers programs in sandboxes that ask models. Their connections come over the sandboxes' links, so each is known by where it
// comes from.
func serveModels(ctx context.Context, a *app) error {
	server := newHTTPServer(a.models.Handler(programs{a.db.Sandboxes()}.caller), a.log)
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if c, ok := c.(*link.ModelConn); ok {
			return context.WithValue(ctx, askingKey{}, c.Sandbox())
		}
		return ctx
	}
	return serveConns(ctx, a.links.Models(), server, a.log)
}

// sandboxOwners finds the name and the owner of a sandbox. *sqlite.Sandboxes is one.
type sandboxOwners interface {
	OwnerOf(ctx context.Context, id string) (name, owner string, err error)
}

// programs says whose program asks.
type programs struct{ sandboxes sandboxOwners }

// caller looks each time: a sandbox that is deleted meanwhile gets nothing more.
func (p programs) caller(r *http.Request) (gateway.Caller, error) {
	id, ok := r.Context().Value(askingKey{}).(string)
	if !ok {
		return gateway.Caller{}, fault.New(fault.Unauthenticated, "Models are asked from a sandbox.")
	}
	if fromPage(r) {
		return gateway.Caller{}, fault.New(fault.Forbidden, "Programs of the sandbox can ask models, pages in a browser cannot. Have a server in the sandbox ask.")
	}
	name, owner, err := p.sandboxes.OwnerOf(r.Context(), id)
	return gateway.Caller{User: owner, Sandbox: id, Label: name}, err
}
