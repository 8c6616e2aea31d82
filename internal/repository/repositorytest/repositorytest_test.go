package repositorytest

import (
	"testing"

	"sandboxd/internal/repository"
)

func TestStore_KeepsItsContract(t *testing.T) { StoreContract(t, &Store{}) }

func TestEngine_KeepsItsContract(t *testing.T) {
	EngineContract(t, &Engine{}, repository.Access{Name: "nas", Place: repository.Place{Kind: repository.Folder, Path: "/mnt"}, Secrets: repository.Secrets{Password: "correct horse"}})
}
