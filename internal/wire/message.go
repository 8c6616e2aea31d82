package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"sandboxd/internal/text"
)

// ErrTooLarge says that a message exceeds its bound.
var ErrTooLarge = errors.New("message too large")

// Message is what crosses the link as JSON. Check says whether it is within its bounds and makes sense.
type Message interface{ Check() error }

// Decode reads one JSON message of at most limit bytes from r into m and checks it. Unknown fields are let through, so
// that a newer end can say more.
func Decode(r io.Reader, limit int, m Message) error {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	if len(b) > limit {
		return ErrTooLarge
	}
	return Unmarshal(b, m)
}

// Unmarshal decodes one JSON message that is already bounded, as the payload of a frame is, into m and checks it.
func Unmarshal(b []byte, m Message) error {
	if err := json.Unmarshal(b, m); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	return m.Check()
}

// Encode checks m and gives its JSON, refusing what the other end would refuse.
func Encode(limit int, m Message) ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if len(b) > limit {
		return nil, ErrTooLarge
	}
	return b, nil
}

// The codes of a Problem.
const (
	CodeInvalid     = "invalid"     // the request makes no sense to the guest; Message says why
	CodeNotFound    = "not_found"   // no such folder, user, tab, service or process
	CodeNoProgram   = "no_program"  // no such program to run
	CodeNoCommand   = "no_command"  // the program is there and cannot be run; Message says why
	CodeConflict    = "conflict"    // what there is does not allow it; Message says what to change
	CodeRefused     = "refused"     // nothing listens on that port
	CodeUnavailable = "unavailable" // it cannot be done now
	CodeForbidden   = "forbidden"   // the sandbox's user may not
	CodeChanged     = "changed"     // the file is not what the condition says any more
	CodeFolder      = "folder"      // it is a folder, and only a file would do
	CodeFull        = "full"        // no room on the sandbox's disk
)

// Problem is the body of every reply that is not 2xx.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"` // a sentence for a person
}

// Check cleans the message of control characters and bounds it. An unknown code becomes CodeUnavailable.
func (p *Problem) Check() error {
	switch p.Code {
	case CodeInvalid, CodeNotFound, CodeNoProgram, CodeNoCommand, CodeConflict, CodeRefused, CodeUnavailable,
		CodeForbidden, CodeChanged, CodeFolder, CodeFull:
	default:
		p.Code = CodeUnavailable
	}
	p.Message = text.OneLine(p.Message, 500)
	return nil
}

// Status gives the code's HTTP status, for people who debug the protocol: sandboxd reads the code.
func (p *Problem) Status() int {
	switch p.Code {
	case CodeInvalid:
		return http.StatusBadRequest
	case CodeNotFound, CodeNoProgram, CodeNoCommand:
		return http.StatusNotFound
	case CodeForbidden:
		return http.StatusForbidden
	case CodeConflict, CodeChanged, CodeFolder, CodeFull:
		return http.StatusConflict
	case CodeRefused:
		return http.StatusBadGateway
	}
	return http.StatusServiceUnavailable
}

// Error gives the message, so that a Problem can be passed on as an error.
func (p *Problem) Error() string { return p.Message }
