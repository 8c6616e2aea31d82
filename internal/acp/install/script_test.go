package install

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// machine is a folder of programs that the script finds, and the root of agents.
type machine struct {
	t         *testing.T
	bin, root string
}

// fakeNPM puts a program where npm would, and knows what node-linux-* is.
const fakeNPM = `#!/bin/sh
echo "npm $*" >>"$LOG"
folder=$3
for last; do :; done
case $last in
node-linux-*)
	name=${last%@*}
	mkdir -p "$folder/node_modules/$name/bin"
	printf '#!/bin/sh\necho 24\n' >"$folder/node_modules/$name/bin/node"
	chmod 755 "$folder/node_modules/$name/bin/node" ;;
*)
	mkdir -p "$folder/node_modules/.bin"
	printf '#!/bin/sh\necho "$(node) $0 $*"\n' >"$folder/node_modules/.bin/prog"
	chmod 755 "$folder/node_modules/.bin/prog"
	eval "$NPM_DOES" ;;
esac
`

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, bin: t.TempDir(), root: filepath.Join(t.TempDir(), "a b", "agents")}
	m.program("npm", fakeNPM)
	m.program("node", "#!/bin/sh\necho 20\n")
	return m
}

func (m *machine) program(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.bin, name), []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

// command runs the script, in which npm does something once the program is there.
func (m *machine) command(ctx context.Context, version, node, does string) (*exec.Cmd, *bytes.Buffer) {
	args := append(shell(installScript, m.root, "prog-id", "@x/pkg", version, "prog", node, "24.1.0", "24.2.0", "--ignore-scripts")[1:], "--omit=optional")
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Env = []string{"PATH=" + m.bin + ":" + os.Getenv("PATH"), "LOG=" + filepath.Join(m.bin, "log"), "NPM_DOES=" + does}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func (m *machine) installs(version, node, does string) (out string, err error) {
	cmd, text := m.command(m.t.Context(), version, node, does)
	err = cmd.Run()
	return text.String(), err
}

// runs starts what was installed.
func (m *machine) runs() string {
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.root, "prog-id", "run"), "prog", "--acp", "a b")
	cmd.Env = []string{"PATH=" + m.bin + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (m *machine) has(name string) string {
	text, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func TestScript_InstallsWithNodeWhereItIsTooOld(t *testing.T) {
	m := newMachine(t)
	out, err := m.installs("1.0.0", "22", "")
	if err != nil || !strings.Contains(out, "@node\n") || !strings.Contains(out, "@agent\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := m.runs(); !strings.HasPrefix(got, "24 ") || !strings.HasSuffix(got, "/prog --acp a b\n") {
		t.Errorf("it says %q", got)
	}
	log, err := os.ReadFile(filepath.Join(m.bin, "log"))
	if err != nil || !strings.Contains(string(log), " --ignore-scripts --omit=optional @x/pkg@1.0.0\n") {
		t.Errorf("npm was asked\n%s%v", log, err)
	}
	if out, err := m.installs("1.1.0", "22", ""); err != nil || strings.Contains(out, "@node") || m.has("prog-id/version") != "1.1.0\n" {
		t.Errorf("another version: %v, %q\n%s", err, m.has("prog-id/version"), out)
	}
	if _, err := os.Stat(filepath.Join(m.root, unfinished)); err == nil {
		t.Error("the folder of the installation is left")
	}
}

func TestScript_UsesTheNodeThatIsThere(t *testing.T) {
	m := newMachine(t)
	if out, err := m.installs("1.0.0", "20", ""); err != nil || strings.Contains(out, "@node") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := m.runs(); !strings.HasPrefix(got, "20 ") {
		t.Errorf("it says %q", got)
	}
}

func TestScript_AFailureLeavesWhatWasThere(t *testing.T) {
	m := newMachine(t)
	if out, err := m.installs("1.0.0", "20", ""); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for does, want := range map[string]string{
		"echo npm error code E404 >&2; exit 1": "npm error code E404",
		`rm "$folder/node_modules/.bin/prog"`:  "@fail program",
	} {
		if out, err := m.installs("2.0.0", "20", does); err == nil || !strings.Contains(out, want) || m.has("prog-id/version") != "1.0.0\n" {
			t.Errorf("%s: %v, %q\n%s", does, err, m.has("prog-id/version"), out)
		}
	}
}

func TestScript_OneThatIsKilledLeavesNothingThatLooksInstalled(t *testing.T) {
	m := newMachine(t)
	cmd, _ := m.command(t.Context(), "1.0.0", "20", "echo ready; sleep 60")
	cmd.Stdout, cmd.Stderr = nil, nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the guest kills the whole tree too
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() && lines.Text() != "ready" {
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if m.has("prog-id/version") != "" || m.has("prog-id/run") != "" {
		t.Error("it looks installed")
	}
	if _, err := os.Stat(filepath.Join(m.root, unfinished, "prog-id")); err != nil {
		t.Errorf("it does not look begun: %v", err)
	}
	if out, err := m.installs("1.0.0", "20", ""); err != nil || m.has("prog-id/version") != "1.0.0\n" {
		t.Errorf("once more: %v\n%s", err, out)
	}
}

func TestScript_WithoutNPM(t *testing.T) {
	m := newMachine(t)
	cmd, out := m.command(t.Context(), "1.0.0", "20", "")
	if err := os.Remove(filepath.Join(m.bin, "npm")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ls", "rm", "mkdir"} { // all that it needs before
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env[0] = "PATH=" + m.bin
	if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "@fail npm\n") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestScript_RemovesNodeWithTheLastAgent(t *testing.T) {
	m := newMachine(t)
	if out, err := m.installs("1.0.0", "22", ""); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	remove := func(id string) {
		t.Helper()
		args := shell(removeScript, m.root, id)
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	remove("another")
	if m.has(".node/bin/node") == "" || m.has("prog-id/run") == "" {
		t.Error("the agent is gone")
	}
	remove("prog-id")
	if m.has(".node/bin/node") != "" || m.has("prog-id/run") != "" {
		t.Error("it is left")
	}
}

func TestScript_ARemovalThatIsCutOffLeavesNothingThatLooksInstalled(t *testing.T) {
	m := newMachine(t)
	if out, err := m.installs("1.0.0", "20", ""); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m.program("rm", `#!/bin/sh
for last; do :; done
[ -e "$last" ] || exit 0
/bin/rm -rf "$last/node_modules"
exit 1
`)
	args := shell(removeScript, m.root, "prog-id")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + m.bin + ":" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("it says nothing: %s", out)
	}
	if m.has("prog-id/version") != "" {
		t.Error("what is left looks installed")
	}
}
