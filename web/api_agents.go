package web

import (
	"context"
	"net/http"

	"sandboxd/internal/acp/install"
)

const agentsPath = "/sandboxes/:name/agents"

// table is the agents of others that can be installed in a sandbox, for programs and for the pane's script.
func (s *agentHandlers) table() []route {
	return append(s.at(apiPrefix, token), s.at("", scripted)...)
}

func (s *agentHandlers) at(prefix string, who admission) []route {
	all := prefix + agentsPath
	return []route{
		{get, all, who, api(s.apiAgents)},
		{post, all + "/:agent/install", who, api(s.apiInstallAgent)},
		{del, all + "/:agent", who, apiLong(s.apiRemoveAgent)},
	}
}

// agentShape is an agent of others as programs see it.
type agentShape struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Summary    string `json:"summary"`
	Licence    string `json:"licence"`
	LicenceURL string `json:"licence_url"`
	Package    string `json:"package"`
	Version    string `json:"version"`
	SizeMB     int    `json:"size_mb"`
	State      string `json:"state"`
	Installed  string `json:"installed_version"`
	Percent    int    `json:"percent"`
	Line       string `json:"line"`
	Problem    string `json:"problem"`
}

type agentsShape struct {
	Agents  []agentShape `json:"agents"`
	Problem string       `json:"problem"`
}

func agentOf(a install.Status) agentShape {
	return agentShape{
		ID: a.ID, Name: a.Name, Summary: a.Summary, Licence: a.Licence, LicenceURL: a.LicenceURL, Package: a.Package, Version: a.Version, SizeMB: a.SizeMB,
		State: string(a.State), Installed: a.Installed, Percent: a.Percent, Line: a.Line, Problem: a.Problem,
	}
}

// apiAgents lists the agents of the catalog with what they are in a sandbox. It wakes nothing.
func (s *agentHandlers) apiAgents(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	list, problem, err := s.cfg.Agents.List(ctx, h)
	out := agentsShape{Agents: make([]agentShape, 0, len(list)), Problem: problem}
	for _, a := range list {
		out.Agents = append(out.Agents, agentOf(a))
	}
	return reply{body: out}, err
}

// apiInstallAgent begins the installation of an agent: 202.
func (s *agentHandlers) apiInstallAgent(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err == nil {
		err = s.cfg.Agents.Install(ctx, h, r.param("agent"))
	}
	return reply{status: http.StatusAccepted}, err
}

// apiRemoveAgent removes an agent, and cancels its installation.
func (s *agentHandlers) apiRemoveAgent(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err == nil {
		err = s.cfg.Agents.Remove(ctx, h, r.param("agent"))
	}
	return reply{status: http.StatusNoContent}, err
}
