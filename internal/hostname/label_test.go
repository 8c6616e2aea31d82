package hostname

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDivide_GivesEveryWayToReadAHostAsAServices(t *testing.T) {
	hosts := mustNew(t, "http://localhost:8080")
	of := func(service, name string) Target { return Target{Kind: Service, Name: name, Service: service} }
	for label, want := range map[string][]Target{
		"ml":                        nil,
		"web-ml":                    {of("web", "ml")},
		"a-b-c":                     {of("a", "b-c"), of("a-b", "c")},
		"web-2":                     nil, // no sandbox is called 2
		"web-ml-2":                  {of("web", "ml-2")},
		"web-code":                  nil, // nor code
		"web-code-x":                {of("web-code", "x")},
		"3000-ml":                   nil,
		"code-ml":                   nil,
		"code-web-ml":               nil,
		"codex-ml":                  {of("codex", "ml")},
		long(22) + "-" + long(40):   {of(long(22), long(40))},
		long(10) + "-b-" + long(39): {of(long(10)+"-b", long(39))}, // the other name is too long
	} {
		got, err := hosts.Parse(label + ".localhost")
		if err != nil {
			t.Errorf("%s: %v", label, err)
		}
		if diff := cmp.Diff(want, got.Divide()); diff != "" {
			t.Errorf("%s: %s", label, diff)
		}
	}
}

func TestServiceURL_LeadsBackToItsService(t *testing.T) {
	hosts := mustNew(t, "https://box.example.com")
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		service, name := randomName(random), randomName(random)
		address := hosts.ServiceURL(service, name)
		if label := ServiceLabel(service, name); (label == "") != (address == "") {
			t.Fatalf("%s of %s: label %q, address %q", service, name, label, address)
		}
		if address == "" {
			if len(service)+len(name) <= 62 {
				t.Fatalf("%s of %s has no address", service, name)
			}
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got, err := hosts.Parse(u.Host)
		if err != nil || !slices.Contains(got.Divide(), Target{Kind: Service, Name: name, Service: service}) {
			t.Fatalf("%s of %s: %s is %+v, %v", service, name, u.Host, got, err)
		}
	}
}

func TestServiceURL_IsEmptyForServicesThatHaveNoAddress(t *testing.T) {
	hosts := mustNew(t, "http://localhost:8080")
	for _, service := range []string{"", "code", "code-server", "3000", "3d", "-a", "a-", "a--b", "a.b", "A", "a`", long(40)} {
		if got := hosts.ServiceURL(service, long(25)); got != "" {
			t.Errorf("ServiceURL(%q) = %q", service, got)
		}
	}
}

func FuzzServiceURL(f *testing.F) {
	f.Add("web", "ml")
	f.Add("a-b", "c-d")
	f.Add("code", "ml")
	hosts := mustNew(f, "http://localhost:8080")
	f.Fuzz(func(t *testing.T, service, name string) {
		address := hosts.ServiceURL(service, name)
		if address == "" {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%q of %q: %v", service, name, err)
		}
		got, err := hosts.Parse(u.Host)
		if err != nil || !slices.Contains(got.Divide(), Target{Kind: Service, Name: name, Service: service}) {
			t.Fatalf("%q of %q: %s is %+v, %v", service, name, u.Host, got, err)
		}
	})
}
