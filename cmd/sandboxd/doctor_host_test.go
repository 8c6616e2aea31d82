package main

import (
	"net/http"
	"net/http/httptest"
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
