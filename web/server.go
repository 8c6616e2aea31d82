// Package web serves the dashboard and the API: one Echo server, one route table, one error handler.
//
// It holds no rules about sandboxes, users or templates: it turns requests into calls of the domain, and what they
// answer into pages, problem documents and streams. Sandbox hosts are not its business; proxy serves those.
//
// Invariant: GET changes nothing; the API knows tokens only and pages know browser sessions only; every error
// becomes a response in errors.go and nowhere else; below the adapters nobody sees the framework.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/access"
	"sandboxd/internal/acp/install"
	"sandboxd/internal/activity"
	"sandboxd/internal/alert"
	"sandboxd/internal/auth"
	"sandboxd/internal/backup"
	"sandboxd/internal/chat"
	"sandboxd/internal/exec"
	"sandboxd/internal/files"
	"sandboxd/internal/gateway"
	"sandboxd/internal/hostname"
	"sandboxd/internal/logs"
	"sandboxd/internal/repository"
	"sandboxd/internal/schedule"
	"sandboxd/internal/services"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/template"
	"sandboxd/internal/terminal"
	"sandboxd/internal/trials"
	"sandboxd/internal/update"
	"sandboxd/internal/visibility"
	"sandboxd/internal/volume"
	"sandboxd/static"
)

// Config is what a Server is made of. Nothing in it may be nil unless its comment says so.
type Config struct {
	Access    *access.Control
	Sandboxes Sandboxes
	Accounts  *auth.Service
	Templates Templates
	Images    Images

	OwnTemplates *template.Service // those that are made here, and rebuilds of all
	Commands     *exec.Service
	Terminals    *terminal.Service
	SSH          SSH
	Tunnels      Tunnels
	Files        *files.Service
	Services     *services.Service
	Ports        *visibility.Ports
	IDE          IDE
	Idle         Idle
	Uses         Uses
	Holds        Holds
	Metrics      Metrics
	Logs         *logs.Keeper
	OwnLog       *logs.Recent // of sandboxd itself
	Activity     *activity.Log
	Alerts       *alert.Service
	Backups      *backup.Service
	Schedules    *schedule.Service
	Snapshots    *snapshot.Service
	Updates      *update.Service             // of sandboxes
	Chat         *chat.Service               // conversations with agents in sandboxes
	Runs         *chat.Runs                  // of code in them
	ChatStates   *chat.States                // what the agents do
	ChatLinks    *chat.Links                 // by which others read conversations
	ChatBoxes    BoxNames                    // the sandboxes of conversations
	ChatModels   func(owner string) []string // names of models that the agents of a user can ask; must not block
	Agents       *install.Service            // agents of others, in sandboxes
	Trials       *trials.Service             // the same message to agents in clones of a sandbox

	Repositories *repository.Service // where backups can be beside the folder

	Models *gateway.Service // providers, and what they serve

	Volumes      *volume.Service
	VolumeAccess *access.Control // to the files of volumes, each of which is a sandbox to it

	Preferences Preferences
	TabNames    TabNames
	LastViews   LastViews
	LastUses    LastUses

	Handover Handover
	Hosts    hostname.Hosts
	Assets   *static.Assets
	Checks   []Check // what /readyz asks, in this order
	// Pool gives what of the storage pool is used, and its size, in bytes. It ends when ctx does. nil where there is no pool.
	Pool    func(ctx context.Context) (used, size int64, err error)
	Version Version
	Log     *slog.Logger
	Now     func() time.Time // nil for time.Now
}

// Check is one thing that sandboxd needs in order to be of use, such as its store or its engine.
type Check struct {
	Name string // "store", "engine"
	Ask  func(ctx context.Context) error
}

// Version says which sandboxd this is.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Server answers for the dashboard's host. Safe for concurrent use.
type Server struct {
	cfg     Config
	echo    *echo.Echo
	log     *slog.Logger
	cross   *http.CrossOriginProtection
	open    counter
	follows counter       // the channels of all live connections
	beat    time.Duration // between two signs of life in a stream
	check   time.Duration // between two checks of a stream's access
	arrival time.Duration // that a request's body may take
	move    time.Duration // that a file may stand still on its way
	pace    time.Duration // the least between two events for a page
	reasons time.Duration // between two looks at what keeps the sandboxes of a page awake
	alarm   alarm
	panes   []paneEntry // of the workspace, from left to right
	handlers
}

// New builds the server and its routes. It does no I/O.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{
		cfg: cfg, log: cfg.Log, echo: echo.New(),
		cross: http.NewCrossOriginProtection(), beat: beatEvery, check: checkEvery, arrival: arrivalLimit, move: moveLimit,
		pace: livePace, reasons: reasonsEvery, alarm: alarm{grace: cfg.Now().Add(alarmGrace)},
		panes: workspacePanes, open: counter{most: maxOpen}, follows: counter{most: maxFollowed},
	}
	s.handlers = newHandlers(s)
	if err := s.cross.AddTrustedOrigin(cfg.Hosts.DashboardURL()); err != nil {
		s.log.Error("trust the dashboard's own origin", "err", err) // then only Host counts
	}
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.IPExtractor = echo.ExtractIPDirect()
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.requestID, s.accessLog, s.recoverPanic, s.secureHeaders, s.limitArrival, s.refuseCrossSite)
	for _, r := range s.routes() {
		limits := []echo.MiddlewareFunc{s.activity.record(r), s.admit(r.access)}
		if !r.bulky() {
			limits = append(limits, s.limitBody)
		}
		s.echo.Add(r.method, r.path, r.handle, limits...)
	}
	return s
}

// headOnly marks the context of a request of which only the head of the answer is wanted.
type headOnly struct{}

// ServeHTTP answers one request. HEAD is answered as GET would be; net/http leaves the body out.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.WithContext(context.WithValue(r.Context(), headOnly{}, true)) // a copy: w goes by the method of the original
		r.Method = http.MethodGet
	}
	s.echo.ServeHTTP(w, r)
}
