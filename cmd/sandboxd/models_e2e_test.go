//go:build e2e

package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// closedTemplates makes a folder with the template "closed": the base image, held strictly, and so without a network. It rests soon.
func closedTemplates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "closed"), os.DirFS("../../templates/sandbox/base")); err != nil {
		t.Fatal(err)
	}
	manifest := "name: closed\ntitle: Closed\ndescription: Held strictly.\nicon: lock\nprofile: strict\n" +
		"size: {cpus: 1, memory: 512MiB, pids: 256, disk: 1GiB}\nfreeze_after: 3s\nstop_after: 6s\n"
	if err := os.WriteFile(filepath.Join(dir, "closed", "template.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asker is a server with a sandbox that has no network, and a provider of models that the server asks for it.
type asker struct {
	*server
	provider *gatewaytest.Provider
	secret   string // of a key that the test looks for
}

const closedBox = "lab"

// newAsker configures the provider over the API, as an admin does.
func newAsker(t *testing.T) *asker {
	t.Helper()
	p := gatewaytest.NewProvider(t)
	a := &asker{server: newServer(t, "--prebuild", "", "--settle", "1s", "--templates", closedTemplates(t)), provider: p, secret: p.Key()}
	for _, kind := range []gateway.Kind{gateway.Anthropic, gateway.OpenAI} {
		in := map[string]any{"kind": kind, "base_url": p.BaseURL(kind), "key": p.Key(), "models": []string{"scripted-1", "scripted-2"}}
		if status, text := a.raw("PUT", "/providers/"+string(kind), in); status >= 300 || bytes.Contains(text, []byte(a.secret)) {
			t.Fatalf("provider %s: %d %s", kind, status, text)
		}
	}
	a.create(map[string]any{"name": closedBox, "template": "closed"})
	return a
}

// asks runs curl in the sandbox, as a program there would ask, and gives what it prints with the status as its last line.
func (a *asker) asks(path, body string) string {
	a.t.Helper()
	out := a.exec(closedBox, map[string]any{"command": fmt.Sprintf(`curl -sN -m 60 -w '\n%%{http_code}\n' -H 'content-type: application/json' -d '%s' http://127.0.0.1:7465%s`, body, path)})
	return out.Stdout + out.Stderr
}

const (
	askMessages = `{"model":"best","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
	askChat     = `{"model":"fast","stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

// TestModels_AProgramInASandboxAsksAModel is the whole way from a program in a sandbox without a network to a provider, and what must not
// be found on it.
func TestModels_AProgramInASandboxAsksAModel(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.provider.Play(gatewaytest.Script{Text: "good morning"})
	if got := a.asks("/v1/messages", askMessages); !strings.Contains(got, "morning") || !strings.Contains(got, "event: message_stop") || !strings.HasSuffix(got, "\n200\n") {
		t.Fatalf("messages: %s", got)
	}
	if got := a.asks("/v1/chat/completions", askChat); !strings.Contains(got, "data: [DONE]") || !strings.HasSuffix(got, "\n200\n") {
		t.Errorf("chat: %s", got)
	}
	env := a.exec(closedBox, map[string]any{"command": `env; curl -sS -m 3 http://192.0.2.1 2>&1; ls /sys/class/net`}).Stdout
	for _, want := range []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:7465\n", "OPENAI_BASE_URL=http://127.0.0.1:7465/v1\n", "curl: (7)"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in %s", want, env)
		}
	}
	a.staysAwakeWhileItAsks()
	a.asksFromOutside()
	a.isRefused()
	a.stop()
	a.start()
	if got := a.asks("/v1/messages", askMessages); !strings.HasSuffix(got, "\n200\n") {
		t.Errorf("after a restart of sandboxd: %s", got)
	}
	a.used()
	a.keyIsNowhere()
}

// staysAwakeWhileItAsks has a program in the background ask, whose answer takes longer than the sandbox's time until it rests.
func (a *asker) staysAwakeWhileItAsks() {
	a.t.Helper()
	gate := make(chan struct{})
	asked := len(a.provider.Requests())
	a.provider.Play(gatewaytest.Script{Text: "one two three", Gate: gate})
	a.exec(closedBox, map[string]any{"command": `setsid -f curl -sN -m 300 -o answer -H 'content-type: application/json' -d '` + askChat + `' http://127.0.0.1:7465/v1/chat/completions </dev/null >/dev/null 2>&1`})
	a.provider.Await(asked + 1)
	a.usedBy(closedBox, "model")
	held := time.NewTimer(12 * time.Second) // only time shows that it does not rest
	<-held.C
	if r := a.rest(closedBox); r.State != "running" || len(r.Because) != 1 || r.Because[0].Kind != "model" {
		a.t.Errorf("while it asks: %+v", r)
	}
	close(gate)
	a.until("it rests", func() bool { return a.rest(closedBox).State != "running" })
	if got := a.exec(closedBox, map[string]any{"command": "cat answer"}).Stdout; !strings.Contains(got, "three") || !strings.Contains(got, "[DONE]") {
		a.t.Errorf("the answer is %s", got)
	}
}

// outsider asks at /models as a program elsewhere does.
func (a *asker) outsider(token, path, body string) (int, string) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, "http://"+a.addr+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := a.http.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// asksFromOutside uses a token that is limited to models.
func (a *asker) asksFromOutside() {
	a.t.Helper()
	token := strings.TrimSpace(a.cli("token", "create", "editor", "--models"))
	if status, text := a.outsider(token, "/models/v1/messages", askMessages); status != http.StatusOK || !strings.Contains(text, "message_stop") {
		a.t.Errorf("from outside: %d %s", status, text)
	}
	if status, text := a.outsider(token+"x", "/models/v1/messages", askMessages); status != http.StatusUnauthorized || !strings.Contains(text, "authentication_error") {
		a.t.Errorf("with a wrong token: %d %s", status, text)
	}
	all := a.token
	a.token = token
	status, text := a.raw("GET", "/sandboxes", nil)
	a.token = all
	if status != http.StatusForbidden {
		a.t.Errorf("the API takes it: %d %s", status, text)
	}
}

// isRefused turns models off and on, and spends a budget.
func (a *asker) isRefused() {
	a.t.Helper()
	set := func(path string, in any) {
		a.t.Helper()
		if status, text := a.raw("PUT", path, in); status >= 300 {
			a.t.Fatalf("%s: %d %s", path, status, text)
		}
	}
	set("/models/settings", map[string]any{"off": true})
	if got := a.asks("/v1/messages", askMessages); !strings.Contains(got, `"type":"error"`) || !strings.Contains(got, "turned off") || !strings.HasSuffix(got, "\n403\n") {
		a.t.Errorf("while models are off: %s", got)
	}
	set("/models/settings", map[string]any{"off": false})
	budget := map[string]any{"scope": "sandbox", "subject": closedBox, "period": "month", "requests": 1}
	set("/models/budgets", budget)
	if got := a.asks("/v1/chat/completions", askChat); !strings.Contains(got, `"error"`) || !strings.Contains(got, "budget") || strings.HasSuffix(got, "\n200\n") {
		a.t.Errorf("with a spent budget: %s", got)
	}
	budget["requests"] = 1000
	set("/models/budgets", budget)
}

// used looks at what the API says of all that.
func (a *asker) used() {
	a.t.Helper()
	var calls struct {
		Calls []struct {
			Label, Asked, Model, Protocol, User string
			Status                              int
			Tokens                              struct{ Input, Output int64 }
		}
	}
	a.until("the calls are in the log", func() bool {
		calls.Calls = nil
		a.call("GET", "/models/calls?sandbox="+closedBox, nil, &calls)
		return len(calls.Calls) >= 6
	})
	first := calls.Calls[len(calls.Calls)-1]
	if first.Label != closedBox || first.Asked != "best" || first.Model != "scripted-1" || first.Protocol != "messages" || first.User != "admin" || first.Tokens.Output != 5 {
		a.t.Errorf("the first call is %+v", first)
	}
	var usage struct {
		Usage []struct {
			Label    string
			Requests int64
		}
	}
	if a.call("GET", "/models/usage?by=sandbox", nil, &usage); len(usage.Usage) != 2 || usage.Usage[0].Label != closedBox {
		a.t.Errorf("usage: %+v", usage)
	}
}

// keyIsNowhere looks for the provider's key wherever it must not be.
func (a *asker) keyIsNowhere() {
	a.t.Helper()
	never := func(where string, text []byte) {
		a.t.Helper()
		if i := bytes.Index(text, []byte(a.secret)); i >= 0 {
			a.t.Errorf("the key is in %s: %q", where, text[max(0, i-100):min(len(text), i+100)])
		}
	}
	regex := "[" + a.secret[:1] + "]" + a.secret[1:] // which does not find itself
	found := a.exec(closedBox, map[string]any{"user": "root", "command": "grep -rlaE '" + regex + "' /home /etc /tmp /run /var /root 2>/dev/null; env | grep -E '" + regex + "'; ps axeww | grep -E '" + regex + "'"})
	if found.Stdout != "" {
		a.t.Errorf("the key is in the sandbox: %s", found.Stdout)
	}
	known := false // the models' address, which is in the memory of the guest: that the search finds it says that it can find a key
	seen := a.memories(func(where string, text []byte) {
		never(where, text)
		known = known || strings.HasPrefix(where, "the memory") && bytes.Contains(text, []byte("http://127.0.0.1:7465"))
	})
	if seen < 2 || !known {
		a.t.Errorf("%d processes of the sandbox were looked at, and what is in them was found: %v", seen, known)
	}
	a.mu.Lock()
	log := bytes.Clone(a.log.Bytes())
	a.mu.Unlock()
	never("sandboxd's log", log)
	if err := filepath.WalkDir(a.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Base(path) == "pool.img" {
			return err
		}
		text, err := os.ReadFile(path)
		never(path, text)
		return err
	}); err != nil {
		a.t.Error(err)
	}
	for _, path := range []string{"/providers", "/providers/openai", "/models", "/models/settings", "/models/calls", "/models/usage", "/activity", "/log"} {
		_, text := a.raw("GET", path, nil)
		never(path, text)
	}
	client := a.login("admin", journeyPassword)
	for _, path := range []string{"/settings/models", "/settings/models/providers/openai", "/usage", "/usage/calls", "/activity"} {
		resp, err := client.Get("http://" + a.addr + path)
		if err != nil {
			a.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			a.t.Errorf("%s: %s, %v", path, resp.Status, err)
		}
		never("the page "+path, text)
	}
}

// memories gives never the environment, the arguments and the memory of every process of the sandbox, as the host sees them, and how many
// there are.
func (a *asker) memories(never func(where string, text []byte)) (seen int) {
	a.t.Helper()
	for line := range strings.Lines(engine(a.t, "top", a.container(closedBox), "-eo", "pid,args")) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		seen++
		for _, name := range []string{"environ", "cmdline"} {
			if text, err := os.ReadFile("/proc/" + pid + "/" + name); err == nil { // else it has ended
				never(name+" of "+args, text)
			}
		}
		a.memory(pid, func(text []byte) { never("the memory of "+args, text) })
	}
	return seen
}

// memory gives each what a process has mapped and can write to, part by part.
func (a *asker) memory(pid string, each func([]byte)) {
	a.t.Helper()
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return // it has ended
	}
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		a.t.Errorf("the memory of a process cannot be read: %v", err)
		return
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "rw") {
			continue
		}
		first, last, _ := strings.Cut(fields[0], "-")
		from, fromErr := strconv.ParseInt(first, 16, 64)
		to, toErr := strconv.ParseInt(last, 16, 64)
		if fromErr != nil || toErr != nil || to-from > 1<<30 {
			continue
		}
		text := make([]byte, to-from)
		n, err := mem.ReadAt(text, from)
		if err != nil && n == 0 {
			continue // a hole
		}
		each(text[:n])
	}
}
