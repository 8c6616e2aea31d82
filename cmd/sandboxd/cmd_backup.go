package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// backing is a backup under way.
type backing struct {
	cmd      *cobra.Command
	client   *client.Client
	progress *progress
	to       *saveFile
	sandbox  string // "" when id says which backup
	id       string
	how      client.NewBackup
	stays    bool // it is not downloaded
	begun    bool // it was begun here, and is not ready yet
}

// backupID is what the id of a backup looks like.
var backupID = regexp.MustCompile(`^[0-9a-f]{16}$`)

func checkBackupID(id string) error {
	if !backupID.MatchString(id) {
		return fault.Field("id", "%.80q is not the id of a backup. 'sandboxd backups' lists them.", id)
	}
	return nil
}

func newBackupCmd(c *Config) *cobra.Command {
	o, whole := &backing{}, &serverBackup{config: c}
	var force, quiet bool
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "backup NAME [FILE] | backup --server [FILE]",
		Short: "Back up a sandbox, or the server itself, to a file",
		Long: `backup has the server make a backup of a sandbox and check it, and downloads it to FILE. Without FILE it is named after the
sandbox and the time, in this folder; in place of a file FILE can be a folder, or "-" for standard output. A download that is cut
off is continued.

A backup has all files of the home, and the settings of the sandbox with its environment. It has no running programs, and what was
changed outside of the home, such as installed packages, only with --root. It is a tar archive: 'sandboxd restore' makes a sandbox of
it again, and GNU tar unpacks it.

While its home is read a running sandbox is frozen, so that all files are of one moment. With --live it is not, and files that
programs write meanwhile may be incomplete. A sandbox that is asleep is not woken.

With --repository the backup is made in one of the server's repositories, and downloaded only if FILE is given.

The server keeps the backup too, until it is too old. With --id a backup that it has already is downloaded. Ctrl-C cancels a backup
that is not ready.

With --server it backs up what the server knows, and needs no token: it reads the data folder (--data) on the server's machine, while
sandboxd runs or not. Users, tokens, settings, records of sandboxes, schedules, repositories and keys are in it, but no homes. It is sealed with a
passphrase of yours: 'sandboxd restore --server' opens it, and so does 'age -d FILE | tar --zstd -x'.`,
		Example: "  sandboxd backup lab\n  sandboxd backup lab /mnt/backups/\n  sandboxd backup lab - | ssh nas 'cat >lab.tar.zst'\n  sandboxd backup lab --repository nas\n  sandboxd backup lab --root\n  sandboxd backup --server /mnt/backups/\n  sandboxd backup --id 9494f39f73f0c93e lab.tar.zst",
	})
	f := cmd.Flags()
	f.BoolVar(&o.how.Live, "live", false, "do not freeze a running sandbox meanwhile")
	f.BoolVar(&o.how.Root, "root", false, "with what was changed of the root file system, such as installed packages")
	f.StringVar(&o.how.Repository, "repository", "", "make it in this repository of the server's")
	f.BoolVar(&force, "force", false, "replace a FILE that is there already")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	f.StringVar(&o.id, "id", "", "download this backup instead of making one; leave NAME out")
	whole.flags(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if whole.server {
			return whole.run(cmd, args, force)
		}
		file, err := o.understand(cmd, args)
		if err != nil {
			return err
		}
		if o.to, err = newSaveFile(cmd, file, force); err != nil {
			return err
		}
		if o.client, err = r.dial(); err != nil {
			return err
		}
		o.cmd, o.progress = cmd, newProgress(quiet)
		return o.run(cmd.Context())
	}
	return cmd
}

// understand reads the arguments, and gives the file.
func (o *backing) understand(cmd *cobra.Command, args []string) (file string, err error) {
	if o.id != "" {
		args = append([]string{""}, args...)
		err = checkBackupID(o.id)
	}
	if len(args) == 0 || len(args) > 2 || o.id != "" && o.how != (client.NewBackup{}) {
		return "", fault.New(fault.Invalid, "Use it as '%s'. See '%s --help'.", cmd.UseLine(), cmd.CommandPath())
	}
	if o.sandbox = args[0]; o.id == "" {
		err = checkBox(o.sandbox)
	}
	if len(args) == 2 {
		file = args[1]
	}
	o.stays = o.how.Repository != "" && len(args) < 2
	return file, err
}

func (o *backing) run(ctx context.Context) error {
	defer o.to.drop()
	b, err := o.ready(ctx)
	o.progress.clear()
	if err != nil {
		return o.cancel(ctx, b, err)
	}
	if o.stays {
		return o.tell(b)
	}
	size := b.Size
	if b.Repository != "" { // what it has added there is another thing
		size = 0
	}
	o.progress.step("Downloading ", size)
	err = o.client.DownloadBackup(ctx, b, o.to, o.progress.add)
	o.progress.clear()
	if err == nil {
		err = o.to.keep()
	}
	if err != nil {
		return stillKept(ctx, b, err)
	}
	return o.tell(b)
}

// ready gives the backup once it is ready, and has the file begun before.
func (o *backing) ready(ctx context.Context) (b client.Backup, err error) {
	if o.id != "" {
		b, err = o.client.Backup(ctx, o.id)
	} else {
		b, err = o.begin(ctx)
	}
	if err != nil {
		return b, err
	}
	if !o.stays {
		if err := o.to.begin(defaultFile(o.sandbox, b)); err != nil {
			return b, err
		}
	}
	if b, err = o.client.FollowBackup(ctx, b, o.show); err == nil {
		o.begun = false
	}
	return b, err
}

// begin has the server begin. One that it makes already is joined, and is not ours to cancel.
func (o *backing) begin(ctx context.Context) (client.Backup, error) {
	list, err := o.client.Backups(ctx, o.sandbox)
	if err != nil {
		return client.Backup{}, err
	}
	b, err := o.client.BeginBackup(ctx, o.sandbox, o.how)
	if err != nil {
		return b, err
	}
	o.begun = true
	for _, old := range list {
		if old.ID == b.ID {
			o.begun = false
			return b, say(o.cmd, "A backup of %s is being made already. Waiting for that one.", o.sandbox)
		}
	}
	return b, nil
}

// show tells how far a backup is.
func (o *backing) show(b client.Backup) {
	far := fmt.Sprintf("%s in %d files", text.Size(b.Bytes), b.Files)
	switch {
	case b.Comparing:
		o.progress.note("Comparing the root file system with its image")
	case b.Checking:
		o.progress.note("Checking " + far)
	default:
		o.progress.note("Reading the home: " + far)
	}
}

// cancel has the server give up a backup that nobody waits for any more, and gives what to say.
func (o *backing) cancel(ctx context.Context, b client.Backup, err error) error {
	interrupted := ctx.Err() != nil
	switch {
	case interrupted && !o.begun:
		return fault.Wrap(err, fault.Gone, "Interrupted.")
	case !o.begun || b.ID == "":
		return err
	case !interrupted && (o.to.out != nil || o.stays) && fault.Is(err, fault.Unavailable):
		return fault.Wrap(err, fault.Unavailable, "%s The server may still be making the backup %s: see 'sandboxd backups'.", fault.Message(err), b.ID)
	case !interrupted && (o.to.out != nil || o.stays): // the backup has failed
		return err
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer end()
	if failed := o.client.DeleteBackup(ctx, b.ID); failed != nil {
		return fault.Wrap(failed, fault.KindOf(failed), "The server may still be making the backup %s: %s", b.ID, fault.Message(failed))
	}
	if interrupted {
		return fault.Wrap(err, fault.Gone, "The backup was cancelled.")
	}
	return err
}

// stillKept says besides what went wrong with a download where the backup is.
func stillKept(ctx context.Context, b client.Backup, err error) error {
	if fault.Is(err, fault.NotFound) {
		return err
	}
	kind, message := fault.KindOf(err), fault.Message(err)
	if ctx.Err() != nil {
		kind, message = fault.Gone, "Interrupted."
	}
	return fault.Wrap(err, kind, "%s The server keeps the backup until %s: 'sandboxd backup --id %s' downloads it.", message, day(b.Expires, "it is deleted"), b.ID)
}

// defaultFile names the file of a backup. What the server calls the sandbox may be anything.
func defaultFile(sandbox string, b client.Backup) string {
	if sandbox == "" {
		sandbox = b.Sandbox
	}
	if checkBox(sandbox) != nil {
		sandbox = "backup"
	}
	return sandbox + "-" + b.Created.Local().Format("2006-01-02-150405") + ".tar.zst"
}

// maxShownLosses bounds a list for people.
const maxShownLosses = 20

// lostLines say what of a home is not in a copy of it: the first ones, and how many more there are.
func lostLines(lost []client.BackupLoss, more int64) (lines []string) {
	if len(lost) > 0 {
		lines = append(lines, "Not in it, or not as it was:")
	}
	shown := lost[:min(len(lost), maxShownLosses)]
	for _, l := range shown {
		lines = append(lines, fmt.Sprintf("  %q %s", l.Path, l.Reason))
	}
	if more += int64(len(lost) - len(shown)); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

// tell says what there is now.
func (o *backing) tell(b client.Backup) error {
	where := fmt.Sprintf("Saved %s", o.to.path)
	if o.to.path == stdio {
		where = "Written to standard output"
	}
	size := text.Size(b.Size)
	if b.Repository != "" {
		size += " added to the repository " + b.Repository
	}
	if o.stays {
		where = "Saved"
	}
	content := fmt.Sprintf("with %s in %d files and %d folders", text.Size(b.Bytes), b.Files, b.Folders)
	if b.Root {
		content += " of the home, and the root file system"
	}
	lines := []string{fmt.Sprintf("%s: %s, %s.", where, size, content)}
	if !b.Consistent {
		lines = append(lines, "Programs ran meanwhile: files that they were writing may be incomplete.")
	}
	lines = append(lines, lostLines(b.Lost, b.MoreLost)...)
	without := "running programs, and what was changed outside of the home. With --root that is in it, too."
	if b.Root {
		without = "running programs."
	}
	lines = append(lines, "Not in it: "+without,
		fmt.Sprintf("The server keeps it until %s, as %s.", day(b.Expires, "it is deleted"), b.ID))
	for _, line := range lines {
		if err := say(o.cmd, "%s", line); err != nil {
			return err
		}
	}
	return nil
}
