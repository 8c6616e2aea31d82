package guest

import (
	"context"
	"path"
	"strconv"
	"time"

	"sandboxd/internal/guest/files"
	"sandboxd/internal/wire"
)

// modelsURL is where programs in the sandbox find models.
var modelsURL = "http://127.0.0.1:" + strconv.Itoa(wire.ModelsPort)

// aToken is the key that clients insist on having. It is no secret, and opens nothing.
const aToken = "sandbox"

// preset is the environment that leads the clients of one protocol to the sandbox's models.
type preset struct {
	own []string          // with one of these set, the client has a provider already, and gets none of env
	env map[string]string // where a variable is not set
}

// presets are all of them. OLLAMA_HOST is in none: it is also where a server of Ollama's in the sandbox would listen. The model names
// are those that the gateway always knows.
var presets = []preset{
	{own: []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
		"CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"},
		env: map[string]string{"ANTHROPIC_BASE_URL": modelsURL, "ANTHROPIC_AUTH_TOKEN": aToken, "ANTHROPIC_MODEL": "best",
			"ANTHROPIC_SMALL_FAST_MODEL": "fast", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "fast", "ANTHROPIC_DEFAULT_SONNET_MODEL": "best",
			"ANTHROPIC_DEFAULT_OPUS_MODEL": "best", "ANTHROPIC_DEFAULT_FABLE_MODEL": "best"}}, // Claude Code's own "best" is one of these
	{own: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY"},
		env: map[string]string{"OPENAI_BASE_URL": modelsURL + "/v1", "OPENAI_API_KEY": aToken, "OPENAI_MODEL": "best"}},
	{own: []string{"GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"},
		env: map[string]string{"GOOGLE_GEMINI_BASE_URL": modelsURL, "GEMINI_API_KEY": aToken, "GEMINI_MODEL": "best"}},
	{env: map[string]string{"IS_SANDBOX": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}}, // root may skip permissions; and models.dev is not asked
}

// preset adds the presets to an environment that is otherwise complete.
func (e environment) preset() {
	for _, p := range presets {
		if e.hasAny(p.own) {
			continue
		}
		for k, v := range p.env {
			if _, set := e[k]; !set {
				e[k] = v
			}
		}
	}
}

func (e environment) hasAny(names []string) bool {
	for _, name := range names {
		if _, set := e[name]; set {
			return true
		}
	}
	return false
}

// presetFile is the configuration of a client that its environment alone does not lead to the sandbox's models.
type presetFile struct {
	path string   // below the user's home
	own  []string // files that say that the client is set up already
	text string
}

// presetFiles are all of them. Names and addresses are those of the presets.
var presetFiles = []presetFile{
	{".codex/config.toml", []string{".codex/auth.json"}, `# Written by sandboxd, so that Codex uses the models that this sandbox is offered. Change it as you like: it is not written again.
model = "best"
model_provider = "sandboxd"
sandbox_mode = "danger-full-access"   # the sandbox is the one around it
check_for_update_on_startup = false
developer_instructions = """
When your sandbox_mode is read-only or workspace-write, commands fail here in the sandbox that you put them into, because it cannot be made on \
this machine. Request them with require_escalated at once, but for those that match an approved rule."""

[model_providers.sandboxd]
name = "sandboxd"
base_url = "` + modelsURL + `/v1"
wire_api = "responses"

[analytics]
enabled = false

[projects."` + wire.HomePath + `"]
trust_level = "trusted"
`},
	{".codex/rules/sandboxd.rules", []string{".codex/auth.json"}, codexRules},
	{".config/opencode/opencode.json", []string{".config/opencode/opencode.jsonc", ".config/opencode/config.json",
		".local/share/opencode/auth.json"}, `{
  "$schema": "https://opencode.ai/config.json",
  "autoupdate": false,
  "share": "disabled",
  "model": "sandboxd/best",
  "small_model": "sandboxd/fast",
  "provider": {
    "sandboxd": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "sandboxd",
      "options": {"baseURL": "` + modelsURL + `/v1", "apiKey": "` + aToken + `"},
      "models": {
        "best": {"name": "best", "tool_call": true, "limit": {"context": 128000, "output": 8192}},
        "fast": {"name": "fast", "tool_call": true, "limit": {"context": 128000, "output": 8192}}
      }
    },
    "sandboxd-anthropic": {
      "npm": "@ai-sdk/anthropic",
      "name": "sandboxd (Anthropic)",
      "options": {"baseURL": "` + modelsURL + `/v1", "apiKey": "` + aToken + `"},
      "models": {
        "best": {"name": "best", "tool_call": true, "limit": {"context": 128000, "output": 8192}},
        "fast": {"name": "fast", "tool_call": true, "limit": {"context": 128000, "output": 8192}}
      }
    }
  }
}
`},
	{".gemini/settings.json", []string{".gemini/oauth_creds.json"}, `{
  "security": {
    "auth": {"selectedType": "gemini-api-key"},
    "folderTrust": {"enabled": false}
  },
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false}
}
`},
	{".qwen/settings.json", []string{".qwen/oauth_creds.json"}, `{
  "security": {
    "auth": {"selectedType": "openai"},
    "folderTrust": {"enabled": false}
  },
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false}
}
`},
}

// codexRules has Codex run what only looks without asking, and without a sandbox of its own, which it cannot make in ours. Commands with
// redirections, variables or wildcards match no rule. None of these programs runs another one of its arguments or writes a file, and
// no other program is taken for one of them by its name.
const codexRules = `# Written by sandboxd, so that Codex runs these commands without asking: they only look. Change it as you like: it is not written again.
looks = [
    "basename", "cat", "cd", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "grep", "head", "id", "ls", "nl", "od", "ps", "pwd",
    "readlink", "realpath", "rev", "sha256sum", "stat", "tac", "tail", "tr", "true", "uname", "wc", "which", "whoami",
]
[host_executable(name = name, paths = ["/usr/bin/" + name, "/bin/" + name]) for name in looks]
prefix_rule(pattern = [looks], decision = "allow")
`

// presetWait is how long a setup waits for the files, so that the first command finds them. A home may be on a slow disk.
const presetWait = 250 * time.Millisecond

// presetHome writes the files that are not there yet, as the sandbox's user. It waits for them, but not for long. A home that cannot be
// written to does without.
func (g *Guest) presetHome(home string) {
	select {
	case g.presetting <- struct{}{}:
	default:
		return // another setup does
	}
	done := make(chan struct{})
	g.serving.Go(func() {
		defer func() { <-g.presetting; close(done) }()
		placePresets(g.files, home)
	})
	select {
	case <-done:
	case <-time.After(presetWait):
	}
}

// placePresets writes the files below home.
func placePresets(tree *files.Tree, home string) {
	for _, f := range presetFiles {
		unless := make([]string, len(f.own))
		for i, own := range f.own {
			unless[i] = path.Join(home, own)
		}
		_ = tree.Place(context.Background(), home, f.path, f.text, unless) // without it, the client is to be set up by hand
	}
}
