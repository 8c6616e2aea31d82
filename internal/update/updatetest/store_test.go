package updatetest

import (
	"testing"

	"sandboxd/internal/update"
)

func TestStore_Contract(t *testing.T) {
	StoreContract(t, func(*testing.T) update.Store { return &Store{} })
}
