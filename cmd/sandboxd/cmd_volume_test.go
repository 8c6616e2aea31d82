package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

// keeper is a server that does what it is asked for.
type keeper struct{ asked []string }

// ServeHTTP implements http.Handler: as much of the API as volumes and the list of sandboxes need.
func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.asked = append(k.asked, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v1")+" "+string(body)))
	switch {
	case r.URL.Path == "/api/v1/sandboxes":
		io.WriteString(w, `{"total":3,"sandboxes":[{"name":"a","template":"base","update":{"available":true}},{"name":"b","template":"base","update":{}},{"name":"c","image":"debian","update":null}]}`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		io.WriteString(w, `{"name":"models","mode":"ro","path":"/volumes/models","given_to":{"all":true}}`)
	}
}

func newKeeper(t *testing.T) *keeper {
	homeless(t)
	k := &keeper{}
	s := httptest.NewServer(k)
	t.Cleanup(s.Close)
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	return k
}

func TestVolume_AsksTheServerForWhatIsClear(t *testing.T) {
	for _, c := range []struct{ args, asks, why string }{
		{"create models --all", `POST /volumes {"name":"models","given_to":{"all":true,"templates":[],"sandboxes":[]}}`, ""},
		{"create models", `POST /volumes {"name":"models"}`, ""},
		{"create models --all --sandbox lab", "", "in one way"},
		{"set models --none --template base", "", "in one way"},
		{"set models --none --all", "", "in one way"},
		{"set models", "", "Nothing was asked for"},
		{"set models --none", `PATCH /volumes/models {"given_to":{"all":false,"templates":[],"sandboxes":[]}}`, ""},
		{"delete models", "", "This deletes the volume models with all files in it. Nobody can be asked here, so say --yes."},
		{"delete models --yes", "DELETE /volumes/models", ""},
	} {
		k := newKeeper(t)
		_, err := anywhere(t, append([]string{"volume"}, strings.Fields(c.args)...)...)
		if asked := strings.Join(k.asked, ", "); asked != c.asks {
			t.Errorf("%s: asks %q", c.args, asked)
		}
		if c.why == "" && err != nil || c.why != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), c.why)) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

func TestList_SaysWhatIsOnAnOlderImage(t *testing.T) {
	newKeeper(t)
	out, err := anywhere(t, "ls")
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) < 4 || !strings.Contains(lines[0], "IMAGE") || !strings.Contains(lines[1], "older") || strings.Contains(lines[2]+lines[3], "older") {
		t.Errorf("%s, %v", out, err)
	}
}
