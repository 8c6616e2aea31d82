package tools

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sandboxd/internal/exec"
	"sandboxd/internal/text"
	"sandboxd/internal/tools/risk"
)

// How long a call may wait for a command, in seconds.
const (
	defaultWait = 10
	longestWait = 60
)

var waitParam = param{name: "wait_seconds", kind: isNumber, min: 0, max: longestWait, about: "How long to wait for its end; 10 if you say nothing. A command that takes longer runs on, and you get a handle for it."}

var handleParam = param{name: "handle", kind: isText, required: true, about: "The handle of the command, such as cmd-1."}

func (t *table) runCommand() spec {
	return spec{
		name: "run_command", title: "Run a command", changes: true,
		description: "Run a command line in the sandbox's shell (bash where there is one), as the sandbox's user, and get its output and exit code. " +
			"stdout and stderr come together, in order. Each call is a shell of its own: a cd or a variable does not outlive it. " +
			"A command that has not ended after wait_seconds runs on in the background, and you get a handle and its output so far: start servers this way. " +
			"Of a very long output you get the beginning and the end. The command has no input unless interactive is true.",
		params: []param{
			{name: "command", kind: isText, required: true, about: "The command line."},
			{name: "folder", kind: isText, about: "The folder to run it in; the home if you say nothing."},
			waitParam,
			{name: "interactive", kind: isFlag, about: "Run it on a terminal, so that send_input can type into it: for programs that ask something, and for debuggers and other prompts."},
		},
		preview: func(a args) Preview {
			return Preview{Code: a.text("command"), Language: "bash", Folder: a.text("folder"), Risk: risk.Command(a.text("command")).Join(hiddenIn(a.text("folder")))}
		},
		run: func(ctx context.Context, a args, out io.Writer) (Result, error) {
			if strings.TrimSpace(a.text("command")) == "" {
				return failed("The command is empty."), nil
			}
			return t.runOrder(ctx, a, out, order{terminal: a.flag("interactive", false), request: exec.Request{Command: exec.Shell(a.text("command")), Cwd: t.folder(a.text("folder"))}})
		},
	}
}

// hiddenIn judges a text only by what it hides.
func hiddenIn(s string) risk.Judgement {
	j := risk.Judgement{}
	if why := risk.Hidden(s); len(why) > 0 {
		j.Level, j.Reasons = risk.Risky, why
	}
	return j
}

// runOrder starts a command and waits for it, as long as was asked. When ctx ends meanwhile, so does the command.
func (t *table) runOrder(ctx context.Context, a args, out io.Writer, o order) (Result, error) {
	c, err := t.start(ctx, o)
	if err != nil {
		return ended(ctx, err)
	}
	if err := c.wait(ctx, seconds(a.number("wait_seconds", defaultWait)), out); err != nil {
		c.session.Close()
		return Result{}, err
	}
	return c.report(ctx), nil
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func (t *table) commandOutput() spec {
	return spec{
		name: "command_output", title: "Wait for a command", repeats: true,
		description: "Get what a command that runs in the background has written since you last saw its output, and whether it has ended. It waits for its end, for wait_seconds at most.",
		params:      []param{handleParam, waitParam},
		run: func(ctx context.Context, a args, out io.Writer) (Result, error) {
			c, problem := t.command(a)
			if c == nil {
				return problem, nil
			}
			if err := c.wait(ctx, seconds(a.number("wait_seconds", defaultWait)), out); err != nil {
				return Result{}, err
			}
			return c.report(ctx), nil
		},
	}
}

// command finds the one whose handle is given.
func (t *table) command(a args) (*command, Result) {
	if c, ok := t.desk.find(a.text("handle")); ok {
		return c, Result{}
	}
	return nil, failed(fmt.Sprintf("There is no command %q. Commands end with the server, and only the last ones that have ended are remembered.", text.OneLine(a.text("handle"), 40)))
}

func (t *table) sendInput() spec {
	return spec{
		name: "send_input", title: "Type into a command", changes: true,
		description: "Type into a command that was started with interactive: true, and get what it writes then.",
		params: []param{
			handleParam,
			{name: "text", kind: isText, about: "What to type."},
			{name: "enter", kind: isFlag, about: "Press Enter after it; true if you say nothing."},
			{name: "key", kind: isText, enum: []string{"ctrl-c", "ctrl-d", "ctrl-z", "escape", "tab", "up", "down"}, about: "A key to press instead of a text."},
			{name: "wait_seconds", kind: isNumber, min: 0, max: longestWait, about: "How long to wait for what it writes; 2 if you say nothing."},
		},
		preview: func(a args) Preview {
			p := Preview{Code: a.text("text"), Language: "text", Risk: risk.Command(a.text("text"))}
			if p.Risk.Level == risk.Harmless {
				p.Risk.Level = risk.Changing // to the program there, it may mean anything
			}
			if key := a.text("key"); key != "" {
				p.Code, p.Risk = key, risk.Judgement{Level: risk.Changing}
			}
			return p
		},
		run: t.typeInto,
	}
}

var keys = map[string]string{"ctrl-c": "\x03", "ctrl-d": "\x04", "ctrl-z": "\x1a", "escape": "\x1b", "tab": "\t", "up": "\x1b[A", "down": "\x1b[B"}

func (t *table) typeInto(ctx context.Context, a args, out io.Writer) (Result, error) {
	c, problem := t.command(a)
	if c == nil {
		return problem, nil
	}
	switch {
	case !c.terminal:
		return failed("The command has no input. Start it again with interactive: true to type into it."), nil
	case c.ended():
		return c.report(ctx), nil
	case len(a.text("text")) > maxInput:
		return failed(fmt.Sprintf("At most %d bytes can be typed at once. Write longer texts to a file.", maxInput)), nil
	}
	typed := keys[a.text("key")]
	if typed == "" {
		typed = a.text("text")
		if a.flag("enter", true) {
			typed += "\r"
		}
	}
	if !t.enter() {
		return failed("The server is stopping."), nil
	}
	wrote := make(chan error, 1)
	go func() {
		defer t.work.Done()
		_, err := c.session.Write([]byte(typed)) // it ends with the command
		wrote <- err
	}()
	late := time.NewTimer(inputWait)
	defer late.Stop()
	select {
	case err := <-wrote:
		if err != nil && !c.ended() {
			return ended(ctx, err)
		}
	case <-late.C:
		return failed("The command does not read what is typed."), nil
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	if err := c.wait(ctx, seconds(a.number("wait_seconds", 2)), out); err != nil {
		return Result{}, err
	}
	return c.report(ctx), nil
}

func (t *table) stopCommand() spec {
	return spec{
		name: "stop_command", title: "Stop a command", changes: true,
		description: "End a command that runs in the background, with all that it has started: it is asked to end, and killed after three seconds.",
		params:      []param{handleParam},
		preview: func(a args) Preview {
			return Preview{Code: a.text("handle"), Language: "text", Risk: risk.Judgement{Level: risk.Changing}}
		},
		run: func(ctx context.Context, a args, out io.Writer) (Result, error) {
			c, problem := t.command(a)
			if c == nil {
				return problem, nil
			}
			if !c.ended() {
				_ = c.session.Signal("TERM") // one that cannot be asked is killed
				err := c.wait(ctx, stopGrace, out)
				c.session.Close()
				if err != nil {
					return Result{}, err
				}
				<-c.done
			}
			r := c.report(ctx)
			r.Failed = false
			return r, nil
		},
	}
}
