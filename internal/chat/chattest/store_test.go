package chattest

import (
	"testing"

	"sandboxd/internal/chat"
)

func TestStore_KeepsTheContract(t *testing.T) {
	StoreContract(t, func(*testing.T) (chat.Store, string, string) { return NewStore(), "box", "ada" })
}

func TestLinks_KeepTheContract(t *testing.T) {
	LinkContract(t, &Links{}, "c1", "ada")
}
