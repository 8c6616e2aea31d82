package alerttest

import (
	"testing"

	"sandboxd/internal/alert"
)

func TestStore_KeepsTheContract(t *testing.T) {
	StoreContract(t, func(*testing.T) alert.Store { return NewStore() })
}
