package sandboxtest

import (
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/sandbox"
)

// own gives what a sandbox can have of its own, with every field set.
func overrides() sandbox.Overrides {
	on := true
	return sandbox.Overrides{HasServices: true, IDE: &on, Services: []catalog.Service{
		{Name: "web", Command: []string{"npm", "start"}, Port: 3000, Cwd: "/srv", Env: map[string]string{"MODE": "dev"},
			Autostart: true, Health: &catalog.Health{Path: "/healthz", Interval: 5 * time.Second}},
		{Name: "side", Command: []string{"true"}, Health: &catalog.Health{}},
	}}
}

func storeOwn(t *testing.T, s sandbox.Store) {
	b := Sandbox("b", 0)
	mustInsert(t, s, b)
	odd := overrides()
	odd.Services[0].Command = []string{"a b", "", "'; DROP TABLE sandboxes; --", "日本\u202e", "line\nfeed"}
	odd.Services[0].Env = map[string]string{"JSON": `{"a":"</script>"}`, "EMPTY": ""}
	off := false
	for _, o := range []sandbox.Overrides{{}, {IDE: &off}, {HasServices: true}, odd, overrides(), {HasServices: true, IDE: &off}, {}} {
		b.Overrides = o
		must(t, s.Update(t.Context(), b))
		wantByName(t, s, b)
		list, _, err := s.List(t.Context(), sandbox.Filter{})
		must(t, err)
		if len(list) != 1 || list[0].Overrides.HasServices != o.HasServices || len(list[0].Overrides.Services) != len(o.Services) {
			t.Errorf("listed as %+v, want %+v", list, o)
		}
	}
}

// spoil changes everything that o refers to.
func spoil(o sandbox.Overrides) {
	*o.IDE = !*o.IDE
	for i := range o.Services {
		o.Services[i].Name = "spoilt"
		o.Services[i].Command[0] = "spoilt"
		if o.Services[i].Env != nil {
			o.Services[i].Env["MODE"] = "spoilt"
		}
		o.Services[i].Health.Path = "/spoilt"
	}
}
