package sqlite

import (
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/trials/trialstest"
)

func TestTrials_KeepTheContract(t *testing.T) {
	d := fresh(t)
	box := sandboxtest.Sandbox("lab", 0)
	mustUser(t, d.Auth(), account("ada", auth.Member, 0))
	must(t, d.Sandboxes().Insert(t.Context(), box))
	trialstest.StoreContract(t, d.Trials(), box.ID, "id-ada")
	must(t, d.Sandboxes().Delete(t.Context(), box.ID))
	if list, err := d.Trials().Trials(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a deleted sandbox has trials %+v, %v", list, err)
	}
}
