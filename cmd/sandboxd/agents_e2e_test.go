//go:build e2e

package main

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// agentPackages is where 'make test-agents' installs the agents and a Node for them.
const agentPackages = "../../artifacts/agents"

// agentManifest is a sandbox without a network.
const agentManifest = `name: agents
title: Agents
description: Agents of others, from their npm packages.
icon: terminal
base: base
profile: strict
size: {cpus: 2, memory: 3GiB, pids: 1024, disk: 10GiB}
`

// agentPrograms are the agents, each with what makes it answer one prompt without asking for permissions.
var agentPrograms = []struct {
	command string
	kind    gateway.Kind
	path    string // that it asks
}{
	{`claude -p --dangerously-skip-permissions`, gateway.Anthropic, "/v1/messages"},
	{`codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox`, gateway.OpenAI, "/v1/responses"},
	{`opencode run`, gateway.OpenAI, "/v1/chat/completions"},
	{`gemini --yolo -p`, gateway.Gemini, "/v1beta/models/"},
	{`qwen --yolo -p`, gateway.OpenAI, "/v1/chat/completions"},
}

// agentEnvironment has the programs of the packages in the PATH. Claude's engine is in a package of its own, without a link to it.
const agentEnvironment = `cd ~/agents/node_modules
export PATH=$(echo $PWD/node-linux-*/bin):$PWD/.bin:$(echo $PWD/@anthropic-ai/claude-agent-sdk-linux-* | tr ' ' :):$PATH
mkdir -p ~/work && cd ~/work && rm -f hello.txt
`

// TestAgents_FinishATurnWithoutALoginOrANetwork runs the agents that people use, as their npm packages have them, in a sandbox that has
// only what each sandbox has.
func TestAgents_FinishATurnWithoutALoginOrANetwork(t *testing.T) {
	s := newAgentsServer(t)
	providers := map[gateway.Kind]*gatewaytest.Provider{}
	for _, kind := range []gateway.Kind{gateway.Anthropic, gateway.OpenAI, gateway.Gemini} {
		providers[kind] = s.offersModels(kind)
	}
	for _, a := range agentPrograms {
		name, _, _ := strings.Cut(a.command, " ")
		t.Run(name, func(t *testing.T) { s.takesTurn(t, a.command, a.path, providers[a.kind]) })
	}
	for _, a := range agentPrograms {
		name, _, _ := strings.Cut(a.command, " ")
		t.Run(name+" without a budget", func(t *testing.T) { s.tellsOfBudget(t, a.command) })
	}
	s.keepsKeysOut("lab", slices.Collect(maps.Values(providers)))
}

// newAgentsServer has a sandbox "lab" with the packages, and without a network.
func newAgentsServer(t *testing.T) *server {
	t.Helper()
	if _, err := os.Stat(filepath.Join(agentPackages, "node_modules")); err != nil {
		t.Fatalf("%v: run 'make test-agents'", err)
	}
	templates := t.TempDir()
	writeTemplate(t, templates, "agents", agentManifest)
	if err := os.WriteFile(filepath.Join(templates, "agents", "Dockerfile"), []byte("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, "--prebuild", "", "--templates", templates)
	s.create(map[string]any{"name": "lab", "template": "agents"})
	engine(t, "cp", agentPackages, s.container("lab")+":/home/agent/agents")
	return s
}

// offersModels adds a scripted provider, for everyone.
func (s *server) offersModels(kind gateway.Kind) *gatewaytest.Provider {
	s.t.Helper()
	p := gatewaytest.NewProvider(s.t, kind)
	in := map[string]any{"kind": kind, "base_url": p.BaseURL(kind), "key": p.Key(), "models": []string{"scripted-1", "scripted-2"}}
	if status, body := s.raw("PUT", "/providers/"+string(kind), in); status >= 300 {
		s.t.Fatalf("add the provider %s: %d %s", kind, status, body)
	}
	return p
}

// takesTurn has an agent write a file and tell what its model said of it.
func (s *server) takesTurn(t *testing.T, command, path string, p *gatewaytest.Provider) {
	before := len(p.Requests())
	p.Play(
		gatewaytest.Script{Text: "I write it. ", Command: "echo from the model > hello.txt && cat hello.txt"},
		gatewaytest.Script{Text: "It is written.", For: gatewaytest.AfterResult},
	)
	out := s.exec("lab", map[string]any{"command": agentEnvironment + command + " 'Please write hello.txt' </dev/null", "timeout": "5m"})
	if out.ExitCode != 0 || !strings.Contains(out.Stdout, "It is written.") {
		t.Errorf("it ended with %d, timed out: %t\n%s\n%s", out.ExitCode, out.TimedOut, out.Stdout, out.Stderr)
	}
	if file := s.exec("lab", map[string]any{"command": "cat ~/work/hello.txt"}); file.Stdout != "from the model\n" {
		t.Errorf("the file has %q: %s", file.Stdout, file.Stderr)
	}
	if n := p.Waiting(); n > 0 {
		t.Errorf("%d answers were not asked for", n)
	}
	result := false
	for _, r := range p.Requests()[before:] {
		if r.Method == http.MethodPost && !r.Listed && (!strings.HasPrefix(r.Path, path) || !strings.HasPrefix(r.Model, "scripted-")) {
			t.Errorf("it asked %s %s for the model %q", r.Method, r.Path, r.Model)
		}
		result = result || r.Result
	}
	if !result {
		t.Error("the model was told no result")
	}
}

// tellsOfBudget has an agent find that the sandbox's budget is spent, and say so, instead of waiting for the next day.
func (s *server) tellsOfBudget(t *testing.T, command string) {
	budget := map[string]any{"scope": "sandbox", "subject": "lab", "period": "day", "requests": 1}
	if status, body := s.raw("PUT", "/models/budgets", budget); status >= 300 {
		t.Fatalf("set a budget: %d %s", status, body)
	}
	out := s.exec("lab", map[string]any{"command": agentEnvironment + command + " 'Please write hello.txt' </dev/null", "timeout": "5m"})
	if out.ExitCode == 0 || out.TimedOut || !strings.Contains(out.Stdout+out.Stderr, "budget") {
		t.Errorf("it ended with %d, timed out: %t\n%s\n%s", out.ExitCode, out.TimedOut, out.Stdout, out.Stderr)
	}
}

// keepsKeysOut looks for the keys of providers in a sandbox: in files, and in environments and arguments of what runs.
func (s *server) keepsKeysOut(name string, providers []*gatewaytest.Provider) {
	s.t.Helper()
	for _, p := range providers {
		first, second := p.Key()[:8], p.Key()[8:] // in two parts, which the search itself would find otherwise
		look := "grep -rlFf <(printf %s%s " + first + " " + second + ") --exclude-dir agents ~ /tmp /etc /proc/[0-9]*/{environ,cmdline} 2>/dev/null"
		if out := s.exec(name, map[string]any{"command": []string{"bash", "-c", look}}); out.Stdout != "" {
			s.t.Errorf("the key of a provider is in the sandbox: %s", out.Stdout)
		}
	}
	text, err := os.ReadFile(filepath.Join(s.data, "sandboxd.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range providers {
		if strings.Contains(string(text), p.Key()) || strings.Contains(s.log.String(), p.Key()) {
			s.t.Error("the key of a provider is in the database or in the log, in the clear")
		}
	}
}
