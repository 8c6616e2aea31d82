//go:build e2e || bench

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/sqlite"
)

// server is the real binary, run as a person would run it, with a data folder and a port of its own.
type server struct {
	t     testing.TB
	data  string
	addr  string
	other string // a sandboxd of another version that is run instead; "" for binary
	token string
	extra []string
	place place
	http  *http.Client
	process

	unclaimed bool // the first admin is to be made by the printed link

	mu    sync.Mutex
	setup string // the printed link
	log   *bytes.Buffer
}

// process is the server's last one.
type process struct {
	cmd      *exec.Cmd     // nil before the first start
	ended    chan struct{} // closed when it has
	patience time.Duration // how long a start may take; 0 for eventLimit
}

// place is where the processes of a test run: here when it is zero, else in a network of its own.
type place struct {
	enter func(name string, args ...string) *exec.Cmd
	reach func(ctx context.Context, network, address string) (net.Conn, error) // loopback there
}

func (p place) command(name string, args ...string) *exec.Cmd {
	if p.enter == nil {
		return exec.Command(name, args...)
	}
	return p.enter(name, args...)
}

func (p place) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.reach == nil {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return p.reach(ctx, network, address)
}

const (
	binary      = "../../bin/sandboxd"
	eventLimit  = time.Minute      // how long a test waits for an event, however busy the machine is
	buildLimit  = 15 * time.Minute // the first template build on a bare machine
	callLimit   = 2 * time.Minute
	removeLimit = 2 * time.Minute
)

var setupLink = regexp.MustCompile(`http://\S+/setup\?code=\S+`)

// journeyPassword is the first admin's, unless the environment of the test has another one.
const journeyPassword = "correct horse battery"

// newServer starts sandboxd and removes all that it made when the test ends.
func newServer(t testing.TB, extra ...string) *server {
	t.Helper()
	return newServerNamed(t, "", extra...)
}

// newServerNamed is newServer for one whose dashboard has a host of its own.
func newServerNamed(t testing.TB, host string, extra ...string) *server {
	t.Helper()
	s := prepare(t, host, extra...)
	s.begin()
	return s
}

// newUnclaimedServer is newServer for one that nobody has set up.
func newUnclaimedServer(t testing.TB, extra ...string) *server {
	t.Helper()
	s := prepare(t, "", extra...)
	s.unclaimed = true
	s.begin()
	return s
}

// begin starts it for the first time.
func (s *server) begin() {
	s.t.Helper()
	s.start()
	s.token = strings.TrimSpace(s.cli("token", "create", "e2e"))
}

// prepare is newServerNamed for one that is not started yet. Whatever comes of its start is removed when the test ends.
func prepare(t testing.TB, host string, extra ...string) *server {
	t.Helper()
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v: run 'make build' first", err)
	}
	data, err := os.MkdirTemp("", "sbx-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, data: data, addr: freeAddr(t), extra: extra, http: &http.Client{Transport: named(host)}, log: &bytes.Buffer{}}
	t.TempDir() // so that the test's folders are removed after the server has ended: it may be writing into them
	t.Cleanup(s.destroy)
	return s
}

// named sends every request with a Host, unless that is "".
type named string

// RoundTrip implements http.RoundTripper.
func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	if n != "" {
		r = r.Clone(r.Context())
		r.Host = string(n)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Ports of loopback for what tests start: below those that kernels give to connections and to listeners that name none.
const firstPort, lastPort = 20_000, 32_000

// freeAddr reserves an address of loopback until the test ends, also against test runs beside this one.
func freeAddr(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(os.TempDir(), "sbx-e2e-ports")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for range lastPort - firstPort {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		lock, err := os.OpenFile(filepath.Join(folder, port), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		addr := net.JoinHostPort("127.0.0.1", port)
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if l, err := net.Listen("tcp", addr); err == nil {
				l.Close()
				t.Cleanup(func() { lock.Close() })
				return addr
			}
		}
		lock.Close()
	}
	t.Fatal("no port is free")
	return ""
}

func (s *server) args(args ...string) []string { return append([]string{"--data", s.data}, args...) }

// start starts the process and waits until it serves.
func (s *server) start() {
	s.t.Helper()
	args := append(s.args("serve", "--listen", s.addr, "--log-level", "debug"), s.extra...)
	cmd := s.place.command(cmp.Or(s.other, binary), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !s.unclaimed && os.Getenv(adminPasswordEnv) == "" {
		cmd.Env = append(cmd.Environ(), adminPasswordEnv+"="+journeyPassword)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = &lockedWriter{mu: &s.mu, w: s.log}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if link := setupLink.FindString(lines.Text()); link != "" {
				s.mu.Lock()
				s.setup = link
				s.mu.Unlock()
			}
		}
	}()
	go func() {
		defer close(ended)
		<-read
		_ = cmd.Wait() // a test that wants to know how it ended looks at its log
	}()
	s.untilWithin(cmp.Or(s.patience, eventLimit), "sandboxd is ready", func() bool {
		if !s.runs() {
			s.t.Fatalf("sandboxd ends at its start; its log:\n%s", s.tail())
		}
		resp, err := s.http.Get("http://" + s.addr + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (s *server) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept strings.Builder
	for line := range strings.Lines(s.log.String()) {
		if !strings.Contains(line, "msg=request ") || !strings.Contains(line, "status=200") { // the tests' own polling
			kept.WriteString(line)
		}
	}
	text := kept.String()
	return text[max(0, len(text)-16_000):]
}

// cli runs a command of the binary on the same data folder and gives its standard output.
func (s *server) cli(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, cmp.Or(s.other, binary), s.args(args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("sandboxd %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// call calls the API and decodes the answer into out, unless it is nil. It gives the status.
func (s *server) call(method, path string, in, out any) int {
	s.t.Helper()
	status, body := s.raw(method, path, in)
	if out != nil && status < 300 {
		if err := json.Unmarshal(body, out); err != nil {
			s.t.Fatalf("%s %s: %d %s: %v", method, path, status, body, err)
		}
	}
	return status
}

func (s *server) raw(method, path string, in any) (int, []byte) {
	s.t.Helper()
	status, body, err := s.try(method, path, in)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", method, path, err, s.tail())
	}
	return status, body
}

// try is raw for callers that expect sandboxd to die under them.
func (s *server) try(method, path string, in any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+"/api/v1"+path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// sandboxBody is the API's sandbox, as far as the tests look at it.
type sandboxBody struct {
	Name, Label, Template, Image, State, Problem, Owner string
	URLs                                                struct{ Terminal, Dashboard string }
	Limits                                              struct {
		CPUs   float64
		Memory int64
		Pids   int64
	}
}

// create makes a sandbox and waits until it is ready.
func (s *server) create(in map[string]any) sandboxBody {
	s.t.Helper()
	status, body := s.raw("POST", "/sandboxes?wait=ready&timeout=900", in)
	if status != http.StatusCreated && status != http.StatusOK {
		s.t.Fatalf("create %v: %d %s\n%s", in, status, body, s.tail())
	}
	var out sandboxBody
	if err := json.Unmarshal(body, &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

type execBody struct {
	ExitCode       int `json:"exit_code"`
	Stdout, Stderr string
	Truncated      bool
	TimedOut       bool `json:"timed_out"`
}

func (s *server) exec(name string, in map[string]any) execBody {
	s.t.Helper()
	var out execBody
	if status, body := s.raw("POST", "/sandboxes/"+name+"/exec", in); status != http.StatusOK {
		s.t.Fatalf("exec %v in %s: %d %s", in, name, status, body)
	} else if err := json.Unmarshal(body, &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// until waits for an event.
func (s *server) until(what string, cond func() bool) {
	s.t.Helper()
	s.untilWithin(eventLimit, what, cond)
}

// untilWithin polls cond: the tests look from outside, where nothing can be waited on.
func (s *server) untilWithin(limit time.Duration, what string, cond func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			s.t.Fatalf("within %s it was not so that %s; log:\n%s", limit, what, s.tail())
		}
		<-tick.C
	}
}

// engine runs the docker command, to see from outside what the engine has.
func engine(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// artefact is where a test leaves a file for people to look at.
func artefact(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "artifacts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// instance is the label value that marks everything that this server's engine resources carry.
func (s *server) instance() string {
	s.t.Helper()
	id, err := sqlite.ReadInstance(filepath.Join(s.data, sqlite.InstanceFile))
	if err != nil {
		s.t.Fatal(err)
	}
	return cmp.Or(id, "none") // which nothing has
}

// login signs in through the form, as a browser does, and gives the client with its cookies.
func (s *server) login(name, password string) *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: callLimit}
	resp, err := client.PostForm("http://"+s.addr+"/login", url.Values{"name": {name}, "password": {password}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/" {
		s.t.Fatalf("login leads to %s with %s", resp.Request.URL, resp.Status)
	}
	return client
}

// settle waits until no sandbox is on its way anywhere, and gives the list.
func (s *server) settle() []sandboxBody {
	s.t.Helper()
	var list struct {
		Items []sandboxBody `json:"sandboxes"`
	}
	s.untilWithin(3*time.Minute, "every sandbox has settled", func() bool {
		list.Items = nil
		s.call("GET", "/sandboxes?limit=1000", nil, &list)
		return !slices.ContainsFunc(list.Items, func(b sandboxBody) bool {
			return b.State != "running" && b.State != "stopped" && b.State != "failed"
		})
	})
	return list.Items
}

// residentMiB is a process's resident size.
func residentMiB(t testing.TB, pid int) float64 {
	t.Helper()
	return statusMiB(t, pid, "VmRSS")
}

// statusMiB is a size that the kernel tells of a process.
func statusMiB(t testing.TB, pid int, field string) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("no " + field)
	return 0
}
