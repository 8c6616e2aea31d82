package wire

import "encoding/binary"

// ExecStart says what to run. It is the payload of the first frame of an exec.
type ExecStart struct {
	Command []string          `json:"command"`        // program and arguments; no shell is put between
	SFTP    bool              `json:"sftp,omitempty"` // an SFTP server on stdin and stdout instead: no Command and no TTY then
	Cwd     string            `json:"cwd,omitempty"`  // "" means HomePath, or / where there is none
	User    string            `json:"user,omitempty"` // name, uid or uid:gid; "" means the sandbox's own user
	Env     map[string]string `json:"env,omitempty"`  // on top of the sandbox's
	TTY     bool              `json:"tty,omitempty"`  // on a terminal of its own; there is no stderr then
	Cols    int               `json:"cols,omitempty"` // of that terminal; 0 means 80
	Rows    int               `json:"rows,omitempty"` // of that terminal; 0 means 24
	Log     string            `json:"log,omitempty"`  // a name like a service's, under which its output is kept as lines too; "" for nowhere
	Loss    Loss              `json:"loss,omitempty"` // what becomes of it when its stream ends before it does
}

// Loss is what becomes of a command whose stream ends before it does.
type Loss string

// The losses. A guest that is older than the question kills.
const (
	LossKill   Loss = ""       // its whole process tree is killed
	LossHangup Loss = "hangup" // its pipes or its terminal close, and its process group gets SIGHUP
	LossLeave  Loss = "leave"  // its pipes or its terminal close, and that is all: the end of a terminal is a SIGHUP anyway
)

func (l Loss) check() error {
	switch l {
	case LossKill, LossHangup, LossLeave:
		return nil
	}
	return badField("loss")
}

// MaxSide is the most columns or rows that a terminal may have.
const MaxSide = 4096

// Check says whether s is within its bounds.
func (s *ExecStart) Check() error {
	if s.SFTP && (len(s.Command) > 0 || s.TTY) {
		return badField("sftp")
	}
	if !s.SFTP {
		if err := checkCommand(s.Command); err != nil {
			return err
		}
	}
	if err := checkText("cwd", s.Cwd, maxPath); err != nil {
		return err
	}
	if err := checkText("user", s.User, maxName); err != nil {
		return err
	}
	if s.Cols != 0 || s.Rows != 0 {
		if err := CheckSize(s.Cols, s.Rows); err != nil {
			return err
		}
	}
	if s.Log != "" {
		if err := checkLabel("log", s.Log, MaxLogService); err != nil {
			return err
		}
	}
	if err := s.Loss.check(); err != nil {
		return err
	}
	return checkEnv(s.Env)
}

// CheckSize says whether a terminal can have that size.
func CheckSize(cols, rows int) error {
	if cols < 1 || cols > MaxSide || rows < 1 || rows > MaxSide {
		return badField("terminal size")
	}
	return nil
}

// CheckSignal says whether name is a signal that can be sent to a process: "INT", "TERM", "KILL" and so on, without
// "SIG". KILL goes to the whole process tree, every other to the process group.
func CheckSignal(name string) error {
	switch name {
	case "HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CONT", "STOP", "TSTP", "WINCH":
		return nil
	}
	return badField("signal")
}

// ExecFrame is one thing that a running process has to say. Data is valid until the next frame is read.
type ExecFrame struct {
	Type   FrameType // FrameStdout, FrameStderr or FrameExit
	Data   []byte    // output; nil with FrameExit
	Code   int       // exit code with FrameExit: 0 to 255, 128+n when a signal n ended it
	Signal int       // the number of that signal with FrameExit, 0 when none did or the guest does not tell
}

// maxSignal is the largest number of a signal.
const maxSignal = 64

// AppendExit appends the frame that ends an exec: the signal's number in the payload's first byte, the code in its last.
func AppendExit(b []byte, code, signal int) []byte {
	var p [4]byte
	binary.BigEndian.PutUint32(p[:], uint32(signal)<<24|uint32(code))
	return AppendFrame(b, FrameExit, p[:])
}

// DecodeExec turns a frame from the guest into an ExecFrame that shares its payload.
func DecodeExec(t FrameType, payload []byte) (ExecFrame, error) {
	switch t {
	case FrameStdout, FrameStderr:
		return ExecFrame{Type: t, Data: payload}, nil
	case FrameExit:
		if len(payload) != 4 {
			return ExecFrame{}, badField("exit frame")
		}
		all := binary.BigEndian.Uint32(payload)
		code, signal := all&0xffffff, all>>24
		if code > 255 || signal > maxSignal || signal > 0 && code != 128+signal {
			return ExecFrame{}, badField("exit code")
		}
		return ExecFrame{Type: t, Code: int(code), Signal: int(signal)}, nil
	}
	return ExecFrame{}, badField("frame type")
}
