package catalog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestManifest_IsReadAsItWas writes a template with all fields, and values that YAML could take for others.
func TestManifest_IsReadAsItWas(t *testing.T) {
	full := Template{
		Name: "mine", Title: "yes", Description: "a: b # \"c\"\n- two", Icon: "server", Source: Source{Root: "12345678901234e5"}, Profile: Dev, Namespaces: true, IDE: true,
		Size:  Size{CPUs: 0.5, Memory: 1536 << 20, Pids: 512, Disk: 10 << 30},
		Env:   map[string]string{"PORT": "3000", "ON": "true", "EMPTY": "", "LINES": "a\nb ", "DATE": "2001-01-01", "HEX": "0x10", "TILDE": "~"},
		Ports: []Port{{Number: 3000, Title: "API: one"}, {Number: 8080, Title: "web"}},
		Services: []Service{
			{Name: "api", Command: []string{"sh", "-c", "a && b: c", "1"}, Port: 3000, Cwd: "/srv", Env: map[string]string{"A": "1"}, Autostart: true, Health: &Health{}},
			{Name: "web", Command: []string{"web"}, Port: 8080, Health: &Health{Path: "/x?y=1", Interval: 90 * time.Second}},
		},
		Standby: Standby{Rest: Rest{FreezeAfter: After(15 * time.Minute), StopAfter: Never}, Pool: 2},
	}
	for _, want := range []Template{full, {Name: "small", Title: "T", Description: "D", Icon: "box", Profile: Strict, Source: Source{Base: "base"}, Size: DefaultSize}} {
		text, err := Manifest(want)
		if err != nil {
			t.Fatal(err)
		}
		m, at, problems := parseManifest("template.yaml", text)
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, text)
		}
		got, problems := checkManifest("template.yaml", want.Name, m, at)
		if d := cmp.Diff(want, got); d != "" || len(problems) > 0 {
			t.Errorf("%v %s\n%s", problems, d, text)
		}
	}
}
