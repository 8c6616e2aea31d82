package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// The groups of commands, as the help shows them.
const (
	serverGroup = "server"
	clientGroup = "client"
)

// remote is what every command needs that asks a server from anywhere.
type remote struct {
	url      string
	token    string
	insecure bool
}

// newRemoteCmds makes the commands for anywhere.
func newRemoteCmds(c *Config) []*cobra.Command {
	return []*cobra.Command{newLoginCmd(), newListCmd(), newSSHCmd(), newSSHConfigCmd(), newExecCmd(), newCopyCmd(),
		newForwardCmd(), newLogsCmd(), newBackupCmd(c), newBackupsCmd(), newRestoreCmd(c), newSnapshotCmd(), newSnapshotsCmd(), newCloneCmd(), newScheduleCmd(), newRepositoryCmd(), newVolumeCmd(), newUpdateCmd()}
}

// remoteCmd makes a command that asks a server.
func remoteCmd(cmd *cobra.Command) (*cobra.Command, *remote) {
	r := &remote{}
	cmd.GroupID = clientGroup
	f := cmd.Flags()
	f.StringVar(&r.url, "url", "", "the dashboard's address, such as https://box.example.com (default: where you signed in last)")
	f.StringVar(&r.token, "token", "", "an API token; better in SANDBOXD_TOKEN, as a command line can be read by all (default: as signed in)")
	f.BoolVar(&r.insecure, "insecure", false, "send the token over plain http, where anyone along the way can read it")
	usual := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		_ = c.Root().PersistentFlags().MarkHidden("data") // it is the server's; there is one
		usual(c, args)
	})
	return cmd, r
}

// dial makes the client that the flags, the environment or the last sign-in say.
func (r *remote) dial() (*client.Client, error) {
	o := client.Options{URL: r.url, Token: r.token, Insecure: r.insecure, Agent: "sandboxd/" + version}
	if o.URL == "" || o.Token == "" {
		if err := r.recall(&o); err != nil {
			return nil, err
		}
	}
	if o.URL == "" {
		return nil, fault.New(fault.Invalid, "Say which sandboxd: 'sandboxd login https://box.example.com' once, or SANDBOXD_URL and SANDBOXD_TOKEN, or --url.")
	}
	if o.Token == "" {
		return nil, fault.New(fault.Unauthenticated, "There is no token for %s. Run 'sandboxd login %s', or set SANDBOXD_TOKEN.", o.URL, o.URL)
	}
	return client.New(o)
}

// recall fills in the saved options. A saved token goes to its own server only.
func (r *remote) recall(o *client.Options) error {
	path, err := client.SavedPath()
	if err != nil {
		return nil // there is nothing saved where there is no place for it
	}
	saved, err := client.Load(path)
	if err != nil {
		return err
	}
	if o.URL == "" {
		o.URL = saved.Current
	}
	if o.Token != "" || o.URL == "" {
		return nil
	}
	at, err := client.ParseURL(o.URL)
	if err != nil {
		return err
	}
	o.Token = saved.Tokens[at.String()]
	return nil
}

// boxName is the name that a sandbox can have, as far as this end must know: it becomes part of an address.
var boxName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62})$`)

func checkBox(name string) error { return checkName("sandbox", name) }

// checkName is Invalid for what cannot be the name of a thing of that kind. They all have the names that sandboxes can have.
func checkName(kind, name string) error {
	if !boxName.MatchString(name) {
		return fault.Field("name", "%.80q is not the name of a %s.", name, kind)
	}
	return nil
}

// exitStatus is an error that says how the process is to end. What there is to say has been said.
type exitStatus int

// Error implements error.
func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ended is how a command of the sandbox's has ended, as this process's own end.
func ended(code int) error {
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}

// How a process ends that is to end as a command in a sandbox does, when there was none. The last two are what shells have.
const (
	lostCode      = 255 // its end cannot be known
	noCommandCode = 126 // it cannot be run
	noProgramCode = 127 // there is no such program
)

// orLost tells why there is no command, or not any more, and ends in a way that commands seldom do.
func orLost(cmd *cobra.Command, err error) error {
	var own exitStatus
	if err == nil || errors.As(err, &own) {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "sandboxd:", fault.Message(err))
	switch {
	case fault.FieldOf(err) != "command":
		return exitStatus(lostCode)
	case fault.Is(err, fault.NotFound):
		return exitStatus(noProgramCode)
	}
	return exitStatus(noCommandCode)
}

func newLoginCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "login URL",
		Short: "Remember a server and a token for the commands below",
		Long: `login asks for an API token, or reads it from standard input, tests it, and keeps it in client.json in your settings
folder, readable by you alone. The other commands then use this server. You can log in to several servers; commands use
the last one, or the one that --url names. A token is sent to its own server only.

Make a token in the dashboard under Settings, or on the server with 'sandboxd token create'.`,
		Example: "  sandboxd login https://box.example.com\n  sandboxd token create laptop | sandboxd login http://localhost:8080",
		Args:    wantArgs(1),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.url = args[0]
		return login(cmd, r)
	}
	return cmd
}

func login(cmd *cobra.Command, r *remote) error {
	at, err := client.ParseURL(r.url)
	if err != nil {
		return err
	}
	if r.token == "" {
		if r.token, err = askToken(cmd); err != nil {
			return err
		}
	}
	c, err := client.New(client.Options{URL: at.String(), Token: r.token, Insecure: r.insecure, Agent: "sandboxd/" + version})
	if err != nil {
		return err
	}
	user, only, err := c.Me(cmd.Context())
	if err != nil {
		return err
	}
	if err := remember(c.URL(), r.token); err != nil {
		return err
	}
	if only != "" {
		return say(cmd, "Signed in at %s as %s, for the sandbox %s alone.", c.URL(), user, only)
	}
	return say(cmd, "Signed in at %s as %s.", c.URL(), user)
}

func remember(url, token string) error {
	path, err := client.SavedPath()
	if err != nil {
		return err
	}
	saved, err := client.Load(path)
	if err != nil {
		return err
	}
	saved.Current, saved.Tokens[url] = url, token
	return saved.Save(path)
}

// askToken reads a token from a person, unseen, or from standard input.
func askToken(cmd *cobra.Command) (string, error) {
	const most = 4096
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		line, err := bufio.NewReader(io.LimitReader(os.Stdin, most)).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return "", fault.Wrap(errors.Join(err, io.ErrUnexpectedEOF), fault.Invalid, "Standard input has no token.")
		}
		return line, nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), "API token: ")
	text, err := term.ReadPassword(in)
	fmt.Fprintln(cmd.ErrOrStderr())
	token := strings.TrimSpace(string(text))
	if err != nil || token == "" {
		return "", fault.New(fault.Invalid, "No token was given.")
	}
	return token, nil
}

func newListCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:     "ls",
		Short:   "List the sandboxes",
		Long:    "ls prints the sandboxes that the token may see. IMAGE is \"older\" for those that 'sandboxd update' puts on a newer image.",
		Example: "  sandboxd ls\n  sandboxd ls --quiet",
		Args:    wantArgs(0),
	})
	quiet := cmd.Flags().BoolP("quiet", "q", false, "print names only")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		return list(cmd.Context(), cmd, c, *quiet)
	}
	return cmd
}

func list(ctx context.Context, cmd *cobra.Command, c *client.Client, quiet bool) error {
	boxes, err := c.Sandboxes(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "STATE", "TEMPLATE", "IMAGE", "OWNER", "LABEL"}}
	for _, b := range boxes {
		if quiet {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), b.Name); err != nil {
				return err
			}
			continue
		}
		from := b.Template
		if from == "" {
			from = b.Image
		}
		image := ""
		if b.Update != nil && b.Update.Available {
			image = "older"
		}
		rows = append(rows, []string{b.Name, b.State, from, orDash(image), b.Owner, orDash(b.Label)})
	}
	if quiet {
		return nil
	}
	return printTable(cmd, rows)
}
