package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// newRemoteTemplateCmds makes the commands about templates that ask a server.
func newRemoteTemplateCmds() []*cobra.Command {
	all := []*cobra.Command{newTemplateCreateCmd(), newTemplateSourceCmd(), newTemplateRebuildCmd(), newTemplateBuildsCmd()}
	for _, one := range all {
		one.GroupID = "" // that is the parent's
	}
	return all
}

func newTemplateCreateCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use: "create NAME --from-snapshot SANDBOX/SNAPSHOT", Short: "Make a template of a snapshot of a sandbox", Args: cobra.ExactArgs(1),
		Long: `create has the server make a template of a snapshot, which is named by its id or its name, and begin to build its image. Everyone who makes
a sandbox of it gets the files of the snapshot outside of its home, with --home also those in it: keys and passwords in them, too.
Needs a token of an admin.`,
		Example: "  sandboxd template create tools --from-snapshot lab/ready\n  sandboxd template create course --from-snapshot lab/1f3a5c7e9b2d4f60 --home",
	})
	from := cmd.Flags().String("from-snapshot", "", "sandbox and snapshot, with a slash between them")
	var n client.SnapshotTemplate
	cmd.Flags().BoolVar(&n.Home, "home", false, "with the files of the home: new sandboxes start with a copy of them")
	cmd.Flags().StringVar(&n.Description, "description", "", "what its sandboxes are for")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		box, snapshot, ok := strings.Cut(*from, "/")
		if !ok || snapshot == "" {
			return fault.Field("from-snapshot", "--from-snapshot needs a sandbox and a snapshot, such as lab/ready.")
		}
		if err := errors.Join(checkName("template", args[0]), checkName("sandbox", box)); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		n.Name = args[0]
		if err := (client.Templates{Client: c}).MakeFrom(cmd.Context(), box, snapshot, n); err != nil {
			return err
		}
		return say(cmd, "The template %s was made, and its image is being built. 'sandboxd template builds %[1]s' says how that went.", args[0])
	}
	return cmd
}

func newTemplateSourceCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "source NAME [URL]",
		Short: "Show or set the git repository that a template comes from",
		Long: `source prints where a template of the server comes from. With a URL (https://, ssh:// or git@host:path) the server fetches the template
from there now and before each rebuild; when that fails nothing changes. Needs a token of an admin.`,
		Example: "  sandboxd template source rust\n  sandboxd template source rust https://git.example.com/team/templates.git --ref main --path rust\n  sandboxd template source rust git@git.example.com:team/templates.git --key-file deploy_key",
		Args:    cobra.RangeArgs(1, 2),
	})
	var n client.NewTemplateSource
	var keyFile, tokenFile, hostKeyFile string
	f := cmd.Flags()
	f.StringVar(&n.Ref, "ref", "", "branch or tag; the default branch if empty")
	f.StringVar(&n.Path, "path", "", "folder in the repository")
	f.StringVar(&keyFile, "key-file", "", "file with the private key for ssh, without a passphrase")
	f.StringVar(&tokenFile, "token-file", "", "file with the token for https; \"-\" is standard input")
	f.StringVar(&hostKeyFile, "host-key-file", "", "file with the key of the ssh host, as ssh-keyscan prints it")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := checkName("template", args[0]); err != nil {
			return err
		}
		for _, file := range []struct {
			path string
			to   *string
		}{{keyFile, &n.Key}, {tokenFile, &n.Token}, {hostKeyFile, &n.HostKey}} {
			if *file.to, err = readSecret(file.path, cmd.InOrStdin()); err != nil {
				return err
			}
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		if len(args) == 1 {
			s, err := client.Templates{Client: c}.Source(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printSource(cmd, s)
		}
		n.URL = args[1]
		s, err := client.Templates{Client: c}.SetSource(cmd.Context(), args[0], n)
		if err != nil {
			return err
		}
		return say(cmd, "Fetched %s at commit %.10s. 'sandboxd template rebuild %s' builds it.", args[0], s.Commit, args[0])
	}
	return cmd
}

func printSource(cmd *cobra.Command, s client.TemplateSource) error {
	return printTable(cmd, [][]string{{"URL", "REF", "PATH", "COMMIT", "FETCHED", "PROBLEM"},
		{s.URL, cmp.Or(s.Ref, "-"), cmp.Or(s.Path, "-"), s.Commit[:min(10, len(s.Commit))], day(s.Fetched, "never"), orDash(s.Problem)}})
}

func newTemplateRebuildCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use: "rebuild NAME", Short: "Have the server build a template's image again", Args: cobra.ExactArgs(1),
		Long:    "rebuild fetches a template that comes from git, and begins to build its image. It does not wait for the end: see 'sandboxd template builds'.\nWith --cancel it ends the build that is under way or in line, and what waits for that image.\nNeeds a token of an admin.",
		Example: "  sandboxd template rebuild rust\n  sandboxd template rebuild base --pull --no-cache\n  sandboxd template rebuild rust --cancel",
	})
	pull := cmd.Flags().Bool("pull", false, "fetch the images that the Dockerfile names again")
	noCache := cmd.Flags().Bool("no-cache", false, "run every step again")
	cancel := cmd.Flags().Bool("cancel", false, "end the build that is under way or in line")
	cmd.MarkFlagsMutuallyExclusive("cancel", "pull")
	cmd.MarkFlagsMutuallyExclusive("cancel", "no-cache")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName("template", args[0]); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		if *cancel {
			if err := (client.Templates{Client: c}).CancelBuild(cmd.Context(), args[0]); err != nil {
				return err
			}
			return say(cmd, "The build of %s was cancelled.", args[0])
		}
		if err := (client.Templates{Client: c}).Rebuild(cmd.Context(), args[0], *pull, *noCache); err != nil {
			return err
		}
		return say(cmd, "The build has begun. 'sandboxd template builds %s' says how it went.", args[0])
	}
	return cmd
}

func newTemplateBuildsCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use: "builds NAME [ID]", Short: "List the last builds of a template, or print the log of one", Args: cobra.RangeArgs(1, 2),
		Long:    "builds lists the last 20 builds of a template on the server. With the id of one it prints its log.",
		Example: "  sandboxd template builds rust\n  sandboxd template builds rust 17",
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName("template", args[0]); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		if len(args) == 2 {
			id, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return fault.Field("id", "%.40q is not the id of a build. 'sandboxd template builds %s' lists them.", args[1], args[0])
			}
			return printBuildLog(cmd, c, args[0], id)
		}
		list, err := client.Templates{Client: c}.Builds(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "STATE", "BEGAN", "TOOK", "WHY", "COMMIT", "PROBLEM"}}
		for _, b := range list {
			took := "-"
			if !b.Ended.IsZero() {
				took = b.Ended.Sub(b.Began).Round(time.Second).String()
			}
			why := strings.TrimSpace(cmp.Or(b.Why, "use") + " " + b.By)
			rows = append(rows, []string{strconv.FormatInt(b.ID, 10), b.State, b.Began.Local().Format("2006-01-02 15:04"), took, why, orDash(b.Commit[:min(10, len(b.Commit))]), orDash(b.Problem)})
		}
		return printTable(cmd, rows)
	}
	return cmd
}

// printBuildLog prints the lines of a build, each fit for a terminal.
func printBuildLog(cmd *cobra.Command, c *client.Client, name string, id int64) error {
	b, err := client.Templates{Client: c}.Build(cmd.Context(), name, id)
	if err != nil {
		return err
	}
	for line := range strings.Lines(b.Log) {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), text.Excerpt(strings.TrimRight(line, "\n"), 4096)); err != nil {
			return err
		}
	}
	if b.Problem != "" {
		return fault.New(fault.Unavailable, "The build has failed: %s", b.Problem)
	}
	return nil
}
