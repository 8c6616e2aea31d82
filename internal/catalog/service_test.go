package catalog

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func good(change func(*Service)) Service {
	s := Service{Name: "web", Command: []string{"serve", "--all"}, Port: 8080, Cwd: "/srv", Env: map[string]string{"A": "b"},
		Health: &Health{Path: "/healthz?deep=1", Interval: 5 * time.Second}}
	change(&s)
	return s
}

func TestCheckServices_TakesWhatIsSound(t *testing.T) {
	for name, list := range map[string][]Service{
		"none":            nil,
		"every field":     {good(func(*Service) {})},
		"no port":         {good(func(s *Service) { s.Port, s.Health = 0, nil })},
		"by a connection": {good(func(s *Service) { s.Health = &Health{} })},
		"two":             {good(func(*Service) {}), good(func(s *Service) { s.Name, s.Port = "api-2", 8081 })},
		"no ports twice":  {{Name: "a", Command: []string{"x"}}, {Name: "b", Command: []string{"x"}}},
		"codes":           {{Name: "codes", Command: []string{"x"}}},
	} {
		if err := CheckServices(list); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckServices_NamesTheServiceAndItsField(t *testing.T) {
	for name, c := range map[string]struct {
		field, says string
		list        []Service
	}{
		"no name":         {"name", "without a name", []Service{good(func(s *Service) { s.Name = "" })}},
		"capital":         {"name", `"Web"`, []Service{good(func(s *Service) { s.Name = "Web" })}},
		"two hyphens":     {"name", "a--b", []Service{good(func(s *Service) { s.Name = "a--b" })}},
		"long name":       {"name", "longer than 40", []Service{good(func(s *Service) { s.Name = strings.Repeat("x", 41) })}},
		"twice":           {"name", `two services "web"`, []Service{good(func(*Service) {}), good(func(s *Service) { s.Port = 1 })}},
		"port twice":      {"port", "web and api have the same port", []Service{good(func(*Service) {}), good(func(s *Service) { s.Name = "api" })}},
		"large port":      {"port", "Service web: Port 65536", []Service{good(func(s *Service) { s.Port = 65536 })}},
		"negative port":   {"port", "Port -1", []Service{good(func(s *Service) { s.Port = -1 })}},
		"no command":      {"command", "1 to 64 words", []Service{good(func(s *Service) { s.Command = nil })}},
		"empty program":   {"command", "1 to 64 words", []Service{good(func(s *Service) { s.Command = []string{""} })}},
		"zero byte":       {"command[1]", "not text", []Service{good(func(s *Service) { s.Command = []string{"x", "\x00"} })}},
		"relative cwd":    {"cwd", "absolute", []Service{good(func(s *Service) { s.Cwd = "srv" })}},
		"dots in cwd":     {"cwd", "absolute", []Service{good(func(s *Service) { s.Cwd = "/srv/../etc" })}},
		"env name":        {"env.A=B", "name of an environment", []Service{good(func(s *Service) { s.Env = map[string]string{"A=B": ""} })}},
		"our env":         {"env.SANDBOXD_X", "sandboxd's own", []Service{good(func(s *Service) { s.Env = map[string]string{"SANDBOXD_X": ""} })}},
		"env value":       {"env.A", "longer than", []Service{good(func(s *Service) { s.Env = map[string]string{"A": strings.Repeat("x", 5000)} })}},
		"health's port":   {"health", "needs a port", []Service{good(func(s *Service) { s.Port = 0 })}},
		"relative path":   {"health.path", "ask for", []Service{good(func(s *Service) { s.Health = &Health{Path: "healthz"} })}},
		"another host":    {"health.path", "ask for", []Service{good(func(s *Service) { s.Health = &Health{Path: "http://other.example/"} })}},
		"a line break":    {"health.path", "ask for", []Service{good(func(s *Service) { s.Health = &Health{Path: "/a\r\nHost: x"} })}},
		"a blank":         {"health.path", "ask for", []Service{good(func(s *Service) { s.Health = &Health{Path: "/a b HTTP/1.0"} })}},
		"short interval":  {"health.interval", "between", []Service{good(func(s *Service) { s.Health = &Health{Interval: time.Millisecond} })}},
		"long interval":   {"health.interval", "between", []Service{good(func(s *Service) { s.Health = &Health{Interval: 2 * time.Hour} })}},
		"a past interval": {"health.interval", "between", []Service{good(func(s *Service) { s.Health = &Health{Interval: -1} })}},
		"many":            {"services", "more than 16", make([]Service, 17)},
	} {
		err := CheckServices(c.list)
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != c.field || !strings.Contains(fault.Message(err), c.says) {
			t.Errorf("%s: field %q, %v", name, fault.FieldOf(err), err)
		}
	}
}

func TestTemplate_IDEChangesNoImage(t *testing.T) {
	print := func(manifest string) string {
		c := open(t, tree(t, map[string]string{"demo/template.yaml": "name: demo\ntitle: Demo\ndescription: Text.\n" + manifest,
			"demo/Dockerfile": "FROM debian:trixie-slim\n"}))
		demo, err := c.Template("demo")
		if err != nil {
			t.Fatal(err)
		}
		if demo.IDE != strings.Contains(manifest, "ide: true") {
			t.Errorf("%q: offers VS Code: %v", manifest, demo.IDE)
		}
		ref, err := NewImages(c, newFakeEngine(), ImageOptions{}).Reference(demo)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	plain := print("")
	for _, line := range []string{"ide: true\n", "ide: false # not yet\n", "user_namespaces: true\n", "ide: true"} {
		if got := print(line); got != plain {
			t.Errorf("%q gives another image", line)
		}
	}
	if print("icon: rocket\n") == plain {
		t.Error("nothing gives another image")
	}
}
