package guest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// The contents of a version's folder: its own Node, and the script that starts code-server.
const (
	ideProgram = "lib/node"
	ideScript  = "start.js"
)

// ideFolders are where the socket's folder may be, best first: a root may be read-only, /run may be missing.
var ideFolders = []string{"/run", "/tmp", "/dev/shm"}

// ideLines is how many of the last lines that code-server has said are told with its end, each up to ideLine bytes.
const (
	ideLines = 3
	ideLine  = 150
)

// ideRun is one run of code-server.
type ideRun struct {
	version string
	folder  string // of the socket; only root may enter it
	socket  string
	log     ring
	process *process
	said    *os.File // the guest's end of the pipe on which it reports ready

	isUp  chan struct{} // closed once it answers
	ended chan struct{} // closed at its end, when all has been noted
	stop  chan struct{} // closed to end it
	once  sync.Once
	code  int // once ended
}

func newIDERun(version string) (*ideRun, error) {
	folder, err := ideFolder()
	if err != nil {
		return nil, err
	}
	return &ideRun{version: version, folder: folder, socket: filepath.Join(folder, "ide.sock"),
		isUp: make(chan struct{}), ended: make(chan struct{}), stop: make(chan struct{})}, nil
}

// ideFolder makes a folder with an unpredictable name, for root alone.
func ideFolder() (string, error) {
	for _, in := range ideFolders {
		if folder, err := os.MkdirTemp(in, ".sandboxd-ide-"); err == nil {
			return folder, nil
		}
	}
	return "", errNoFolder
}

// start listens for it and starts it.
func (r *ideRun) start(spawn func(ideCommand) (*process, error), c ideCommand) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.socket, Net: "unix"})
	if err != nil {
		return problem(wire.CodeUnavailable, "There is no place for VS Code's socket: "+reason(err)+".")
	}
	l.SetUnlinkOnClose(false) // the listener is code-server's alone from its start: its end shows at once
	defer l.Close()
	if c.listen, err = l.File(); err != nil {
		return fmt.Errorf("listen for VS Code: %w", err)
	}
	defer c.listen.Close()
	if r.said, c.ready, err = os.Pipe(); err != nil {
		return fmt.Errorf("listen for VS Code: %w", err)
	}
	defer c.ready.Close()
	if r.process, err = spawn(c); err != nil {
		r.said.Close()
		return err
	}
	return nil
}

// live waits for its end, which halt or a start that takes too long bring about, and cleans up after it.
func (r *ideRun) live() {
	defer r.remove()
	var pumps sync.WaitGroup
	for _, o := range r.process.output {
		pumps.Go(func() { io.Copy(&r.log, o.file) })
	}
	pumps.Go(r.listenForReady)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		r.code = r.process.wait().code
	}()
	r.awaitEnd(exited)
	r.process.kill()
	<-exited
	for _, o := range r.process.output {
		o.file.SetReadDeadline(time.Now().Add(drainTime))
	}
	r.said.SetReadDeadline(time.Now())
	pumps.Wait()
	r.said.Close()
	r.process.close()
}

// awaitEnd blocks until it has to be killed, or has ended.
func (r *ideRun) awaitEnd(exited <-chan struct{}) {
	late := make(chan struct{})
	go func() { // ends with the start
		if !thaw.Wait(r.begun(exited), ideStart) {
			close(late)
		}
	}()
	select {
	case <-exited:
		return
	case <-late:
		fmt.Fprintf(&r.log, "It did not answer within %v.\n", ideStart)
		return
	case <-r.stop:
	}
	r.process.signal("TERM")
	thaw.Wait(exited, ideGrace)
}

// begun gives a channel that is closed when it answers, has ended, or is to end.
func (r *ideRun) begun(exited <-chan struct{}) <-chan struct{} {
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		select {
		case <-r.isUp:
		case <-exited:
		case <-r.stop:
		}
	}()
	return begun
}

// listenForReady reads the byte that it says when it answers.
func (r *ideRun) listenForReady() {
	var b [1]byte
	if n, _ := r.said.Read(b[:]); n == 1 {
		close(r.isUp)
	}
}

// await blocks until it answers. The error of a failed start holds its last output.
func (r *ideRun) await(ctx context.Context) error {
	select {
	case <-r.isUp:
		return nil
	case <-r.ended:
	case <-ctx.Done():
		return errIDEStarts
	}
	if r.halted() {
		return errIDEOff
	}
	return problem(wire.CodeUnavailable, r.last())
}

// last says how it has ended.
func (r *ideRun) last() string {
	what := "VS Code could not be started"
	if r.up() {
		what = "VS Code has ended"
	}
	said := fmt.Sprintf("%s (exit code %d).", what, r.code)
	lines := strings.Split(strings.TrimSpace(string(r.log.bytes())), "\n")
	for _, line := range lines[max(0, len(lines)-ideLines):] {
		if line = text.OneLine(strings.TrimSpace(line), ideLine); line != "" {
			said += " | " + line
		}
	}
	return said
}

// halt asks it to end.
func (r *ideRun) halt() { r.once.Do(func() { close(r.stop) }) }

func (r *ideRun) halted() bool { return isDone(r.stop) }
func (r *ideRun) over() bool   { return isDone(r.ended) }
func (r *ideRun) up() bool     { return isDone(r.isUp) }

func (r *ideRun) remove() { os.RemoveAll(r.folder) }

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// spawnIDE starts code-server as the sandbox's user. Its data is on the volume, also when that user's home is elsewhere.
func (p *spawner) spawnIDE(c ideCommand) (*process, error) {
	home := p.workFolder("")
	data := filepath.Join(home, ".local/share/code-server")
	env, name := map[string]string{}, p.setup.Load().Name
	if c.Ports != "" {
		env["VSCODE_PROXY_URI"] = strings.ReplaceAll(c.Ports, wire.NamePlace, name)
	}
	return p.spawnPlain(wire.ExecStart{Env: env, Command: []string{filepath.Join(c.tree, ideProgram), filepath.Join(c.tree, ideScript),
		"--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override",
		"--disable-workspace-trust", "--disable-proxy", "--user-data-dir", data, "--extensions-dir", filepath.Join(data, "extensions"),
		"--app-name", name + " · VS Code", "--reconnection-grace-time", "43200", home}}, c.listen, c.ready)
}
