package wire

import "encoding/binary"

// ExecStart says what to run. It is the payload of the first frame of an exec.
type ExecStart struct {
	Command []string          `json:"command"`        // program and arguments; no shell is put between
	Cwd     string            `json:"cwd,omitempty"`  // "" means HomePath, or / where there is none
	User    string            `json:"user,omitempty"` // name, uid or uid:gid; "" means the sandbox's own user
	Env     map[string]string `json:"env,omitempty"`  // on top of the sandbox's
	TTY     bool              `json:"tty,omitempty"`  // on a terminal of its own; there is no stderr then
	Cols    int               `json:"cols,omitempty"` // of that terminal; 0 means 80
	Rows    int               `json:"rows,omitempty"` // of that terminal; 0 means 24
}

// MaxSide is the most columns or rows that a terminal may have.
const MaxSide = 4096

// Check says whether s is within its bounds.
func (s *ExecStart) Check() error {
	if err := checkCommand(s.Command); err != nil {
		return err
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
	Type FrameType // FrameStdout, FrameStderr or FrameExit
	Data []byte    // output; nil with FrameExit
	Code int       // exit code with FrameExit: 0 to 255, 128+n when a signal n ended it
}

// AppendExit appends the frame that ends an exec.
func AppendExit(b []byte, code int) []byte {
	var p [4]byte
	binary.BigEndian.PutUint32(p[:], uint32(code))
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
		code := binary.BigEndian.Uint32(payload)
		if code > 255 {
			return ExecFrame{}, badField("exit code")
		}
		return ExecFrame{Type: t, Code: int(code)}, nil
	}
	return ExecFrame{}, badField("frame type")
}
