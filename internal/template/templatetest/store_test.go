package templatetest

import "testing"

func TestMemory_KeepsTheContract(t *testing.T) { StoreContract(t, &Memory{}) }
