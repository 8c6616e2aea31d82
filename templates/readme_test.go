package templates_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
)

// TestReadme_ItsExampleIsATemplateWithEveryField takes the example out of base/README.md and reads it as sandboxd does.
func TestReadme_ItsExampleIsATemplateWithEveryField(t *testing.T) {
	readme, err := os.ReadFile("sandbox/base/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "```yaml\n")
	text, _, found := strings.Cut(text, "```\n")
	if !found {
		t.Fatal("base/README.md has no example")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rust/template.yaml": text,
		"rust/Dockerfile":    "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Open("sandbox", dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Template("rust")
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.Standby{Rest: catalog.Rest{FreezeAfter: catalog.After(30 * time.Minute), StopAfter: catalog.After(72 * time.Hour)}, Pool: 2}
	if got.Standby != want {
		t.Errorf("its sandboxes rest as %+v, want %+v", got.Standby, want)
	}
}
