package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/docker"
	"sandboxd/internal/fault"
	"sandboxd/internal/ide"
	"sandboxd/templates"
)

// The folders of VS Code: its versions, which all sandboxes have read-only, and what its image is built from.
func idePath(c *Config) string       { return filepath.Join(c.Data, "ide") }
func ideSourcePath(c *Config) string { return filepath.Join(c.Data, "ide-source") }

// installIDE makes the folder that is mounted into sandboxes, empty until VS Code is first switched on, and gives its path.
func installIDE(c *Config) (string, error) {
	folder, err := filepath.Abs(idePath(c))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "The folder of VS Code cannot be made: %v.", err)
	}
	return folder, nil
}

// ideConfig is what everybody needs who builds VS Code.
func ideConfig(c *Config, engine *docker.Engine, log *slog.Logger) (ide.Config, error) {
	folder, err := installIDE(c)
	if err != nil {
		return ide.Config{}, err
	}
	if err := templates.UnpackIDE(filepath.Join(ideSourcePath(c), ide.Template)); err != nil {
		return ide.Config{}, fault.Wrap(err, fault.Unavailable, "What VS Code is built from cannot be written to the data folder: %v.", err)
	}
	source, err := catalog.Open(ideSourcePath(c))
	if err != nil {
		return ide.Config{}, err
	}
	certs, _, err := hostCertificates(c)
	if err != nil {
		return ide.Config{}, err
	}
	sum := sha256.Sum256([]byte(folder))
	return ide.Config{Folder: folder, Owner: hex.EncodeToString(sum[:6]), Engine: engine, Log: log,
		Images: catalog.NewImages(source, engine, catalog.ImageOptions{CA: certs, Log: log})}, nil
}

// newIDE wires the parts for VS Code. The Manager and the tracker are there already.
func (a *app) newIDE() error {
	c, err := ideConfig(a.config, a.engine, a.log)
	if err != nil {
		return err
	}
	c.Boxes, c.Hosts, c.Links = a.manager, a.hosts, access.FromHub(a.links)
	a.ide = ide.New(c)
	a.links.OfferIDE(a.ide.Start)
	return nil
}

func newIDECmd(c *Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ide",
		Short: "Build VS Code beforehand",
		Long: `VS Code in the browser (code-server) is built once per server, when it is first switched on, and shared by all sandboxes:
about 210 MiB on disk. build does it in advance, so that the first use does not wait.`,
	}
	cmd.AddCommand(&cobra.Command{
		Use: "build", Short: "Build VS Code if it is missing, showing the log", Args: cobra.NoArgs,
		Example: "  sandboxd ide build\n  sandboxd ide build --data /srv/sandboxd",
		RunE:    func(cmd *cobra.Command, _ []string) error { return buildIDE(cmd.Context(), c, cmd.ErrOrStderr()) },
	})
	return cmd
}

// buildIDE builds VS Code into the data folder, beside a server that may be running.
func buildIDE(ctx context.Context, c *Config, out io.Writer) (err error) {
	engine, err := docker.Open(ctx, docker.Config{})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := engine.Close(); err == nil {
			err = closeErr
		}
	}()
	config, err := ideConfig(c, engine, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	config.Report = func(e catalog.BuildEvent) {
		if e.Line != "" {
			fmt.Fprintf(out, "[%d/%d] %s\n", e.Step, e.Steps, e.Line)
		}
	}
	service := ide.New(config)
	life, end := context.WithCancel(ctx)
	g, life := errgroup.WithContext(life)
	g.Go(func() error { return service.Run(life) })
	g.Go(func() error {
		defer end()
		version, err := service.Ensure(life)
		if err == nil {
			fmt.Fprintf(out, "VS Code is ready in %s\n", filepath.Join(config.Folder, version))
		}
		return err
	})
	return g.Wait()
}
