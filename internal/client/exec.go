package client

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/socket"
	"sandboxd/internal/text"
)

// Command is a command to run in a sandbox.
type Command struct {
	Args []string
	Cwd  string // "" for the home
	User string // "" for the sandbox's own
	Env  map[string]string
	Log  string // a name under which its output is kept in the sandbox's log too; "" for nowhere
	TTY  bool
	Cols int // of the terminal
	Rows int
}

// Running is a command under way, in dialogue. Wait belongs to one goroutine; the rest is safe for concurrent use.
type Running struct {
	ws  *websocket.Conn
	end func()

	mu sync.Mutex // held while a message is written
}

// The first byte of a binary message from sandboxd says which stream the rest belongs to.
const (
	streamStdout = 1
	streamStderr = 2
)

// inputSize is how much input is sent at once.
const inputSize = 32 << 10

// maxMessage bounds a message of the server's, which sends pieces far smaller.
const maxMessage = 1 << 20

// message is a text message of either side.
type message struct {
	Type     string            `json:"type"`
	Command  []string          `json:"command,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	User     string            `json:"user,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Log      string            `json:"log,omitempty"`
	TTY      bool              `json:"tty,omitempty"`
	Cols     int               `json:"cols,omitempty"`
	Rows     int               `json:"rows,omitempty"`
	Signal   string            `json:"signal,omitempty"`
	ExitCode int               `json:"exit_code,omitempty"` // of "exit"
	TimedOut bool              `json:"timed_out,omitempty"`
	Problem  *problem          `json:"problem,omitempty"` // of "error"
}

// Exec starts a command. The caller must Close it, which kills a command that has not ended with all that it has started. It
// asks the server for patience: a person may page through the output.
func (c *Client) Exec(ctx context.Context, name string, command Command) (*Running, error) {
	ws, err := c.dial(ctx, sandboxPath(name, "/exec"), url.Values{"patient": {"true"}})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	r := &Running{ws: ws}
	answered := socket.AnswerPings(ws, patienceFor)
	r.end = sync.OnceFunc(func() {
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		ws.Close()
		answered()
	})
	start := message{Type: "start", Command: command.Args, Cwd: command.Cwd, User: command.User, Env: command.Env, Log: command.Log,
		TTY: command.TTY, Cols: command.Cols, Rows: command.Rows}
	if err := r.say(start); err != nil {
		r.Close()
		return nil, whyClosed(err)
	}
	return r, nil
}

func (r *Running) say(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return r.send(websocket.TextMessage, text)
}

func (r *Running) send(kind int, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ws.WriteMessage(kind, data) // as long as it takes: the command may not read its input
}

// Feed gives the command what in has, to its end. It returns when that is done, or the command has ended; a Read that is under
// way then stays.
func (r *Running) Feed(in io.Reader) {
	buf := make([]byte, inputSize)
	for {
		n, err := in.Read(buf)
		if n > 0 && r.send(websocket.BinaryMessage, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = r.say(message{Type: "eof"}) // a command that has ended needs none
			return
		}
	}
}

// CloseInput tells the command that it gets no input.
func (r *Running) CloseInput() error { return r.say(message{Type: "eof"}) }

// Resize tells the command's terminal its size.
func (r *Running) Resize(cols, rows int) error {
	return r.say(message{Type: "resize", Cols: cols, Rows: rows})
}

// Signal sends a signal, such as "INT".
func (r *Running) Signal(name string) error { return r.say(message{Type: "signal", Signal: name}) }

// Close ends the connection. It may be called more than once.
func (r *Running) Close() { r.end() }

// Wait writes the command's output until it ends, and gives its exit code. An error of a writer is given as it is; otherwise the
// connection was lost, or the command could not be started: when that is due to the command itself, fault.FieldOf is "command",
// and the error is fault.NotFound where there is no such program.
func (r *Running) Wait(stdout, stderr io.Writer) (code int, err error) {
	for {
		if err := r.ws.SetReadDeadline(time.Now().Add(patienceFor)); err != nil {
			return 0, whyClosed(err)
		}
		kind, data, err := r.ws.ReadMessage()
		if err != nil {
			return 0, whyClosed(err)
		}
		if kind == websocket.BinaryMessage {
			if err := output(data, stdout, stderr); err != nil {
				return 0, err
			}
			continue
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			return 0, fault.Wrap(err, fault.Unavailable, "The server's answer cannot be read.")
		}
		if m.Type == "exit" || m.Type == "error" {
			return m.verdict()
		}
	}
}

func output(data []byte, stdout, stderr io.Writer) (err error) {
	if len(data) == 0 {
		return nil
	}
	switch data[0] {
	case streamStdout:
		_, err = stdout.Write(data[1:])
	case streamStderr:
		_, err = stderr.Write(data[1:])
	}
	return err
}

func (m message) verdict() (int, error) {
	switch {
	case m.Type == "error" && m.Problem != nil:
		return 0, &fault.Error{Kind: kindOf(m.Problem.Status), Field: m.Problem.Field, Message: text.OneLine(m.Problem.Detail, maxDetail)}
	case m.Type == "error":
		return 0, fault.New(fault.Unavailable, "The command's end is not known.")
	case m.TimedOut:
		return 0, fault.New(fault.Timeout, "The command took longer than a day and was killed.")
	}
	return m.ExitCode, nil
}
