package web

import (
	"context"
	"net"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/ide"
	"sandboxd/internal/idle"
	"sandboxd/internal/lastview"
	"sandboxd/internal/metrics"
	"sandboxd/internal/pace"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/tunnel"
)

// Sandboxes is what the delivery asks of sandbox.Manager. Changes return once they are accepted; the work continues.
type Sandboxes interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Progress(id string) sandbox.Progress
	PhaseLength(s sandbox.Spec, p sandbox.Phase) pace.Length
	Services(s sandbox.Sandbox) []catalog.Service // that count for it, from memory
	OffersIDE(s sandbox.Sandbox) bool             // whether VS Code is on, from memory
	Mounted(id string) (list []sandbox.Mount, ok bool)

	Create(ctx context.Context, r sandbox.Request) (s sandbox.Sandbox, created bool, err error)
	Rename(ctx context.Context, ref sandbox.Ref, label string) (sandbox.Sandbox, error)
	Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Cancel(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) // of a create; Conflict when it was too late

	Start(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Stop(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Restart(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)

	Freeze(ctx context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error)
	Sleep(ctx context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error)
	Resize(ctx context.Context, ref sandbox.Ref, c sandbox.LimitsChange) (sandbox.Sandbox, error)
	SetRest(ctx context.Context, ref sandbox.Ref, c sandbox.RestChange) (sandbox.Sandbox, error)
	Resting(s sandbox.Sandbox) sandbox.Resting // the times that count, and who says so

	Orphans() []sandbox.Instance // that have no row
	Adopt(ctx context.Context, id, name, owner string) (sandbox.Sandbox, error)
	RemoveOrphan(ctx context.Context, id string) error

	Wait(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Subscribe() *event.Subscription[sandbox.Event]
}

// BoxNames gives the name and the owner's id of the sandbox with an id. NotFound when there is none.
type BoxNames func(ctx context.Context, id string) (name, owner string, err error)

// Idle is what the delivery asks of idle.Reaper. It asks nothing of a sandbox and counts as no use.
type Idle interface {
	Outlook(s sandbox.Sandbox) idle.Outlook
}

// Uses is what the delivery asks of idle.Tracker.
type Uses interface {
	Dismiss(id string) (again func()) // the user has left, even if a page is open
	Subscribe() *event.Subscription[idle.Change]
}

// Holds is what the delivery asks of idle.Holds.
type Holds interface {
	Place(ctx context.Context, s sandbox.Sandbox, by, reason string, ttl time.Duration) (sandbox.Hold, error)
	Renew(ctx context.Context, s sandbox.Sandbox, id string, ttl time.Duration) (sandbox.Hold, error)
	List(ctx context.Context, s sandbox.Sandbox) ([]sandbox.Hold, error)
	Revoke(ctx context.Context, s sandbox.Sandbox, id string) error
}

// Handover gives the address at a sandbox's host that makes a session there. Implemented by proxy.Handover.
type Handover interface {
	URL(ctx context.Context, who auth.Principal, sessionSecret, to, nonce string) (string, error)
}

// Templates is what the delivery asks of catalog.Catalog.
type Templates interface {
	Template(name string) (catalog.Template, error)
	List() []catalog.Entry
}

// Images is what the delivery asks of catalog.Images.
type Images interface {
	Status(ctx context.Context, name string) catalog.ImageStatus
	Log(name string) []string
	Pace(t catalog.Template) (p pace.Pace, ok bool) // from memory
	Cancel(name, by string) error
	Abandon(t catalog.Template, by string)
	Subscribe() *event.Subscription[catalog.ImageEvent]
}

// Preferences keeps how people have arranged their pages. Implemented by sqlite.Workspace.
type Preferences interface {
	Preference(ctx context.Context, userID, name string) (string, error) // "" when nothing is kept
	SetPreference(ctx context.Context, userID, name, value string) error
}

// TabNames keeps what the people of a sandbox call its terminals. Implemented by sqlite.Workspace.
type TabNames interface {
	TabNames(ctx context.Context, sandboxID string) (map[string]string, error) // by tab
	NameTab(ctx context.Context, sandboxID, tab, name string) error            // "" takes the name away
}

// LastViews has what sandboxes showed last. Implemented by sqlite.Workspace.
type LastViews interface {
	LastView(ctx context.Context, sandboxID string) (lastview.View, error) // the zero View when there is none
}

// LastUses says when sandboxes were used last. Implemented by lastuse.Record.
type LastUses interface {
	Last(sandboxID string) (at time.Time, used bool)
	Note(sandboxID string)
}

// SSH is what the delivery asks of sshd.Server.
type SSH interface {
	Serve(ctx context.Context, h access.Handle, conn net.Conn) error
	HostKey() string
}

// Tunnels is what the delivery asks of tunnel.Service.
type Tunnels interface {
	Dial(ctx context.Context, h access.Handle, port int) (*tunnel.Conn, error)
}

// IDE switches VS Code on and off. Implemented by ide.Service.
type IDE interface {
	// Status tells how it stands for a sandbox in any state.
	Status(ctx context.Context, h access.Handle) (ide.Status, error)
	// Enable switches it on or off, and has it built when it is not there.
	Enable(ctx context.Context, h access.Handle, on bool) (ide.Status, error)
}

// Metrics is what the delivery asks of metrics.Recorder. It asks nothing of a sandbox and counts as no use.
type Metrics interface {
	Series(ctx context.Context, id string, r metrics.Range) (metrics.Series, error) // also of metrics.HostID
	Recent(id string) []metrics.Point                                               // see metrics.Recorder
	Latest(id string) (metrics.Point, bool)
	Size(id string) (size metrics.Size, at time.Time, ok bool) // see metrics.Sizer
	Host(ctx context.Context) (metrics.Host, error)
	Subscribe() *event.Subscription[metrics.Tick]
}
