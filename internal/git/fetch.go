package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Bounds of one Fetch.
const (
	DefaultLimit    = 2 * time.Minute
	DefaultMaxBytes = 256 << 20 // of the repository on the disk, and of its files
)

// FilesFolder is the folder below Fetch's that gets the files.
const FilesFolder = "files"

// Client runs git. The zero value is ready; safe for concurrent use.
type Client struct {
	CAFile   string        // PEM file of all CA certificates to trust; "" for those of the system
	Limit    time.Duration // that a Fetch may take; 0 for DefaultLimit
	MaxBytes int64         // 0 for DefaultMaxBytes
}

// Revision is what was fetched.
type Revision struct {
	Commit   string    // 40 or 64 hex digits
	Date     time.Time // of the commit
	HostKeys string    // of the ssh host, as Source has them; "" without ssh
}

// Available says where git is, or what is missing: Unavailable.
func Available(ssh bool) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fault.Wrap(err, fault.Unavailable, "git is missing on this server. Install the package git (apt-get install git).")
	}
	if ssh {
		if _, err := exec.LookPath("ssh"); err != nil {
			return fault.Wrap(err, fault.Unavailable, "ssh is missing on this server. Install the package openssh-client (apt-get install openssh-client).")
		}
	}
	return nil
}

// Fetch gets the files of a source into FilesFolder below the folder work, which must be empty and is the caller's to remove. It blocks
// for at most Limit. Kinds: Invalid with a field, Unavailable (the server cannot be reached, or git is missing), Forbidden (it refuses the
// key or token), TooLarge, Timeout.
func (c *Client) Fetch(ctx context.Context, s Source, work string) (Revision, error) {
	if err := errors.Join(s.Check(), Available(s.SSH())); err != nil {
		return Revision{}, err
	}
	limit, most := c.Limit, c.MaxBytes
	if limit <= 0 {
		limit = DefaultLimit
	}
	if most <= 0 {
		most = DefaultMaxBytes
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w := &fetching{source: s, work: work, repository: filepath.Join(work, "repository"), most: most}
	if err := w.prepare(c.CAFile); err != nil {
		return Revision{}, fmt.Errorf("prepare a fetch: %w", err)
	}
	at, err := w.run(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Timeout, "The repository took longer than %s and was given up.", limit)
	}
	return at, err
}

// fetching is one Fetch.
type fetching struct {
	source     Source
	work       string
	repository string
	most       int64
	env        []string
}

func (w *fetching) run(ctx context.Context) (Revision, error) {
	clone := []string{"clone", "--quiet", "--bare", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--template="}
	if w.source.Ref != "" {
		clone = append(clone, "--branch="+w.source.Ref)
	}
	said, err := w.git(ctx, nil, append(clone, "--", w.source.URL, w.repository)...)
	if err != nil {
		return Revision{}, w.refused(ctx, err, said)
	}
	var out strings.Builder
	if said, err := w.git(ctx, &out, w.dir(), "log", "-1", "--no-show-signature", "--format=%H %ct", "HEAD"); err != nil {
		return Revision{}, broken(err, said)
	}
	at, err := revisionOf(out.String())
	if err != nil {
		return at, err
	}
	if w.source.SSH() {
		known, err := os.ReadFile(w.knownHosts())
		if err != nil {
			return at, fmt.Errorf("read host keys: %w", err)
		}
		at.HostKeys = strings.TrimSpace(string(known))
	}
	return at, w.unpack(ctx)
}

func (w *fetching) dir() string { return "--git-dir=" + w.repository }

func revisionOf(line string) (Revision, error) {
	commit, when, _ := strings.Cut(strings.TrimSpace(line), " ")
	seconds, err := strconv.ParseInt(when, 10, 64)
	if err != nil || len(commit) < 40 {
		return Revision{}, fault.New(fault.Unavailable, "The repository has no commit that can be read.")
	}
	return Revision{Commit: commit, Date: time.Unix(seconds, 0).UTC()}, nil
}

// unpack reads the files from git's archive.
func (w *fetching) unpack(ctx context.Context) error {
	tree := "HEAD"
	if w.source.Path != "" {
		var kind strings.Builder
		tree = "HEAD:" + w.source.Path
		said, err := w.git(ctx, &kind, w.dir(), "cat-file", "-t", tree)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && said != "" || err == nil && strings.TrimSpace(kind.String()) != "tree":
			return fault.Field("path", "The repository has no folder %.80q in this revision.", w.source.Path)
		case err != nil:
			return broken(err, said)
		}
	}
	if err := errors.Join(w.count(ctx, tree), w.asWritten()); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	from, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		said, err := w.git(ctx, to, w.dir(), "archive", "--format=tar", tree)
		if err != nil {
			err = broken(err, said)
		}
		to.CloseWithError(err)
		ended <- err
	}()
	err := untar(from, filepath.Join(w.work, FilesFolder), w.most)
	if err == nil {
		_, err = io.Copy(io.Discard, from) // the padding at its end
	} else {
		stop()
	}
	from.CloseWithError(err)
	if gitErr := <-ended; err == nil {
		err = gitErr
	}
	return err
}

// count refuses a tree of too many files and folders. git's archive would first read all of it into its memory, and a few small trees that
// name each other can make billions of files.
func (w *fetching) count(ctx context.Context, tree string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	said, err := w.git(ctx, &counter{left: maxFiles, end: func() { stop(errFiles) }}, w.dir(), "ls-tree", "-r", "-t", "-z", "--name-only", tree)
	if errors.Is(context.Cause(ctx), errFiles) {
		return errFiles
	}
	if err != nil {
		return broken(err, said)
	}
	return nil
}

// counter takes names that end with a NUL, and calls end after too many.
type counter struct {
	left int
	end  func()
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	if c.left -= bytes.Count(p, []byte{0}); c.left < 0 {
		c.end()
		return 0, errFiles
	}
	return len(p), nil
}

// asWritten has the archive leave files as they are: these come before the attributes that a repository has.
func (w *fetching) asWritten() error {
	const none = "* -export-ignore -export-subst -text -ident -filter !eol !working-tree-encoding\n"
	folder := filepath.Join(w.repository, "info")
	return errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "attributes"), []byte(none), 0o600))
}

// refused says why a repository could not be cloned. git has words alone for that.
func (w *fetching) refused(ctx context.Context, err error, said string) error {
	if ctx.Err() != nil || errors.Is(err, errLarge) {
		return err
	}
	has := func(words ...string) bool {
		for _, one := range words {
			if strings.Contains(said, one) {
				return true
			}
		}
		return false
	}
	switch {
	case has("Remote branch"):
		return fault.Field("ref", "The repository has no branch or tag %.80q.", w.source.Ref)
	case has("Host key verification failed", "REMOTE HOST IDENTIFICATION"):
		return fault.Field("host_key", "The host shows another key than the one that is known. If it was changed on purpose, enter the new one.")
	case has("Permission denied", "Authentication failed", "could not read Username", "terminal prompts disabled", "returned error: 403"):
		return fault.Wrap(err, fault.Forbidden, "The server refuses access, or there is no such repository. Give a %s that may read it.", w.credential())
	case has("update url base from redirection", "returned error: 30"):
		return fault.Field("url", "The address leads to another one. Enter that.")
	case has("unsupported protocol", "not allowed"):
		return fault.Field("url", "The server leads to an address that is not taken.")
	case has("does not appear to be a git repository", "not found", "access denied or repository not exported"):
		return fault.Field("url", "There is no such repository, or it needs a %s.", w.credential())
	}
	if outOfMemory(said) {
		return errLarge
	}
	return fault.Wrap(err, fault.Unavailable, "The repository cannot be fetched: %s", firstWords(said))
}

func (w *fetching) credential() string {
	if w.source.SSH() {
		return "key"
	}
	return "token"
}

func broken(err error, said string) error {
	if errors.Is(err, errLarge) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	if outOfMemory(said) {
		return errLarge
	}
	return fault.Wrap(err, fault.Unavailable, "The repository cannot be read: %s", firstWords(said))
}

// outOfMemory reports whether git has met the bound of its memory.
func outOfMemory(said string) bool {
	return strings.Contains(strings.ToLower(said), "out of memory") || strings.Contains(said, "attempting to allocate")
}

// firstWords gives what git says is wrong: its first line about a fatal error, with the one after it if that has the reason, or its last one.
func firstWords(said string) string {
	last, fatal := "", ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if fatal != "" {
			return text.OneLine(fatal+" "+line, 200)
		}
		if why, ok := strings.CutPrefix(line, "fatal: "); ok {
			if strings.HasSuffix(why, ":") {
				fatal = why
				continue
			}
			return text.OneLine(why, 200)
		}
		if line != "" {
			last = line
		}
	}
	if fatal != "" {
		last = fatal
	}
	if last == "" {
		return "git says nothing of why."
	}
	return text.OneLine(last, 200)
}

// sizeOf adds up what is in a folder, of files that may go meanwhile.
func sizeOf(folder string) (bytes int64) {
	// The function never fails.
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it was renamed or removed
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
