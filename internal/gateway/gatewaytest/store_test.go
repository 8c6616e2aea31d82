package gatewaytest

import (
	"testing"

	"sandboxd/internal/gateway"
)

func TestStore_KeepsTheContract(t *testing.T) {
	StoreContract(t, func(*testing.T) gateway.Store { return NewStore() })
}
