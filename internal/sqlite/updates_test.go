package sqlite

import (
	"testing"

	"sandboxd/internal/update"
	"sandboxd/internal/update/updatetest"
)

func TestUpdates_Contract(t *testing.T) {
	updatetest.StoreContract(t, func(t *testing.T) update.Store { return fresh(t).Updates() })
}
