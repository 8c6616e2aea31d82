package guest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/guest/files"
	"sandboxd/internal/tools/risk"
	"sandboxd/internal/wire"
)

// presetsOf gives what the presets add to an environment.
func presetsOf(env map[string]string) map[string]string {
	all := environment(maps.Clone(env))
	all.preset()
	maps.DeleteFunc(all, func(k, _ string) bool { _, set := env[k]; return set })
	return all
}

func TestPresets_LeadClientsToTheSandboxsModels(t *testing.T) {
	got := presetsOf(map[string]string{})
	for k, want := range map[string]string{
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:7465", "ANTHROPIC_AUTH_TOKEN": "sandbox", "ANTHROPIC_MODEL": "best",
		"ANTHROPIC_SMALL_FAST_MODEL": "fast", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "fast",
		"ANTHROPIC_DEFAULT_OPUS_MODEL": "best", "ANTHROPIC_DEFAULT_FABLE_MODEL": "best", "GEMINI_MODEL": "best",
		"OPENAI_BASE_URL": "http://127.0.0.1:7465/v1", "OPENAI_API_KEY": "sandbox", "OPENAI_MODEL": "best",
		"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:7465", "GEMINI_API_KEY": "sandbox",
		"IS_SANDBOX": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
	} {
		if got[k] != want {
			t.Errorf("%s is %q", k, got[k])
		}
	}
	if _, set := got["OLLAMA_HOST"]; set {
		t.Error("a server of Ollama's in the sandbox would listen at the sandbox's models")
	}
}

// A key of the user's own must not go to the sandbox's models, nor a name that only they know to another provider.
func TestPresets_LeaveAClientAloneThatHasAProviderOfItsOwn(t *testing.T) {
	got := presetsOf(map[string]string{"OPENAI_API_KEY": "sk-own", "ANTHROPIC_BASE_URL": "https://proxy"})
	for k := range got {
		if strings.HasPrefix(k, "OPENAI_") || strings.HasPrefix(k, "ANTHROPIC_") {
			t.Errorf("%s is %q", k, got[k])
		}
	}
	if got["GEMINI_API_KEY"] != "sandbox" || got["IS_SANDBOX"] != "1" {
		t.Errorf("got %q", got)
	}
	got = presetsOf(map[string]string{"ANTHROPIC_MODEL": "theirs", "IS_SANDBOX": ""})
	if got["ANTHROPIC_BASE_URL"] == "" || got["ANTHROPIC_MODEL"] != "" || got["IS_SANDBOX"] != "" {
		t.Errorf("got %q", got)
	}
}

func TestPresets_AreOfASandboxThatIsOfferedModelsAndComeLast(t *testing.T) {
	g := New(Config{Home: "/"})
	g.base = map[string]string{"GEMINI_API_KEY": "the image's"}
	who := account{name: "agent", home: "/home/agent"}
	if env := g.environ(who, nil, true); env["ANTHROPIC_BASE_URL"] != "" {
		t.Errorf("got %q", env.list())
	}
	g.setup.Store(&wire.Setup{Models: true, Env: map[string]string{"ANTHROPIC_API_KEY": "the sandbox's"}})
	env := g.environ(who, map[string]string{"OPENAI_BASE_URL": "the command's"}, true)
	for k, want := range map[string]string{"GEMINI_API_KEY": "the image's", "GOOGLE_GEMINI_BASE_URL": "", "ANTHROPIC_BASE_URL": "",
		"OPENAI_BASE_URL": "the command's", "OPENAI_API_KEY": "", "IS_SANDBOX": "1"} {
		if env[k] != want {
			t.Errorf("%s is %q", k, env[k])
		}
	}
	if sh := g.shell(); !strings.Contains(strings.Join(sh.Env, "\n"), "OPENAI_MODEL=best") {
		t.Errorf("a terminal has %q", sh.Env)
	}
}

// homeTree gives files whose root is a new folder, with a home of user 1000.
func homeTree(t *testing.T) (tree *files.Tree, home string) {
	t.Helper()
	root := t.TempDir()
	for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		check(t, os.Chmod(dir, 0o755))
	}
	home = filepath.Join(root, "home")
	check(t, os.Mkdir(home, 0o755))
	check(t, os.Chown(home, 1000, 1000))
	tree = files.New(files.Config{Root: root, User: func() files.User { return files.User{UID: 1000, GID: 1000, Home: "/home"} }})
	t.Cleanup(tree.Close)
	return tree, home
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPresetFiles_AreTheUsersAndReadAsTheirFormat(t *testing.T) {
	tree, home := homeTree(t)
	placePresets(tree, "/home")
	for _, f := range presetFiles {
		b, err := os.ReadFile(filepath.Join(home, f.path))
		if err != nil || string(b) != f.text {
			t.Errorf("%s: got %q, %v", f.path, b, err)
		}
		if strings.HasSuffix(f.path, ".json") && !json.Valid(b) {
			t.Errorf("%s is no JSON", f.path)
		}
	}
	entries, err := os.ReadDir(filepath.Join(home, ".codex"))
	if err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// What Codex runs without asking is harmless, with any arguments, also for sandboxd's own agent.
func TestPresetFiles_LetCodexOnlyLook(t *testing.T) {
	_, list, _ := strings.Cut(codexRules, "looks = [")
	list, _, _ = strings.Cut(list, "]")
	names := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("\", \n", r) })
	if len(names) < 20 {
		t.Fatalf("got %q", names)
	}
	for _, name := range names {
		if j := risk.Command(name + " -o -i -x --output=file -exec id"); j.Level > risk.Harmless {
			t.Errorf("%s is not harmless: %q", name, j.Reasons)
		}
	}
}

func TestPresetFiles_NeverReplaceTheUsersOwn(t *testing.T) {
	tree, home := homeTree(t)
	for path, text := range map[string]string{".codex/auth.json": "{}", ".gemini/settings.json": "", ".qwen/settings.json": "mine"} {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o755))
		check(t, os.WriteFile(filepath.Join(home, path), []byte(text), 0o600))
	}
	placePresets(tree, "/home")
	for path, want := range map[string]string{".gemini/settings.json": "", ".qwen/settings.json": "mine"} {
		if b, err := os.ReadFile(filepath.Join(home, path)); err != nil || string(b) != want {
			t.Errorf("%s: got %q, %v", path, b, err)
		}
	}
	for _, path := range []string{".codex/config.toml", ".codex/rules"} {
		if _, err := os.Stat(filepath.Join(home, path)); !os.IsNotExist(err) {
			t.Errorf("someone who has logged in to Codex is led elsewhere: %s, %v", path, err)
		}
	}
}

// What the sandbox's user plants must not have root write where the user could not.
func TestPresetFiles_FollowNoLinkThatIsPlanted(t *testing.T) {
	tree, home := homeTree(t)
	outside := filepath.Join(filepath.Dir(home), "etc")
	check(t, os.Mkdir(outside, 0o755)) // root's, in the same sandbox
	check(t, os.Symlink("/etc", filepath.Join(home, ".codex")))
	check(t, os.Mkdir(filepath.Join(home, ".gemini"), 0o755))
	check(t, os.Chown(filepath.Join(home, ".gemini"), 1000, 1000))
	check(t, os.Symlink("nowhere", filepath.Join(home, ".gemini/settings.json")))
	check(t, os.Symlink("../../../etc", filepath.Join(home, ".qwen")))
	placePresets(tree, "/home")
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
	if entries, err := os.ReadDir(filepath.Join(home, ".gemini")); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(home, ".config/opencode/opencode.json")); err != nil {
		t.Errorf("the others are not written: %v", err)
	}
}

func TestPresetFiles_NeedAHomeThatIsThereAndTheUsers(t *testing.T) {
	tree, home := homeTree(t)
	placePresets(tree, "/none")
	placePresets(tree, "/")
	check(t, os.Chown(home, 0, 0)) // as one that cannot be written to
	placePresets(tree, "/home")
	for _, dir := range []string{home, filepath.Dir(home)} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
			t.Errorf("got %v, %v", entries, err)
		}
	}
}
