package archtest

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are words that a newcomer would have to ask about, and what to say instead.
var retired = map[string]string{
	"assemble": "open, or wire", "audience": "concurrency limit", "beats": "keep-alives", "brake": "activity probe", "brakes": "activity probes", "breath": "minimum uptime",
	"buried": "deleted", "bury": "store a tombstone", "deed": "action", "deeds": "actions", "door": "session, or access",
	"doors": "sessions, or access", "evict": "clear stale site data", "evicts": "clears stale site data",
	"grave": "tombstone", "graves": "tombstones", "ignite": "start", "ignites": "starts", "kids": "dependents", "knock": "request",
	"knocks": "requests", "launch": "start", "lookalike": "ttyd-compatible server", "mould": "fingerprint",
	"somebody": "a person, a user, the caller", "relent": "undo, or resync", "relents": "undoes, or resyncs", "rise": "start", "rouse": "wake", "rouses": "wakes", "spot": "directory entry",
	"squeeze": "limit", "strangers": "outsiders", "tenant": "sandbox", "tenants": "sandboxes", "twin": "duplicate network",
	"twins": "duplicate networks", "uprise": "start", "vigil": "keep-alive", "visit": "request", "voices": "poll detection", "wall": "firewall",
	"whoever": "the user, the caller, or a sentence without it",
}

// retiredNames are ordinary words in a text, but say too little as the name of a function or type.
var retiredNames = map[string]string{"hear": "read, or the event", "raise": "start", "stay": "await"}

// allowed are places that may use a retired word: a file, or a folder with all below it. An entry that nothing needs is an error.
var allowed = []struct{ word, place string }{
	{"assemble", "templates"}, // a script of the image of VS Code
	{"beats", "internal/proxy"},
	{"kids", "cmd/sandboxd/files_ui_hostile_e2e_test.go"}, // a key of PDF
	{"visit", "cmd/sandboxd/config.go"},                   // pflag's
	{"visit", "cmd/sandboxd/docs.go"},                     // pflag's
	{"visit", "internal/proxy/wakelimit_test.go"},
	{"visit", "web/document_test.go"}, // kin-openapi's
}

// named finds the name of a function or type.
var named = regexp.MustCompile(`^(?:func (?:\([^)]*\) )?|type )(\w+)`)

// words finds the words of prose and the parts of identifiers.
var words = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func TestWords_RetiredOnesAreNotUsed(t *testing.T) {
	root := filepath.Join("..", "..")
	used := make([]bool, len(allowed))
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, name, entry.Name())
		}
		at := strings.TrimPrefix(filepath.ToSlash(name), "../../")
		if !slices.Contains([]string{".go", ".templ", ".js", ".html", ".md", ".yaml", ".css", ".py", ".sh", "Dockerfile", "Makefile"}, cmp.Or(path.Ext(at), path.Base(at))) || strings.HasSuffix(at, "_templ.go") ||
			at == "internal/archtest/words_test.go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if name := named.FindStringSubmatch(line); name != nil && path.Ext(at) == ".go" && !strings.HasSuffix(at, "_test.go") && retiredNames[name[1]] != "" {
				t.Errorf("%s:%d: a function or type named %q says too little, say %s", at, i+1, name[1], retiredNames[name[1]])
			}
			for _, word := range words.FindAllString(line, -1) {
				word = strings.ToLower(word)
				if say := retired[word]; say != "" && !mayUse(used, word, at) {
					t.Errorf("%s:%d: %q is retired, say %s", at, i+1, word, say)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range allowed {
		if !used[i] {
			t.Errorf("%s does not use %q: take it out of the table", a.place, a.word)
		}
	}
}

// mayUse reports whether a file may use a retired word, and marks what allows it.
func mayUse(used []bool, word, file string) bool {
	for i, a := range allowed {
		if a.word == word && (file == a.place || strings.HasPrefix(file, a.place+"/")) {
			used[i] = true
			return true
		}
	}
	return false
}

// maxSentence is in words.
const maxSentence = 30

func TestReadme_SentencesAreShort(t *testing.T) {
	prose := regexp.MustCompile("(?s)```.*?```|<[^>]*>|\n    [^\n]*").ReplaceAllString(page(t, "README.md"), "\n\n")
	prose = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(prose, "]")
	for _, sentence := range regexp.MustCompile(`[.?!]\W*\s|\n\s*\n|\n\* |\n#|\|`).Split(prose, -1) {
		if n := len(strings.Fields(sentence)); n > maxSentence {
			t.Errorf("%d words, %d at most: %s", n, maxSentence, sentence)
		}
	}
}
