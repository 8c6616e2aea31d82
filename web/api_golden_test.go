package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

// changing is what differs from run to run: times, ids, secrets, durations.
var changing = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*Z"`), `"2026-01-02T03:04:05Z"`},
	{regexp.MustCompile(`"(id|request_id|parent|safety|head)": "[0-9a-f]+"`), `"$1": "0123456789abcdef"`},
	{regexp.MustCompile(`"sbx_[^"]{6}"`), `"sbx_prefix"`},
	{regexp.MustCompile(`"sbx_[^"]{20,}"`), `"sbx_secret"`},
	{regexp.MustCompile(`"secret": "[\w-]{43}"`), `"secret": "secret"`},
	{regexp.MustCompile(`share#[\w-]{43}"`), `share#secret"`},
	{regexp.MustCompile(`"(duration_ms|paused_ms)": \d+`), `"$1": 7`},
}

// golden holds a piece of JSON against web/testdata/NAME.json.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(got), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	b.WriteByte('\n')
	text := b.Bytes()
	for _, c := range changing {
		text = c.is.ReplaceAll(text, []byte(c.as))
	}
	file := filepath.Join("testdata", name+".json")
	if *rewrite {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(text)); d != "" {
		t.Errorf("%s (if this is meant: go test ./web -update):\n%s", file, d)
	}
}

func TestWireShapes_AreAsPinned(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.call("ada", "PATCH", "/api/v1/sandboxes/lab", `{"label":"ML Experiments"}`).is(200)
	w.images.log = []string{"Step 1/4", "Step 2/4"}
	w.images.status = catalog.ImageStatus{State: catalog.ImageBuilding, Step: 2, Steps: 4, Progress: 0.5}
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "limited", Sandbox: "lab"})
	for _, c := range []struct{ golden, user, method, path, body string }{
		{"sandbox", "ada", "GET", "/api/v1/sandboxes/lab", ""},
		{"sandboxes", "ada", "GET", "/api/v1/sandboxes?limit=10", ""},
		{"sandboxes_none", "bob", "GET", "/api/v1/sandboxes", ""},
		{"problem", "bob", "GET", "/api/v1/sandboxes/lab", ""},
		{"problem_field", "ada", "POST", "/api/v1/sandboxes", `{"colour":"red"}`},
		{"exec", "ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["fail"]}`},
		{"exec_base64", "ada", "POST", "/api/v1/sandboxes/lab/exec", `{"command":["bytes"]}`},
		{"templates", "ada", "GET", "/api/v1/templates", ""},
		{"template", "ada", "GET", "/api/v1/templates/base", ""},
		{"build", "ada", "GET", "/api/v1/templates/base/build", ""},
		{"me", "limited", "GET", "/api/v1/users/me", ""},
		{"token_new", "bob", "POST", "/api/v1/tokens", `{"name":"ci","ttl":"30d"}`},
		{"tokens", "bob", "GET", "/api/v1/tokens", ""},
		{"version", "bob", "GET", "/api/v1/version", ""},
		{"ready", "", "GET", "/readyz", ""},
		{"health", "", "GET", "/healthz", ""},
	} {
		t.Run(c.golden, func(t *testing.T) {
			w := *w
			w.t = t
			golden(t, c.golden, w.call(c.user, c.method, c.path, c.body).Body.Bytes())
		})
	}
}
