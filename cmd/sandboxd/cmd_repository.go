package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// dialRepository reaches the server, to ask for something of the repository of that name.
func dialRepository(r *remote, name string) (*client.Client, error) {
	if err := checkName("backup repository", name); err != nil {
		return nil, err
	}
	return r.dial()
}

func newRepositoryCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "repository",
		Short:   "Connect, check and remove the server's backup repositories",
		GroupID: clientGroup,
		Long: `repository manages the places where the server keeps backups beside its backup folder: a folder, S3 or SFTP. What is the same in
many backups is stored once, and all is encrypted. 'sandboxd backup NAME --repository R' makes a backup there.

All but list need a token of an admin.`,
		Example: `  sandboxd repository add nas --folder /mnt/nas/sandboxd
  sandboxd repository list
  sandboxd backup lab --repository nas`,
	}
	cmd.AddCommand(newRepositoryListCmd(), newRepositoryAddCmd(), newRepositoryCheckCmd(), newRepositoryRemoveCmd())
	return cmd
}

func newRepositoryListCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "list", Short: "List the repositories", Long: "list prints the backup repositories, as they were last reached. Where they are is told to admins.",
		Example: "  sandboxd repository list", Args: cobra.NoArgs})
	cmd.GroupID = ""
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		list, err := c.Repositories().List(cmd.Context())
		if err != nil {
			return err
		}
		rows := [][]string{{"NAME", "KIND", "PLACE", "BACKUPS", "SIZE", "SEEN", "PROBLEM"}}
		for _, k := range list {
			rows = append(rows, []string{k.Name, k.Kind, orDash(k.Where()), strconv.Itoa(k.Backups), text.Size(k.Size), day(k.Seen, "never"), orDash(k.Problem)})
		}
		return printTable(cmd, rows)
	}
	return cmd
}

// adding is a repository that is to be connected, as flags say it.
type adding struct {
	client.NewRepository
	folder, s3, sftp       string
	ca, keyFile, hostKey   string
	secretFile, passwordIn string
}

func (o *adding) flags(f *pflag.FlagSet) {
	f.StringVar(&o.folder, "folder", "", "a folder on the server: its absolute `PATH`")
	f.StringVar(&o.s3, "s3", "", "a bucket: `ENDPOINT/BUCKET[/PREFIX]`, such as s3.example.com/backups")
	f.StringVar(&o.Region, "region", "", "region of the bucket")
	f.StringVar(&o.AccessKey, "access-key", "", "access key of S3")
	f.StringVar(&o.secretFile, "secret-key-file", "", "file with the secret key of S3")
	f.BoolVar(&o.PlainHTTP, "plain-http", false, "the S3 server has no TLS")
	f.StringVar(&o.ca, "ca-file", "", "file with the certificate of the CA of the S3 server")
	f.StringVar(&o.sftp, "sftp", "", "a folder on another host: `USER@HOST[:PORT]/PATH`")
	f.StringVar(&o.keyFile, "private-key-file", "", "file with the private key for SFTP, without a passphrase")
	f.StringVar(&o.hostKey, "host-key-file", "", "file with the public key of the SFTP host")
	f.StringVar(&o.passwordIn, "password-file", "", "file with the encryption password, of a repository that is there or for a new one; \"-\" is standard input (default: one is generated)")
	f.BoolVar(&o.TakeOver, "take-over", false, "take a repository that another sandboxd uses, which is gone")
}

func newRepositoryAddCmd() *cobra.Command {
	o := &adding{}
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "add NAME",
		Short: "Connect a repository, or change how it is reached",
		Long: `add makes a repository in an empty place, or connects one that is there. It is tried out first.

Without --password-file a new repository gets a password, which is printed once, alone on standard output. Keep it: without it the
backups cannot be read when the server is lost. For a repository that is known already, secrets that are left out stay.`,
		Example: `  sandboxd repository add nas --folder /mnt/nas/sandboxd >nas.password
  sandboxd repository add cloud --s3 s3.example.com/backups --access-key box --secret-key-file key
  sandboxd repository add away --sftp backup@nas.lan/srv/sandboxd --private-key-file id --host-key-file nas.pub`,
		Args: wantArgs(1),
	})
	cmd.GroupID = ""
	o.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkName("backup repository", args[0]); err != nil {
			return err
		}
		if err := o.understand(cmd.InOrStdin()); err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		k, err := c.Repositories().Put(cmd.Context(), args[0], o.NewRepository)
		if err != nil {
			return err
		}
		if k.Password != "" {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), k.Password); err != nil {
				return err
			}
			return say(cmd, "Made the repository %s. Keep its password, which won't be shown again: without it the backups cannot be read.", args[0])
		}
		return say(cmd, "Connected the repository %s. It has %d backups.", args[0], k.Backups)
	}
	return cmd
}

// understand reads the flags, and the files that they name.
func (o *adding) understand(in io.Reader) error {
	var err error
	switch {
	case o.folder != "" && o.s3 == "" && o.sftp == "":
		o.Kind, o.Path = "folder", o.folder
	case o.s3 != "" && o.folder == "" && o.sftp == "":
		o.Kind = "s3"
		o.Endpoint, o.Bucket, _ = strings.Cut(o.s3, "/")
		o.Bucket, o.Prefix, _ = strings.Cut(o.Bucket, "/")
	case o.sftp != "" && o.folder == "" && o.s3 == "":
		err = o.understandSFTP()
	default:
		err = fault.New(fault.Invalid, "Say where the repository is: --folder, --s3 or --sftp.")
	}
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path string
		to   *string
	}{{o.secretFile, &o.SecretKey}, {o.ca, &o.CA}, {o.keyFile, &o.PrivateKey}, {o.hostKey, &o.HostKey}, {o.passwordIn, &o.Password}} {
		if *file.to, err = readSecret(file.path, in); err != nil {
			return err
		}
	}
	return nil
}

func (o *adding) understandSFTP() (err error) {
	o.Kind = "sftp"
	user, rest, isUser := strings.Cut(o.sftp, "@")
	host, path, isPath := strings.Cut(rest, "/")
	if !isUser || !isPath {
		return fault.Field("sftp", "--sftp is %.200q; it must be USER@HOST[:PORT]/PATH.", o.sftp)
	}
	o.User, o.Path = user, "/"+path
	name, port, isPort := strings.Cut(host, ":")
	if o.Host = name; isPort {
		if o.Port, err = strconv.Atoi(port); err != nil {
			return fault.Field("sftp", "The port in --sftp is %.20q; it must be a number.", port)
		}
	}
	return nil
}

// readSecret reads a file without the line's end; "" for no file.
func readSecret(path string, in io.Reader) (string, error) {
	if path == "" {
		return "", nil
	}
	var content []byte
	var err error
	if path == stdio {
		content, err = io.ReadAll(io.LimitReader(in, 64<<10))
	} else {
		content, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(err, fault.NotFound, "There is no file %q.", path)
	}
	return strings.TrimRight(string(content), "\r\n"), fault.Wrap(err, fault.Unavailable, "%q cannot be read: %v.", path, err)
}

func newRepositoryCheckCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "check NAME", Short: "Check that a repository can be used",
		Long:    "check writes, reads and deletes a small piece, and looks that all parts of the backups are there. With --contents it reads all of\nthem, which may take hours. It exits with 1 when a backup cannot be restored.",
		Example: "  sandboxd repository check nas\n  sandboxd repository check nas --contents", Args: wantArgs(1)})
	cmd.GroupID = ""
	contents := cmd.Flags().Bool("contents", false, "read all backups")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := dialRepository(r, args[0])
		if err != nil {
			return err
		}
		found, err := c.Repositories().Check(cmd.Context(), args[0], *contents)
		if err != nil {
			return err
		}
		if len(found.Damaged) > 0 {
			return fault.New(fault.Unavailable, "%d of %d backups cannot be restored: %s", len(found.Damaged), found.Backups, strings.Join(found.Damaged, ", "))
		}
		return say(cmd, "The repository %s can be used: %d backups in %s.", args[0], found.Backups, text.Size(found.Size))
	}
	return cmd
}

func newRepositoryRemoveCmd() *cobra.Command {
	cmd, r := remoteCmd(&cobra.Command{Use: "remove NAME", Short: "Have the server forget a repository",
		Long:    "remove takes a repository off the list. Nothing in it is deleted: connected again with its password, its backups are back.",
		Example: "  sandboxd repository remove nas", Args: wantArgs(1)})
	cmd.GroupID = ""
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := dialRepository(r, args[0])
		if err != nil {
			return err
		}
		if err := c.Repositories().Delete(cmd.Context(), args[0]); err != nil {
			return err
		}
		return say(cmd, "Removed the repository %s. Nothing in it was deleted.", args[0])
	}
	return cmd
}
