package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/text"
	"sandboxd/web"
)

// Bounds on one connection to the server. Bodies and answers have none: uploads and terminals last.
const (
	headerLimit   = 10 * time.Second
	keepIdle      = 2 * time.Minute
	maxHeader     = 64 << 10
	shutdownGrace = 3 * time.Second
)

func newServeCmd(c *Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard, the API and the sandboxes' hosts",
		Long: `serve runs sandboxd until it is told to end (Ctrl-C, SIGTERM). At the first start it prints a link that makes
the first admin. Sandboxes keep running while sandboxd is stopped.`,
		Example: "  sandboxd serve\n  sandboxd serve --listen 0.0.0.0:80 --domain box.lan\n  SANDBOXD_ADMIN_PASSWORD=… sandboxd serve",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(c, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := c.check(); err != nil {
				return err
			}
			takeStray(log.Logger)
			return serve(cmd.Context(), c, log, cmd.OutOrStdout())
		},
	}
	c.serveFlags(cmd.Flags())
	c.templateFlags(cmd.Flags())
	return cmd
}

// logger is sandboxd's own log, with the newest records in memory for the page of it.
type logger struct {
	*slog.Logger
	recent *logs.Recent
}

func newLogger(c *Config, w io.Writer) (logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return logger{}, fault.Field("log-level", "--log-level is %q; it must be debug, info, warn or error.", c.LogLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	var out slog.Handler
	switch c.LogFormat {
	case "text":
		out = slog.NewTextHandler(w, options)
	case "json":
		out = slog.NewJSONHandler(w, options)
	default:
		return logger{}, fault.Field("log-format", "--log-format is %q; it must be text or json.", c.LogFormat)
	}
	recent := logs.NewRecent()
	return logger{slog.New(slog.NewMultiHandler(out, recent.Handler(level))), recent}, nil
}

// strayLimit bounds a line from the standard library's logger, in bytes.
const strayLimit = 200

// stray takes lines that nobody of ours has written.
type stray struct{ log *slog.Logger }

// Write implements io.Writer.
func (s stray) Write(line []byte) (int, error) {
	s.log.Debug("line of a library's", "line", text.OneLine(string(line), strayLimit))
	return len(line), nil
}

// takeStray leads the standard library's own log into ours: net/http, which has no other place for it, writes there what
// a sandbox says unasked.
func takeStray(log *slog.Logger) {
	stdlog.SetFlags(0)
	stdlog.SetOutput(stray{log})
}

// serve runs sandboxd until ctx ends. The errgroup is the process model: all that lives stands in it.
func serve(ctx context.Context, c *Config, log logger, out io.Writer) (err error) {
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := listener.Close(); !errors.Is(closeErr, net.ErrClosed) {
			err = errors.Join(err, closeErr)
		}
	}()
	a, err := openApp(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.welcome(ctx, out); err != nil {
		return err
	}
	if err := a.recallLinks(ctx); err != nil {
		log.Warn("links to sandboxes", "error", err)
	}
	if err := errors.Join(a.holds.Load(ctx), a.ports.Load(ctx), a.uses.Load(ctx)); err != nil {
		return err
	}
	profiled, err := listenPprof(ctx, c)
	if err != nil {
		return err
	}
	scraped, err := a.openMetrics(ctx)
	if err != nil {
		return err
	}
	defer a.runActivity(ctx)()
	g, ctx := errgroup.WithContext(ctx)
	// Links and builds end after the Manager, so that it sees its own end first and takes theirs for no failure.
	under, last := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error { return a.links.Run(under) })
	g.Go(func() error { return a.images.Run(under) })
	g.Go(func() error { return a.logs.Run(under) })
	g.Go(func() error { return a.ide.Run(under) })
	g.Go(func() error { defer last(); return a.manager.Run(ctx) })
	for _, run := range []func(context.Context) error{
		a.prebuild, a.times.Run, a.reaper.Run, a.ports.Run, a.uses.Run, a.recorder.Run, a.sizer.Run, a.collector.Run, a.engine.RunFirewall, a.renewPools, a.alerting.Run, a.alerts.Run, a.repositories.Run, a.backups.Run, a.schedules.Run, a.templates.Run, a.snapshots.Run, forgetDeleted(a), packPool(a, c), a.volumes.Run, a.updates.Run,
	} {
		g.Go(func() error { return run(ctx) })
	}
	g.Go(func() error { return a.manager.RunPools(ctx, a.standbys) })
	if profiled != nil {
		g.Go(func() error { return serveHTTP(ctx, profiled, profiles(), log.Logger) })
	}
	if a.figures != nil {
		g.Go(func() error { return a.figures.Run(ctx, a.manager, measures{a.recorder, a.sizer}) })
		g.Go(func() error { return serveHTTP(ctx, scraped.listener, scraped.handler, log.Logger) })
	}
	if a.tracer != nil {
		g.Go(func() error { return a.tracer.Run(ctx) })
	}
	g.Go(func() error { return serveAll(ctx, a, listener) })
	return g.Wait()
}

// listen takes the port first, so that a second server fails before it touches anything.
func listen(ctx context.Context, c *Config) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	return l, fault.Wrap(err, fault.Unavailable, "Cannot serve on %s: %v. Choose another address with --listen, or make run ARGS=\"--listen …\".", c.Listen, err)
}

func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	return serveConns(ctx, l, newHTTPServer(h, log), log)
}

func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerLimit, IdleTimeout: keepIdle, MaxHeaderBytes: maxHeader, ConnState: newQuietConns().track,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serveConns serves until ctx ends. Streams end with the server: Shutdown waits for them only a moment.
func serveConns(ctx context.Context, l net.Listener, server *http.Server, log *slog.Logger) error {
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	server.BaseContext = func(net.Listener) context.Context { return base }
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	end(web.ErrStopping)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Debug("connections cut at shutdown", "error", err)
		err = server.Close()
		<-ended
		return err
	}
	<-ended
	return nil
}

// welcome prints where to go, and at the first start the link that makes the admin.
func (a *app) welcome(ctx context.Context, out io.Writer) error {
	if err := bootstrap(ctx, a.accounts); err != nil {
		return err
	}
	code, needed, err := a.accounts.SetupCode(ctx)
	if err != nil {
		return err
	}
	dashboard := a.hosts.DashboardURL()
	fmt.Fprintf(out, "\n  sandboxd %s\n\n  Dashboard   %s\n", version, dashboard)
	if needed {
		fmt.Fprintf(out, "  First run   %s/setup?code=%s\n              creates the admin account; works only once\n", dashboard, code)
	}
	_, err = fmt.Fprintf(out, "  API         %s/api/v1  (a token: %s)\n  Stop        Ctrl-C; sandboxes keep running\n\n", dashboard, a.tokenHint())
	return err
}

// tokenHint is the command that makes a token for this server, as it is typed from where the server was started.
func (a *app) tokenHint() string {
	hint := os.Args[0] + " token create NAME"
	if a.config.Data != defaultData() {
		hint += " --data " + a.config.Data
	}
	return hint
}
