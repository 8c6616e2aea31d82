package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandboxd/internal/fault"
)

// doctorLimit bounds one check.
const doctorLimit = 20 * time.Second

// errQuiet fails without a word.
var errQuiet = errors.New("")

// level is how bad a finding is.
type level string

const (
	good    level = "ok"
	warning level = "warning"
	bad     level = "problem"
)

// finding is what a check saw, and how to mend it.
type finding struct {
	Name  string `json:"name"`
	Level level  `json:"level"`
	Saw   string `json:"saw"`
	Mend  string `json:"mend,omitempty"`
}

// check looks at one thing of the machine.
type check struct {
	name string
	look func(ctx context.Context, c *Config) finding
}

func ok(format string, args ...any) finding {
	return finding{Level: good, Saw: fmt.Sprintf(format, args...)}
}

func warn(mend, format string, args ...any) finding {
	return finding{Level: warning, Saw: fmt.Sprintf(format, args...), Mend: mend}
}

func problem(mend, format string, args ...any) finding {
	return finding{Level: bad, Saw: fmt.Sprintf(format, args...), Mend: mend}
}

func newDoctorCmd(c *Config) *cobra.Command {
	var only []string
	var quiet, asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and say how to fix problems",
		Long: `doctor checks everything that 'sandboxd serve' needs. Give it the same --data and --listen as serve.

It checks the engine and its storage, cgroups, freezing and memory, where figures come from, the firewall, names under
*.localhost, the port, the database, the disk, the storage pool, the base image. It changes nothing. It exits with 1 when there is a problem; with
warnings sandboxd works, but less well.`,
		Example: "  sandboxd doctor\n  sandboxd doctor --only engine,disk\n  sandboxd doctor --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if quiet {
				out = io.Discard
			}
			err := examine(cmd.Context(), c, report{out: out, json: asJSON}, only)
			if quiet && fault.Is(err, fault.Unavailable) {
				return errQuiet
			}
			return err
		},
	}
	c.serveFlags(cmd.Flags())
	c.templateFlags(cmd.Flags())
	cmd.Flags().StringSliceVar(&only, "only", nil, "run only these checks: "+strings.Join(checkNames(), ", "))
	cmd.Flags().BoolVar(&quiet, "quiet", false, "print nothing, only the exit code counts")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

func checkNames() []string {
	names := make([]string, 0, len(checks))
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// report is how findings are shown.
type report struct {
	out  io.Writer
	json bool
}

// examine runs the checks named (all when none is) and fails when one finds a problem.
func examine(ctx context.Context, c *Config, r report, only []string) error {
	wanted, err := choose(only)
	if err != nil {
		return err
	}
	var found []finding
	problems := 0
	for _, check := range wanted {
		f := runCheck(ctx, c, check)
		found = append(found, f)
		if f.Level == bad {
			problems++
		}
		if !r.json {
			r.line(f)
		}
	}
	if r.json {
		if err := json.NewEncoder(r.out).Encode(found); err != nil {
			return err
		}
	}
	if problems > 0 {
		return fault.New(fault.Unavailable, "%d of %d checks found a problem.", problems, len(found))
	}
	return nil
}

func choose(only []string) ([]check, error) {
	if len(only) == 0 {
		return checks, nil
	}
	var out []check
	for _, name := range only {
		n := len(out)
		for _, c := range checks {
			if c.name == name {
				out = append(out, c)
			}
		}
		if len(out) == n {
			return nil, fault.Field("only", "There is no check %q. There are: %s.", name, strings.Join(checkNames(), ", "))
		}
	}
	return out, nil
}

func runCheck(ctx context.Context, c *Config, check check) finding {
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	f := check.look(ctx, c)
	f.Name = check.name
	return f
}

func (r report) line(f finding) {
	mark := map[level]string{good: "✓", warning: "!", bad: "✗"}[f.Level]
	fmt.Fprintf(r.out, "%s %-12s %s\n", mark, f.Name, f.Saw)
	if f.Mend != "" {
		fmt.Fprintf(r.out, "  %-12s → %s\n", "", f.Mend)
	}
}
