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
	Docker struct{ Network string }
	HTTP   struct {
		Routers  map[string]router
		Services map[string]service
	}
}

type router struct {
	Rule, Service string
	EntryPoints   []string
	Middlewares   []string
	Priority      int
	TLS           *struct{} `label:"allowEmpty"`
}

type service struct {
	LoadBalancer struct{ Server struct{ Port string } }
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
	hosts := mustNew(t, "https://box.example.com")
	hosts.Network = "sandboxd-1"
	got := decode(t, hosts.Labels("0123456789abcdef", "ml", []int{3000, 8000}))

	var want traefik
	want.Enable = true
	want.Docker.Network = "sandboxd-1"
	want.HTTP.Routers = map[string]router{"sbx-0123456789abcdef": {
		Rule: "(Host(`3000-ml.box.example.com`) || Host(`8000-ml.box.example.com`))" +
			" && !HeaderRegexp(`Upgrade`, `.+`) && !HeaderRegexp(`X-Sandboxd-Observe`, `.+`) && !Method(`CONNECT`) && !PathPrefix(`/.sandboxd`)",
		Service: "sbx-0123456789abcdef", EntryPoints: []string{"websecure"}, Middlewares: []string{"sandboxd-auth@file", "sandboxd-scrub@file"},
		Priority: 1000, TLS: &struct{}{},
	}}
	var gateway service
	gateway.LoadBalancer.Server.Port = "7880"
	want.HTTP.Services = map[string]service{"sbx-0123456789abcdef": gateway}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The labels as the engine keeps them: whoever reads this knows what stands on a container.
func TestLabels_AreAsInTheGoldenFiles(t *testing.T) {
	public, local := mustNew(t, "https://box.example.com"), mustNew(t, "http://localhost:8080")
	public.Network = "sandboxd-0a1b2c3d"
	for golden, labels := range map[string]map[string]string{
		"ports":     public.Labels("0123456789abcdef", "ml", []int{3000, 8000}),
		"any-port":  public.Labels("0123456789abcdef", "ml-2", nil),
		"localhost": local.Labels("0123456789abcdef", "ml", []int{80}),
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
	got := decode(t, mustNew(t, "http://localhost:8080").Labels("1", "ml", nil))
	for name, r := range got.HTTP.Routers {
		if r.TLS != nil || !cmp.Equal(r.EntryPoints, []string{"web"}) {
			t.Errorf("router %s = %+v", name, r)
		}
	}
	if got.Docker.Network != "" {
		t.Errorf("network = %q, want none", got.Docker.Network)
	}
}

func TestLabels_WithoutPortsListedEveryPortHostMatchesAndNoOther(t *testing.T) {
	hosts := mustNew(t, "https://box.example.com")
	rule := decode(t, hosts.Labels("1", "ml-2", nil)).HTTP.Routers["sbx-1"].Rule
	pattern, ok := strings.CutPrefix(rule, "HostRegexp(`")
	pattern, ok2 := strings.CutSuffix(pattern, "`)"+notDirect)
	if !ok || !ok2 {
		t.Fatalf("rule = %q", rule)
	}
	match := regexp.MustCompile(pattern)
	for _, host := range []string{"1-ml-2.box.example.com", "65535-ml-2.box.example.com"} {
		if !match.MatchString(host) {
			t.Errorf("%q does not match %q", pattern, host)
		}
	}
	for _, host := range []string{"ml-2.box.example.com", "0-ml-2.box.example.com", "1-ml-2-x.box.example.com", "1-ml-2.boxxexample.com",
		"1-ml-2.box.example.com.evil.com", "x1-ml-2.box.example.com", "1-2-ml-2.box.example.com"} {
		if match.MatchString(host) {
			t.Errorf("%q matches %q", pattern, host)
		}
	}
}

func TestLabels_RuleMatchesExactlyTheParsedHosts(t *testing.T) {
	hosts := mustNew(t, "http://localhost:8080")
	rule := hosts.Labels("1", "ml", []int{80, 3000})["traefik.http.routers.sbx-1.rule"]
	var got []Target
	for _, host := range regexp.MustCompile("Host\\(`([^`]*)`\\)").FindAllStringSubmatch(rule, -1) {
		target, err := hosts.Parse(host[1])
		if err != nil {
			t.Errorf("Parse(%q) = %v", host[1], err)
		}
		got = append(got, target)
	}
	if diff := cmp.Diff([]Target{{Kind: Port, Name: "ml", Port: 80}, {Kind: Port, Name: "ml", Port: 3000}}, got); diff != "" {
		t.Error(diff)
	}
}
