package shoutrrr

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// request is what a child reads on its standard input.
type request struct {
	Address string        `json:"address"`
	Title   string        `json:"title"` // "" for a service that shows none
	Text    string        `json:"text"`
	Limit   time.Duration `json:"limit"` // after which the caller ends the child
}

// result is what a child writes on its standard output.
type result struct {
	Taken   bool       `json:"taken"`
	Kind    fault.Kind `json:"kind"`    // of what is wrong, if it was not taken
	Message string     `json:"message"` // our words on it
}

const (
	resultLimit = 64 << 10        // bytes
	pipeLimit   = 2 * time.Second // that a killed child's pipes may stay open
)

// ownVariables are for the server alone; some are secrets.
const ownVariables = "SANDBOXD_"

// errNonsense is for what is no result.
var errNonsense = errors.New("the process wrote no result")

// run has a child send a message, and waits for its end.
func (s *Sender) run(ctx context.Context, service string, r request) error {
	r.Limit = cmp.Or(s.Limit, sendLimit)
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	in, err := json.Marshal(r)
	if err != nil {
		return broken(err, service)
	}
	cmd := exec.CommandContext(ctx, s.Program[0], s.Program[1:]...)
	var out output
	cmd.Stdin, cmd.Stdout = bytes.NewReader(in), &out // its standard error goes nowhere
	cmd.Env = environment(os.Environ())
	cmd.WaitDelay = pipeLimit
	err = cmd.Run()
	switch {
	case err == nil:
		return out.result(service)
	case ctx.Err() != nil:
		return late(ctx, service)
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitMemory:
		return tooLong(service)
	}
	return broken(err, service)
}

// environment gives the variables of a child, from those of the server. The library goes by those about proxies.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool { return strings.HasPrefix(v, ownVariables) })
}

// output takes resultLimit bytes.
type output struct{ text []byte }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if len(o.text)+len(p) > resultLimit {
		return 0, errNonsense
	}
	o.text = append(o.text, p...)
	return len(p), nil
}

// result gives the error that a child tells.
func (o *output) result(service string) error {
	var r result
	if err := json.Unmarshal(o.text, &r); err != nil {
		return broken(errNonsense, service) // err may quote what was written
	}
	switch {
	case r.Taken:
		return nil
	case slices.Contains([]fault.Kind{fault.Invalid, fault.Unavailable, fault.Timeout}, r.Kind) && r.Message != "":
		return fault.New(r.Kind, "%s", r.Message)
	}
	return broken(errNonsense, service)
}
