package main

import (
	"context"
	"net/http"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/agent"
	"sandboxd/internal/agent/anthropic"
	"sandboxd/internal/agent/ollama"
	"sandboxd/internal/agent/openai"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/auth"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/loop"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/gateway"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/tools"
)

// agents are the conversations with agents in sandboxes, and what these work with.
type agents struct {
	chat  *chat.Service
	tools *tools.Service
}

// ownKinds are the providers that sandboxd's own agent has a driver for.
var ownKinds = []gateway.Kind{gateway.Anthropic, gateway.OpenAI, gateway.Ollama}

// newChat puts conversations together: sandboxd's own agent, with models from the gateway and the tools of its sandbox.
func newChat(a *app, control *access.Control, commands *exec.Service, inside *files.Service) *ownModels {
	a.tools = tools.New(tools.Config{Exec: commands, Files: inside, Services: services.New(a.manager), Snapshots: a.snapshots, Logs: a.logs})
	m := &ownModels{gateway: a.models, sandboxes: a.db.Sandboxes(), through: transport.Handler(a.models.Handler(callerOf))}
	own := loop.New(loop.Config{
		Model: m.of,
		Tools: func(ctx context.Context, c chat.Conversation, ask loop.Ask) ([]tools.Tool, error) {
			h, err := handleOf(ctx, a, control, c)
			if err != nil {
				return nil, err
			}
			return a.tools.Table(tools.Seat{Handle: h, Key: c.ID, Ask: ask}), nil
		},
		Report: func(err error) { a.log.Warn("a tool of an agent", "error", err) },
	})
	a.chat = chat.New(chat.Config{
		Store: a.db.Chat(), Checkpoints: checkpoints{a}, Log: a.log,
		Hold: holding(a, idle.Agent),
		May: func(ctx context.Context, c chat.Conversation) error {
			_, err := handleOf(ctx, a, control, c)
			return err
		},
		Left: func(c chat.Conversation) { a.tools.Leave(c.Sandbox, c.ID) },
		Drivers: func(agent string) (chat.Driver, error) {
			if agent != chat.OwnAgent {
				return nil, fault.New(fault.NotFound, "There is no agent %q here.", agent)
			}
			return own, nil
		},
	})
	return m
}

// handleOf gives the conversation's sandbox, as the user who began the conversation may use it now.
func handleOf(ctx context.Context, a *app, control *access.Control, c chat.Conversation) (access.Handle, error) {
	name, _, err := a.db.Sandboxes().OwnerOf(ctx, c.Sandbox)
	if err != nil {
		return access.Handle{}, err
	}
	user, err := a.accounts.User(ctx, c.Owner)
	if err != nil {
		return access.Handle{}, err
	}
	if user.Disabled {
		return access.Handle{}, fault.New(fault.Forbidden, "The account of the person who began this conversation is disabled.")
	}
	h, err := control.Resolve(ctx, name, access.By(auth.Principal{User: user}))
	if err == nil && h.ID() != c.Sandbox {
		err = access.NotFound(name)
	}
	return h, err
}

// checkpoints are snapshots that make turns undoable.
type checkpoints struct{ a *app }

func (p checkpoints) box(ctx context.Context, id string) (sandbox.Sandbox, error) {
	name, _, err := p.a.db.Sandboxes().OwnerOf(ctx, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	box, err := p.a.manager.Sandbox(ctx, name)
	if err == nil && box.ID != id {
		err = access.NotFound(name)
	}
	return box, err
}

// Take implements chat.Checkpoints.
func (p checkpoints) Take(ctx context.Context, id, title string) (string, error) {
	box, err := p.box(ctx, id)
	if err != nil {
		return "", err
	}
	taken, _, err := p.a.snapshots.Begin(ctx, box, snapshot.Ask{Kind: snapshot.Automatic, Note: "Before a turn of an agent: " + title})
	if err != nil {
		return "", err
	}
	taken, err = p.a.snapshots.Wait(ctx, taken.ID)
	if err == nil && taken.State != snapshot.Ready {
		err = fault.New(fault.Unavailable, "The snapshot was not taken: %s", taken.Problem)
	}
	return taken.ID, err
}

// Restore implements chat.Checkpoints.
func (p checkpoints) Restore(ctx context.Context, sandbox, id string) error {
	box, err := p.box(ctx, sandbox)
	if err == nil {
		_, err = p.a.snapshots.Restore(ctx, box, id)
	}
	return err
}

// ownModels finds the models of sandboxd's own agent at the gateway, so that keys, budgets and the log of calls are the same as for what
// runs in a sandbox.
type ownModels struct {
	gateway   *gateway.Service
	sandboxes sandboxOwners
	through   http.RoundTripper
}

// names are the models that can be chosen for the sandboxes of a user.
func (m *ownModels) names(owner string) []string { return m.gateway.ModelsOf(owner, ownKinds...) }

// of gives the model of a conversation.
func (m *ownModels) of(ctx context.Context, c chat.Conversation) (loop.Model, error) {
	if c.Model == loop.DemoModel {
		return loop.Demo(), nil
	}
	name, owner, err := m.sandboxes.OwnerOf(ctx, c.Sandbox)
	if err != nil {
		return loop.Model{}, err
	}
	asked := c.Model
	if asked == "" {
		asked = "best"
	}
	kind, model, err := m.gateway.Lead(owner, asked, ownKinds...)
	if err != nil {
		return loop.Model{}, err
	}
	e := transport.Endpoint{BaseURL: "http://gateway", Model: asked, HTTP: asking{m.through, gateway.Caller{User: owner, Sandbox: c.Sandbox, Label: name, Outside: true}}}
	out := loop.Model{Name: asked, Window: windowOf(model), Price: func(u agent.Usage) (int64, bool) {
		return m.gateway.Price(model, gateway.Tokens{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	}}
	switch kind {
	case gateway.Anthropic:
		out.Model = anthropic.New(e)
	case gateway.Ollama:
		out.Model = ollama.New(e, out.Window)
	default:
		e.BaseURL += "/v1"
		out.Model = openai.New(e)
	}
	return out, nil
}

// windows are how many tokens models take, by the beginning of their names; the longest that fits counts.
var windows = map[string]int{"claude": 200_000, "gpt-5": 272_000, "gpt-4.1": 1_000_000, "gpt-4o": 128_000, "o3": 200_000, "o4": 200_000, "qwen": 32_768, "llama": 32_768, "gemma": 32_768, "mistral": 32_768}

// windowOf says how many tokens a model takes; 0 when that is not known.
func windowOf(model string) (n int) {
	longest := 0
	for prefix, window := range windows {
		if strings.HasPrefix(model, prefix) && len(prefix) > longest {
			longest, n = len(prefix), window
		}
	}
	return n
}

// askingAs is the key of the caller in the context of a request of ours to the gateway.
type askingAs struct{}

// asking sends requests to the gateway as a caller.
type asking struct {
	http.RoundTripper
	caller gateway.Caller
}

// RoundTrip implements http.RoundTripper.
func (t asking) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.RoundTripper.RoundTrip(r.WithContext(context.WithValue(r.Context(), askingAs{}, t.caller)))
}

func callerOf(r *http.Request) (gateway.Caller, error) {
	caller, ok := r.Context().Value(askingAs{}).(gateway.Caller)
	if !ok {
		return caller, fault.New(fault.Unauthenticated, "This is for agents of sandboxd.")
	}
	return caller, nil
}
