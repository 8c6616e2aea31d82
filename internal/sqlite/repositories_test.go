package sqlite

import (
	"testing"

	"sandboxd/internal/repository/repositorytest"
)

func TestRepositories_KeepTheirContract(t *testing.T) {
	repositorytest.StoreContract(t, fresh(t).Repositories())
}
