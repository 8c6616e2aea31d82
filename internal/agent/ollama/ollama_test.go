package ollama_test

import (
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/agenttest"
	"sandboxd/internal/agent/ollama"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/gateway"
)

func TestModel_KeepsTheContract(t *testing.T) {
	for _, near := range []bool{false, true} {
		agenttest.ModelContract(t, agenttest.Driver{
			Kind: gateway.Ollama, Open: func(e transport.Endpoint) agent.Model { return ollama.New(e, 8192) },
			Caps: agenttest.Caps{WholeCalls: true},
			Near: near,
		})
	}
}
