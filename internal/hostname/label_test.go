package hostname

import (
	"net/url"
	"testing"
)

func TestServiceURL_IsEmptyForServicesThatHaveNoAddress(t *testing.T) {
	hosts := mustNew(t, "http://localhost:8080")
	for _, service := range []string{"", "xn", "3000", "3d", "-a", "a-", "a--b", "a.b", "A", "a`", long(41)} {
		if got := hosts.ServiceURL(service, "ml"); got != "" {
			t.Errorf("ServiceURL(%q) = %q", service, got)
		}
	}
	for _, name := range []string{"", "a--b", "code-x", "www", long(37)} {
		if got := hosts.ServiceURL(long(25), name); got != "" {
			t.Errorf("ServiceURL of %q = %q", name, got)
		}
	}
	if hosts.ServiceURL(long(25), long(36)) == "" {
		t.Error("one of 63 characters has none")
	}
}

func FuzzServiceURL(f *testing.F) {
	f.Add("web", "ml")
	f.Add("a-b", "c-d")
	f.Add("code", "ml")
	f.Add("xn", "ml")
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
		if got, err := hosts.Parse(u.Host); err != nil || got != (Target{Kind: Service, Name: name, Service: service}) {
			t.Fatalf("%q of %q: %s is %+v, %v", service, name, u.Host, got, err)
		}
	})
}
