//go:build e2e || bench

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// traefikBinary is made by make bin/traefik.
const traefikBinary = "../../bin/traefik"

// labelsDomain is a name below a Traefik's domain. Its certificate has the hosts below that too, but no router of its own does.
const labelsDomain = "labels"

// traefikProcess is the real Traefik, started by the repository's own traefik/start.sh with its own configuration and a
// given certificate, on free ports of loopback. Make it with newTraefik, give the rest of the world its addresses, then start it.
type traefikProcess struct {
	t         testing.TB
	domain    string // the dashboard's host; unique, below localhost so that browsers find it
	web       string // address for plain HTTP
	websecure string // address for HTTPS
	roots     *x509.CertPool
	env       []string // more variables for start.sh; later ones win
	place     place

	cmd   *exec.Cmd
	ended chan error
	mu    sync.Mutex
	log   bytes.Buffer
}

// newTraefik chooses names and addresses and makes a certificate. The process ends with the test.
func newTraefik(t testing.TB) *traefikProcess {
	t.Helper()
	if _, err := os.Stat(traefikBinary); err != nil {
		t.Fatalf("%v: run 'make bin/traefik' first", err)
	}
	unique := make([]byte, 4)
	if _, err := rand.Read(unique); err != nil {
		t.Fatal(err)
	}
	k := &traefikProcess{t: t, domain: "t" + hex.EncodeToString(unique) + ".localhost",
		web: freeAddr(t), websecure: freeAddr(t), roots: x509.NewCertPool()}
	certificate, key := k.certify(t.TempDir())
	k.env = []string{"DOMAIN=" + k.domain, "CERT_FILE=" + certificate, "KEY_FILE=" + key, "WEB_ADDRESS=" + k.web,
		"WEBSECURE_ADDRESS=" + k.websecure, "DOCKER_ENDPOINT=unix://" + k.socketProxy()}
	t.Cleanup(func() {
		if k.cmd != nil {
			k.end(syscall.SIGTERM)
		}
		if t.Failed() {
			t.Logf("log of Traefik:\n%s", k.tail())
		}
	})
	return k
}

// socketProxy runs sandboxd's own socket proxy in front of the engine, and gives its socket.
func (k *traefikProcess) socketProxy() string {
	k.t.Helper()
	dir, err := os.MkdirTemp("", "sbx-e2e-") // a test's own folder can be too long for a socket
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // it ends after Traefik
	ended := make(chan error, 1)
	socket := filepath.Join(dir, "docker.sock")
	go func() { ended <- serveSocketProxy(ctx, socket, engineSocket, slog.New(slog.DiscardHandler)) }()
	k.t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, os.RemoveAll(dir)); err != nil {
			k.t.Error(err)
		}
	})
	return socket
}

// certify writes a certificate for the domain and all hosts below it, and its key.
func (k *traefikProcess) certify(dir string) (certificate, key string) {
	k.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		k.t.Fatal(err)
	}
	text := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: k.domain}, DNSNames: []string{k.domain, "*." + k.domain, "*." + labelsDomain + "." + k.domain}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, text, text, private.Public(), private)
	if err != nil {
		k.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		k.t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	k.roots.AppendCertsFromPEM(certificatePEM)
	for file, text := range map[string][]byte{certificate: certificatePEM, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			k.t.Fatal(err)
		}
	}
	return certificate, key
}

// start runs Traefik in front of the sandboxd that serves at an address, and waits until it routes.
func (k *traefikProcess) start(sandboxd string) {
	k.t.Helper()
	bin, err := filepath.Abs(filepath.Dir(traefikBinary))
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := k.place.command("/bin/sh", "../../traefik/start.sh")
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=" + k.t.TempDir(), "SANDBOXD_ADDRESS=" + sandboxd}, k.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = &lockedWriter{mu: &k.mu, w: &k.log}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.cmd, k.ended = cmd, make(chan error, 1)
	go func(ended chan<- error) { ended <- cmd.Wait() }(k.ended)
	client := k.client()
	k.until("Traefik routes the dashboard's host", func() bool {
		resp, err := client.Get(k.url(k.domain, "/"))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode != http.StatusNotFound
	})
}

// end sends a signal and waits for the end.
func (k *traefikProcess) end(signal syscall.Signal) {
	k.t.Helper()
	if err := k.cmd.Process.Signal(signal); err != nil {
		k.t.Fatal(err)
	}
	select {
	case <-k.ended:
		k.cmd = nil
	case <-time.After(eventLimit):
		k.t.Fatalf("Traefik did not end on %v; its log:\n%s", signal, k.tail())
	}
}

// publicURL is the dashboard's address as browsers see it, for sandboxd's --public-url.
func (k *traefikProcess) publicURL() string { return "https://" + k.authority(k.domain) }

// authority is a host with Traefik's port, as it stands in a Host header.
func (k *traefikProcess) authority(host string) string {
	_, port, _ := net.SplitHostPort(k.websecure)
	return net.JoinHostPort(host, port)
}

func (k *traefikProcess) url(host, path string) string { return "https://" + k.authority(host) + path }

// tlsConfig trusts the certificate.
func (k *traefikProcess) tlsConfig() *tls.Config { return &tls.Config{RootCAs: k.roots} }

// dial leads to Traefik, whatever the host.
func (k *traefikProcess) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(k.websecure)
	if err != nil {
		return nil, err
	}
	return k.place.dial(ctx, network, net.JoinHostPort(host, port))
}

// client speaks to Traefik over HTTP/1.1 and follows no redirects.
func (k *traefikProcess) client() *http.Client {
	transport := &http.Transport{DialContext: k.dial, TLSClientConfig: k.tlsConfig(), MaxIdleConnsPerHost: 64, DisableCompression: true}
	k.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: callLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// client2 is client over HTTP/2.
func (k *traefikProcess) client2() *http.Client {
	client := k.client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	return client
}

func (k *traefikProcess) tail() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := k.log.String()
	return text[max(0, len(text)-16_000):]
}

// until waits for an event, as a server's does.
func (k *traefikProcess) until(what string, cond func() bool) {
	k.t.Helper()
	deadline := time.Now().Add(eventLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			k.t.Fatalf("within %s it was not so that %s; Traefik's log:\n%s", eventLimit, what, k.tail())
		}
		<-tick.C
	}
}
