package wire

import (
	"time"

	"sandboxd/internal/text"
)

// PathKept is where a guest serves kept processes: GET Kepts; POST KeptStart; DELETE /<id>; POST /<id>/input?at=[&end=1] bytes, answers
// KeptInput; GET /<id>/output?at= FrameStdout, and FrameExit at the end; POST /<id>/forget?before=; GET /<id>/stderr;
// POST /<id>/signal?name=. A guest whose Hello does not say Kept has none of that.
const PathKept = "/v1/kept"

// Bounds of kept processes.
const (
	MaxKept       = 16        // in one sandbox, those included that have ended and are not forgotten
	MaxKeptOutput = 64 << 20  // bytes of one that wait to be forgotten, about; then it has to wait itself
	MaxKeptInput  = 256 << 10 // bytes of one write
	MaxKeptStderr = 64 << 10  // bytes of the end of stderr that are kept
	maxOffset     = 1 << 60   // nothing gets there, and sums stay numbers
)

// KeptStart says what to run as a kept process: one whose input and output outlive every connection.
type KeptStart struct {
	ID      string            `json:"id"` // sandboxd's choice: letters, digits and "-"
	Command []string          `json:"command"`
	Cwd     string            `json:"cwd,omitempty"`  // "" means HomePath, or / where there is none
	User    string            `json:"user,omitempty"` // name, uid or uid:gid; "" means the sandbox's own user
	Env     map[string]string `json:"env,omitempty"`  // on top of the sandbox's
}

// CheckKept says whether id can name a kept process: ^[a-z0-9][a-z0-9-]{0,63}$.
func CheckKept(id string) error { return checkLabel("id", id, maxName) }

// CheckOffset says whether n can be a place in what a program reads or writes.
func CheckOffset(n int64) error {
	if n < 0 || n > maxOffset {
		return badField("offset")
	}
	return nil
}

// Exec is the same as a command.
func (s *KeptStart) Exec() ExecStart {
	return ExecStart{Command: s.Command, Cwd: s.Cwd, User: s.User, Env: s.Env}
}

// Check says whether s is within its bounds.
func (s *KeptStart) Check() error {
	if err := CheckKept(s.ID); err != nil {
		return err
	}
	start := s.Exec()
	return start.Check()
}

// Kept is how a kept process stands.
type Kept struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"` // its command, for a person
	Started time.Time `json:"started"`
	Input   int64     `json:"input"` // bytes of stdin that it was given: where the next one begins
	Closed  bool      `json:"closed,omitempty"`
	First   int64     `json:"first"`          // bytes of stdout before it are forgotten
	Last    int64     `json:"last"`           // bytes of stdout that it has written
	Ended   time.Time `json:"ended,omitzero"` // zero while it runs
	Code    int       `json:"code,omitempty"` // exit code, once it has ended; 128+n when a signal n ended it
	Signal  int       `json:"signal,omitempty"`
}

// Kepts is the reply to GET PathKept, oldest first.
type Kepts []Kept

// Check says whether the list is within its bounds and cleans its texts.
func (l *Kepts) Check() error {
	if len(*l) > MaxKept {
		return badField("kept processes: too many")
	}
	seen := map[string]bool{}
	for i := range *l {
		k := &(*l)[i]
		if err := k.check(); err != nil {
			return err
		}
		if seen[k.ID] {
			return badField("kept processes: one is there twice")
		}
		seen[k.ID] = true
	}
	return nil
}

func (k *Kept) check() error {
	if err := CheckKept(k.ID); err != nil {
		return err
	}
	if CheckOffset(k.Input) != nil || CheckOffset(k.First) != nil || CheckOffset(k.Last) != nil || k.First > k.Last {
		return badField("offset")
	}
	if k.Code < 0 || k.Code > 255 || k.Signal < 0 || k.Signal > maxSignal {
		return badField("exit code")
	}
	k.Title = text.OneLine(k.Title, maxTitle)
	return nil
}

// KeptInput is the reply to input.
type KeptInput struct {
	Next int64 `json:"next"` // where the next byte begins: it has all before
}

// Check says whether the offset is within its bounds.
func (i *KeptInput) Check() error { return CheckOffset(i.Next) }
