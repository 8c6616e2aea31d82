package sqlite

import (
	"testing"

	"sandboxd/internal/template/templatetest"
)

func TestTemplates_KeepTheirContract(t *testing.T) {
	templatetest.StoreContract(t, fresh(t).Templates())
}
