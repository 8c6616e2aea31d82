package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestDoctor_KnowsTheSandboxdThatHasThePort(t *testing.T) {
	host := "box.example.com"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host || r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	at := s.Listener.Addr().String()
	for name, c := range map[string]struct {
		config Config
		want   level
	}{
		"behind a proxy":   {Config{Listen: at, PublicURL: "https://" + host}, good},
		"another server's": {Config{Listen: at, PublicURL: "https://other.example.com"}, bad},
		"without a domain": {Config{Listen: at, Domain: "localhost"}, bad},
	} {
		if f := lookPort(t.Context(), &c.config); f.Level != c.want {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestDoctor_MakesNoDataFolder(t *testing.T) {
	above := t.TempDir()
	if f := lookData(t.Context(), &Config{Data: filepath.Join(above, "var", "data")}); f.Level != good {
		t.Errorf("%+v", f)
	}
	if left, err := os.ReadDir(above); err != nil || len(left) > 0 {
		t.Errorf("it has made %v: %v", left, err)
	}
}
