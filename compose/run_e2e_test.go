//go:build e2e

package compose

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

const (
	upLimit   = time.Minute
	callLimit = 2 * time.Minute
)

// stack is compose.yaml's services on a real engine, each started with the options that the file gives it. Neither
// Compose nor a registry is needed: sandboxd's image is built, and Traefik's is a plain Debian with bin/traefik in it.
type stack struct {
	t       *testing.T
	prefix  string // of everything that is made
	domain  string
	certs   string // folder of the certificate, which sandboxes are to trust
	project *types.Project
	https   string // Traefik's address
	client  *http.Client
	token   string
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("docker %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return strings.TrimSpace(out.String())
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// newStack builds the image and loads the file, with folders and a certificate of its own, on free ports of loopback.
func newStack(t *testing.T) *stack {
	t.Helper()
	folder, err := os.MkdirTemp("", "sbx-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	s := &stack{t: t, prefix: filepath.Base(folder), https: freeAddr(t)}
	s.domain = strings.ReplaceAll(s.prefix, "-", "") + ".localhost"
	s.certs = filepath.Join(folder, "certs")
	roots := certify(t, s.certs, s.domain)
	own := filepath.Join(folder, "templates")
	write(t, filepath.Join(own, "mine"), map[string][]byte{"template.yaml": []byte("name: mine\ntitle: Mine\ndescription: A plain Debian.\nimage: debian:trixie-slim\n")})
	s.project = mustLoad(t, map[string]string{"DOMAIN": s.domain, "DATA": filepath.Join(folder, "data"), "CERT_DIR": s.certs,
		"CERT_FILE": "cert.pem", "KEY_FILE": "key.pem", "DNS_PROVIDER": "", "TEMPLATES_DIR": own, "CA_DIR": s.certs})
	image := "sandboxd:" + s.prefix
	docker(t, "build", "--quiet", "--network", "host", "--file", "Dockerfile", "--tag", image, "..")
	t.Cleanup(func() { docker(t, "rmi", image) })
	s.settle(image)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.https)
	}
	s.client = &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: callLimit}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// certify writes a certificate for a domain and all hosts below it, and its key.
func certify(t *testing.T, folder, domain string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{domain, "*." + domain},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, text, text, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, folder, map[string][]byte{"cert.pem": public, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	return roots
}

// write makes a folder with files, which only root may read.
func write(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// settle changes what cannot be as in the file on a machine that serves others too: ports, and images that no registry gives.
func (s *stack) settle(image string) {
	s.t.Helper()
	listen, plain := freeAddr(s.t), freeAddr(s.t)
	_, port, err := net.SplitHostPort(s.https)
	if err != nil {
		s.t.Fatal(err)
	}
	s.change("sandboxd", image, map[string]string{"SANDBOXD_LISTEN": listen,
		"SANDBOXD_PUBLIC_URL": "https://" + s.domain + ":" + port, "SANDBOXD_PREBUILD": ""})
	s.change("socket-proxy", image, nil)
	s.change("traefik", "debian:trixie-slim", map[string]string{"WEB_ADDRESS": plain, "WEBSECURE_ADDRESS": s.https, "SANDBOXD_ADDRESS": listen})
	root, err := filepath.Abs("..")
	if err != nil {
		s.t.Fatal(err)
	}
	traefik := s.project.Services["traefik"]
	traefik.Volumes = append(traefik.Volumes, types.ServiceVolumeConfig{Type: types.VolumeTypeBind,
		Source: filepath.Join(root, "bin", "traefik"), Target: "/usr/local/bin/traefik", ReadOnly: true})
	for i, v := range traefik.Volumes {
		if v.Target == "/etc/sandboxd/traefik" { // the file was loaded from a copy elsewhere
			traefik.Volumes[i].Source = filepath.Join(root, "traefik")
		}
	}
	s.project.Services["traefik"] = traefik
}

func (s *stack) change(name, image string, env map[string]string) {
	service := s.project.Services[name]
	service.Image = image
	for key, value := range env {
		service.Environment[key] = &value
	}
	s.project.Services[name] = service
}

// up starts a service as Compose would.
func (s *stack) up(name string) {
	s.t.Helper()
	service := s.project.Services[name]
	container := s.prefix + "-" + name
	args := []string{"run", "--detach", "--name", container, "--network", service.NetworkMode, "--read-only", "--log-driver", service.Logging.Driver}
	if service.Pid != "" {
		args = append(args, "--pid", service.Pid)
	}
	if service.Cgroup != "" {
		args = append(args, "--cgroupns", service.Cgroup)
	}
	for flag, values := range map[string][]string{"--cap-drop": service.CapDrop, "--cap-add": service.CapAdd, "--security-opt": service.SecurityOpt, "--tmpfs": service.Tmpfs} {
		for _, value := range values {
			args = append(args, flag, value)
		}
	}
	for key, value := range service.Environment {
		args = append(args, "--env", key+"="+*value)
	}
	for _, v := range service.Volumes {
		source := v.Source
		if v.Type == types.VolumeTypeVolume {
			source = s.prefix + "-" + v.Source
		}
		mount := source + ":" + v.Target
		if v.ReadOnly {
			mount += ":ro"
		}
		args = append(args, "--volume", mount)
	}
	command := service.Command
	if len(service.Entrypoint) > 0 {
		args = append(args, "--entrypoint", service.Entrypoint[0])
		command = append(service.Entrypoint[1:], command...)
	}
	docker(s.t, append(append(args, service.Image), command...)...)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			out, err := exec.Command("docker", "logs", "--tail", "60", container).CombinedOutput()
			s.t.Logf("log of %s: %v\n%s", name, err, out)
		}
		docker(s.t, "stop", container)
		docker(s.t, "rm", "--volumes", container)
	})
}

// get asks through Traefik, with the token when there is one.
func (s *stack) call(method, host, path string, in any) (int, string, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, "", err
		}
		body = bytes.NewReader(text)
	}
	_, port, err := net.SplitHostPort(s.https)
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequest(method, "https://"+host+":"+port+path, body)
	if err != nil {
		return 0, "", err
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// until asks again and again until the answer is as wanted.
func (s *stack) until(host, path string, good func(status int, body string) bool) {
	s.t.Helper()
	deadline := time.Now().Add(upLimit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		status, body, err := s.call(http.MethodGet, host, path, nil)
		if err == nil && good(status, body) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("https://%s%s: %d %s, %v", host, path, status, body, err)
		}
		<-tick.C
	}
}

// A server in a sandbox, of what the plainest image has.
const hello = `exec perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:3000", Listen => 9, ReuseAddr => 1) or die $!;
while ($c = $s->accept) { while (<$c>) { last if /^\r?$/ } print $c "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"; close $c }'`

// The whole of it, from the outside: sandboxd in a container makes sandboxes beside itself, reaches into them through the
// data folder that both see, and Traefik in another leads the world to them.
func TestStack_ServesSandboxesOverHTTPS(t *testing.T) {
	s := newStack(t)
	t.Cleanup(func() {
		for _, volume := range []string{"acme", "sockets"} {
			docker(t, "volume", "rm", s.prefix+"-"+volume)
		}
	})
	for _, name := range []string{"socket-proxy", "sandboxd", "traefik"} {
		s.up(name)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		s.until(s.domain, path, func(status int, _ string) bool { return status == http.StatusOK })
	}
	docker(t, "exec", s.prefix+"-sandboxd", "sandboxd", "doctor", "--only", "firewall,bridge,port,data")
	s.token = docker(t, "exec", s.prefix+"-sandboxd", "sandboxd", "token", "create", "e2e")
	s.make("lab")
	defer s.unmake("lab")
	s.trustsOwnCertificate("lab")
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.call(http.MethodPost, s.domain, "/api/v1/sandboxes/lab/exec", map[string]any{"command": hello, "timeout": "30s"})
		ended <- err
	}()
	s.until("3000-lab."+s.domain, "/", func(status int, body string) bool { return status == http.StatusOK && body == "hello" })
	select {
	case err := <-ended:
		t.Errorf("the server in the sandbox has ended: %v", err)
	default:
	}
}

// trustsOwnCertificate looks in a sandbox for the certificate that is in CA_DIR.
func (s *stack) trustsOwnCertificate(name string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.certs, "cert.pem"))
	if err != nil {
		s.t.Fatal(err)
	}
	line := strings.Split(string(text), "\n")[2] // of its base64, by which it is known
	status, body, err := s.call(http.MethodPost, s.domain, "/api/v1/sandboxes/"+name+"/exec",
		map[string]any{"command": "grep --count --fixed-strings " + line + " $SSL_CERT_FILE"})
	if err != nil || status != http.StatusOK || !strings.Contains(body, `"1\n"`) {
		s.t.Errorf("the certificate in a sandbox: %d %s, %v", status, body, err)
	}
}

// make creates a sandbox from the template in TEMPLATES_DIR; its network goes with the last one.
func (s *stack) make(name string) {
	s.t.Helper()
	status, body, err := s.call(http.MethodPost, s.domain, "/api/v1/sandboxes?wait=ready", map[string]any{"name": name, "template": "mine"})
	if err != nil || status != http.StatusCreated {
		s.t.Fatalf("create: %d %s, %v", status, body, err)
	}
}

func (s *stack) unmake(name string) {
	s.t.Helper()
	if status, body, err := s.call(http.MethodDelete, s.domain, "/api/v1/sandboxes/"+name+"?wait=gone", nil); err != nil || status >= 300 {
		s.t.Error(fmt.Errorf("delete: %d %s: %w", status, body, err))
	}
}
