package sqlite

import (
	"testing"
	"time"

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

func TestChat_KeepsTheContractOfLinks(t *testing.T) {
	d := fresh(t)
	box := sandboxtest.Sandbox("lab", 0)
	mustUser(t, d.Auth(), account("ada", auth.Member, 0))
	must(t, d.Sandboxes().Insert(t.Context(), box))
	at := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	must(t, d.Chat().Create(t.Context(), chat.Conversation{ID: "c1", Sandbox: box.ID, Owner: "id-ada", Since: at, Created: at, Changed: at}))
	chattest.LinkContract(t, d.Chat(), "c1", "id-ada")
	must(t, d.Chat().PutLink(t.Context(), chat.Link{ID: "l9", Conversation: "c1", By: "id-ada", Created: at}, [32]byte{9}, 1))
	must(t, d.Chat().Delete(t.Context(), "c1"))
	if list, err := d.Chat().Links(t.Context(), "c1"); err != nil || len(list) != 0 {
		t.Errorf("a deleted conversation has links %+v, %v", list, err)
	}
}
