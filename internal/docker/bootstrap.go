package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// The one image that can be made without a registry, and from which Debian release.
const (
	baseImage   = "debian:trixie-slim"
	baseRelease = "trixie"
)

const (
	bootstrapLimit = 30 * time.Minute
	bootstrapGrace = 20 * time.Second // for the tool to clean up after itself
	// bootstrapLines is how many lines the tool usually prints: the measure of its progress.
	bootstrapLines = 15
)

// bootstrapTool makes a Debian file system from packages; it is the name of its Debian package, too.
const bootstrapTool = "mmdebstrap"

// bootstrapOptions are dpkg's, for the base image and for packages installed on it: no manuals and translations, as in the
// registry's. The tool reads them too, and only with an equals sign.
var bootstrapOptions = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright", "path-exclude=/usr/share/info/*",
	"path-exclude=/usr/share/lintian/*", "path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/man/*",
}

// bootstrap makes the Debian base image from Debian's packages with a tool of this machine, and names it ref.
func (e imageStore) bootstrap(ctx context.Context, ref string, out func(catalog.BuildEvent)) error {
	ctx, cancel := context.WithTimeout(ctx, bootstrapLimit)
	defer cancel()
	tool, err := exec.LookPath(bootstrapTool)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "No registry answers for %s, and it cannot be made from Debian's packages without %s. Install the package %s (apt-get install %s), then try again.",
			ref, bootstrapTool, bootstrapTool, bootstrapTool)
	}
	// A file between the two, since a tool that fails half-way must not leave half an image behind.
	f, err := os.CreateTemp("", "sandboxd-base-*.tar")
	if err != nil {
		return fmt.Errorf("make a file for the base image: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := runBootstrap(ctx, tool, f, out); err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return fmt.Errorf("read the base image: %w", err)
	}
	out(catalog.BuildEvent{Done: bootstrapLines, Total: bootstrapLines + 1, Line: "importing the image"})
	return e.importImage(ctx, f, ref)
}

// runBootstrap runs the tool with its archive going to f, and reports its lines.
func runBootstrap(ctx context.Context, tool string, f *os.File, out func(catalog.BuildEvent)) error {
	var tail []string
	done := int64(0)
	lines := lineSplitter{emit: func(line string) {
		if tail = append(tail, text.Excerpt(line, longestLine)); len(tail) > tailLines {
			tail = tail[1:]
		}
		done = min(done+1, bootstrapLines)
		out(catalog.BuildEvent{Done: done, Total: bootstrapLines + 1, Line: line})
	}}
	args := []string{"--variant=minbase", "--include=ca-certificates", "--format=tar"}
	for _, option := range bootstrapOptions {
		args = append(args, "--dpkgopt="+option)
	}
	cmd := exec.CommandContext(ctx, tool, append(args, baseRelease, "-")...)
	cmd.Stdout = f
	cmd.Stderr = writerFunc(func(p []byte) (int, error) { lines.write(string(p)); return len(p), nil })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its package manager ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = bootstrapGrace
	err := cmd.Run()
	lines.flush()
	if ctx.Err() != nil {
		return classify(ctx.Err(), "make the base image")
	}
	return fault.Wrap(err, fault.Unavailable, "%s could not make the base image from Debian's packages: %v.\n%s", bootstrapTool, err, strings.Join(tail, "\n"))
}

// writerFunc is a function as an io.Writer.
type writerFunc func(p []byte) (int, error)

// Write calls f.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (e imageStore) importImage(ctx context.Context, f *os.File, ref string) error {
	name, tag, ok := strings.Cut(ref, ":")
	if !ok {
		return fmt.Errorf("import the base image: %w", errors.New("the reference has no tag"))
	}
	answer, err := e.client.Load().ImageImport(ctx, image.ImportSource{Source: f, SourceName: "-"}, name, image.ImportOptions{
		Tag: tag, Message: "Debian " + baseRelease + ", made from its packages by sandboxd", Changes: []string{`CMD ["bash"]`},
	})
	if err != nil {
		return refused(err, "import the base image")
	}
	defer answer.Close()
	err = readMessages(answer, func(m *jsonmessage.JSONMessage) error {
		if m.Error != nil {
			return fault.Wrap(m.Error, fault.Unavailable, "The base image cannot be imported: %s", clean(m.Error.Message, longestWord))
		}
		return nil
	})
	return classify(err, "import the base image")
}
