package web

import (
	"context"
	"io"
	"net"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/catalog"
	"sandboxd/internal/event"
	"sandboxd/internal/exec"
	"sandboxd/internal/files"
	"sandboxd/internal/ide"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/terminal"
	"sandboxd/internal/tunnel"
	"sandboxd/internal/visibility"
	"sandboxd/internal/wire"
)

// Sandboxes is what the delivery asks of sandbox.Manager. Changes return once they are accepted; the work goes on.
type Sandboxes interface {
	sandboxReader
	sandboxMaker
	sandboxSwitch
	sandboxRest
	sandboxWatch
}

type sandboxReader interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)
	Progress(id string) sandbox.Progress
	Services(s sandbox.Sandbox) []catalog.Service // that count for it, from memory
	// HasHost reports whether the host of a sandbox's service leads to it, from memory.
	HasHost(ctx context.Context, name, service string) (bool, error)
}

type sandboxMaker interface {
	Create(ctx context.Context, r sandbox.Request) (s sandbox.Sandbox, created bool, err error)
	Rename(ctx context.Context, ref sandbox.Ref, label string) (sandbox.Sandbox, error)
	Delete(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

type sandboxSwitch interface {
	Start(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Stop(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Restart(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
}

// sandboxRest puts sandboxes to rest; any use wakes them, as Start does.
type sandboxRest interface {
	Freeze(ctx context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error)
	Sleep(ctx context.Context, ref sandbox.Ref, still func() bool) (sandbox.Sandbox, error)
	SetRest(ctx context.Context, ref sandbox.Ref, c sandbox.RestChange) (sandbox.Sandbox, error)
	Resting(s sandbox.Sandbox) sandbox.Resting // the times that count, and who says so
}

type sandboxWatch interface {
	Wait(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	Subscribe() *event.Subscription[sandbox.Event]
}

// Idle is what the delivery asks of idle.Reaper. It asks nothing of a sandbox and counts as no use.
type Idle interface {
	Outlook(s sandbox.Sandbox) idle.Outlook
}

// Uses is what the delivery asks of idle.Tracker.
type Uses interface {
	Dismiss(name string) // nobody is there, whatever page is open
	Subscribe() *event.Subscription[idle.Change]
}

// Holds is what the delivery asks of idle.Holds.
type Holds interface {
	Place(ctx context.Context, s sandbox.Sandbox, by, reason string, ttl time.Duration) (sandbox.Hold, error)
	Renew(ctx context.Context, s sandbox.Sandbox, id string, ttl time.Duration) (sandbox.Hold, error)
	List(ctx context.Context, s sandbox.Sandbox) ([]sandbox.Hold, error)
	Revoke(ctx context.Context, s sandbox.Sandbox, id string) error
}

// Accounts is what the delivery asks of auth.Service.
type Accounts interface {
	firstRun
	browserSessions
	passwords
	tokenKeeper
	tokenCheck
	userReader
	userMaker
	userSwitch
}

type firstRun interface {
	SetupCode(ctx context.Context) (code string, needed bool, err error)
	Setup(ctx context.Context, code, name, password string) (auth.User, error)
}

type browserSessions interface {
	Login(ctx context.Context, from, name, password string) (secret string, u auth.User, err error)
	Session(ctx context.Context, secret string) (auth.Principal, error)
	Logout(ctx context.Context, secret string) error
}

type passwords interface {
	SetPassword(ctx context.Context, userID, password string) error
	ChangePassword(ctx context.Context, userID, old, password string) error
}

type tokenKeeper interface {
	CreateToken(ctx context.Context, userID string, n auth.NewToken) (secret string, t auth.Token, err error)
	Tokens(ctx context.Context, userID string) ([]auth.Token, error)
	RevokeToken(ctx context.Context, userID, tokenID string) error
}

type tokenCheck interface {
	Authenticate(ctx context.Context, tokenSecret string) (auth.Principal, error)
}

type userReader interface {
	Users(ctx context.Context) ([]auth.User, error)
	User(ctx context.Context, id string) (auth.User, error)
	UserByName(ctx context.Context, name string) (auth.User, error)
}

type userMaker interface {
	CreateUser(ctx context.Context, n auth.NewUser) (auth.User, error)
	DeleteUser(ctx context.Context, userID string) error
}

type userSwitch interface {
	SetRole(ctx context.Context, userID string, r auth.Role) error
	SetDisabled(ctx context.Context, userID string, disabled bool) error
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

// Hosts gives the URLs of the dashboard and of sandboxes. Implemented by hostname.Hosts.
type Hosts interface {
	DashboardURL() string // without a slash at the end
	TerminalURL(name string) string
	SignInURL(name string) string // of the same, past its own password
	PortURL(name string, port int) string
	ServiceURL(service, name string) string // "" when it can have none
	ShareURL(name string, port int, secret string) string
}

// Images is what the delivery asks of catalog.Images.
type Images interface {
	Build(name string) error // starts in the background; a build under way is no error
	Status(ctx context.Context, name string) catalog.ImageStatus
	Log(name string) []string
	Subscribe() *event.Subscription[catalog.ImageEvent]
}

// Commands is what the delivery asks of exec.Service.
type Commands interface {
	Run(ctx context.Context, h access.Handle, r exec.Request) (exec.Result, error)
	Stream(ctx context.Context, h access.Handle, r exec.Request, emit func(exec.Event) error) (exec.Result, error)
	Open(ctx context.Context, h access.Handle, r exec.Request, size exec.Size) (*exec.Session, error)
}

// Terminals is what the delivery asks of terminal.Service.
type Terminals interface {
	Attach(ctx context.Context, h access.Handle, tab string) (*terminal.Attachment, error)
	Join(ctx context.Context, h access.Handle, tab string) (*terminal.Attachment, error)
	Tabs(ctx context.Context, h access.Handle) ([]wire.Terminal, error)
	CloseTab(ctx context.Context, h access.Handle, tab string) error
	Text(ctx context.Context, h access.Handle, tab string) ([]byte, error) // what it shows and has scrolled away; wakes nothing
}

// Services is what the delivery asks of services.Service. Reading wakes nothing.
type Services interface {
	serviceReader
	serviceKeeper
	serviceSwitch
}

type serviceReader interface {
	List(ctx context.Context, h access.Handle) (services.List, error)
	Log(ctx context.Context, h access.Handle, service string, follow bool, emit func([]byte) error) error
	Ports(ctx context.Context, h access.Handle) ([]wire.PortOpen, error)
	WatchPorts(ctx context.Context, h access.Handle, emit func([]wire.PortOpen) error) error
}

type serviceKeeper interface {
	Put(ctx context.Context, h access.Handle, list []catalog.Service, m services.Match) (services.List, error)
	Set(ctx context.Context, h access.Handle, one catalog.Service, m services.Match) (now services.List, created bool, err error)
	Delete(ctx context.Context, h access.Handle, service string, m services.Match) (services.List, error)
}

type serviceSwitch interface {
	Start(ctx context.Context, h access.Handle, service string) (services.Status, error)
	Stop(ctx context.Context, h access.Handle, service string) (services.Status, error)
	Restart(ctx context.Context, h access.Handle, service string) (services.Status, error)
}

// Ports is what the delivery asks of visibility.Ports: who may use which port beside those who may use the sandbox.
type Ports interface {
	List(sandboxID string) []visibility.Port
	Set(ctx context.Context, s sandbox.Sandbox, port int, v sandbox.Visibility) error
	Share(ctx context.Context, s sandbox.Sandbox, n visibility.NewShare) (share sandbox.Share, secret string, err error)
	Revoke(ctx context.Context, s sandbox.Sandbox, port int, id string) error
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

// Files is what the delivery asks of files.Service.
type Files interface {
	fileContent
	fileTree
	fileTrash
	fileArchives
	fileLooks
}

type fileContent interface {
	Stat(ctx context.Context, h access.Handle, path string) (files.Entry, error)
	List(ctx context.Context, h access.Handle, path, after string, limit int) (wire.Listing, error)
	Read(ctx context.Context, h access.Handle, path string, offset, length int64) (*files.Content, error)
	Write(ctx context.Context, h access.Handle, put wire.FilePut, body io.Reader) (files.Written, error)
	Upload(ctx context.Context, h access.Handle, path, upload string) (offset int64, err error)
	Abandon(ctx context.Context, h access.Handle, path, upload string) error
}

type fileTree interface {
	Mkdir(ctx context.Context, h access.Handle, path string, parents bool) error
	Move(ctx context.Context, h access.Handle, from []string, to string, overwrite bool) error
	Copy(ctx context.Context, h access.Handle, from []string, to string, overwrite bool) error
	Chmod(ctx context.Context, h access.Handle, path string, mode uint32) error
	Delete(ctx context.Context, h access.Handle, paths []string, permanent bool) ([]wire.Trashed, error)
}

type fileTrash interface {
	Trash(ctx context.Context, h access.Handle) ([]wire.Trashed, error)
	Restore(ctx context.Context, h access.Handle, ids []string) error
	EmptyTrash(ctx context.Context, h access.Handle, ids []string) error
}

type fileArchives interface {
	Pack(ctx context.Context, h access.Handle, folder string, names []string, format files.Format) (*files.Archive, error)
	Unpack(ctx context.Context, h access.Handle, in files.Unpacking, body io.Reader) (wire.Unpacked, error)
}

type fileLooks interface {
	Glance() files.Glance
	Search(ctx context.Context, h access.Handle, q wire.Search, emit func(wire.Found) error) (more bool, err error)
	Watch(ctx context.Context, h access.Handle, paths []string, emit func(folder string) error) error
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
