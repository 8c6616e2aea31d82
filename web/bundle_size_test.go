package web

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"sandboxd/internal/sandbox"
	"sandboxd/static"
)

// firstLoad is how much the front page may cost a browser that has nothing of ours: all that it loads, compressed.
const firstLoad = 100_000

// firstWorkspace is how much the workspace may cost a browser that has nothing of ours, without what its terminals bring.
const firstWorkspace = 300_000

// chunkImport finds what a module imports when it is loaded.
var chunkImport = regexp.MustCompile(`(?:import|from)\s*"\./([\w.-]+)"`)

func TestBundle_FirstLoadIsSmall(t *testing.T) {
	if problem := static.New().Problem(); problem != "" {
		t.Fatal(problem)
	}
	s := newStage(t)
	for i := range 60 {
		s.put("ada", fmt.Sprintf("box-%d", i), func(b *sandbox.Sandbox) { b.Label = fmt.Sprintf("Experiment %d", i*i) })
	}
	page := s.get("root", "/").is(http.StatusOK)
	total := s.get("root", "/", "Accept-Encoding", "gzip, deflate, br").is(http.StatusOK).Body.Len()
	if total*3 > page.Body.Len() {
		t.Errorf("a page of %d bytes is sent as %d", page.Body.Len(), total)
	}
	seen := map[string]bool{}
	for _, tag := range []string{"link", "script"} {
		for _, n := range page.all(tag) {
			total += s.weigh(attr(n, "href")+attr(n, "src"), seen)
		}
	}
	if len(seen) < 3 {
		t.Fatalf("the page loads %v", seen)
	}
	if total > firstLoad {
		t.Errorf("the first load is %d bytes: %v", total, seen)
	}
	for path := range seen {
		if strings.Contains(s.get("", path).Body.String(), "xterm") {
			t.Errorf("%s brings the terminal", path)
		}
	}
	t.Logf("first load: %d bytes", total)
}

func TestBundle_TheWorkspaceLoadsTheTerminal(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/sandboxes/brave-otter")
	seen := map[string]bool{}
	for _, n := range page.all("script") {
		s.weigh(attr(n, "src"), seen)
	}
	for path := range seen {
		if strings.Contains(s.get("", path).Body.String(), "xterm") {
			return
		}
	}
	t.Errorf("no terminal in %v", seen)
}

// TestBundle_TheWorkspacesFirstLoadIsSmall: the tree is there at once; the editor's code, PDF, Markdown and tables come when
// they are needed. All of it is ours.
func TestBundle_TheWorkspacesFirstLoadIsSmall(t *testing.T) {
	s := newStage(t)
	s.furnish()
	page := s.get("root", "/sandboxes/brave-otter").is(http.StatusOK)
	total := s.get("root", "/sandboxes/brave-otter", "Accept-Encoding", "gzip, deflate, br").is(http.StatusOK).Body.Len()
	seen := map[string]bool{}
	for _, tag := range []string{"link", "script"} {
		for _, n := range page.all(tag) {
			address := attr(n, "href") + attr(n, "src")
			if !strings.HasPrefix(address, static.Prefix) {
				t.Errorf("it loads %q", address)
			}
			total += s.weigh(address, seen)
		}
	}
	if total > firstWorkspace {
		t.Errorf("the first load is %d bytes: %v", total, seen)
	}
	tree := false
	for path := range seen {
		body := s.get("", path).Body.String()
		tree = tree || strings.Contains(body, "sandbox-files")
		for _, late := range []string{"cm-selectionLayer", "GlobalWorkerOptions", "ALLOWED_URI_REGEXP", "skipEmptyLines"} {
			if strings.Contains(body, late) {
				t.Errorf("%s brings %s", path, late)
			}
		}
	}
	if !tree {
		t.Error("the tree is not in it")
	}
	t.Logf("first load: %d bytes", total)
}

// weigh gives the compressed size of a file and of the modules that it imports, each once.
func (s *stage) weigh(path string, seen map[string]bool) int {
	s.t.Helper()
	if path == "" || seen[path] {
		return 0
	}
	seen[path] = true
	size := s.get("", path, "Accept-Encoding", "br").is(http.StatusOK).Body.Len()
	for _, m := range chunkImport.FindAllStringSubmatch(s.get("", path).Body.String(), -1) {
		size += s.weigh(static.Prefix+m[1], seen)
	}
	return size
}
