package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/client"

	"sandboxd/internal/sqlite"
)

// figuresConfig is one of a data folder with an instance, whose engine runs the sandbox feedfeedfeedfeed.
func figuresConfig(t *testing.T) (c Config, instance string) {
	t.Helper()
	c = Config{Data: t.TempDir()}
	d, err := sqlite.Open(t.Context(), databasePath(&c))
	if err != nil {
		t.Fatal(err)
	}
	if instance, err = d.Instance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&recordingEngine{instance: instance})
	t.Cleanup(s.Close)
	t.Setenv(client.EnvOverrideHost, "tcp://"+s.Listener.Addr().String())
	return c, instance
}

// fakeCAdvisor is one that tells of a container.
func fakeCAdvisor(t *testing.T, container string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v2.1/version":
			fmt.Fprint(w, `"0.38.7"`)
		case "/api/v2.1/stats/":
			fmt.Fprintf(w, `{"/docker/1":{"spec":{"aliases":[%q]},"stats":[{"timestamp":"2026-11-24T12:00:00Z","cpu":{},"memory":{}}]}}`, container)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestDoctor_SaysWhereFiguresComeFrom(t *testing.T) {
	c, instance := figuresConfig(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer page.Close()
	for name, want := range map[string]struct {
		cadvisor string
		level    level
		saw      string
	}{
		"remote engine":       {"", warning, "come from the engine's statistics, every 10s: The engine is on another machine"},
		"cAdvisor":            {fakeCAdvisor(t, "sandboxd-"+instance+"-feedfeedfeedfeed"), good, "come from cAdvisor 0.38.7 at http://127.0.0.1:"},
		"another's cAdvisor":  {fakeCAdvisor(t, "sandboxd-other-feedfeedfeedfeed"), warning, "knows none of the 1 that run"},
		"no cAdvisor":         {gone.URL, warning, "does not answer"},
		"no cAdvisor's words": {page.URL, warning, "not understood"},
		"no address":          {"banana", bad, "--cadvisor must be the address"},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			c.CAdvisor = want.cadvisor
			f := lookFigures(t.Context(), &c)
			if f.Level != want.level || !strings.Contains(f.Saw, want.saw) || (f.Mend == "") != (f.Level == good) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestDoctor_AsksCAdvisorAlsoBeforeTheFirstStart(t *testing.T) {
	c := Config{Data: filepath.Join(t.TempDir(), "none"), CAdvisor: fakeCAdvisor(t, "x")}
	if f := lookFigures(t.Context(), &c); f.Level != good {
		t.Errorf("%+v", f)
	}
}
