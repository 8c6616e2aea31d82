package anthropic_test

import (
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/agenttest"
	"sandboxd/internal/agent/anthropic"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/gateway"
)

func TestModel_KeepsTheContract(t *testing.T) {
	for _, near := range []bool{false, true} {
		agenttest.ModelContract(t, agenttest.Driver{
			Kind: gateway.Anthropic, Open: func(e transport.Endpoint) agent.Model { return anthropic.New(e) },
			Caps: agenttest.Caps{Signs: true, CachesTokens: true},
			Near: near,
		})
	}
}
