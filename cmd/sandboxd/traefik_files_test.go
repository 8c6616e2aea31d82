package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// startTraefik runs traefik/start.sh with a Traefik that only shows the static configuration that it is given.
func startTraefik(t *testing.T, env ...string) (shown string, err error) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\ncat \"${1#--configFile=}\"\n"
	if err := os.WriteFile(filepath.Join(bin, "traefik"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "../../traefik/start.sh")
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + t.TempDir()}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func staticFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../traefik", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTraefikStart_GivenCertificatesNeedNoChange(t *testing.T) {
	got, err := startTraefik(t, "DOMAIN=box.example.com", "CERT_FILE=/certs/cert.pem")
	if diff := cmp.Diff(staticFile(t, "traefik.yaml"), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// What the tests of the real Traefik change is three addresses, and nothing else.
func TestTraefikStart_PutsInAddressesAndLeavesTheRest(t *testing.T) {
	got, err := startTraefik(t, "DOMAIN=d", "CERT_FILE=c", "WEB_ADDRESS=127.0.0.1:1", "WEBSECURE_ADDRESS=127.0.0.1:2", "DOCKER_ENDPOINT=unix:///3")
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, staticFile(t, "traefik.yaml"), got, [][2]string{
		{`":80"`, `"127.0.0.1:1"`}, {`":443"`, `"127.0.0.1:2"`}, {`"unix:///run/sandboxd/docker.sock"`, `"unix:///3"`},
	})
}

func TestTraefikStart_WithoutACertificateItAsksACME(t *testing.T) {
	got, err := startTraefik(t, "DOMAIN=d", "DNS_PROVIDER=cloudflare", "ACME_EMAIL=ada+box@example.org", "ACME_SERVER=https://acme.example/directory")
	if err != nil {
		t.Fatal(err)
	}
	acme := [2]string{`"https://acme-v02.api.letsencrypt.org/directory"`, `"https://acme.example/directory"`}
	email := [2]string{`"you@example.com"`, `"ada+box@example.org"`}
	checkChanges(t, staticFile(t, "traefik.yaml")+staticFile(t, "acme.yaml"), got,
		[][2]string{email, acme, email, acme, {`"manual"`, `"cloudflare"`}})
}

// checkChanges wants just these changes, one per line that differs, in order.
func checkChanges(t *testing.T, before, after string, want [][2]string) {
	t.Helper()
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	if len(old) != len(now) {
		t.Fatalf("%d lines became %d:\n%s", len(old), len(now), after)
	}
	for i := range old {
		if old[i] == now[i] {
			continue
		}
		if len(want) == 0 || strings.Replace(old[i], want[0][0], want[0][1], 1) != now[i] {
			t.Errorf("line %d became %q", i+1, now[i])
			continue
		}
		want = slices.Delete(want, 0, 1)
	}
	if len(want) > 0 {
		t.Errorf("not put in: %q", want)
	}
}

func TestTraefikStart_SaysWhatIsMissingOrCannotBe(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "DOMAIN"},
		{[]string{"DOMAIN=d"}, "DNS_PROVIDER"},
		{[]string{"DOMAIN=d", "DNS_PROVIDER=x\"\nlog: {}"}, "not allowed"},
		{[]string{"DOMAIN=d", "DNS_PROVIDER=x", "ACME_EMAIL=a|b"}, "not allowed"},
	} {
		got, err := startTraefik(t, c.env...)
		if err == nil || !strings.Contains(got, c.want) || strings.Contains(got, "entryPoints") {
			t.Errorf("%q gives %v: %s", c.env, err, got)
		}
	}
}
