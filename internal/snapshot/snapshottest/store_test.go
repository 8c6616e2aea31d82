package snapshottest

import (
	"testing"

	"sandboxd/internal/snapshot"
)

func TestStore_KeepsTheContract(t *testing.T) {
	StoreContract(t, func(*testing.T) snapshot.Store { return NewStore() })
}
