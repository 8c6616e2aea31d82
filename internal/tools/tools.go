// Package tools is the one table of operations that a language model may perform in a sandbox: run commands and code, read and change
// files, look at ports, services and logs, drive a browser, take and restore snapshots, ask the person. Chat and MCP both use it.
//
// It does not decide who may use which sandbox, or which call needs a person's word: a Preview says what a call would do, its callers
// ask. It runs nothing itself: everything happens within one sandbox, through the services that pages use too.
//
// Invariant: nothing that a model writes reaches beyond the sandbox of its Seat, no call blocks without a bound, and every result is bounded and
// says what it leaves out.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/tools/risk"
	"sandboxd/internal/wire"
)

// MaxArguments bounds the arguments of one call, in bytes.
const MaxArguments = 2 << 20

// Tool is one operation, bound to a Seat. All of it may be used at the same time by many callers.
type Tool struct {
	Name        string
	Title       string          // for people: "Run a command"
	Description string          // for a model
	Schema      json.RawMessage // JSON Schema of its arguments, an object
	Changes     bool            // it may change something
	Repeats     bool            // the same call again makes sense, as to wait for more output

	// Preview says what a call would do, for the person who is asked and for the decision to ask.
	Preview func(args json.RawMessage) Preview
	// Run does it, and returns soon after ctx has ended. What out is given is shown meanwhile: it must take everything at once. What did
	// not work and the model may mend is a Result; an error is ctx's, or a failure of the server.
	Run func(ctx context.Context, args json.RawMessage, out io.Writer) (Result, error)
}

// Preview is a call before it is made. Its texts are whole and as the model wrote them: how to show them safely is the page's.
type Preview struct {
	Title    string         `json:"title"`
	Code     string         `json:"code,omitempty"`     // the very command or code that will run, or the text that will be written
	Language string         `json:"language,omitempty"` // of Code
	Path     string         `json:"path,omitempty"`
	Folder   string         `json:"folder,omitempty"` // where it runs; "" for the home
	Risk     risk.Judgement `json:"risk"`
}

// Result is what came of a call.
type Result struct {
	Text   string // for a model; valid UTF-8, bounded
	Images []Image
	Failed bool // what was asked did not work; Text says why
	Data   Data // for a page
}

// Image is a picture.
type Image struct {
	MIME  string
	Bytes []byte
}

// Data is what a page shows of a result. Zero fields do not apply.
type Data struct {
	Handle   string        `json:"handle,omitempty"`   // of a command
	Running  bool          `json:"running,omitempty"`  // the command has not ended
	Exit     *int          `json:"exit,omitempty"`     // its exit code
	Duration time.Duration `json:"duration,omitempty"` // nanoseconds, of the command
	LeftOut  int64         `json:"left_out,omitempty"` // bytes of output that Text leaves out
	Files    []Change      `json:"files,omitempty"`
	Snapshot string        `json:"snapshot,omitempty"` // its id
	Choice   string        `json:"choice,omitempty"`   // of the person
}

// Change is what was done to a file.
type Change struct {
	Path    string `json:"path"`
	Created bool   `json:"created,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
	Diff    string `json:"diff,omitempty"` // unified; "" for a file that is too large, or no text
	Cut     bool   `json:"cut,omitempty"`  // Diff is only the beginning
	Same    bool   `json:"same,omitempty"` // the old text and the new one are the same
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"` // lines
}

// Snapshots is what the tools ask of snapshot.Service, whose comments hold.
type Snapshots interface {
	Begin(ctx context.Context, box sandbox.Sandbox, a snapshot.Ask) (snap snapshot.Snapshot, begun bool, err error)
	Wait(ctx context.Context, id string) (snapshot.Snapshot, error)
	List(wanted func(snapshot.Snapshot) bool) []snapshot.Snapshot
	Restore(ctx context.Context, box sandbox.Sandbox, id string) (safety snapshot.Snapshot, err error)
}

// Logs is what the tools ask of logs.Keeper, whose comment holds.
type Logs interface {
	Search(ctx context.Context, q logs.Query) (logs.Result, error)
}

// Config holds what a Service works with. Snapshots and Logs may be nil: there are no tools of them then.
type Config struct {
	Exec      *exec.Service
	Files     *files.Service
	Services  *services.Service
	Snapshots Snapshots
	Logs      Logs
}

// Service makes tables of tools, and keeps the commands that they have started. Safe for concurrent use.
type Service struct {
	cfg   Config
	life  context.Context // of commands
	end   context.CancelFunc
	work  sync.WaitGroup
	mu    sync.Mutex
	desks map[string]*desk // by Seat
}

// New makes a Service. It does no I/O.
func New(c Config) *Service {
	life, end := context.WithCancel(context.Background())
	return &Service{cfg: c, life: life, end: end, desks: map[string]*desk{}}
}

// Run lives until ctx ends; then it ends all commands and returns when they have ended.
func (s *Service) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	s.end() // none is started after this
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Seat is for whom a table is: one conversation, or one client, in one sandbox.
type Seat struct {
	Handle access.Handle
	// Key names the conversation: commands belong to it, and another one does not see them.
	Key string
	// Folder is where commands run and what relative paths are relative to, absolute; "" means wire.HomePath.
	Folder string
	// Ask puts a question to the person and waits for the answer; nil when no person is there to ask.
	Ask func(ctx context.Context, q Question) (Answer, error)
}

// Table gives the tools of a seat, always in the same order.
func (s *Service) Table(seat Seat) []Tool {
	t := &table{Service: s, seat: seat, desk: s.desk(seat)}
	all := []spec{
		t.runCommand(), t.commandOutput(), t.sendInput(), t.stopCommand(), t.runCode(),
		t.readFile(), t.writeFile(), t.editFile(), t.applyPatch(), t.listFolder(), t.searchFiles(),
		t.listPorts(), t.listServices(), t.controlService(),
	}
	if s.cfg.Logs != nil {
		all = append(all, t.serviceLog())
	}
	if web := (pages{t}); web.port() > 0 {
		all = append(all, web.all()...)
	}
	if s.cfg.Snapshots != nil {
		all = append(all, t.takeSnapshot(), t.listSnapshots(), t.restoreSnapshot())
	}
	if seat.Ask != nil {
		all = append(all, t.askPerson())
	}
	tools := make([]Tool, len(all))
	for i, one := range all {
		tools[i] = one.tool()
	}
	return tools
}

// Leave ends the commands of the seat with this key in a sandbox and closes its browser, and forgets them.
func (s *Service) Leave(sandbox, key string) {
	id := seatID(sandbox, key)
	s.mu.Lock()
	d := s.desks[id]
	delete(s.desks, id)
	s.mu.Unlock()
	if d != nil {
		d.endAll()
		s.leavePage(d)
	}
}

// path gives a path as a model means it: relative ones begin where commands run.
func (t *table) path(p string) string {
	if strings.HasPrefix(p, "/") || p == "~" || strings.HasPrefix(p, "~/") {
		return p
	}
	return strings.TrimSuffix(cmp.Or(t.seat.Folder, wire.HomePath)+"/"+p, "/")
}

// folder is path for the folder to run something in; "" for the sandbox's own.
func (t *table) folder(p string) string {
	switch {
	case p == "":
		return t.seat.Folder
	case p == "~" || strings.HasPrefix(p, "~/"):
		return cmp.Or(t.seat.Folder, wire.HomePath) + p[1:]
	}
	return t.path(p)
}

func (s Seat) id() string { return seatID(s.Handle.ID(), s.Key) }

func seatID(sandbox, key string) string { return sandbox + " " + key }

// deskKept is how long a desk on which nothing runs is kept unused: not all conversations leave, and those of a deleted sandbox cannot.
const deskKept = 24 * time.Hour

func (s *Service) desk(seat Seat) *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	d := s.desks[seat.id()]
	if d == nil {
		maps.DeleteFunc(s.desks, func(_ string, d *desk) bool { return now.Sub(d.used) > deskKept && d.running() == 0 })
		d = &desk{byID: map[string]*command{}}
		s.desks[seat.id()] = d
	}
	d.used = now
	return d
}

// table is what the tools of one seat work with.
type table struct {
	*Service
	seat Seat
	desk *desk
}

// failed is a Result that says why something did not work.
func failed(text string) Result { return Result{Text: text, Failed: true} }

// ended gives an error as what the model is told, unless it is not the model's to mend.
func ended(ctx context.Context, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if kind := fault.KindOf(err); kind == fault.Internal {
		return Result{}, err
	}
	return failed(fault.Message(err)), nil
}
