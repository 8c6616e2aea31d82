package hostname

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestCheckName_TakesDNSLabelsThatStartWithALetter(t *testing.T) {
	for _, name := range []string{"a", "b2", "ml-experiments", "a-1-b", "x9", "coder", "codex-1", "news", strings.Repeat("a", 40)} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestCheckName_RefusesTheRestAsInvalidField(t *testing.T) {
	bad := []string{"", "A", "aB", "1a", "8080-x", "-a", "a-", "a--b", "xn--bcher-kva", "a.b", "..", "a/b", "a_b", "a b", "bücher",
		"a\x00", "a\n", "ｅ", "code-x", "code", "new", "api", "www", "localhost", strings.Repeat("a", 41), strings.Repeat("a", 64),
		"a\u212a", "a`)||Host(`b"}
	for _, name := range bad {
		err := CheckName(name)
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "name" {
			t.Errorf("CheckName(%q) = %v, want an Invalid fault about the name", name, err)
		}
	}
}

func TestNew(t *testing.T) {
	good := map[string]Hosts{
		"http://localhost:8080":       {Scheme: "http", Domain: "localhost", Port: "8080"},
		"http://LOCALHOST.:8080/":     {Scheme: "http", Domain: "localhost", Port: "8080"},
		"http://localhost:80":         {Scheme: "http", Domain: "localhost"},
		"https://box.example.com":     {Scheme: "https", Domain: "box.example.com"},
		"https://box.example.com:443": {Scheme: "https", Domain: "box.example.com"},
		"https://box.example.com:80":  {Scheme: "https", Domain: "box.example.com", Port: "80"},
	}
	for in, want := range good {
		if got, err := New(in); err != nil || got != want {
			t.Errorf("New(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	bad := []string{"", "localhost", "localhost:8080", "ftp://localhost", "http://", "http://127.0.0.1:8080", "http://[::1]:8080",
		"http://a_b.com", "http://-a.com", "http://a..b", "http://localhost/x", "http://localhost?x", "http://u@localhost",
		"http://localhost:0", "http://localhost:99999", "http://localhost:080", "http://127.1", "http://b.1", "http://a`b",
		"http://" + strings.Repeat("abc.", 60) + "com", "http://" + strings.Repeat("a", 64) + ".com"}
	for _, in := range bad {
		if got, err := New(in); !fault.Is(err, fault.Invalid) {
			t.Errorf("New(%q) = %+v, %v, want Invalid", in, got, err)
		}
	}
}

func TestLocal_TakesThePortOfTheListener(t *testing.T) {
	h, err := Local("localhost", "127.0.0.1:8080")
	if err != nil || h.DashboardURL() != "http://localhost:8080" {
		t.Errorf("Local = %+v, %v", h, err)
	}
	for _, listen := range []string{"", "8080", ":0", ":http", "localhost"} {
		if _, err := Local("localhost", listen); !fault.Is(err, fault.Invalid) {
			t.Errorf("Local(%q) = %v, want Invalid", listen, err)
		}
	}
}

func TestURLs(t *testing.T) {
	local := mustNew(t, "http://localhost:8080")
	public := mustNew(t, "https://box.example.com")
	for _, c := range [][2]string{
		{local.DashboardURL(), "http://localhost:8080"},
		{local.TerminalURL("ml"), "http://ml.localhost:8080/"},
		{local.PortURL("ml", 3000), "http://3000-ml.localhost:8080/"},
		{public.DashboardURL(), "https://box.example.com"},
		{public.PortURL("ml", 1), "https://1-ml.box.example.com/"},
		{public.IDEURL("ml"), "https://code-ml.box.example.com/"},
		{local.ServiceURL("web", "ml"), "http://web--ml.localhost:8080/"},
		{public.ShareURL("ml", 3000, "s3cret"), "https://3000-ml.box.example.com/.sandboxd/share#s3cret"},
		{public.Host(Target{}), ""},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

func TestParse_OurHosts(t *testing.T) {
	local, public := mustNew(t, "http://localhost:8080"), mustNew(t, "https://box.example.com")
	dashboard := Target{Kind: Dashboard}
	for _, c := range []struct {
		hosts Hosts
		host  string
		want  Target
	}{
		{local, "localhost:8080", dashboard},
		{local, "localhost", dashboard},
		{local, "LocalHost.:8080", dashboard},
		{local, "127.0.0.1:8080", dashboard},
		{local, "127.0.0.1", dashboard},
		{local, "[::1]:8080", dashboard},
		{local, "[::1]", dashboard},
		{local, "ml.localhost:8080", Target{Kind: Terminal, Name: "ml"}},
		{local, "ML.localhost.", Target{Kind: Terminal, Name: "ml"}},
		{local, "3000-ml.localhost:8080", Target{Kind: Port, Name: "ml", Port: 3000}},
		{local, "65535-a-1.localhost:8080", Target{Kind: Port, Name: "a-1", Port: 65535}},
		{public, "box.example.com", dashboard},
		{public, "box.example.com:443", dashboard},
		{public, "8-x.box.example.com:443", Target{Kind: Port, Name: "x", Port: 8}},
		{public, "code-ml-2.box.example.com", Target{Kind: IDE, Name: "ml-2"}},
		{local, "CODE-ml.localhost:8080", Target{Kind: IDE, Name: "ml"}},
		{local, "web-ml.localhost:8080", Target{Kind: Terminal, Name: "web-ml"}},
		{local, long(40) + ".localhost", Target{Kind: Terminal, Name: long(40)}},
		{local, "web--ml.localhost:8080", Target{Kind: Service, Name: "ml", Service: "web"}},
		{local, "a-b--c-d.localhost", Target{Kind: Service, Name: "c-d", Service: "a-b"}},
		{local, "code--ml.localhost", Target{Kind: Service, Name: "ml", Service: "code"}},
		{public, "Code-2--ml-2.box.example.com", Target{Kind: Service, Name: "ml-2", Service: "code-2"}},
		{local, long(21) + "--" + long(40) + ".localhost", Target{Kind: Service, Name: long(40), Service: long(21)}},
	} {
		if got, err := c.hosts.Parse(c.host); err != nil || got != c.want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", c.host, got, err, c.want)
		}
	}
}

func TestParse_ForeignHostsAreNotFound(t *testing.T) {
	local, public := mustNew(t, "http://localhost:8080"), mustNew(t, "https://box.example.com")
	for _, host := range []string{"", ":8080", "evil.com", "evil.com:8080", "localhost:80", "localhost:9090", "localhost:", "localhost:x",
		"localhost:08080", "localhost.evil.com", "notlocalhost:8080", ".localhost", "a.b.localhost", "localhost..", "ml..localhost",
		"-.localhost", "1.localhost", "0-ml.localhost", "080-ml.localhost", "65536-ml.localhost", "99999999999-ml.localhost",
		"3000.localhost", "3000-.localhost", "3000-3000-ml.localhost", "+3-ml.localhost", "code-.localhost", "code-3.localhost", "code-code-ml.localhost", "code-www.localhost", "code.localhost", "www.localhost",
		"--ml.localhost", "web--.localhost", "3000--ml.localhost", "web---ml.localhost", "a--b--ml.localhost", "3000-a--ml.localhost",
		"web--code-ml.localhost", "web--www.localhost", "xn--ml.localhost", long(22) + "--" + long(40) + ".localhost",
		long(63) + "-ml.localhost", long(41) + ".localhost", "code-" + long(41) + ".localhost", "-" + long(41) + ".localhost", long(22) + "-" + long(40) + ".localhost",
		"127.0.0.2", "127.1", "0.0.0.0:8080", "[::1", "[::1]x", "[::1]:", "[::]:8080", "::1", "[::ffff:127.0.0.1]:8080", "[::1%25lo]",
		"ml.localhost:8080:8080", "ml.localhost/", "ml.localhost@evil.com", "ml localhost", "ml.localhost\x00", "ml.\u212aocalhost",
		"http://ml.localhost", "*.localhost", "bücher.localhost"} {
		if got, err := local.Parse(host); !fault.Is(err, fault.NotFound) || got != (Target{}) {
			t.Errorf("Parse(%q) = %+v, %v, want NotFound", host, got, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "box.example.com:80", "box.example.com:8080", "example.com"} {
		if got, err := public.Parse(host); !fault.Is(err, fault.NotFound) {
			t.Errorf("public Parse(%q) = %+v, %v, want NotFound", host, got, err)
		}
	}
}

func TestParse_IsTheInverseOfTheURLs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, public := range []string{"http://localhost:8080", "https://box.example.com", "https://a.b.c.example.org:8443"} {
		hosts := mustNew(t, public)
		for range 2000 {
			want := Target{Kind: []Kind{Terminal, Port, IDE, Service}[random.IntN(4)], Name: randomName(random)}
			if want.Kind == Port {
				want.Port = 1 + random.IntN(65535)
			}
			for want.Kind == Service && hosts.ServiceURL(want.Service, want.Name) == "" { // none yet, or too long
				want.Service = randomName(random)
				want.Name = randomName(random)
			}
			checkRoundTrip(t, hosts, want)
		}
	}
}

func checkRoundTrip(t *testing.T, hosts Hosts, want Target) {
	t.Helper()
	address := hosts.TerminalURL(want.Name)
	switch want.Kind {
	case Port:
		address = hosts.PortURL(want.Name, want.Port)
	case IDE:
		address = hosts.IDEURL(want.Name)
	case Service:
		address = hosts.ServiceURL(want.Service, want.Name)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("parse %q: %v", address, err)
	}
	for _, host := range []string{u.Host, u.Hostname(), strings.ToUpper(u.Host), hosts.Host(want)} {
		if got, err := hosts.Parse(host); err != nil || got != want {
			t.Fatalf("Parse(%q) = %+v, %v, want %+v", host, got, err, want)
		}
	}
	if label, _, _ := strings.Cut(u.Host, "."); len(label) > 63 {
		t.Fatalf("%q is too long for DNS", label)
	}
}

// randomName draws from the letters of names until one is good.
func randomName(random *rand.Rand) string {
	const letters = "abcz019-"
	for {
		b := make([]byte, 1+random.IntN(MaxName))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		if CheckName(string(b)) == nil {
			return string(b)
		}
	}
}

// long is a name of n letters.
func long(n int) string { return strings.Repeat("a", n) }

func mustNew(t testing.TB, public string) Hosts {
	t.Helper()
	h, err := New(public)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"a", "a-b", "a--b", "A", "", "code-x", "3-a", strings.Repeat("a", 41)} {
		f.Add(seed)
	}
	hosts := mustNew(f, "http://localhost:8080")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			if hosts.Labels("id", name) != nil {
				t.Fatalf("%q is no name but has labels", name)
			}
			return
		}
		checkRoundTrip(t, hosts, Target{Kind: Terminal, Name: name})
		checkRoundTrip(t, hosts, Target{Kind: Port, Name: name, Port: 65535})
		checkRoundTrip(t, hosts, Target{Kind: IDE, Name: name})
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"localhost", "a.localhost:8080", "3000-a.localhost", "code-a.localhost", "a-b-c.localhost", long(20) + "--" + long(30) + ".localhost", "xn--a.localhost", "[::1]:8080", "A.LOCALHOST.", "127.0.0.1:80"} {
		f.Add(seed)
	}
	hosts := mustNew(f, "http://localhost:8080")
	f.Fuzz(func(t *testing.T, host string) {
		got, err := hosts.Parse(host)
		if err != nil {
			if !fault.Is(err, fault.NotFound) || got != (Target{}) {
				t.Fatalf("Parse(%q) = %+v, %v", host, got, err)
			}
			return
		}
		again, err := hosts.Parse(hosts.Host(got))
		if err != nil || again != got {
			t.Fatalf("Parse(%q) = %+v, but its host gives %+v, %v", host, got, again, err)
		}
		if got.Kind != Dashboard && CheckName(got.Name) != nil {
			t.Fatalf("Parse(%q) gives the bad name %q", host, got.Name)
		}
	})
}

func FuzzNew(f *testing.F) {
	for _, seed := range []string{"http://localhost:8080", "https://box.example.com", "http://[::1]", "http://a`b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, public string) {
		hosts, err := New(public)
		if err != nil {
			return
		}
		if again, err := New(hosts.DashboardURL()); err != nil || again != hosts {
			t.Fatalf("New(%q) = %+v, but its URL gives %+v, %v", public, hosts, again, err)
		}
		checkRoundTrip(t, hosts, Target{Kind: Port, Name: "a", Port: 65535})
	})
}
