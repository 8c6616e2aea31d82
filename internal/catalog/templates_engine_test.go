//go:build engine

package catalog_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/templates"
)

// buildPatience bounds what one test waits for: a template from nothing, behind others.
const buildPatience = 30 * time.Minute

// openImages opens a catalog of folders, and keeps its images with the engine of this machine until the test ends.
func openImages(t *testing.T, folders ...string) (*catalog.Catalog, *catalog.Images) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	engine, err := docker.Open(ctx, docker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := catalog.ExtraCA(catalog.HostCA())
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(folders...)
	if err != nil {
		t.Fatal(err)
	}
	images := catalog.NewImages(c, engine, catalog.ImageOptions{CA: ca, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ended := make(chan error, 1)
	go func() { ended <- images.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, images
}

func ensure(t *testing.T, c *catalog.Catalog, images *catalog.Images, name string) (string, error) {
	t.Helper()
	tpl, err := c.Template(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), buildPatience)
	defer cancel()
	last := ""
	return images.Ensure(ctx, tpl, func(e catalog.BuildEvent) {
		if e.Line != "" && e.Line != last {
			t.Logf("%d/%d %s", e.Step, e.Steps, e.Line)
		}
		last = e.Line
	})
}

// run runs a script as the user of sandboxes, or as root, in a container of an image, without a network.
func run(t *testing.T, ref, user, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", "run", "--rm", "--init", "--network", "none", "--user", user, ref, "sh", "-lc", script)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %s: %v\n%s%s", ref, script, err, out, stderr.String())
	}
	return string(out)
}

// The four real templates: built (in seconds when they have been before), and the essentials of each used.
func TestTemplates_BuildAndWork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	if err := templates.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	c, images := openImages(t, dir)
	for _, e := range c.List() {
		if e.Problem != nil {
			t.Errorf("%s: %v", e.Name, e.Problem)
		}
		if e.Readme == "" || e.Template.Icon == "" {
			t.Errorf("%s has no README or icon", e.Name)
		}
	}
	for name, script := range essentials {
		t.Run(name, func(t *testing.T) {
			ref, err := ensure(t, c, images, name)
			if err != nil {
				t.Fatal(fault.Message(err))
			}
			if s := images.Status(t.Context(), name); s.State != catalog.ImageBuilt || s.Ref != ref {
				t.Errorf("status is %+v", s)
			}
			if got := run(t, ref, "agent", script); !strings.HasSuffix(strings.TrimSpace(got), "fine") {
				t.Errorf("it printed %s", got)
			}
		})
	}
}

// waitFor is a shell function that waits for a server.
const waitFor = `waitfor() { for n in $(seq 100); do curl -sf "$1" >/dev/null && return; sleep 0.1; done; echo "nothing at $1"; exit 1; }; `

var essentials = map[string]string{
	"base": `set -e; ttyd --version; tmux -V; git --version; vim --version | head -1; nano --version | head -1
		curl --version | head -1; jq --version; htop --version; gcc --version | head -1; rg --version | head -1; node -v; npm -v
		python3 -m venv /tmp/v && /tmp/v/bin/pip --version; [ "$(locale charmap)" = UTF-8 ]; [ "$(readlink /workspace)" = /home/agent ]
		[ "$(id -u)" = 1000 ]; [ "$HOME" = /home/agent ]; touch ~/x; [ "$(sudo -n id -u 2>/dev/null)" = 0 ]
		printf 'int main(){return 0;}' > /tmp/a.c && gcc /tmp/a.c -o /tmp/a && /tmp/a
		bash -lic true | grep -q install-packages; echo fine`,
	"python-ml": `set -e; python3 -c 'import numpy, scipy, pandas, matplotlib.pyplot, sklearn'
		start-notebook >/tmp/log 2>&1 &
		` + waitFor + `waitfor http://127.0.0.1:8888/api; ls ~/notebooks/first-model.ipynb; echo fine`,
	"data-analysis": `set -e; python3 -c 'import pandas, seaborn, statsmodels, openpyxl'; start-notebook >/tmp/log 2>&1 &
		` + waitFor + `waitfor http://127.0.0.1:8888/api; csvstat --count ~/notebooks/orders.csv; sqlite3 :memory: 'select 6*7'; echo fine`,
	"node-api": `set -e; start-api >/tmp/log 2>&1 &
		` + waitFor + `waitfor http://127.0.0.1:3000/health; cd ~/app && npm test >/tmp/test 2>&1 || { cat /tmp/test; exit 1; }
		[ "$(curl -s http://127.0.0.1:3000/notes | jq -r '.[0].id')" = 1 ]; echo fine`,
}

// A tiny template through its whole life: missing, built with the certificates in place, stale, failed, mended.
func TestImages_TinyTemplateOnTheEngine(t *testing.T) {
	const name = "sbx-test-tiny"
	dir := t.TempDir()
	put(t, dir, name+"/template.yaml", "name: "+name+"\ntitle: Tiny\ndescription: For a test.\n")
	put(t, dir, name+"/Dockerfile", "FROM debian:trixie-slim\nCOPY .sandboxd/ca/ /ca/\nCOPY hello /hello\n")
	put(t, dir, name+"/hello", "hello "+t.Name()+time.Now().String())
	c, images := openImages(t, dir)
	t.Cleanup(func() { removeImages(t, "sandboxd/"+name) })

	if s := images.Status(t.Context(), name); s.State != catalog.ImageMissing {
		t.Errorf("before: %+v", s)
	}
	ref, err := ensure(t, c, images, name)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, ref, "0", "cat /hello; ls /ca"); !strings.HasPrefix(got, "hello ") || !strings.Contains(got, "README") {
		t.Errorf("the image holds %q", got)
	}
	put(t, dir, name+"/Dockerfile", "FROM debian:trixie-slim\n\nRUN echo on the way out >&2 && exit 7\n")
	if s := images.Status(t.Context(), name); s.State != catalog.ImageStale {
		t.Errorf("after an edit: %+v", s)
	}
	_, err = ensure(t, c, images, name)
	for _, part := range []string{name + "/Dockerfile:3", "exit 7", "on the way out"} {
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), part) {
			t.Errorf("a step that fails gives %v (%s), want %q in it", err, fault.Message(err), part)
		}
	}
	if s := images.Status(t.Context(), name); s.State != catalog.ImageFailed || len(images.Log(name)) == 0 {
		t.Errorf("after a failure: %+v", s)
	}
	put(t, dir, name+"/Dockerfile", "FROM debian:trixie-slim\nRUN echo mended\n")
	if _, err := ensure(t, c, images, name); err != nil {
		t.Errorf("after mending: %v", fault.Message(err))
	}
}

func TestImages_CancelStopsTheEngine(t *testing.T) {
	const name = "sbx-test-slow"
	dir := t.TempDir()
	put(t, dir, name+"/template.yaml", "name: "+name+"\ntitle: Slow\ndescription: For a test.\n")
	put(t, dir, name+"/Dockerfile", "FROM debian:trixie-slim\nRUN echo began "+time.Now().String()+" && sleep 600\n")
	c, images := openImages(t, dir)
	t.Cleanup(func() { removeImages(t, "sandboxd/"+name) })
	sub := images.Subscribe()
	defer sub.Close()
	failed := make(chan error, 1)
	go func() {
		_, err := ensure(t, c, images, name)
		failed <- err
	}()
	for e := range sub.C {
		if strings.HasPrefix(e.Line, "began") {
			break
		}
	}
	if err := images.Cancel(name); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !fault.Is(err, fault.Conflict) {
		t.Errorf("error is %v", err)
	}
	put(t, dir, name+"/Dockerfile", "FROM debian:trixie-slim\nRUN true\n")
	if _, err := ensure(t, c, images, name); err != nil { // the worker is free again
		t.Errorf("the next build: %v", err)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// removeImages removes all images of a test's repository.
func removeImages(t *testing.T, repository string) {
	t.Helper()
	out, err := exec.Command("docker", "images", "-q", repository).Output()
	if err != nil {
		t.Error(err)
	}
	for _, id := range strings.Fields(string(out)) {
		if out, err := exec.Command("docker", "rmi", "-f", id).CombinedOutput(); err != nil {
			t.Logf("remove image: %s", out)
		}
	}
}
