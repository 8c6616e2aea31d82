package activitytest_test

import (
	"testing"

	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
)

func TestMemory_KeepsTheContract(t *testing.T) {
	activitytest.StoreContract(t, func(*testing.T) activity.Store { return &activitytest.Memory{} })
}
