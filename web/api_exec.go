package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
)

const lineType = "application/x-ndjson"

// commandLine is a command: in JSON a list of program and arguments, or one text for a login shell.
type commandLine []string

// UnmarshalJSON reads either form.
func (c *commandLine) UnmarshalJSON(b []byte) error {
	var line string
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &line); err != nil {
			return err
		}
		if strings.TrimSpace(line) != "" {
			*c = exec.Shell(line)
		}
		return nil
	}
	var args []string
	if json.Unmarshal(b, &args) != nil {
		return fault.Field("command", "The command must be a text, or a list of texts.")
	}
	*c = args
	return nil
}

type execBody struct {
	Command commandLine       `json:"command"`
	Cwd     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
	User    string            `json:"user"`
	Log     string            `json:"log"`
	Stdin   string            `json:"stdin"`
	Timeout execTimeout       `json:"timeout"`
}

func (b execBody) request() (exec.Request, error) {
	if b.Timeout < 0 {
		return exec.Request{}, fault.Field("timeout", "The timeout cannot be negative.")
	}
	return exec.Request{
		Command: b.Command, Cwd: b.Cwd, Env: b.Env, User: b.User, Log: b.Log, Stdin: []byte(b.Stdin), Timeout: time.Duration(b.Timeout),
	}, nil
}

// execShape is how a command ended. Output that is not UTF-8 is in base64, and says so.
type execShape struct {
	ExitCode     int    `json:"exit_code"`
	Stdout       string `json:"stdout"`
	Stderr       string `json:"stderr"`
	Truncated    bool   `json:"truncated"`
	DurationMS   int64  `json:"duration_ms"`
	TimedOut     bool   `json:"timed_out"`
	StdoutBase64 bool   `json:"stdout_base64,omitempty"`
	StderrBase64 bool   `json:"stderr_base64,omitempty"`
}

// apiExec runs a command to its end, or live as lines of JSON when the caller accepts those.
func (s *commandHandlers) apiExec(ctx context.Context, r *request, in execBody) (reply, error) {
	r.object = program(in.Command)
	ask, err := in.request()
	if err != nil {
		return reply{}, err
	}
	if ask.MaxOutput, err = r.intQuery("max_output", 0, 1, exec.MaxOutput); err != nil {
		return reply{}, err
	}
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	leave, err := s.open.enter(r.who, commands)
	if err != nil {
		return reply{}, err
	}
	defer leave()
	ctx, end := s.live.whileAllowed(ctx, r)
	defer end()
	if r.accepts(lineType) {
		return reply{}, s.execLive(ctx, end, r, h, ask)
	}
	result, err := s.cfg.Commands.Run(ctx, h, ask)
	if err != nil {
		return reply{}, whyCut(ctx, err)
	}
	return reply{body: newExecShape(result)}, nil
}

// whyCut is whyEnded for a command.
func whyCut(ctx context.Context, err error) error {
	if err = whyEnded(ctx, err); errors.Is(err, ErrStopping) {
		err = fault.Wrap(err, fault.Unavailable, "sandboxd is stopping, so the command was ended. Try again in a moment.")
	}
	return err
}

func newExecShape(r exec.Result) execShape {
	out := execShape{ExitCode: r.ExitCode, Truncated: r.Truncated, DurationMS: r.Duration.Milliseconds(), TimedOut: r.TimedOut}
	out.Stdout, out.StdoutBase64 = textOrBase64(r.Stdout, r.Truncated)
	out.Stderr, out.StderrBase64 = textOrBase64(r.Stderr, r.Truncated)
	return out
}

// textOrBase64 gives b as text when it is that. A cut may have gone through the last character, which is then left out.
func textOrBase64(b []byte, cut bool) (text string, isBase64 bool) {
	if cut {
		whole, rest := splitText(b)
		if utf8.Valid(whole) && len(rest) > 0 {
			b = whole
		}
	}
	if utf8.Valid(b) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}

// splitText cuts off the beginning of a character at b's end, which more bytes might complete.
func splitText(b []byte) (whole, rest []byte) {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax+1; i-- {
		if !utf8.RuneStart(b[i]) {
			continue
		}
		if !utf8.FullRune(b[i:]) {
			return b[:i], b[i:]
		}
		break
	}
	return b, nil
}

// accepts says whether the caller asked for this media type by name.
func (r *request) accepts(mediaType string) bool {
	for _, header := range r.http.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			if got, _, err := mime.ParseMediaType(part); err == nil && got == mediaType {
				return true
			}
		}
	}
	return false
}
