package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// stdio stands for standard input or output where a path does.
const stdio = "-"

// endpoint is one side of a copy.
type endpoint struct {
	box  string // "" for this machine; with client.VolumePrefix a volume
	path string
}

// copying is a copy under way.
type copying struct {
	client    *client.Client
	follow    bool // a link that is named is followed
	keepLinks bool
	progress  *progress
	skipped   int
	errs      io.Writer
}

func newCopyCmd() *cobra.Command {
	o := &copying{}
	var quiet bool
	cmd, r := remoteCmd(&cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy files and folders into and out of sandboxes",
		Long: `cp copies a file or a folder between this machine and a sandbox, or between two sandboxes. A side that begins with a name and
a colon is in that sandbox; its path is absolute, or relative to the folder in which commands begin there, the home. One that
begins with volume/NAME: is in that volume, for admins.

The rules are docker's. An existing folder receives the copy under the source's name; "folder/." means the folder's
contents; a new name is created in an existing folder. "-" is a tar archive: on standard input it is extracted into a
folder, on standard output it is written.

Symbolic links are copied as links. On this machine, links that lead out of the copy are skipped and listed, except
with --keep-links; nothing is written through a link. Owners are not kept. A sandbox that is asleep wakes.`,
		Example: "  sandboxd cp notes.txt lab:\n  sandboxd cp src lab:/srv/src\n  sandboxd cp lab:results/. ./results\n  sandboxd cp lab:/etc web:/tmp/\n  tar c . | sandboxd cp - lab:project",
		Args:    wantArgs(2),
	})
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow-link", "L", false, "when the source itself is a link, copy what it leads to")
	f.BoolVar(&o.keepLinks, "keep-links", false, "also make links on this machine that lead out of the copy")
	f.BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.client, err = r.dial(); err != nil {
			return err
		}
		o.errs, o.progress = cmd.ErrOrStderr(), newProgress(quiet)
		err = o.between(cmd.Context(), parseEnd(args[0]), parseEnd(args[1]))
		o.progress.end()
		if err == nil && o.skipped > 0 {
			fmt.Fprintf(o.errs, "sandboxd: %d left out.\n", o.skipped)
			return errQuiet
		}
		return err
	}
	return cmd
}

// parseEnd reads a side. What begins like a path of this machine is one, whatever colons follow.
func parseEnd(text string) endpoint {
	box, at, remote := strings.Cut(text, ":")
	if !remote || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || checkBox(strings.TrimPrefix(box, client.VolumePrefix)) != nil {
		return endpoint{path: text}
	}
	if at == "" {
		at = "."
	}
	return endpoint{box, at}
}

// anchor makes a relative path begin where commands do. In an image without a user of its own that is not the user's home.
func (o *copying) anchor(ctx context.Context, s endpoint) (endpoint, error) {
	if s.box == "" || strings.HasPrefix(s.box, client.VolumePrefix) || path.IsAbs(s.path) || strings.HasPrefix(s.path, "~") {
		return s, nil
	}
	e, err := o.client.Stat(ctx, s.box, wire.HomePath)
	if err == nil && e.Folder() {
		s.path = wire.HomePath + "/" + s.path
	}
	return s, err
}

func (o *copying) between(ctx context.Context, from, to endpoint) error {
	from, err := o.anchor(ctx, from)
	if err == nil {
		to, err = o.anchor(ctx, to)
	}
	if err != nil {
		return err
	}
	return o.copy(ctx, from, to)
}

func (o *copying) copy(ctx context.Context, from, to endpoint) error {
	switch {
	case from.box == "" && to.box == "":
		return fault.New(fault.Invalid, "One side has to be in a sandbox: NAME:PATH.")
	case from.path == stdio && from.box == "":
		return o.extract(ctx, to)
	case from.box == "":
		return o.upload(ctx, from.path, to)
	case to.path == stdio && to.box == "":
		return o.archive(ctx, from)
	case to.box == "":
		return o.download(ctx, from, to.path)
	}
	return o.across(ctx, from, to)
}

// report shows the progress of a copy.
func (o *copying) report() client.Report {
	return client.Report{Bytes: o.progress.add, Skipped: func(name, why string) {
		o.skipped++
		fmt.Fprintf(o.errs, "sandboxd: %q %s: left out\n", name, why)
	}}
}

// follows says whether a source that is a link is followed: because it was asked for, or as its path can only mean what it
// leads to.
func (o *copying) follows(path string) bool {
	return o.follow || strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.")
}

// remoteSource looks at the source in a sandbox and gives the copy's name: "" for the contents of a folder.
// That goes by the path as it was typed. Where its links lead the sandbox decides, and it names nothing elsewhere.
func (o *copying) remoteSource(ctx context.Context, from endpoint) (s client.Source, base string, err error) {
	typed := client.SourceOf(from.path, true)
	at, e, err := o.remoteEnd(ctx, from)
	switch {
	case err != nil:
		return s, "", err
	case e.Type == "":
		return s, "", fault.New(fault.NotFound, "There is no %q in %s.", at, from.box)
	case typed.Name == "":
		return client.Source{Folder: at, IsFolder: true}, "", nil
	}
	return client.SourceOf(at, e.Type == "folder"), typed.Name, nil
}

// remoteEnd follows links as far as they are to be, and gives where they end.
func (o *copying) remoteEnd(ctx context.Context, from endpoint) (at string, e client.Entry, err error) {
	const hops = 40
	at = path.Clean(from.path)
	for range hops {
		e, err = o.client.Stat(ctx, from.box, at)
		if err != nil || e.Type != "link" || !o.follows(from.path) {
			return at, e, err
		}
		if path.IsAbs(e.Target) {
			at = path.Clean(e.Target)
		} else {
			at = path.Join(path.Dir(at), e.Target)
		}
	}
	return at, e, fault.New(fault.Invalid, "Too many links follow %q in %s.", from.path, from.box)
}

// remoteLanding decides where a copy lands in a sandbox.
func (o *copying) remoteLanding(ctx context.Context, s client.Source, base string, to endpoint) (client.Landing, error) {
	e, err := o.client.Stat(ctx, to.box, to.path)
	if err != nil {
		return client.Landing{}, err
	}
	at := client.AFile
	switch {
	case e.Type == "":
		at = client.Nothing
	case e.Folder():
		at = client.AFolder
	}
	l, err := client.LandingOf(s, base, to.path, at)
	if err != nil || !l.NeedsParent {
		return l, err
	}
	parent, err := o.client.Stat(ctx, to.box, l.Folder)
	if err == nil && !parent.Folder() {
		err = fault.New(fault.NotFound, "There is no folder %q in %s.", l.Folder, to.box)
	}
	return l, err
}

// upload copies from this machine.
func (o *copying) upload(ctx context.Context, from string, to endpoint) error {
	typed := from
	if real, err := filepath.EvalSymlinks(from); err == nil && o.follows(from) {
		from = real
	}
	st, err := os.Lstat(from)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "There is no %q to copy.", from)
	}
	s := client.SourceOf(filepath.ToSlash(typed), st.IsDir())
	l, err := o.remoteLanding(ctx, s, s.Name, to)
	if err != nil {
		return err
	}
	return o.pipe(ctx, to.box, l.Folder, func(w io.Writer) error { return client.PackTree(w, from, l.Name, o.report()) })
}

// pipe extracts in a sandbox what pack writes.
func (o *copying) pipe(ctx context.Context, box, folder string, pack func(w io.Writer) error) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(w)
		w.CloseWithError(err)
		packed <- err
	}()
	err := o.client.Unpack(ctx, box, folder, r)
	r.Close()
	packErr := <-packed
	switch {
	case packErr != nil && fault.KindOf(packErr) != fault.Internal: // it knows more than the server, which was cut off
		return packErr
	case err != nil:
		return err
	}
	return packErr
}

// download copies to this machine.
func (o *copying) download(ctx context.Context, from endpoint, to string) error {
	s, base, err := o.remoteSource(ctx, from)
	if err != nil {
		return err
	}
	at := client.AFile
	st, err := os.Stat(to)
	switch {
	case err != nil:
		at = client.Nothing
	case st.IsDir():
		at = client.AFolder
	}
	l, err := client.LandingOf(s, base, to, at)
	if err != nil {
		return err
	}
	if base == "" && l.NeedsParent { // contents into a new folder of that name
		if err := os.Mkdir(to, 0o777); err != nil {
			return fault.Wrap(err, fault.NotFound, "The folder cannot be made: %v.", err)
		}
		l = client.Landing{Folder: to}
	}
	text, err := o.client.Pack(ctx, from.box, s.Folder, s.Name)
	if err != nil {
		return err
	}
	defer text.Close()
	return client.ExtractTree(text, client.Extraction{Folder: l.Folder, From: s.Name, As: l.Name, KeepLinks: o.keepLinks, Report: o.report()})
}

// across copies from one sandbox to another, or within one.
func (o *copying) across(ctx context.Context, from, to endpoint) error {
	s, base, err := o.remoteSource(ctx, from)
	if err != nil {
		return err
	}
	l, err := o.remoteLanding(ctx, s, base, to)
	if err != nil {
		return err
	}
	text, err := o.client.Pack(ctx, from.box, s.Folder, s.Name)
	if err != nil {
		return err
	}
	defer text.Close()
	return o.pipe(ctx, to.box, l.Folder, func(w io.Writer) error { return client.CopyTree(w, text, s.Name, l.Name, o.report()) })
}

// extract extracts standard input in a folder of a sandbox.
func (o *copying) extract(ctx context.Context, to endpoint) error {
	e, err := o.client.Stat(ctx, to.box, to.path)
	if err != nil {
		return err
	}
	if !e.Folder() {
		return fault.New(fault.NotFound, "There is no folder %q in %s.", to.path, to.box)
	}
	return o.client.Unpack(ctx, to.box, to.path, o.progress.watch(os.Stdin))
}

// archive writes a tar of something in a sandbox to standard output.
func (o *copying) archive(ctx context.Context, from endpoint) error {
	if term.IsTerminal(int(os.Stdout.Fd())) {
		return fault.New(fault.Invalid, "An archive is not for a terminal. Lead it to a file, or to tar.")
	}
	s, base, err := o.remoteSource(ctx, from)
	if err != nil {
		return err
	}
	text, err := o.client.Pack(ctx, from.box, s.Folder, s.Name)
	if err != nil {
		return err
	}
	defer text.Close()
	if s.Name != base { // a link was followed, and is the requested name
		return client.CopyTree(os.Stdout, text, s.Name, base, o.report())
	}
	if _, err := io.Copy(os.Stdout, o.progress.watch(text)); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The archive was cut off: the files written are incomplete.")
	}
	return nil
}
