package web

import (
	"slices"

	"sandboxd/internal/gateway"
)

// modelPreset is a choice of who provides models, with what its form begins with.
type modelPreset struct {
	id                string
	kind              gateway.Kind
	icon, title, text string
	name              string
	address           string   // "" when people have to enter it
	example           string   // of an address
	public            string   // likewise, for those whose providers have public ones
	models            []string // the best first; none when the server's own are asked for
	keyHint           string
	needsKey          bool
	inside            bool // it is a port of a sandbox
}

// keptKey is said of every key.
const keptKey = " It is stored encrypted and not shown again."

// modelPresets are all choices, in the order in which they are offered. The models are those that the providers' own pages recommend, as
// of November 2026: people can list others.
var modelPresets = []modelPreset{
	{
		id: "anthropic", kind: gateway.Anthropic, icon: "key", title: "Anthropic", text: "Claude, with an API key.", name: "anthropic", address: "https://api.anthropic.com",
		models: []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"}, needsKey: true, keyHint: "You create one at platform.claude.com." + keptKey,
	},
	{
		id: "openai", kind: gateway.OpenAI, icon: "key", title: "OpenAI", text: "GPT, with an API key.", name: "openai", address: "https://api.openai.com/v1",
		models: []string{"gpt-6.2-astra", "gpt-6.2-sol", "gpt-6-luna"}, needsKey: true, keyHint: "You create one at platform.openai.com." + keptKey,
	},
	{
		id: "google", kind: gateway.Gemini, icon: "key", title: "Google", text: "Gemini, with an API key.", name: "google", address: "https://generativelanguage.googleapis.com",
		models: []string{"gemini-4-argon", "gemini-3.8-flash"}, needsKey: true, keyHint: "You create one at aistudio.google.com." + keptKey,
	},
	{
		id: "compatible", kind: gateway.OpenAI, icon: "server", title: "OpenAI-compatible server", text: "llama.cpp, vLLM, LM Studio, OpenRouter and others, by their URL.", name: "server",
		example: "http://192.168.1.20:8000/v1", public: "https://models.example.com/v1", keyHint: "Only if the server asks for one." + keptKey,
	},
	{
		id: "ollama", kind: gateway.Ollama, icon: "server", title: "Ollama", text: "A server with models of your own, by its URL.", name: "ollama",
		example: "http://192.168.1.20:11434", public: "https://ollama.example.com", keyHint: "Only if the server asks for one." + keptKey,
	},
	{
		id: "sandbox", kind: gateway.Ollama, icon: "box", title: "A model in a sandbox", text: "Ollama, llama.cpp or vLLM in one of your sandboxes. No key, no account.", name: "local",
		inside: true, keyHint: "Only if the server asks for one." + keptKey,
	},
}

// exampleFor gives an example of an address that the caller can enter.
func (p modelPreset) exampleFor(r *request) string {
	if r.isAdmin() {
		return p.example
	}
	return p.public
}

// presetNamed finds a choice by its id.
func presetNamed(id string) (modelPreset, bool) {
	at := slices.IndexFunc(modelPresets, func(p modelPreset) bool { return p.id == id })
	if at < 0 {
		return modelPreset{}, false
	}
	return modelPresets[at], true
}

// presetOf finds the choice that a provider looks like, by its kind and address.
func presetOf(p gateway.Provider) modelPreset {
	of := modelPreset{kind: p.Kind, icon: "server", title: string(p.Kind)}
	isInside := p.Inside != gateway.Inside{}
	for _, one := range modelPresets {
		if one.inside || isInside {
			if one.inside && isInside {
				return one
			}
			continue
		}
		if one.kind == p.Kind && (one.address == "" || one.address == p.BaseURL) {
			return one
		}
		if one.kind == p.Kind {
			of.title = one.title
		}
	}
	return of
}
