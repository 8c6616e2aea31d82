package gateway

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestLeads_SaysWhichProvidersAModelLeadsTo(t *testing.T) {
	s := &Service{}
	s.at.Store(&table{
		providers: []configured{
			{Provider: Provider{Name: "claude", Kind: Anthropic, Models: []string{"opus", "haiku"}}},
			{Provider: Provider{Name: "gem", Kind: Gemini, Models: []string{"flash"}}},
			{Provider: Provider{Owner: "ada", Name: "local", Kind: Ollama, Models: []string{"qwen"}}},
		},
		aliases: []Alias{
			{Name: "work", Targets: []Target{{Provider: "claude", Model: "haiku"}}},
			{Owner: "ada", Name: "mine", Targets: []Target{{Provider: "claude", Model: "haiku"}, {Provider: "local", Model: "qwen"}, {Provider: "claude", Model: "opus"}}},
		},
	})
	for asked, want := range map[string][]Lead{"best": {{Ollama, "qwen"}}, "opus": {{Anthropic, "opus"}}, "work": {{Anthropic, "haiku"}}, "mine": {{Anthropic, "haiku"}, {Ollama, "qwen"}}} {
		if got, err := s.Leads("ada", asked, Anthropic, OpenAI, Ollama); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s leads to %v, %v", asked, got, err)
		}
	}
	if _, err := s.Leads("bob", "qwen", Anthropic, Ollama); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Message(err), "qwen") {
		t.Error(err)
	}
	if _, err := s.Leads("bob", "best", OpenAI); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if got := s.ModelsOf("bob", Anthropic, OpenAI, Ollama); strings.Join(got, " ") != "work best fast opus haiku" {
		t.Error(got)
	}
}
