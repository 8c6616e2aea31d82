package volumetest

import "testing"

func TestStore_KeepsTheContract(t *testing.T) { StoreContract(t, &Store{}) }
