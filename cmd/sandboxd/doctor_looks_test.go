package main

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/sqlite"
)

// TestDoctor_OnlyLooks has an engine with a sandbox that was taken off its network, which sandboxd would put back.
func TestDoctor_OnlyLooks(t *testing.T) {
	c := Config{Data: t.TempDir(), Listen: "127.0.0.1:0", Domain: "localhost"}
	d, err := sqlite.Open(t.Context(), databasePath(&c))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := d.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	e := &recordingEngine{instance: instance}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	t.Setenv(client.EnvOverrideHost, "tcp://"+s.Listener.Addr().String())
	before := stateOf(t, c.Data)
	var out strings.Builder
	_ = examine(t.Context(), &c, report{out: &out}, nil) // what this machine lacks is not asked
	if !strings.Contains(out.String(), "without a record: lab (feedfeedfeedfeed)") {
		t.Errorf("it has not looked at the sandboxes:\n%s", &out)
	}
	if diff := cmp.Diff(before, stateOf(t, c.Data)); diff != "" {
		t.Errorf("it has changed the data folder: %s", diff)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.changes) > 0 {
		t.Errorf("it has asked the engine for %q", e.changes)
	}
}

// stateOf gives the files below a folder with their content and time.
func stateOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Stat(path)
		if err == nil && st.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			state[path] = string(b)
		}
		state[path] += fmt.Sprint(st.ModTime(), st.Mode())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// recordingEngine serves an engine with one container that is off its network, and notes what would change something.
type recordingEngine struct {
	instance string

	mu      sync.Mutex
	changes []string
}

func (e *recordingEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		e.mu.Lock()
		e.changes = append(e.changes, r.Method+" "+r.URL.Path)
		e.mu.Unlock()
	}
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	labels := `{"sandboxd.instance":"` + e.instance + `","sandboxd.id":"feedfeedfeedfeed","sandboxd.name":"lab"}`
	network := "sandboxd-" + e.instance
	rest := `"State":{"Status":"running","Running":true,"StartedAt":"2026-11-21T10:00:00Z"},"Name":"/x"}`
	_, path, _ := strings.Cut(r.URL.Path, "/v1.41")
	switch path {
	case "/info":
		io.WriteString(w, `{"ServerVersion":"20.10.24","NCPU":2,"MemTotal":1024,"SystemTime":"2026-11-21T10:00:00.5Z","InitBinary":"docker-init","SecurityOptions":["name=seccomp,profile=default"]}`)
	case "/networks":
		io.WriteString(w, `[{"Name":"`+network+`","Id":"n1","Labels":{"sandboxd.instance":"`+e.instance+`"},"Options":{"com.docker.network.bridge.enable_icc":"false"},"IPAM":{"Config":[{"Subnet":"10.213.0.0/16"}]}}]`)
	case "/volumes":
		io.WriteString(w, `{"Volumes":[]}`)
	case "/containers/json":
		io.WriteString(w, `[{"Id":"c1","Names":["/`+network+`-feedfeedfeedfeed"],"State":"running","Labels":`+labels+
			`,"HostConfig":{"NetworkMode":"`+network+`"},"NetworkSettings":{"Networks":{}}}]`)
	case "/containers/c1/json":
		io.WriteString(w, `{"Id":"c1","HostConfig":{"NetworkMode":"`+network+`"},"NetworkSettings":{"Networks":{}},"Config":{"Labels":`+labels+`},`+rest)
	default:
		if !strings.HasSuffix(r.URL.Path, "/_ping") {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"message":"none"}`)
		}
	}
}
