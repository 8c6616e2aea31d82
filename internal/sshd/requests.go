package sshd

import (
	"regexp"

	"golang.org/x/crypto/ssh"

	"sandboxd/internal/wire"
)

// Bounds on what a session asks for, beyond those of a command.
const (
	maxEnv     = 64
	maxEnvText = 8 << 10 // bytes of one value
)

var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	termName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
)

// The payloads of a session's requests, RFC 4254 section 6.
type (
	ptyRequest struct {
		Term                     string
		Cols, Rows, Width, Hight uint32
		Modes                    string
	}
	sizeRequest struct{ Cols, Rows, Width, Height uint32 }
	envRequest  struct{ Name, Value string }
	textRequest struct{ Text string } // exec, subsystem, signal
	exitStatus  struct{ Status uint32 }
	exitSignal  struct {
		Signal     string
		CoreDumped bool
		Message    string
		Language   string
	}
)

// size is a terminal's.
type size struct{ cols, rows int }

// within brings what a client says of its window into bounds. Some say 0 of one that has no size.
func within(cols, rows uint32) size {
	z := size{cols: int(min(cols, wire.MaxSide)), rows: int(min(rows, wire.MaxSide))}
	if z.cols == 0 {
		z.cols = 80
	}
	if z.rows == 0 {
		z.rows = 24
	}
	return z
}

// pty takes the wish for a terminal.
func (s *session) pty(payload []byte) bool {
	var p ptyRequest
	if s.started || ssh.Unmarshal(payload, &p) != nil {
		return false
	}
	s.tty, s.size = true, within(p.Cols, p.Rows)
	if termName.MatchString(p.Term) {
		s.env["TERM"] = p.Term
	}
	return true
}

// setenv takes a variable.
func (s *session) setenv(payload []byte) bool {
	var e envRequest
	if s.started || ssh.Unmarshal(payload, &e) != nil || !envName.MatchString(e.Name) || len(e.Value) > maxEnvText {
		return false
	}
	if _, again := s.env[e.Name]; !again && len(s.env) >= maxEnv {
		return false
	}
	s.env[e.Name] = e.Value
	return true
}

// payloadText reads a payload that is one text.
func payloadText(payload []byte) (string, bool) {
	var t textRequest
	return t.Text, ssh.Unmarshal(payload, &t) == nil
}

// signalNames are those of RFC 4254 that a process may have ended by, by number.
var signalNames = map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 8: "FPE", 9: "KILL", 10: "USR1", 11: "SEGV",
	12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM"}
