package openai_test

import (
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/agenttest"
	"sandboxd/internal/agent/openai"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/gateway"
)

func TestModel_KeepsTheContract(t *testing.T) {
	for _, near := range []bool{false, true} {
		agenttest.ModelContract(t, agenttest.Driver{
			Kind: gateway.OpenAI, Open: func(e transport.Endpoint) agent.Model { return openai.New(e) },
			Caps: agenttest.Caps{CachesTokens: true},
			Near: near,
		})
	}
}
