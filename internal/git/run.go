package git

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandboxd/internal/fault"
)

const (
	watchEvery = 200 * time.Millisecond // between two looks at what git has written
	pipeLimit  = 2 * time.Second        // that the pipes of a killed git may stay open
	maxSaid    = 16 << 10               // bytes of git's words on what is wrong
	maxMemory  = 1 << 20                // KiB of address space for git and each process that it begins
)

// errLarge ends a git that writes too much.
var errLarge = fault.New(fault.TooLarge, "The repository is larger than may be fetched.")

// passed are the variables that git gets of ours: those that say how the network is reached.
var passed = []string{"PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"}

func (w *fetching) knownHosts() string { return filepath.Join(w.work, "known_hosts") }

// prepare writes the files that ssh needs, and says how git is to behave, all of it in variables: no file of a user's, of the machine's or
// of the repository's says anything.
func (w *fetching) prepare(caFile string) error {
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			w.env = append(w.env, name+"="+value)
		}
	}
	w.env = append(w.env, "HOME="+w.work, "LC_ALL=C", "GIT_CEILING_DIRECTORIES="+w.work, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "GIT_ALLOW_PROTOCOL=https:ssh:git", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_ALLOC_LIMIT=512m", "GIT_SSH_VARIANT=ssh", "GIT_OPTIONAL_LOCKS=0")
	if caFile != "" {
		w.env = append(w.env, "GIT_SSL_CAINFO="+caFile)
	}
	settings := [][2]string{
		{"core.hooksPath", "/dev/null"}, {"core.attributesFile", "/dev/null"}, {"core.symlinks", "false"}, {"core.fsmonitor", "false"},
		{"core.bigFileThreshold", "16m"}, {"protocol.allow", "never"}, {"protocol.https.allow", "always"}, {"protocol.ssh.allow", "always"}, {"protocol.git.allow", "always"},
		{"submodule.recurse", "false"}, {"credential.helper", ""}, {"pack.threads", "1"}, {"gc.auto", "0"}, {"maintenance.auto", "false"},
		{"http.lowSpeedLimit", "100"}, {"http.lowSpeedTime", "30"}, {"http.emptyAuth", "false"}, {"transfer.bundleURI", "false"},
	}
	if w.source.Token != "" {
		settings = append(settings, [2]string{"http.followRedirects", "false"}, [2]string{"http.extraHeader", w.authorization()}) // a header would follow a redirect anywhere
	}
	w.env = append(w.env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	for i, s := range settings {
		w.env = append(w.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	if !w.source.SSH() {
		return nil
	}
	return w.prepareSSH()
}

// authorization is the header with the token, as the password of the address's user. Servers take any name with a personal token.
func (w *fetching) authorization() string {
	user := "git"
	if u, err := url.Parse(w.source.URL); err == nil && u.User.Username() != "" {
		user = u.User.Username()
	}
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+w.source.Token))
}

func (w *fetching) prepareSSH() error {
	checking, key := "yes", "/dev/null"
	if w.source.HostKeys == "" {
		checking = "accept-new"
	}
	err := os.WriteFile(w.knownHosts(), []byte(strings.TrimSpace(w.source.HostKeys)+"\n"), 0o600)
	if w.source.Key != "" {
		key = filepath.Join(w.work, "key")
		err = errors.Join(err, os.WriteFile(key, []byte(strings.TrimSpace(w.source.Key)+"\n"), 0o600))
	}
	options := []string{"IdentityFile=" + quoted(key), "UserKnownHostsFile=" + quoted(w.knownHosts()), "StrictHostKeyChecking=" + checking, "GlobalKnownHostsFile=/dev/null",
		"IdentitiesOnly=yes", "IdentityAgent=none", "BatchMode=yes", "HashKnownHosts=no", "UpdateHostKeys=no", "ForwardAgent=no", "PermitLocalCommand=no",
		"ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=2", "ControlMaster=no", "ControlPath=none"}
	command := "ssh -F /dev/null"
	for _, o := range options {
		command += " -o " + shellWord(o)
	}
	w.env = append(w.env, "GIT_SSH_COMMAND="+command)
	return err
}

// quoted writes a file's name as ssh's configuration takes it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, "%", "%%") + `"` }

// shellWord writes one word for a shell, which git has run the command.
func shellWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// limited is a shell's: it takes the bound on itself and becomes git, so that no child of git's comes before the bound.
const limited = `ulimit -v "$0" && exec git "$@"`

// git runs git with its output going to out, and gives what it says on standard error. It ends with ctx, or when the folder of the fetch
// grows too large, and then so do all processes that it has begun.
func (w *fetching) git(ctx context.Context, out io.Writer, args ...string) (said string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limited, strconv.Itoa(maxMemory)}, args...)...)
	words := &bounded{most: maxSaid}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.work, w.env, out, words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeLimit
	if err := cmd.Start(); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "git cannot be run: %v.", err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.watch(ctx, cancel)
	}()
	err = cmd.Wait()
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what git has left behind, if anything
	}
	if err != nil && cause != nil {
		err = cause
	}
	if err == nil && sizeOf(w.work) > w.most {
		err = errLarge
	}
	return string(words.text), err
}

// watch ends git when it has written too much.
func (w *fetching) watch(ctx context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if sizeOf(w.work) > w.most {
				end(errLarge)
				return
			}
		}
	}
}

// bounded keeps the first bytes that are written, and takes all.
type bounded struct {
	text []byte
	most int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), b.most-len(b.text))]...)
	return len(p), nil
}
