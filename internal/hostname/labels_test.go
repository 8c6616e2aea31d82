package hostname

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/traefik/paerser/parser"
)

var update = flag.Bool("update", false, "write the golden files anew")

// traefik is the part of Traefik's label configuration that we write. Unknown labels make decoding fail.
type traefik struct {
	Enable bool
	HTTP   struct {
		Routers  map[string]router
		Services map[string]service
	}
}

type router struct {
	Rule, Service string
	EntryPoints   []string
	Priority      int
	TLS           *struct{} `label:"allowEmpty"`
}

type service struct {
	LoadBalancer struct{ Server struct{ URL string } }
}

func decode(t *testing.T, labels map[string]string) traefik {
	t.Helper()
	var got traefik
	if err := parser.Decode(labels, &got, parser.DefaultRootName); err != nil {
		t.Fatalf("Traefik cannot read the labels: %v\n%v", err, labels)
	}
	return got
}

func TestLabels_TraefikReadsThemBack(t *testing.T) {
	got := decode(t, mustNew(t, "https://box.example.com").Labels("0123456789abcdef", "ml"))

	var want traefik
	want.Enable = true
	want.HTTP.Routers = map[string]router{"sbx-0123456789abcdef": {
		Rule:    "HostRegexp(`^([a-z][a-z0-9-]*--|[0-9]+-|code-)?ml\\.box\\.example\\.com$`)",
		Service: "sandboxd@file", EntryPoints: []string{"websecure"}, Priority: 1000, TLS: &struct{}{},
	}}
	var unused service
	unused.LoadBalancer.Server.URL = "http://sandboxd.invalid"
	want.HTTP.Services = map[string]service{"sbx-0123456789abcdef": unused}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The labels as the engine keeps them, on each kind of container.
func TestLabels_AreAsInTheGoldenFiles(t *testing.T) {
	public, local := mustNew(t, "https://box.example.com"), mustNew(t, "http://localhost:8080")
	for golden, labels := range map[string]map[string]string{
		"public":    public.Labels("0123456789abcdef", "ml-2"),
		"localhost": local.Labels("0123456789abcdef", "ml"),
	} {
		got := ""
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			got += key + "=" + labels[key] + "\n"
		}
		file := filepath.Join("testdata", golden+".labels.golden")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (go test -update writes it anew):\n%s", file, diff)
		}
	}
}

func TestLabels_PlainHTTPUsesTheWebEntryPointWithoutTLS(t *testing.T) {
	got := decode(t, mustNew(t, "http://localhost:8080").Labels("1", "ml"))
	for name, r := range got.HTTP.Routers {
		if r.TLS != nil || !cmp.Equal(r.EntryPoints, []string{"web"}) {
			t.Errorf("router %s = %+v", name, r)
		}
	}
}

func TestLabels_RuleMatchesTheSandboxsHostsAndNoOther(t *testing.T) {
	hosts := mustNew(t, "https://box.example.com")
	rule := decode(t, hosts.Labels("1", "ml-2")).HTTP.Routers["sbx-1"].Rule
	pattern, ok := strings.CutPrefix(rule, "HostRegexp(`")
	pattern, ok2 := strings.CutSuffix(pattern, "`)")
	if !ok || !ok2 {
		t.Fatalf("rule = %q", rule)
	}
	match := regexp.MustCompile(pattern)
	for _, target := range []Target{{Kind: Terminal, Name: "ml-2"}, {Kind: Port, Name: "ml-2", Port: 1}, {Kind: Port, Name: "ml-2", Port: 65535},
		{Kind: IDE, Name: "ml-2"}, {Kind: Service, Name: "ml-2", Service: "web"}} {
		if host := hosts.Host(target); !match.MatchString(host) {
			t.Errorf("%q does not match %q", pattern, host)
		}
	}
	for _, host := range []string{"box.example.com", "ml.box.example.com", "xml-2.box.example.com", "1-ml-2-x.box.example.com", "1-ml-2.boxxexample.com",
		"1-ml-2.box.example.com.evil.com", "a.ml-2.box.example.com", "-ml-2.box.example.com",
		"web-ml-2.box.example.com", "web--x-ml-2.box.example.com", "8080-x-ml-2.box.example.com", "code-x-ml-2.box.example.com"} {
		if match.MatchString(host) {
			t.Errorf("%q matches %q", pattern, host)
		}
	}
}
