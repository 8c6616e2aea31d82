package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandboxd/internal/fault"
)

// The marks between which the generated table of flags stands, and the page that has it.
const (
	docsBegin = "<!-- begin: configuration, written by make generate -->\n"
	docsEnd   = "<!-- end: configuration -->\n"
	docsPage  = "docs/configuration.md"
)

// newDocsCmd makes the hidden command that keeps the configuration page's table in step with the flags.
func newDocsCmd(root *cobra.Command) *cobra.Command {
	var check, write string
	cmd := &cobra.Command{
		Use:    "docs",
		Short:  "Write the table of flags into the configuration page, or check it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			table := configTable(root)
			if write != "" {
				return rewrite(write, table)
			}
			old, err := os.ReadFile(check)
			if err != nil {
				return err
			}
			now, err := replaceTable(old, table)
			if err == nil && !bytes.Equal(old, now) {
				err = fault.New(fault.Conflict, "The configuration table of %s is stale: run 'make generate' and commit.", check)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&write, "write", "", "file to write the table into")
	cmd.Flags().StringVar(&check, "check", docsPage, "file to check")
	return cmd
}

func configTable(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	seen := map[string]bool{"help": true}
	row := func(f *pflag.Flag) {
		if seen[f.Name] || f.Hidden {
			return
		}
		seen[f.Name] = true
		value := strings.Trim(f.DefValue, "[]")
		if f.Name == "data" {
			value = "/var/lib/sandboxd (root), else $XDG_DATA_HOME/sandboxd"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", f.Name, envName(f.Name), value, f.Usage)
	}
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		return ""
	}
	serve.Flags().VisitAll(row)
	root.PersistentFlags().VisitAll(row)
	fmt.Fprintf(&b, "| | `%s` | | password of the first admin, instead of the setup link |\n", adminPasswordEnv)
	b.WriteString("| | `GOGC` | chosen by sandboxd | Go's setting of how much garbage is kept before it is collected, in per cent |\n")
	b.WriteString("| | `DOCKER_HOST` | the local socket | the engine to use |\n")
	return b.String()
}

func rewrite(path, table string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now, err := replaceTable(old, table)
	if err != nil {
		return err
	}
	return os.WriteFile(path, now, 0o644)
}

func replaceTable(text []byte, table string) ([]byte, error) {
	head, rest, ok := bytes.Cut(text, []byte(docsBegin))
	_, tail, ok2 := bytes.Cut(rest, []byte(docsEnd))
	if !ok || !ok2 {
		return nil, fault.New(fault.Invalid, "The marks of the configuration table are missing.")
	}
	return bytes.Join([][]byte{head, []byte(docsBegin), []byte(table), []byte(docsEnd), tail}, nil), nil
}
