package docker

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "# Written by sandboxd: the DNS servers of its host.\n"

func TestResolver_NamesWhatASandboxCanReach(t *testing.T) {
	const public = header + "nameserver 8.8.8.8\nnameserver 8.8.4.4\n"
	for name, c := range map[string]struct {
		host, systemd string
		fixed         []netip.Addr
		want          string
	}{
		"the host's": {
			host: "# comment\nnameserver 10.0.0.2\nnameserver\t10.0.0.3 # second\nsearch  corp.example  lan\noptions timeout:1\nsortlist x\n",
			want: header + "nameserver 10.0.0.2\nnameserver 10.0.0.3\nsearch corp.example lan\noptions timeout:1\n",
		},
		"behind systemd's": {
			host:    "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch stub\n",
			systemd: "nameserver 192.168.1.1\nnameserver fe80::1%3\nsearch lan\n",
			want:    header + "nameserver 192.168.1.1\nsearch lan\n",
		},
		"only the first three": {
			host: "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n",
			want: header + "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n",
		},
		"none that a sandbox reaches": {host: "nameserver 127.0.0.1\nnameserver ::1\nnameserver 0.0.0.0\nnameserver word\n", want: public},
		"none at all":                 {want: public},
		"configured":                  {host: "nameserver 10.0.0.2\nsearch lan\n", fixed: []netip.Addr{netip.MustParseAddr("9.9.9.9")}, want: header + "nameserver 9.9.9.9\nsearch lan\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testResolver(t, c.host, c.systemd)
			r.fixed = c.fixed
			if changed, err := r.refresh(); err != nil || !changed {
				t.Fatalf("changed %t, error %v", changed, err)
			}
			text, err := os.ReadFile(r.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Sandboxes have the file itself mounted, so a new one in its place would not reach them.
func TestResolver_StaysTheSameFileWhenTheHostMoves(t *testing.T) {
	r := testResolver(t, "nameserver 10.0.0.2\nsearch a.long.name.of.some.office\n", "")
	if _, err := r.refresh(); err != nil {
		t.Fatal(err)
	}
	mounted, err := os.Open(r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	if changed, err := r.refresh(); err != nil || changed {
		t.Errorf("nothing is new, yet: changed %t, error %v", changed, err)
	}
	writeFile(t, r.files[0], "nameserver 10.9.9.9\n")
	if changed, err := r.refresh(); err != nil || !changed {
		t.Errorf("changed %t, error %v", changed, err)
	}
	var text [512]byte
	n, _ := mounted.Read(text[:])
	if got, want := string(text[:n]), header+"nameserver 10.9.9.9\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got := r.addresses(); len(got) != 1 || got[0].String() != "10.9.9.9" {
		t.Errorf("the firewall is told of %v", got)
	}
}

func testResolver(t *testing.T, host, systemd string) *resolver {
	t.Helper()
	dir := t.TempDir()
	r := &resolver{path: filepath.Join(dir, "ours"), files: []string{filepath.Join(dir, "host"), filepath.Join(dir, "systemd")}}
	for n, text := range []string{host, systemd} {
		if text != "" {
			writeFile(t, r.files[n], text)
		}
	}
	return r
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
