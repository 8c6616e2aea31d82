package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	models "sandboxd/internal/gateway"
	"sandboxd/internal/seal"
)

// onModels opens the gateway on a site's data folder, and gives it to use.
func (s *site) onModels(use func(*models.Service) error) {
	s.t.Helper()
	c := &Config{Data: s.data}
	key, err := seal.Open(keyFile(c))
	db, dbErr := openDatabase(s.t.Context(), c)
	if err := errors.Join(err, dbErr); err != nil {
		s.t.Fatal(err)
	}
	g, err := models.Open(s.t.Context(), models.Config{Store: db.Gateway(), Sealer: key})
	if err == nil {
		err = use(g)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

func TestBackupServer_KeysOfModelProvidersComeBack(t *testing.T) {
	s := newSite(t)
	secret := "sk-of-a-provider"
	s.onModels(func(g *models.Service) error {
		_, err := g.SetProvider(t.Context(), models.Provider{Name: "cloud", Kind: models.OpenAI, BaseURL: "https://api.example.com/v1"}, &secret)
		return err
	})
	file := filepath.Join(t.TempDir(), "box"+serverBackupSuffix)
	if said, err := s.run(aPhrase, "backup", "--server", file); err != nil {
		t.Fatal(said, err)
	}
	other := &site{t, filepath.Join(t.TempDir(), "other")}
	if said, err := other.run(aPhrase, "restore", "--server", file); err != nil {
		t.Fatal(said, err)
	}
	other.onModels(func(g *models.Service) error {
		if list := g.Providers(""); len(list) != 1 || !list[0].HasKey || list[0].Problem != "" {
			t.Errorf("providers are %+v", list)
		}
		return nil
	})
	for _, name := range []string{"sandboxd.db", "sandboxd.db-wal"} {
		if text, err := os.ReadFile(filepath.Join(s.data, name)); err == nil && strings.Contains(string(text), secret) {
			t.Errorf("the key is in %s", name)
		}
	}
	if err := os.Remove(filepath.Join(other.data, "secret.key")); err != nil {
		t.Fatal(err)
	}
	other.onModels(func(g *models.Service) error {
		if list := g.Providers(""); len(list) != 1 || !strings.Contains(list[0].Problem, "Enter the key again") {
			t.Errorf("with another key file, providers are %+v", list)
		}
		return nil
	})
}
