package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// lastWord is how long a command may take to end after it was interrupted.
const lastWord = 3 * time.Second

// execOptions are what exec is told beside the sandbox and the command.
type execOptions struct {
	input  bool
	tty    bool
	user   string
	cwd    string
	env    []string
	log    string
	screen screen
}

func newExecCmd() *cobra.Command {
	o := &execOptions{}
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "exec NAME -- COMMAND…",
		Short: "Run a command in a sandbox",
		Long: `exec runs a program in a sandbox, without a shell between, and exits with its code: 127 when there is no such program, 126
when it cannot be run, 255 when the server cannot be reached or its end is unknown. Standard output and standard error stay
separate, except on a terminal. With --interactive it reads standard input. Ctrl-C interrupts it; when this process ends, it is
killed with all its children. It wakes a sandbox that is asleep, and keeps it awake until it ends.`,
		Example: `  sandboxd exec lab -- go test ./...
  sandboxd exec -it lab -- bash
  sandboxd exec -i lab -- sh -c 'cat >data.csv' <data.csv
  sandboxd exec -u root -w / -e DEBIAN_FRONTEND=noninteractive lab -- sh -c 'apt-get update && apt-get install -y jq'`,
		Args: cobra.MinimumNArgs(2),
	})
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the name is the command's own
	f.BoolVarP(&o.input, "interactive", "i", false, "give the command what standard input has")
	f.BoolVarP(&o.tty, "tty", "t", false, "give it a terminal")
	f.StringVarP(&o.user, "user", "u", "", "run it as this user (default: the sandbox's own)")
	f.StringVarP(&o.cwd, "workdir", "w", "", "run it in this folder (default: the home)")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set a variable, K=V; K alone takes it from here (repeat for more)")
	f.StringVar(&o.log, "log", "", "keep its output in the sandbox's log too, under this `NAME`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.screen = newScreen()
		return orLost(cmd, runExec(cmd, r, o, args))
	}
	return cmd
}

func runExec(cmd *cobra.Command, r *remote, o *execOptions, args []string) error {
	if err := checkBox(args[0]); err != nil {
		return err
	}
	command := client.Command{Args: afterName(args), Cwd: o.cwd, User: o.user, Env: environment(o.env), Log: o.log, TTY: o.tty}
	if len(command.Args) == 0 {
		return fault.Field("command", "A command is needed.")
	}
	if o.tty && o.input && !o.screen.attended() {
		return fault.New(fault.Invalid, "Standard input is no terminal. Leave -t out.")
	}
	if o.tty {
		command.Cols, command.Rows = o.screen.size()
		if name := os.Getenv("TERM"); name != "" {
			if _, set := command.Env["TERM"]; !set {
				command.Env["TERM"] = name
			}
		}
	}
	c, err := r.dial()
	if err != nil {
		return err
	}
	run, err := c.Exec(cmd.Context(), args[0], command)
	if err != nil {
		return err
	}
	defer run.Close()
	return o.dialogue(cmd.Context(), run)
}

// afterName gives the command that follows a name, with or without "--" between.
func afterName(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return args[2:]
	}
	return args[1:]
}

// environment reads K=V, and K from this process's own.
func environment(list []string) map[string]string {
	env := map[string]string{}
	for _, kv := range list {
		k, v, given := strings.Cut(kv, "=")
		if !given {
			v, given = os.LookupEnv(k)
		}
		if given {
			env[k] = v
		}
	}
	return env
}

func (o *execOptions) dialogue(ctx context.Context, run *client.Running) error {
	restore := func() {}
	if o.tty && o.input {
		var err error
		if restore, err = o.screen.raw(); err != nil {
			return fault.Wrap(err, fault.Unavailable, "The terminal cannot be used: %v.", err)
		}
	}
	defer restore()
	if o.tty {
		sizes, stop := context.WithCancel(ctx)
		defer stop()
		go tellSizes(sizes, run, o.screen.sizes(sizes))
	}
	if o.input {
		go run.Feed(os.Stdin) // ends with the process, at the latest
	} else if err := run.CloseInput(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The connection to the server was lost.")
	}
	defer context.AfterFunc(ctx, func() { interrupt(run) })()
	code, err := run.Wait(os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	return ended(code)
}

func tellSizes(ctx context.Context, run *client.Running, sizes <-chan [2]int) {
	for {
		select {
		case <-ctx.Done():
			return
		case z := <-sizes:
			_ = run.Resize(z[0], z[1]) // the end of the connection is told otherwise
		}
	}
}

// interrupt passes Ctrl-C on, and leaves a command that does not heed it.
func interrupt(run *client.Running) {
	_ = run.Signal("INT")
	time.AfterFunc(lastWord, run.Close)
}
