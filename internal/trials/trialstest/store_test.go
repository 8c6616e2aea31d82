package trialstest

import "testing"

func TestStore_KeepsTheContract(t *testing.T) {
	StoreContract(t, &Store{}, "00000000000000aa", "00000000000000u1")
}
