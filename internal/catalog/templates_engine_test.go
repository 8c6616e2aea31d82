//go:build engine

package catalog_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// baseLimit bounds the base image, in bytes as the engine counts them. It is some 640 MB, or 40 more on a debian:trixie-slim with
// translations, as sandboxd made it once.
const baseLimit = 700e6

func imageSize(t *testing.T, ref string) int64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", "image", "inspect", "--format", "{{.Size}}", ref).Output()
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// The real templates: built (in seconds when they have been before), and the essentials of each used.
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
			if size := imageSize(t, ref); name == "base" && size > baseLimit {
				t.Errorf("the image has %d MB, want %d at most", size/1e6, int64(baseLimit/1e6))
			}
			if got := run(t, ref, "agent", script); !strings.HasSuffix(strings.TrimSpace(got), "fine") {
				t.Errorf("it printed %s", got)
			}
		})
	}
}

// waitFor is a shell function that waits for a server.
const waitFor = `waitfor() { for n in $(seq 100); do curl -sf "$1" >/dev/null && return; sleep 0.1; done; echo "nothing at $1"; exit 1; }; `

// baseTools asks every program that the base image is there for what version it is, without a network.
const baseTools = `
		for tool in apt-get ar as bzip2 c++ cc corepack cpp curl dpkg-buildpackage file free fuser g++ gcc gcov git gprof gzip htop jq killall \
			ld less make nano nm node nodejs npm npx objcopy objdump patch perl pgrep pip pip3 pkg-config pkill ps pstree pydoc python python3 \
			readelf rg rsync strings strip sudo tar top tree ttyd uptime vi vim vmstat w watch wcurl xz zip "ip -V" "openssl version" \
			"python3-config --includes" "ssh -V" "ssh-keygen -t ed25519 -q -N '' -f /tmp/key" "ss -V" "tmux -V" "unzip -v"; do
			case $tool in *" "*) ;; *) tool="$tool --version" ;; esac
			eval "$tool" > /tmp/out 2>&1 < /dev/null || { echo "$tool:"; cat /tmp/out; exit 1; }
		done
		git remote-https 2>&1 | grep -q usage; vim -es -u NONE -c help -c qall
		[ -x /usr/bin/scp ]; [ -x /usr/bin/sftp ]; [ -e /usr/share/bash-completion/completions/git ]
`

// baseBuilds compiles as people do: statically, across files, with sanitizers, against Python, and a module for Node.
const baseBuilds = `
		cd /tmp; printf 'int main(){return 0;}' > a.c; printf '#include <iostream>\nint main(){std::cout << "";}' > a.cc
		gcc -static a.c -o a; ./a; gcc -flto -O2 a.c -o a; ./a; g++ -fsanitize=address,undefined a.cc -o a; ./a
		printf '#include <Python.h>\nint main(){Py_Initialize(); return Py_FinalizeEx();}' > p.c
		gcc p.c $(python3-config --includes --embed --ldflags) -o p; ./p
		printf '{"name":"native","version":"1.0.0"}' > package.json
		printf '{"targets":[{"target_name":"native","sources":["n.c"]}]}' > binding.gyp
		printf '#include <node_api.h>\nNAPI_MODULE_INIT() { return exports; }' > n.c
		npm install --offline --no-audit > out 2>&1 || { cat out; exit 1; }; node -e 'require("/tmp/build/Release/native.node")'
`

var essentials = map[string]string{
	"base": "set -e" + baseTools + baseBuilds + `
		python3 -m venv /tmp/v; /tmp/v/bin/pip --version
		[ "$(locale charmap)" = UTF-8 ]; [ "$(readlink /workspace)" = /home/agent ]
		[ "$(id -u)" = 1000 ]; [ "$HOME" = /home/agent ]; touch ~/x; [ "$(sudo -n id -u 2>/dev/null)" = 0 ]
		bash -lic true | grep -q install-packages; echo fine`,
	"python-ml": `set -e; python3 -c 'import numpy, scipy, pandas, matplotlib.pyplot, sklearn'
		start-notebook >/tmp/log 2>&1 &
		` + waitFor + `waitfor http://127.0.0.1:8888/api; ls ~/notebooks/first-model.ipynb; echo fine`,
	"data-analysis": `set -e; python3 -c 'import pandas, seaborn, statsmodels, openpyxl'; start-notebook >/tmp/log 2>&1 &
		` + waitFor + `waitfor http://127.0.0.1:8888/api; curl -s -o /dev/null -w '%{redirect_url}' http://127.0.0.1:8888/ | grep -q /notebooks/orders.ipynb; csvstat --count ~/notebooks/orders.csv; sqlite3 :memory: 'select 6*7'; echo fine`,
	"node-api": `set -e; start-api >/tmp/log 2>&1 &
		` + waitFor + `waitfor http://127.0.0.1:3000/health; cd ~/app && npm test >/tmp/test 2>&1 || { cat /tmp/test; exit 1; }
		[ "$(curl -s http://127.0.0.1:3000/notes | jq -r '.[0].id')" = 1 ]; echo fine`,
	"browser": `set -e; start-browser >/tmp/log 2>&1 &
		ask() { curl -sS -D /tmp/head -H "$session" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' http://localhost:8931/mcp -d "$1"; }
		for n in $(seq 100); do curl -s http://localhost:8931/ >/dev/null && break; sleep 0.1; done; session=x:
		ask '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' >/dev/null
		session=$(grep -i ^mcp-session-id /tmp/head | tr -d '\r')
		echo '<title>A page</title><h1>It works' > ~/page.html
		ask '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"browser_navigate","arguments":{"url":"file:///home/agent/page.html"}}}' | grep -q 'A page'
		ask '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"browser_snapshot","arguments":{}}}' | grep -q 'It works'; echo fine`,
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
