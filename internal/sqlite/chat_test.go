package sqlite

import (
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/chattest"
	"sandboxd/internal/sandboxtest"
)

func TestChat_KeepsTheContract(t *testing.T) {
	chattest.StoreContract(t, func(t *testing.T) (chat.Store, string, string) {
		d := fresh(t)
		box := sandboxtest.Sandbox("lab", 0)
		mustUser(t, d.Auth(), account("ada", auth.Member, 0))
		must(t, d.Sandboxes().Insert(t.Context(), box))
		return d.Chat(), box.ID, "id-ada"
	})
}
