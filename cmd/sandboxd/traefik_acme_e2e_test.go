//go:build e2e

package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// pebbleBinary is an ACME server for tests, made by make bin/pebble.
const pebbleBinary = "../../bin/pebble"

// dnsStandIn is the domain's DNS and its provider's API in one: every host is on loopback, and TXT records are as the API
// was told (in the form of lego's provider httpreq).
type dnsStandIn struct {
	address, api string

	mu  sync.Mutex
	txt map[string][]string
}

func newDNS(t *testing.T) *dnsStandIn {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &dnsStandIn{address: conn.LocalAddr().String(), txt: map[string][]string{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		packet := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			if answer, err := d.answer(packet[:n]); err == nil {
				conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-ended })
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var record struct{ FQDN, Value string }
		if json.NewDecoder(r.Body).Decode(&record) == nil && r.URL.Path == "/present" {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.txt[record.FQDN] = append(d.txt[record.FQDN], record.Value)
		}
	}))
	t.Cleanup(server.Close)
	d.api = server.URL
	return d
}

func (d *dnsStandIn) answer(packet []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	for _, q := range m.Questions {
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch q.Type {
		case dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}})
		case dnsmessage.TypeTXT:
			d.mu.Lock()
			for _, value := range d.txt[strings.ToLower(q.Name.String())] {
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.TXTResource{TXT: []string{value}}})
			}
			d.mu.Unlock()
		}
	}
	return m.Pack()
}

// startPebble runs an ACME server that finds hosts in d and visits them at Traefik's port for plain HTTP. It gives the
// address of its directory, and lets k's clients trust what it issues.
func startPebble(t *testing.T, k *traefikProcess, d *dnsStandIn, certificate, key string) string {
	t.Helper()
	dir, manage := freeAddr(t), freeAddr(t)
	var port int
	if _, err := fmt.Sscanf(k.web, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{"listenAddress": dir, "managementListenAddress": manage,
		"certificate": certificate, "privateKey": key, "httpPort": port, "tlsPort": 1}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(pebbleBinary, "-config", file, "-dnsserver", d.address)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	log := &lockedWriter{mu: &k.mu, w: &k.log}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run 'make bin/pebble' first", err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		cmd.Wait()
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: eventLimit}
	defer client.CloseIdleConnections()
	k.until("the ACME server gives its root", func() bool {
		resp, err := client.Get("https://" + manage + "/roots/0")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && k.roots.AppendCertsFromPEM(text)
	})
	return "https://" + dir + "/dir"
}

// A server with nothing but a domain: both certificates come by themselves, are kept, and serve the hosts that they are for.
func TestTraefik_CertificatesComeByACME(t *testing.T) {
	k := newTraefik(t)
	d := newDNS(t)
	folder := t.TempDir()
	certificate, key := k.certify(folder)
	directory := startPebble(t, k, d, certificate, key)

	// The test's DNS is none that Traefik finds by itself, so it is told where it is, and not to look whether the world
	// knows the record already.
	real, err := filepath.Abs(traefikBinary)
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
sed 's|provider: "httpreq"|&, resolvers: ["%s"], propagation: { disableChecks: true }|' "${1#--configFile=}" >%[2]s/traefik.yaml
exec %[3]s --configFile=%[2]s/traefik.yaml
`, d.address, folder, real)
	if err := os.WriteFile(filepath.Join(folder, "traefik"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	storage := filepath.Join(folder, "acme.json")
	k.env = append(k.env, "PATH="+folder+":/usr/bin:/bin", "CERT_FILE=", "KEY_FILE=", "DNS_PROVIDER=httpreq", "HTTPREQ_ENDPOINT="+d.api,
		"ACME_SERVER="+directory, "ACME_STORAGE="+storage, "ACME_EMAIL=ada@example.org", "SSL_CERT_FILE="+certificate)
	k.start(newSandboxdStandIn(t))

	client := k.client()
	k.until("the wildcard certificate is there", func() bool { return via(client, k.url("lab."+k.domain, "/")) == "sandboxd" })
	for host, want := range map[string]string{k.domain: k.domain, "lab." + k.domain: "*." + k.domain, "3000-x." + k.domain: "*." + k.domain} {
		conn, err := tls.Dial("tcp", k.websecure, &tls.Config{RootCAs: k.roots, ServerName: host})
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().PeerCertificates[0].DNSNames; len(got) != 1 || got[0] != want {
			t.Errorf("%s has the certificate of %q, want %q", host, got, want)
		}
		conn.Close()
	}
	if info, err := os.Stat(storage); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the certificates are kept in %v, %v", info, err)
	}
}
