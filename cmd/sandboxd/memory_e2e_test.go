//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/terminal"
)

// memoryServer is a server on an engine of its own that can keep the memory of sandboxes of the image base.
func memoryServer(t *testing.T) (*privateEngine, *server) {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "criu")); err != nil {
		t.Fatalf("%v: run 'make bin/criu' first", err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	image := strings.Fields(engine(t, "images", "sandboxd/base", "--format", "{{.Repository}}:{{.Tag}}"))[0]
	saved := filepath.Join(t.TempDir(), "base.tar")
	engine(t, "save", "-o", saved, image)
	e := newPrivateEngine(t, `{"experimental": true}`)
	engine(t, "load", "-i", saved)
	dockerfile := "FROM " + image + "\n"
	if !mayRaiseLimits() { // CRIU asks for the limits of a process, which root may not here but of its own ones
		dockerfile += "RUN sed -i /^agent:/d /etc/passwd\n"
	}
	build := exec.Command("docker", "build", "-q", "--network", "none", "-t", "memory:base", "-")
	build.Stdin = strings.NewReader(dockerfile)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	log := filepath.Join(e.dir, "criu.log")
	config := "mkdir -p /etc/criu && mount -t tmpfs tmpfs /etc/criu && printf 'tcp-close\\nfile-locks\\nverbosity 4\\nlog-file " + log + "\\n' > /etc/criu/runc.conf"
	if out, err := e.inside("sh", "-c", config).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("CRIU:\n%s", regexp.MustCompile(`(?m)^.*(Error|Warn).*$`).FindAll(text, 40))
		}
	})
	return e, newServer(t, "--prebuild", "", "--memory-snapshots")
}

// counters are programs that keep a secret and a count in memory, and tell them to who asks: of Python at port 8001, of Node at 8002.
const counters = `cat > count.py <<'END'
import fcntl, http.server, secrets, threading, time
lock = open("lock", "w"); fcntl.flock(lock, fcntl.LOCK_EX)
secret, n = secrets.token_hex(8), 0
def count():
    global n
    while True:
        n += 1
        time.sleep(.05)
threading.Thread(target=count, daemon=True).start()
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(f"{secret} {n}".encode())
http.server.ThreadingHTTPServer(("0.0.0.0", 8001), H).serve_forever()
END
cat > count.js <<'END'
const secret = require("crypto").randomBytes(8).toString("hex"); let n = 0
setInterval(() => n++, 50)
require("http").createServer((q, r) => r.end(secret + " " + n)).listen(8002)
END
setsid python3 count.py >/dev/null 2>&1 </dev/null &
setsid node count.js >/dev/null 2>&1 </dev/null &
for p in 8001 8002; do for i in $(seq 100); do curl -sf localhost:$p >/dev/null && break; sleep .1; done; done; echo ready`

// counted asks a counter in a sandbox.
func (s *server) counted(name string, port int) (secret string, n int) {
	s.t.Helper()
	out := s.exec(name, map[string]any{"command": fmt.Sprintf("curl -sf --max-time 10 localhost:%d", port)})
	if _, err := fmt.Sscanf(out.Stdout, "%s %d", &secret, &n); err != nil {
		s.t.Errorf("the counter at %d of %s: %v %+v", port, name, err, out)
	}
	return secret, n
}

// types types into a terminal of a sandbox, and waits until it shows something. It says what was shown when that does not come.
func (s *server) types(name, keys string, shown *regexp.Regexp) string {
	s.t.Helper()
	client := s.login("admin", journeyPassword)
	dialer := websocket.Dialer{Jar: client.Jar, HandshakeTimeout: callLimit, Subprotocols: []string{terminal.Subprotocol}}
	conn, resp, err := dialer.Dial("ws://"+s.addr+"/sandboxes/"+name+"/terminals/main/ws", http.Header{"Origin": {"http://" + s.addr}})
	if err != nil {
		s.t.Fatalf("open the terminal of %s: %v %v", name, err, resp)
	}
	defer conn.Close()
	for _, m := range []string{`{"AuthToken":"","columns":120,"rows":32}`, "0" + keys} {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
			s.t.Fatal(err)
		}
	}
	var all strings.Builder
	if err := conn.SetReadDeadline(time.Now().Add(eventLimit)); err != nil {
		s.t.Fatal(err)
	}
	for {
		_, m, err := conn.ReadMessage()
		if err != nil {
			s.t.Fatalf("the terminal of %s shows %q, and not %s: %v", name, all.String(), shown, err)
		}
		all.Write(m[min(1, len(m)):])
		if found := shown.FindString(all.String()); found != "" {
			return found
		}
	}
}

// TestMemory_ProgramsContinueInPlaceAndInClones keeps the memory of Python, Node, tmux and a terminal.
func TestMemory_ProgramsContinueInPlaceAndInClones(t *testing.T) {
	_, s := memoryServer(t)
	s.create(map[string]any{"name": "lab", "image": "memory:base", "memory": "512MiB"})
	if out, err := exec.Command("criu", "check").CombinedOutput(); err != nil { // what sandboxd is to say of this kernel, too
		if status, body := s.raw("POST", "/sandboxes/lab/snapshots", map[string]any{"memory": true}); status != http.StatusConflict || !strings.Contains(string(body), "CRIU does not work") {
			t.Errorf("CRIU says %s, and sandboxd %d %s", out, status, body)
		}
		return
	}
	s.asRoot("lab", "echo 00000000000000000000000000000000 > /etc/machine-id")
	s.types("lab", "MINE=of-the-terminal; echo it-is-$MINE\r", regexp.MustCompile("it-is-of-the-terminal"))
	s.exec("lab", map[string]any{"command": "tmux -L own new -d -s work bash; tmux -L own send-keys -t work 'MINE=of-tmux' Enter"})
	if out := s.exec("lab", map[string]any{"command": counters}); !strings.Contains(out.Stdout, "ready") {
		t.Fatalf("%+v", out)
	}
	snap := s.remembers("lab")
	secrets := map[int]string{}
	for _, port := range []int{8001, 8002} {
		secrets[port], _ = s.counted("lab", port)
	}
	s.exec("lab", map[string]any{"command": "pkill python3; pkill node; tmux -L own kill-server; rm count.py"})

	s.comesBack("lab", snap.ID)
	began := time.Now()
	names := s.clones("lab", map[string]any{"name": "copy", "count": 2, "snapshot": snap.ID})
	t.Logf("two clones took %s", time.Since(began))
	s.wantContinued(append(names, "lab"), secrets)

	s.saysWhatIsStopped("lab")
	s.sleeps("lab", "frozen")
	frozen := s.remembers("lab") // of one that was restored before
	s.comesBack("lab", frozen.ID)
	if got, _ := s.counted("lab", 8001); got != secrets[8001] {
		t.Errorf("as it was when it was frozen, its secret is %q, want %q", got, secrets[8001])
	}
	s.startsWithoutADamagedMemory("lab", frozen.ID)

	for _, b := range []memoryBody{snap, frozen} {
		s.call("DELETE", "/sandboxes/lab/snapshots/"+b.ID, nil, nil)
	}
	s.until("nothing of the memory is left", func() bool {
		left, err := os.ReadDir(filepath.Join(s.data, "checkpoints"))
		found, globErr := filepath.Glob(filepath.Join(os.TempDir(), "ctrd-checkpoint*", "sandboxd-"+s.instance()+"-*"))
		return err == nil && globErr == nil && len(left) == 0 && len(found) == 0
	})
}

// comesBack restores a sandbox to a snapshot with memory.
func (s *server) comesBack(name, id string) {
	s.t.Helper()
	began := time.Now()
	s.reverts(name, id)
	s.t.Logf("a restore in place took %s", time.Since(began))
	for _, b := range s.listed() {
		if b.Name == name && (b.Problem != "" || b.State != "running") {
			s.t.Errorf("%s is %s: %s", b.Name, b.State, b.Problem)
		}
	}
}

// wantContinued wants the programs of lab to continue in these sandboxes, each of which is one of its own.
func (s *server) wantContinued(names []string, secrets map[int]string) {
	s.t.Helper()
	same := map[string]bool{} // machine ids and addresses
	for _, name := range names {
		for port, secret := range secrets {
			got, n := s.counted(name, port)
			if got != secret {
				s.t.Errorf("%s at %d: its secret is %q, want %q", name, port, got, secret)
			}
			s.until("it counts on", func() bool { _, later := s.counted(name, port); return later > n })
		}
		out := s.exec(name, map[string]any{"command": "hostname; cat /etc/machine-id; tmux -L own send-keys -t work 'echo $MINE-$(hostname) > got' Enter; " +
			"for i in $(seq 100); do test -s got && break; sleep .1; done; cat got; echo $SANDBOXD_CLONED_FROM; ls count.py; " +
			"ip -4 -o addr show eth0 | tr -s ' ' | cut -d ' ' -f 4; getent hosts $(hostname) | cut -d ' ' -f 1"})
		lines := strings.Split(out.Stdout, "\n")
		if len(lines) < 7 || lines[0] != name || same[lines[1]] || lines[2] != "of-tmux-"+name || (lines[3] == "lab") != (name != "lab") ||
			lines[4] != "count.py" || same[lines[5]] || !strings.HasPrefix(lines[5], lines[6]+"/") {
			s.t.Errorf("%s: %+v", name, out)
		} else {
			same[lines[1]], same[lines[5]] = true, true
		}
		s.types(name, "echo it-is-$MINE\r", regexp.MustCompile("it-is-of-the-terminal"))
	}
	for _, b := range s.listed() {
		if b.Problem != "" || b.State != "running" {
			s.t.Errorf("%s is %s: %s", b.Name, b.State, b.Problem)
		}
	}
}

// saysWhatIsStopped keeps the memory of a sandbox with a program that is stopped, which hosts with cgroup v1 cannot.
func (s *server) saysWhatIsStopped(name string) {
	s.t.Helper()
	s.exec(name, map[string]any{"command": "setsid sleep 12345 >/dev/null 2>&1 </dev/null & sleep .5; pkill -STOP -f 'sleep 12345'"})
	status, body := s.raw("POST", "/sandboxes/"+name+"/snapshots?wait=ready", map[string]any{"memory": true})
	if status != http.StatusCreated && (status != http.StatusConflict || !strings.Contains(string(body), "The program sleep is stopped")) {
		s.t.Errorf("with a stopped program: %d %s", status, body)
	}
	s.exec(name, map[string]any{"command": "pkill -KILL -f 'sleep 12345'"})
	var b memoryBody
	if err := json.Unmarshal(body, &b); err == nil && status == http.StatusCreated {
		s.call("DELETE", "/sandboxes/"+name+"/snapshots/"+b.ID, nil, nil)
	}
}

// startsWithoutADamagedMemory damages the memory of a snapshot, and restores a sandbox to it.
func (s *server) startsWithoutADamagedMemory(name, id string) {
	s.t.Helper()
	pages, err := filepath.Glob(filepath.Join(s.data, "checkpoints", id, "pages-*.img"))
	if err != nil || len(pages) == 0 {
		s.t.Fatalf("%q %v", pages, err)
	}
	image, err := os.ReadFile(pages[0])
	if err != nil {
		s.t.Fatal(err)
	}
	image[len(image)/2] ^= 1
	if err := os.WriteFile(pages[0], image, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.reverts(name, id)
	for _, b := range s.listed() {
		if b.Name == name && (b.State != "running" || !strings.Contains(b.Problem, "so its programs were started anew: What was kept of its memory is damaged")) {
			s.t.Errorf("with a damaged memory it is %s: %q", b.State, b.Problem)
		}
	}
	if out := s.exec(name, map[string]any{"command": "ls count.py"}); out.Stdout != "count.py\n" {
		s.t.Errorf("with a damaged memory: %+v", out)
	}
}

type memoryBody struct {
	ID     string
	Memory int64 `json:"memory_bytes"`
	Paused int64 `json:"paused_ms"`
}

// remembers takes a snapshot with memory.
func (s *server) remembers(name string) (b memoryBody) {
	s.t.Helper()
	began := time.Now()
	status, body := s.raw("POST", "/sandboxes/"+name+"/snapshots?wait=ready", map[string]any{"memory": true})
	if err := json.Unmarshal(body, &b); err != nil || status != http.StatusCreated || b.Memory < 1<<20 {
		s.t.Fatalf("snapshot of %s: %d %s\n%s", name, status, body, s.tail())
	}
	s.t.Logf("a snapshot with %d bytes of memory took %s, of which it was frozen %d ms", b.Memory, time.Since(began), b.Paused)
	return b
}

func (s *server) listed() []sandboxBody {
	s.t.Helper()
	var all struct{ Sandboxes []sandboxBody }
	s.call("GET", "/sandboxes", nil, &all)
	return all.Sandboxes
}
