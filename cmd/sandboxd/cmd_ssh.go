package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sandboxd/internal/fault"
	"sandboxd/internal/socket"
	"sandboxd/internal/sshd"
)

// sshOptions are what ssh is told beside the sandbox and the command.
type sshOptions struct {
	stdio  bool
	tty    bool
	noTTY  bool
	screen screen
}

func newSSHCmd() *cobra.Command {
	o := &sshOptions{}
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "ssh NAME [-- COMMAND…]",
		Short: "Open a shell in a sandbox, or run a command there, over SSH",
		Long: `ssh opens a login shell in a sandbox, or runs a command line there, and exits with its code. It needs no ssh on this
machine or in the image, and wakes a sandbox that is asleep. "~." at the beginning of a line leaves.

An open shell alone does not keep the sandbox awake; the next key wakes it. Programs started with nohup or in tmux
outlive the connection.

With --stdio it carries the bytes of an SSH connection, for a ProxyCommand: 'sandboxd ssh-config --install' sets that
up, so that ssh, scp, sftp, rsync, git and editors reach NAME.sandboxd.`,
		Example: "  sandboxd ssh lab\n  sandboxd ssh lab -- uname -a\n  sandboxd ssh lab -- 'cd src && make' <input >output",
		Args:    cobra.MinimumNArgs(1),
	})
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the name is the command's own
	f.BoolVar(&o.stdio, "stdio", false, "carry the bytes of an SSH connection over standard input and output")
	f.BoolVarP(&o.tty, "tty", "t", false, "give a command a terminal")
	f.BoolVarP(&o.noTTY, "no-tty", "T", false, "give a shell no terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.screen = newScreen()
		return orLost(cmd, runSSH(cmd, r, o, args))
	}
	return cmd
}

func runSSH(cmd *cobra.Command, r *remote, o *sshOptions, args []string) error {
	name := args[0]
	if o.stdio {
		name, _, _ = strings.Cut(name, ".") // as ssh-config writes it
	}
	if err := checkBox(name); err != nil {
		return err
	}
	if o.stdio && len(args) > 1 {
		return fault.New(fault.Invalid, "--stdio takes a name only.")
	}
	c, err := r.dial()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	conn, err := c.SSH(ctx, name)
	if err != nil {
		return err
	}
	defer conn.Close()
	if o.stdio {
		return carryStdio(ctx, conn)
	}
	key, err := c.HostKey(ctx)
	if err != nil {
		return err
	}
	in, err := sshd.Dial(ctx, conn, key)
	if err != nil {
		return err
	}
	defer in.Close()
	return o.session(ctx, cmd, in, name, strings.Join(afterName(args), " "))
}

// carryStdio joins a connection with this process's input and output, until either ends.
func carryStdio(ctx context.Context, conn *socket.Conn) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		_, _ = io.Copy(struct{ io.Writer }{conn}, os.Stdin) // the other direction tells
		leave()                                             // ssh is gone
	}()
	_, err := io.Copy(struct{ io.Writer }{os.Stdout}, struct{ io.Reader }{conn})
	if err != nil && ctx.Err() == nil {
		return fault.Wrap(err, fault.Unavailable, "The connection to the server was lost.")
	}
	return nil
}

// errLeft says that the user left by "~.".
var errLeft = errors.New("left")

// session runs a shell or a command, with this process's terminal where it is to have one.
func (o *sshOptions) session(ctx context.Context, cmd *cobra.Command, in *sshd.Client, name, line string) error {
	run := sshd.Run{Line: line, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	run.TTY = o.tty || line == "" && o.screen.attended() && !o.noTTY
	if !run.TTY {
		code, err := in.Run(ctx, run)
		if err != nil {
			return err
		}
		return ended(code)
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	run.Term = os.Getenv("TERM")
	run.Cols, run.Rows = o.screen.size()
	run.Resize = o.screen.sizes(ctx)
	restore, err := o.screen.raw()
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "The terminal cannot be used: %v.", err)
	}
	defer restore()
	if o.screen.attended() {
		run.Stdin = &escapes{Reader: os.Stdin, leave: func() { leave(errLeft) }}
	}
	code, err := in.Run(ctx, run)
	restore()
	if errors.Is(context.Cause(ctx), errLeft) {
		fmt.Fprintf(cmd.ErrOrStderr(), "\r\nLeft %s.\n", name)
		return exitStatus(lostCode)
	}
	if err != nil {
		return err
	}
	return ended(code)
}
