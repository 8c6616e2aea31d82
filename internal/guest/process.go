package guest

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sandboxd/internal/guest/descent"
	"sandboxd/internal/wire"
)

// process is a started program with its ends of the pipes.
type process struct {
	id     string // also the value of its marker
	pid    int
	mark   descent.Mark
	stdin  *os.File // write end; on a terminal the same as output[0]
	output []stream // what to read
	tty    bool

	alone   bool        // in its sandbox: all others there may be stopped to kill it
	killing atomic.Bool // for a signal: one hunt at a time

	mu     sync.Mutex
	os     *os.Process
	reaped bool // its pid may be another process's now
}

// stream is one output of a process.
type stream struct {
	file *os.File
	kind wire.FrameType
}

// pipeSet is both ends of a process's pipes.
type pipeSet struct {
	child  []*os.File // stdin, stdout, stderr as the process sees them
	stdin  *os.File
	output []stream
}

// ownProgram is this very program, also when its path holds another one by now.
const ownProgram = "/proc/self/exe"

// SFTPArgument makes this program an SFTP server, which its main has to heed.
const SFTPArgument = "sftp"

// spawner starts programs as a user of the sandbox. Safe for concurrent use.
type spawner struct {
	accounts *accounts
	base     map[string]string // the environment that the image and the engine gave
	home     string            // default working folder
	alone    bool              // as Config.InSandbox
	setup    atomic.Pointer[wire.Setup]
}

// spawn starts a program in a session of its own, with a mark by which all its descendants are known. Errors are Problems.
func (p *spawner) spawn(s wire.ExecStart) (*process, error) {
	var id [8]byte
	rand.Read(id[:])
	return p.start(s, &process{id: hex.EncodeToString(id[:]), mark: descent.NewMark(binary.BigEndian.Uint64(id[:])), tty: s.TTY})
}

// spawnPlain is spawn for a program whose descendants may outlive it: nothing is marked. It inherits files as its
// descriptors from 3 on.
func (p *spawner) spawnPlain(s wire.ExecStart, inherit ...*os.File) (*process, error) {
	return p.start(s, &process{tty: s.TTY}, inherit...)
}

func (p *spawner) start(s wire.ExecStart, proc *process, inherit ...*os.File) (*process, error) {
	who, err := p.accounts.find(s.User)
	if err != nil {
		return nil, err
	}
	if s.SFTP {
		s.Command = []string{ownProgram, SFTPArgument}
	}
	env := p.environ(who, s.Env, s.TTY)
	if proc.id != "" {
		env[marker] = proc.id
	}
	cwd := p.workFolder(s.Cwd)
	path, err := lookPath(s.Command[0], env["PATH"], cwd)
	if err != nil {
		return nil, startProblem(s.Command[0], cwd, err)
	}
	pipes, err := openPipes(s, who)
	if err != nil {
		return nil, problem(wire.CodeUnavailable, "The sandbox has no room for another command: "+reason(err)+".")
	}
	attr := &os.ProcAttr{Dir: cwd, Env: env.list(), Files: append(pipes.child, inherit...), Sys: sysAttr(who, s.TTY)}
	err = proc.start(path, s.Command, attr)
	if os.IsPermission(err) && s.Cwd == "" && cwd != "/" { // the volume may be closed to its own user, who has to mend it
		attr.Dir = "/"
		err = proc.start(path, s.Command, attr)
	}
	pipes.closeChild()
	if err != nil {
		pipes.closeOurs()
		return nil, startProblem(s.Command[0], cwd, err)
	}
	proc.pid, proc.stdin, proc.output, proc.alone = proc.os.Pid, pipes.stdin, pipes.output, p.alone
	return proc, nil
}

func (p *process) start(path string, command []string, attr *os.ProcAttr) error {
	return descent.Start(p.mark, func() (err error) {
		p.os, err = os.StartProcess(path, command, attr)
		return err
	})
}

func sysAttr(who account, tty bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Setctty: tty}
	if int(who.uid) != os.Getuid() || int(who.gid) != os.Getgid() || os.Getuid() == 0 {
		// NoSetGroups where setgroups(2) is not ours to call: a user of a plain image that is not root.
		a.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: who.groups, NoSetGroups: os.Getuid() != 0}
	}
	return a
}

func openPipes(s wire.ExecStart, who account) (*pipeSet, error) {
	if s.TTY {
		return openTerminal(s, who)
	}
	p := &pipeSet{}
	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range files[:i] {
				f.Close()
			}
			return nil, err
		}
		files[i], files[i+1] = r, w
	}
	p.child = []*os.File{files[0], files[3], files[5]}
	p.stdin = files[1]
	p.output = []stream{{files[2], wire.FrameStdout}, {files[4], wire.FrameStderr}}
	return p, nil
}

func openTerminal(s wire.ExecStart, who account) (*pipeSet, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	cols, rows := s.Cols, s.Rows
	if cols == 0 {
		cols, rows = 80, 24
	}
	if master, err = unblocked(master); err == nil {
		err = setSize(master, cols, rows)
	}
	if err != nil {
		master.Close()
		slave.Close()
		return nil, err
	}
	slave.Chown(int(who.uid), -1) // so that programs can open it again by name; they work without
	return &pipeSet{child: []*os.File{slave, slave, slave}, stdin: master,
		output: []stream{{master, wire.FrameStdout}}}, nil
}

// unblocked gives f, which it closes, as a file whose reads end when it is closed, and heed deadlines.
func unblocked(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), f.Name()), err
}

// setSize leaves the file as it is; pty.Setsize would let its reads block for good.
func setSize(master *os.File, cols, rows int) error {
	c, err := master.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := c.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
	return errors.Join(controlErr, err)
}

func (p *pipeSet) closeChild() {
	for _, f := range p.child {
		f.Close()
	}
}

func (p *pipeSet) closeOurs() {
	p.stdin.Close()
	for _, s := range p.output {
		s.file.Close()
	}
}

// close gives the pipes back. What still runs gets SIGPIPE or SIGHUP when it uses them.
func (p *process) close() {
	p.stdin.Close()
	for _, s := range p.output {
		s.file.Close()
	}
}

// exit is how a program has ended.
type exit struct {
	code   int // 128+n for a signal n
	signal int // that n, or 0
}

// wait blocks until the program itself has ended.
func (p *process) wait() exit {
	awaitExit(p.pid)
	state, err := p.os.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if err != nil {
		return exit{code: 255}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return exit{code: 128 + int(ws.Signal()), signal: int(ws.Signal())}
	}
	return exit{code: state.ExitCode() & 0xff}
}

// signal sends to the process group; KILL goes to the whole tree, and does not wait until that has ended.
func (p *process) signal(name string) error {
	if name == "KILL" {
		if p.killing.CompareAndSwap(false, true) {
			go func() {
				defer p.killing.Store(false)
				p.kill()
			}()
		}
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return problem(wire.CodeNotFound, "The command has ended.")
	}
	if err := syscall.Kill(-p.pid, signals[name]); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("signal process group: %w", err)
	}
	return nil
}

// kill ends the process and everything that came of it.
func (p *process) kill() { killTree(p.pid, p.id, p.mark, p.alive, p.alone) }

func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.reaped
}

func (p *process) resize(cols, rows int) error {
	if !p.tty {
		return problem(wire.CodeInvalid, "The command has no terminal.")
	}
	return setSize(p.stdin, cols, rows)
}

var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "ABRT": syscall.SIGABRT,
	"KILL": syscall.SIGKILL, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "PIPE": syscall.SIGPIPE,
	"ALRM": syscall.SIGALRM, "TERM": syscall.SIGTERM, "CONT": syscall.SIGCONT, "STOP": syscall.SIGSTOP,
	"TSTP": syscall.SIGTSTP, "WINCH": syscall.SIGWINCH,
}
