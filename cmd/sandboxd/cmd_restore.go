package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// restoring is a restore under way.
type restoring struct {
	client.Restoring
	cmd      *cobra.Command
	client   *client.Client
	progress *progress
	yes      bool
	what     string      // is restored, as it was typed
	size     int64       // of that; 0 when it is not known
	sent     atomic.Bool // all of it
}

func newRestoreCmd(c *Config) *cobra.Command {
	o, whole := &restoring{}, &serverRestore{config: c}
	var quiet bool
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "restore FILE|ID NAME | restore --server FILE",
		Short: "Restore a sandbox, or the server itself, from a backup",
		Long: `restore replaces all files in the home of the sandbox NAME by those of a backup: a FILE that 'sandboxd backup' wrote, "-" for
standard input, or the ID of a backup that the server has. Any .tar, .tar.gz or .tar.zst of a home will do. The archive is sent and
checked first; then the sandbox is stopped, its files are replaced, and it is started again if it ran. When anything goes wrong, it
keeps the files that it had. Its settings stay as they are. A backup with the root file system ('sandboxd backup --root') brings that,
too, unless --home-only is given.

At a terminal it asks for the name again; elsewhere it needs --yes. With --save-first the server makes a backup before.

With --new it makes a new sandbox called NAME, with the settings of the one that was backed up. An archive that is no backup of
sandboxd's needs --template.

With --server it restores what 'sandboxd backup --server' has saved, on the server's machine, into a data folder (--data) that no server has
used; with --replace, what was there is kept beside it. sandboxd must not run meanwhile. All of it is read and checked before anything is
changed. Homes are restored afterwards, one by one.`,
		Example: "  sandboxd restore lab-2026-11-25-102115.tar.zst lab\n  sandboxd restore 9494f39f73f0c93e lab --save-first\n  sandboxd restore lab.tar.zst lab-2 --new\n  ssh nas cat lab.tar.zst | sandboxd restore - lab --yes\n  sandboxd restore --server box.tar.zst.age --data /var/lib/sandboxd",
	})
	f := cmd.Flags()
	f.BoolVar(&o.New, "new", false, "make a new sandbox")
	f.StringVar(&o.Template, "template", "", "template of a new sandbox (default: that of the one that was backed up)")
	f.BoolVar(&o.SaveFirst, "save-first", false, "have the server back up the current home first")
	f.BoolVar(&o.HomeOnly, "home-only", false, "leave out the root file system of a backup that has it")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	whole.flags(f)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if whole.server {
			return nil
		}
		return wantArgs(2)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if whole.server {
			return whole.run(cmd, args, func(cmd *cobra.Command, path string) (io.ReadCloser, error) {
				o.cmd, o.what = cmd, path
				return o.open()
			})
		}
		o.cmd, o.what, o.Sandbox = cmd, args[0], args[1]
		if err := o.check(); err != nil {
			return err
		}
		from, err := o.open()
		if err != nil {
			return err
		}
		defer from.Close()
		if o.client, err = r.dial(); err != nil {
			return err
		}
		o.progress = newProgress(quiet)
		return o.run(cmd.Context(), from)
	}
	return cmd
}

// check judges the command line.
func (o *restoring) check() error {
	switch {
	case !o.New && o.Template != "":
		return fault.Field("template", "--template is for a new sandbox: say --new.")
	case o.New && o.SaveFirst:
		return fault.New(fault.Invalid, "A new sandbox has nothing that --save-first could save.")
	}
	return checkBox(o.Sandbox)
}

// open opens what is restored. It gives nothing to read for a backup that the server has.
func (o *restoring) open() (io.ReadCloser, error) {
	if o.what == stdio {
		if f, ok := o.cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return nil, fault.New(fault.Invalid, "Standard input is a terminal. Lead an archive to it.")
		}
		o.what = "standard input"
		return io.NopCloser(o.cmd.InOrStdin()), nil
	}
	f, err := os.Open(o.what)
	switch {
	case errors.Is(err, fs.ErrNotExist) && backupID.MatchString(o.what):
		o.Backup = o.what
		return io.NopCloser(strings.NewReader("")), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(err, fault.NotFound, "There is no file %q, and that is not the id of a backup.", o.what)
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "%q cannot be read: %v.", o.what, err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = fault.New(fault.Invalid, "%q is a folder. Name a backup, or another archive of a home.", o.what)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if st.Mode().IsRegular() {
		o.size = st.Size()
	}
	return f, nil
}

func (o *restoring) run(ctx context.Context, from io.Reader) error {
	if err := o.allowed(ctx); err != nil {
		return err
	}
	o.progress.step("Sending ", o.size)
	if o.Backup != "" {
		o.allSent()
	} else {
		o.From = &toEnd{Reader: o.progress.watch(from), end: o.allSent}
	}
	box, err := o.client.Restore(ctx, o.Restoring)
	o.progress.clear()
	switch {
	case err != nil && ctx.Err() != nil:
		return o.interrupted(ctx)
	case err != nil:
		return err
	case o.New:
		return say(o.cmd, "Made %s from %s. It is %s.", o.Sandbox, o.what, box.State)
	}
	return say(o.cmd, "Restored %s from %s. It is %s.", o.Sandbox, o.what, box.State)
}

// allowed looks for what would be refused only after all was sent, and asks a person before anything is lost.
func (o *restoring) allowed(ctx context.Context) error {
	_, err := o.client.Sandbox(ctx, o.Sandbox)
	switch {
	case !o.New && err != nil:
		return err
	case !o.New:
		what := "This replaces all files in the home of " + o.Sandbox + " and ends its programs. If the backup has the root file system, that is replaced, too: leave it out with --home-only."
		if o.HomeOnly {
			what = "This replaces all files in the home of " + o.Sandbox + " and ends its programs."
		}
		return confirm(o.cmd, o.yes, o.Sandbox, what)
	case err == nil:
		return fault.Field("name", "There is a sandbox called %s already. Choose another name, or leave --new out to replace its files.", o.Sandbox)
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Gone):
		return nil
	}
	return err
}

// allSent notes that the server has all, and works on it.
func (o *restoring) allSent() {
	o.sent.Store(true)
	o.progress.step("", 0)
	o.progress.note("Checking and restoring…")
}

// interrupted has the server give up, and tells what that leaves.
func (o *restoring) interrupted(ctx context.Context) error {
	if !o.sent.Load() {
		return fault.New(fault.Gone, "Interrupted. Nothing was changed.")
	}
	if o.New {
		return fault.New(fault.Gone, "Interrupted. The server may still make %s: see 'sandboxd ls', and delete it if you do not want it.", o.Sandbox)
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer end()
	err := o.client.CancelRestore(ctx, o.Sandbox)
	switch {
	case err == nil:
		return fault.New(fault.Gone, "The restore was cancelled. %s keeps its old files, unless all of the new ones were there already.", o.Sandbox)
	case fault.Is(err, fault.NotFound):
		return fault.New(fault.Gone, "Interrupted, just before or after the files of %s were replaced. Look which it has.", o.Sandbox)
	}
	return fault.Wrap(err, fault.KindOf(err), "Interrupted. The server may still restore %s: %s", o.Sandbox, fault.Message(err))
}

// toEnd tells when all is read.
type toEnd struct {
	io.Reader
	end func()
}

// Read implements io.Reader.
func (t *toEnd) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if errors.Is(err, io.EOF) && t.end != nil {
		t.end()
		t.end = nil
	}
	return n, err
}
