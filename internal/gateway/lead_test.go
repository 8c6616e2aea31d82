package gateway

import (
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestLead_SaysWhichProviderAModelLeadsTo(t *testing.T) {
	s := &Service{}
	s.at.Store(&table{
		providers: []configured{
			{Provider: Provider{Name: "claude", Kind: Anthropic, Models: []string{"opus", "haiku"}}},
			{Provider: Provider{Name: "gem", Kind: Gemini, Models: []string{"flash"}}},
			{Provider: Provider{Owner: "ada", Name: "local", Kind: Ollama, Models: []string{"qwen"}}},
		},
		aliases: []Alias{{Name: "work", Targets: []Target{{Provider: "claude", Model: "haiku"}}}},
	})
	for asked, want := range map[string][2]string{"best": {"ollama", "qwen"}, "opus": {"anthropic", "opus"}, "work": {"anthropic", "haiku"}} {
		kind, model, err := s.Lead("ada", asked, Anthropic, OpenAI, Ollama)
		if err != nil || string(kind) != want[0] || model != want[1] {
			t.Errorf("%s leads to %s of %s, %v", asked, model, kind, err)
		}
	}
	if _, _, err := s.Lead("bob", "qwen", Anthropic, Ollama); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Message(err), "qwen") {
		t.Error(err)
	}
	if _, _, err := s.Lead("bob", "best", OpenAI); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if got := s.ModelsOf("bob", Anthropic, OpenAI, Ollama); strings.Join(got, " ") != "work best fast opus haiku" {
		t.Error(got)
	}
}
