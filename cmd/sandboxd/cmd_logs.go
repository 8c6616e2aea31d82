package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// maxLogLine bounds a line when several services are shown, in bytes.
const maxLogLine = 64 << 10

func newLogsCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "logs NAME [SERVICE]",
		Short: "Show what a sandbox's services write",
		Long: `logs prints the newest output of a service, or of all services with a name before each line. With --follow it keeps
printing new output of the services that exist when it starts. Neither wakes the sandbox or keeps it awake. On a terminal
only lines, tabs and colours are shown.`,
		Example: "  sandboxd logs lab web\n  sandboxd logs -f lab",
		Args:    cobra.RangeArgs(1, 2),
	})
	follow := cmd.Flags().BoolP("follow", "f", false, "keep printing new output")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkBox(args[0]); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		err = printLogs(cmd, c, args, *follow)
		if cmd.Context().Err() != nil {
			return nil // Ctrl-C ends --follow
		}
		return err
	}
	return cmd
}

func printLogs(cmd *cobra.Command, c *client.Client, args []string, follow bool) error {
	ctx, name := cmd.Context(), args[0]
	out, rest := forScreen(cmd.OutOrStdout())
	defer rest()
	if len(args) == 2 {
		text, err := c.Log(ctx, name, args[1], follow)
		if err != nil {
			return err
		}
		defer text.Close()
		_, err = io.Copy(out, text)
		return cut(err)
	}
	services, err := c.Services(ctx, name)
	if err != nil {
		return err
	}
	if len(services) == 0 {
		return say(cmd, "%s has no services.", name)
	}
	all := &prefixed{out: out}
	group, ctx := errgroup.WithContext(ctx)
	for _, service := range services {
		group.Go(func() error { return all.copy(ctx, c, name, service, follow) })
	}
	return group.Wait()
}

// cut says that a log has ended before its end.
func cut(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The connection to the server was lost.")
}

// prefixed writes lines of several logs, each whole and with its name.
type prefixed struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *prefixed) copy(ctx context.Context, c *client.Client, name, service string, follow bool) error {
	text, err := c.Log(ctx, name, service, follow)
	if err != nil {
		return err
	}
	defer text.Close()
	lines := bufio.NewReaderSize(text, maxLogLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if err := p.line(service, line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return cut(err)
		}
	}
}

func (p *prefixed) line(service string, line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := ""
	if line[len(line)-1] != '\n' {
		end = "\n"
	}
	_, err := fmt.Fprintf(p.out, "%s | %s%s", service, line, end)
	return err
}
