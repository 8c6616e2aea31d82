package install

import (
	_ "embed"
	"strconv"

	"sandboxd/internal/exec"
)

//go:embed install.sh
var installScript string

// removeScript removes an agent, and the Node that agents share when it was the last one. What it removes is first moved away at once, so
// that nothing that is removed in part looks installed.
const removeScript = `set -eu
rm -rf "$1/.installing"
if [ -e "$1/$2" ] || [ -L "$1/$2" ]; then
	mkdir "$1/.installing"
	mv "$1/$2" "$1/.installing/.old"
	rm -rf "$1/.installing"
fi
for run in "$1"/*/run; do
	[ ! -e "$run" ] || exit 0
done
rm -rf "$1/.node"`

// cleanScript removes what an installation that was ended has left.
const cleanScript = `rm -rf "$1/.installing"`

// shell gives the command that runs a script of ours. Its arguments are never part of the script.
func shell(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "install-agent"}, args...)
}

func installRequest(e Entry, node nodeVersions) exec.Request {
	args := []string{Root, e.ID, e.Package, e.Version, e.Command[0], strconv.Itoa(e.Node), node.X64, node.ARM64}
	return exec.Request{
		Command: shell(installScript, append(args, e.NPMFlags...)...), Title: "install " + e.Name, Cwd: "/", Timeout: installLimit,
	}
}
