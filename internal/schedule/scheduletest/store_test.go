package scheduletest

import (
	"testing"

	"sandboxd/internal/schedule"
)

func TestStore_KeepsTheContract(t *testing.T) {
	StoreContract(t, func(*testing.T) schedule.Store { return NewStore(Owner) })
}
