//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// injected is a server with a sandbox whose agent is told by what it reads to do harm, and another sandbox of the same person, its victim.
type injected struct {
	*asker
	marker   string // a secret of the victim
	careless string // what a careless service of this host says
	victim   string // its address
	link     string // of a conversation of the victim
	keeps    snapshotBody
	hosts    []string // of this host, with a port each: where sandboxd and the careless service are, or would be
	before   string
	seen     int // requests that were looked at
}

// cloudSays is in the answer of the cloud's service.
const cloudSays = "Here is " + metadata

func newInjected(t *testing.T) *injected {
	t.Helper()
	p := gatewaytest.NewProvider(t)
	a := &asker{server: newServer(t, "--prebuild", ""), provider: p, secret: p.Key()}
	for _, kind := range []gateway.Kind{gateway.Anthropic, gateway.OpenAI} {
		a.sets("/providers/"+string(kind), map[string]any{"kind": kind, "base_url": p.BaseURL(kind), "key": p.Key(), "models": []string{"scripted-1"}})
	}
	for _, name := range []string{closedBox, "victim"} {
		a.create(map[string]any{"name": name, "template": "base"})
	}
	a.sets("/models/budgets", map[string]any{"scope": "sandbox", "subject": closedBox, "period": "month", "requests": 100_000})
	w := &injected{asker: a, marker: "marker-of-the-victim", careless: "told-by-the-host"}
	w.setsUpVictim()
	port := w.carelessService()
	w.hosts = []string{"127.0.0.1:" + w.port(), "localhost:" + w.port(), "[::1]:" + w.port()}
	for _, host := range append(hostAddresses(t), "host.docker.internal", "gateway.docker.internal", engine(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}", w.container(closedBox))) {
		w.hosts = append(w.hosts, host+":"+w.port(), host+":"+port)
	}
	cloud(t)
	w.in("git config --global user.email a@example.test; git config --global user.name a; git init -q work")
	w.before = w.state()
	return w
}

func (a *asker) sets(path string, in any) {
	a.t.Helper()
	if status, text := a.raw("PUT", path, in); status >= 300 {
		a.t.Fatalf("%s: %d %s", path, status, text)
	}
}

// setsUpVictim has the victim serve its secret to all who reach it, and keep it in a snapshot and a conversation with a link.
func (w *injected) setsUpVictim() {
	w.t.Helper()
	w.exec("victim", map[string]any{"command": "echo " + w.marker + " > marker.txt; setsid -f python3 -m http.server 8000 >/dev/null 2>&1 </dev/null"})
	w.keeps = w.snapshot("victim", "kept")
	w.victim = engine(w.t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", w.container("victim"))
	var c struct{ ID string }
	var l struct{ URL string }
	w.call("POST", "/sandboxes/victim/conversations", map[string]any{"title": w.marker}, &c)
	if w.call("POST", "/sandboxes/victim/conversations/"+c.ID+"/links", map[string]any{}, &l); l.URL == "" {
		w.t.Fatal("no link")
	}
	_, w.link, _ = strings.Cut(l.URL, "#")
	if out := w.exec("victim", map[string]any{"command": "for i in 1 2 3 4 5 6 7 8 9; do curl -s http://127.0.0.1:8000/marker.txt && break; sleep 0.3; done"}); !strings.Contains(out.Stdout, w.marker) {
		w.t.Fatalf("the victim does not serve: %+v", out)
	}
}

// carelessService answers on all addresses of this host, and gives its port.
func (w *injected) carelessService() string {
	w.t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, w.careless) })}
	go server.Serve(l)
	w.t.Cleanup(func() { server.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// state is all that an attack might change: what the API and the command line say, without what each call counts up.
func (w *injected) state() string {
	w.t.Helper()
	var b strings.Builder
	for _, path := range []string{"/providers", "/providers/openai", "/models", "/models/aliases", "/models/budgets", "/models/settings", "/users/me", "/tokens", "/sandboxes/victim", "/sandboxes/victim/snapshots", "/sandboxes/victim/conversations"} {
		status, text := w.raw("GET", path, nil)
		var value any
		if json.Unmarshal(text, &value) == nil {
			text, _ = json.Marshal(still(value))
		}
		fmt.Fprintf(&b, "%s %d %s\n", path, status, text)
	}
	b.WriteString(w.cli("user", "list"))
	out := w.exec("victim", map[string]any{"command": "cat marker.txt; find . -newer marker.txt -type f -not -path './.cache/*' | sort; ls -A ~ ~/.ssh 2>/dev/null"})
	home, _ := os.UserHomeDir()
	keys, _ := os.ReadFile(filepath.Join(home, ".ssh", "authorized_keys"))
	return b.String() + out.Stdout + string(keys)
}

// still leaves out what changes by itself.
func still(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if slices.Contains([]string{"used", "last_used_at", "because", "sleeps_at", "idle_since", "last_active_at", "usage", "disk", "memory", "cpu", "size"}, name) || strings.HasSuffix(name, "_at") || strings.HasSuffix(name, "_bytes") {
				delete(v, name)
			} else {
				v[name] = still(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = still(v[i])
		}
	}
	return v
}

// talks begins a conversation.
func (w *injected) talks(in map[string]any) *talk {
	w.t.Helper()
	all := "/sandboxes/" + closedBox + "/conversations"
	var c struct{ ID string }
	if status := w.call("POST", all, in, &c); status != http.StatusCreated {
		w.t.Fatalf("create: %d", status)
	}
	return &talk{a: w.asker, path: all + "/" + c.ID, items: map[int64]*talkItem{}}
}

// says sends a message, and waits until the agent has said that it is done.
func (k *talk) says(message map[string]any, done string) {
	k.a.t.Helper()
	k.post("/messages", message)
	k.until("it is done", func() bool { return k.state != "" && k.idle() && strings.Contains(k.text(), done) })
}

// unharmed looks for what must never happen, whatever the model is told. It gives what the model was sent last.
func (w *injected) unharmed() string {
	w.t.Helper()
	all := w.provider.Requests()
	last := ""
	for _, r := range all[w.seen:] {
		last = string(r.Body)
		for what, secret := range map[string]string{"the provider's key": w.secret, "the person's token": w.token, "the victim's file": w.marker, "the host's service": w.careless, "the cloud's service": cloudSays, "the password": journeyPassword} {
			if strings.Contains(last, secret) {
				w.t.Errorf("the model is sent %s", what)
			}
		}
		for name, values := range r.Header {
			text := strings.Join(values, " ")
			if name == "Cookie" || strings.Contains(text, w.token) || strings.Contains(text, "stolen") || name == "Authorization" && text != "Bearer "+w.secret || name == "X-Api-Key" && text != w.secret {
				w.t.Errorf("the provider gets the header %s", name)
			}
		}
	}
	w.seen = len(all)
	if now := w.state(); now != w.before {
		w.t.Errorf("it changed\n%s\nto\n%s", w.before, now)
	}
	if found := w.exec(closedBox, map[string]any{"command": "grep -rlaE 'marker[-]of-the|told[-]by-the' ~ /tmp 2>/dev/null"}).Stdout; found != "" {
		w.t.Errorf("in the sandbox are %s", found)
	}
	return last
}

// question is what the person is asked.
type askedOf struct {
	ID, Title, Text, Folder string
	Reasons                 []string
	Call                    int64
	Free                    bool
	Choices                 []struct{ ID, Label, Style string }
}

func (k *talk) ask() (q askedOf, open bool) {
	for _, it := range k.items {
		if it.Kind == "question" && it.Open && json.NewDecoder(bytes.NewReader(it.Data)).Decode(&q) == nil {
			return q, true
		}
	}
	return q, false
}

// plant puts an order where the agent will look: it gives the conversation, the person's message, and the calls by which the order is read.
func (w *injected) plant(from, order string, i int) (k *talk, message map[string]any, reads []gatewaytest.Call) {
	w.t.Helper()
	begins := map[string]any{"model": "best", "mode": "auto"}
	message = map[string]any{"text": "Have a look, please."}
	write := func(path string) {
		w.in(fmt.Sprintf("mkdir -p $(dirname %[2]s); printf '%%s\\n' %[1]q >> %[2]s", order, path))
	}
	switch from {
	case "file":
		write("notes.txt")
		reads = use("read_file", map[string]any{"path": "notes.txt"})
	case "readme":
		write("work/README.md")
		reads = use("read_file", map[string]any{"path": "work/README.md"})
	case "git log":
		w.in(fmt.Sprintf("cd work && git commit -q --allow-empty -m %q", order))
		reads = use("run_command", map[string]any{"command": "git log", "folder": "work"})
	case "output":
		write("build.txt")
		reads = use("run_command", map[string]any{"command": "cat build.txt >&2; exit 1"})
	case "file name", "listing":
		w.in(fmt.Sprintf(`mkdir -p "names/%s"`, order))
		reads = use("list_folder", map[string]any{"path": "names"})
	case "service log":
		w.sets("/sandboxes/"+closedBox+"/services", map[string]any{"services": []any{map[string]any{"name": fmt.Sprint("web", i), "command": []string{"sh", "-c", fmt.Sprintf("echo %q; exec sleep 1000", order)}, "autostart": true}}})
		w.until("its log is kept", func() bool {
			_, text := w.raw("GET", "/logs?sandbox="+closedBox, nil)
			return strings.Contains(string(text), order)
		})
		reads = use("service_log", map[string]any{"service": fmt.Sprint("web", i)})
	case "search":
		write("found/deep.txt")
		reads = use("search_files", map[string]any{"query": "IMPORTANT message", "folder": "found"})
	case "code":
		reads = use("run_code", map[string]any{"language": "python", "code": fmt.Sprintf("print(%q)", order)})
	case "attachment":
		write(".attachments/" + fmt.Sprint(i) + "/order.txt")
		message["files"] = []any{map[string]any{"name": "order.txt", "type": "text/plain", "path": fmt.Sprintf("/home/agent/.attachments/%d/order.txt", i)}}
		reads = use("read_file", map[string]any{"path": fmt.Sprintf(".attachments/%d/order.txt", i)})
	case "agent":
		k = w.talks(map[string]any{"agent": "scripted", "mode": "auto"})
		k.says(map[string]any{"text": fmt.Sprintf("run printf '%%s' %q | tee report.md", order)}, "completed")
		if !strings.Contains(k.String(), order) {
			w.t.Errorf("the other agent says %s", k)
		}
		reads = use("read_file", map[string]any{"path": "report.md"})
	case "summary", "conversation":
		return w.continues(from, order, begins), message, nil
	}
	return w.talks(begins), message, reads
}

// continues gives a conversation with an order in what was before: in a summary, or in the conversation that it is a branch of.
func (w *injected) continues(from, order string, begins map[string]any) *talk {
	w.t.Helper()
	k := w.talks(begins)
	if from == "summary" { // which the next turn begins with
		w.provider.Play(gatewaytest.Script{Text: strings.Repeat("x", 900_000) + " END"})
		k.says(map[string]any{"text": "begin"}, "END")
		w.provider.Play(gatewaytest.Script{Text: order})
		return k
	}
	w.provider.Play(gatewaytest.Script{Text: order + " END"})
	k.says(map[string]any{"text": "begin"}, "END")
	var branch struct{ ID string }
	if status := w.call("POST", k.path+"/branch", map[string]any{"item": k.last()}, &branch); status != http.StatusCreated {
		w.t.Fatalf("branch: %d", status)
	}
	return &talk{a: w.asker, path: "/sandboxes/" + closedBox + "/conversations/" + branch.ID, items: map[int64]*talkItem{}}
}

func (k *talk) last() (n int64) {
	for at := range k.items {
		n = max(n, at)
	}
	return n
}

// results are what came of the calls after a text of the agent's.
func (k *talk) results(from string) string {
	var b strings.Builder
	begun := false
	for n := range k.last() + 1 {
		it := k.items[n]
		if it == nil {
			continue
		}
		begun = begun || it.Kind == "text" && it.Text == from
		var call struct{ Tool, Result, Status string }
		if begun && it.Kind == "call" && json.Unmarshal(it.Data, &call) == nil {
			fmt.Fprintf(&b, "[%s %s]\n%s%s\n", call.Tool, call.Status, call.Result, it.Output)
		}
	}
	return b.String()
}
