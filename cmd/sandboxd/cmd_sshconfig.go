package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// The marks between which our part of ~/.ssh/config stands.
const (
	configBegin = "# --- begin: written by sandboxd ssh-config ---\n"
	configEnd   = "# --- end: sandboxd ---\n"
)

func newSSHConfigCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "ssh-config",
		Short: "Print the configuration with which ssh, scp, rsync and editors reach sandboxes",
		Long: `ssh-config prints a Host block for ~/.ssh/config in which sandboxes are NAME.sandboxd. --install writes it to the beginning
of that file, between marks. Run it again to update the names: editors list them, though other names work too. The block
holds no token: ssh takes it from SANDBOXD_TOKEN or from 'sandboxd login'.`,
		Example: "  sandboxd ssh-config --install\n  ssh lab.sandboxd\n  scp notes.txt lab.sandboxd:\n  rsync -a --delete src/ lab.sandboxd:src/",
		Args:    wantArgs(0),
	})
	f := cmd.Flags()
	install := f.Bool("install", false, "write it into ~/.ssh/config")
	suffix := f.String("suffix", "sandboxd", "what follows the sandboxes' names; another one for each server")
	host := f.String("host-key", "", "print the server's key for this host instead, as ssh asks for it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		if *host != "" {
			return printHostKey(cmd, c, *host)
		}
		text, err := sshConfig(cmd.Context(), c, *suffix, r.insecure)
		if err != nil {
			return err
		}
		if !*install {
			_, err := fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		}
		return installConfig(cmd, text)
	}
	return cmd
}

func printHostKey(cmd *cobra.Command, c *client.Client, host string) error {
	if strings.ContainsAny(host, " \t\r\n") {
		return fault.Field("host-key", "%q is no host.", host)
	}
	key, err := c.HostKey(cmd.Context())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), host, key)
	return err
}

// shellChars are what a name may not have: ssh has a shell read the ProxyCommand with the name in it, and a name may be
// anybody's, such as that of a submodule. It stands between single quotes, which only one of these could end.
const shellChars = "'`$;|&<>(){}!# "

// plainAddress is a server's address that means nothing to a shell between double quotes, nor to ssh.
var plainAddress = regexp.MustCompile(`^https?://[a-z0-9._\[\]:-]+$`)

// sshConfig is the block. ssh runs the commands by a shell (ProxyCommand) or splits them itself (KnownHostsCommand): both know
// double quotes.
func sshConfig(ctx context.Context, c *client.Client, suffix string, insecure bool) (string, error) {
	if !boxName.MatchString(suffix) {
		return "", fault.Field("suffix", "%q cannot follow a name: use letters, digits and hyphens.", suffix)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if strings.ContainsAny(self, "\"\\$`\n%") {
		return "", fault.New(fault.Invalid, "ssh cannot run a program whose path is %q. Move it.", self)
	}
	if !plainAddress.MatchString(c.URL()) {
		return "", fault.Field("url", "ssh cannot be told of a server at %q.", c.URL())
	}
	boxes, err := c.Sandboxes(ctx)
	if err != nil {
		return "", err
	}
	hosts := ""
	for _, b := range boxes {
		if boxName.MatchString(b.Name) {
			hosts += b.Name + "." + suffix + " "
		}
	}
	but := ""
	for _, char := range shellChars {
		but += ` "!*` + string(char) + `*"`
	}
	to := `--url "` + c.URL() + `"`
	if insecure {
		to += " --insecure"
	}
	return fmt.Sprintf(`%sHost %s*.%s%s
  User sandbox
  ProxyCommand "%s" ssh --stdio %s -- '%%n'
  KnownHostsCommand "%s" ssh-config %s --host-key %%H
  UserKnownHostsFile /dev/null
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  HostKeyAlgorithms ssh-ed25519
  CheckHostIP no
  ForwardAgent no
  ForwardX11 no
Match all
%s`, configBegin, hosts, suffix, but, self, to, self, to, configEnd), nil
}

func installConfig(cmd *cobra.Command, text string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "There is no home folder: %v.", err)
	}
	path := filepath.Join(home, ".ssh", "config")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.Unavailable, "%s cannot be read: %v.", path, err)
	}
	now, err := replaceBlock(string(old), text)
	if err != nil {
		return err
	}
	if err := client.ReplaceConfig(path, []byte(now)); err != nil {
		return fault.Wrap(err, fault.Unavailable, "%s cannot be written: %v.", path, err)
	}
	return say(cmd, "Written to %s. Now 'ssh NAME.sandboxd' opens a shell in a sandbox.", path)
}

// replaceBlock puts text where the block stands, or at the beginning: ssh takes of every option what it finds first.
func replaceBlock(old, text string) (string, error) {
	head, rest, found := strings.Cut(old, configBegin)
	if !found {
		if old != "" {
			text += "\n"
		}
		return text + old, nil
	}
	_, tail, closed := strings.Cut(rest, configEnd)
	if !closed {
		return "", fault.New(fault.Conflict, "The end of the part that sandboxd has written is missing. Remove that part, and repeat.")
	}
	return head + text + tail, nil
}
