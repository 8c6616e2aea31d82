package main

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/acp/install"
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
	"sandboxd/internal/text"
	"sandboxd/internal/tools"
	"sandboxd/internal/trials"
)

// agents are the conversations with agents in sandboxes, and what these work with.
type agents struct {
	chat   *chat.Service
	doing  *chat.States
	tools  *tools.Service
	runs   *chat.Runs
	trials *trials.Service
	others *install.Service // agents that are not our own
}

// ownKinds are the providers that sandboxd's own agent has a driver for.
var ownKinds = []gateway.Kind{gateway.Anthropic, gateway.OpenAI, gateway.Ollama}

// newChat puts conversations together: sandboxd's own agent, with models from the gateway and the tools of its sandbox.
func newChat(a *app, control *access.Control, commands *exec.Service, inside *files.Service) *ownModels {
	a.tools = tools.New(tools.Config{Exec: commands, Files: inside, Services: services.New(a.manager), Snapshots: a.snapshots, Logs: a.logs})
	catalog := install.NewCatalog(filepath.Join(a.config.Data, "agents.json"), a.log)
	a.others = install.New(install.Config{Catalog: catalog, Exec: commands, Log: a.log})
	m := &ownModels{gateway: a.models, sandboxes: a.db.Sandboxes(), through: transport.Handler(a.models.Handler(callerOf))}
	limits := a.config.turnLimits()
	own := loop.New(loop.Config{
		Limits: limits,
		Model:  m.of,
		Tools: func(ctx context.Context, c chat.Conversation, ask loop.Ask) ([]tools.Tool, error) {
			h, err := handleOf(ctx, a, control, c)
			if err != nil {
				return nil, err
			}
			return a.tools.Table(tools.Seat{Handle: h, Key: c.ID, Ask: ask}), nil
		},
		Report: func(err error) { a.log.Warn("a tool of an agent", "error", err) },
	})
	programs := newPrograms(a, catalog, control, commands, limits)
	a.doing = chat.NewStates(a.db.Chat(), nil)
	a.chat = chat.New(chat.Config{
		Store: a.doing, Checkpoints: checkpoints{a}, Ready: func(ctx context.Context) { awaitSandboxes(ctx, a.manager) }, Log: a.log,
		Hold: holding(a, idle.Agent),
		May: func(ctx context.Context, c chat.Conversation) error {
			_, err := handleOf(ctx, a, control, c)
			return err
		},
		Left: func(c chat.Conversation) {
			a.tools.Leave(c.Sandbox, c.ID)
			left(a, programs, c)
		},
		Drivers: func(agent string) (chat.Driver, error) {
			if agent == chat.OwnAgent {
				return a.runs.First(own), nil
			}
			driver, err := programs.For(agent)
			if err != nil {
				return nil, err
			}
			return a.runs.First(driver), nil
		},
	})
	a.runs = chat.NewRuns(a.chat, codeRunner{a, control})
	a.trials = trials.New(trials.Config{Store: a.db.Trials(), Sandboxes: a.manager, Snapshots: a.snapshots, Chat: a.chat, Doing: a.doing, Room: a.room, Log: a.log})
	return m
}

// How long is waited at the start until the engine was looked at.
const (
	sandboxesLook  = 50 * time.Millisecond
	sandboxesLimit = 30 * time.Second
)

// awaitSandboxes waits until what the last end of sandboxd has cut off in sandboxes is being finished: before that one whose snapshot was
// being taken would be refused. An engine that stays away is not waited for any longer.
func awaitSandboxes(ctx context.Context, m *sandbox.Manager) {
	ctx, cancel := context.WithTimeout(ctx, sandboxesLimit)
	defer cancel()
	for m.EngineHealth() != nil {
		select {
		case <-time.After(sandboxesLook):
		case <-ctx.Done():
			return
		}
	}
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
	taken, err := p.a.snapshots.Take(ctx, box, snapshot.Ask{Kind: snapshot.Automatic, Note: "Before a turn of an agent: " + text.OneLine(title, len(title))})
	if err == nil && taken.State != snapshot.Ready {
		err = fault.New(fault.Unavailable, "The snapshot was not taken: %s", taken.Problem)
	}
	if err != nil {
		return "", err
	}
	return taken.ID, nil
}

// Restore implements chat.Checkpoints.
func (p checkpoints) Restore(ctx context.Context, sandbox, id string) (before string, err error) {
	box, err := p.box(ctx, sandbox)
	if err != nil {
		return "", err
	}
	safety, err := p.a.snapshots.Restore(ctx, box, id)
	return safety.ID, err
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
	leads, err := m.gateway.Leads(owner, asked, ownKinds...)
	if err != nil {
		return loop.Model{}, err
	}
	as := gateway.Caller{User: owner, Sandbox: c.Sandbox, Label: name, Outside: true}
	e := transport.Endpoint{BaseURL: "http://gateway", Model: asked, Own: gateway.OwnHeader, HTTP: asking{m.through, as}}
	answers := leads[0].Model
	all := agent.Fallback{Asked: func(i int) { answers = leads[i].Model }}
	out := loop.Model{Name: asked, Price: func(u agent.Usage) (int64, bool) {
		return m.gateway.Price(answers, gateway.Tokens{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	}}
	for _, l := range leads {
		window := m.gateway.Window(l.Model)
		if out.Window == 0 || window > 0 && window < out.Window {
			out.Window = window
		}
		out.NoImages = out.NoImages || !sees(l.Model)
		all.Models = append(all.Models, driverOf(l.Kind, e, window))
	}
	out.Model = all
	return out, nil
}

// driverOf speaks to providers of a kind. window is that of the model, 0 when it is not known.
func driverOf(kind gateway.Kind, e transport.Endpoint, window int) agent.Model {
	switch kind {
	case gateway.Anthropic:
		return anthropic.New(e)
	case gateway.Ollama:
		return ollama.New(e, window)
	default:
		e.BaseURL += "/v1"
		return openai.New(e)
	}
}

// sighted are the families of models that take text alone, and those within them that can see, by the beginning of their names; the longest
// that fits counts. Others are thought to see: a provider that refuses pictures is asked again without.
var sighted = map[string]bool{"gpt-3.5": false, "gpt-oss": false, "o1-mini": false, "o3-mini": false, "deepseek": false, "codestral": false, "codellama": false,
	"llama": false, "llama3.2-vision": true, "llama4": true, "llama-4": true, "phi": false, "phi-4-multimodal": true, "granite": false, "granite3.2-vision": true,
	"qwen2.5": false, "qwen2.5vl": true, "qwen2.5-vl": true, "qwen3": false, "qwen3-vl": true, "qwen3.5": true, "smollm": false, "mistral-nemo": false}

// sees says whether a model can be sent pictures.
func sees(model string) bool { return ofLongest(sighted, model, true) }

// ofLongest gives the value of the longest prefix that a name has.
func ofLongest[V any](of map[string]V, name string, otherwise V) V {
	longest := 0
	for prefix, v := range of {
		if strings.HasPrefix(name, prefix) && len(prefix) > longest {
			longest, otherwise = len(prefix), v
		}
	}
	return otherwise
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
