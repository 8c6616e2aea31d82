// Package catalog reads sandbox templates, checks them, and keeps their images built.
//
// It does not know sandboxes, users or HTTP, and it asks an engine for images only through the Engine port.
//
// Invariant: one broken template never hides or stops another, and its problem names file, line and cause.
package catalog

import "time"

// Profile is how tightly a sandbox is held.
type Profile string

// The hardening profiles. Both drop what an attacker wants most (raw sockets, device nodes, the engine's socket).
const (
	// Dev lets a person install packages: root through sudo inside, a writable root, outgoing network.
	Dev Profile = "dev"
	// Strict gives no way to more rights: no-new-privileges, read-only root, no network.
	Strict Profile = "strict"
)

// Template is one kind of sandbox, as read from its template.yaml and checked. It is a value: do not change its maps.
type Template struct {
	Name        string // DNS label, the folder's name
	Title       string
	Description string
	Icon        string // name of an icon in our set
	Source
	Size       Size
	Env        map[string]string
	Ports      []Port
	Services   []Service
	Profile    Profile
	Namespaces bool // its programs may make user namespaces; never with Strict
	IDE        bool // whether its sandboxes offer VS Code, until their owner says otherwise
	Standby
}

// Source is where a template comes from, and where its image does when not from its Dockerfile alone.
type Source struct {
	Folder string // where it was read from; "" for a plain image
	Base   string // the template that its image builds on, or ""
	Image  string // a plain image to use as it is instead of building a Dockerfile, or ""
	Root   string // the id of the image, made of a snapshot, that its image builds on in place of a template's, or ""
}

// Standby is how a template's sandboxes are kept while nobody uses them.
type Standby struct {
	Rest Rest // when unused ones are put to rest; what it leaves open the server's setting says
	Pool int  // how many sandboxes are kept ready (created, started, frozen) for the next creates, 0 to 20
}

// Size is the default size of a template's sandboxes.
type Size struct {
	CPUs   float64 // cores
	Memory int64   // bytes
	Pids   int64   // processes and threads
	Disk   int64   // bytes that a home may take, where there is a storage pool; 0 for no limit
}

// Port is a port that a template's sandboxes are known to serve.
type Port struct {
	Number int
	Title  string
}

// Service is a program that the guest starts and keeps running.
type Service struct {
	Name      string // DNS label
	Command   []string
	Port      int // 0 when it listens on none
	Cwd       string
	Env       map[string]string
	Autostart bool
	Health    *Health // nil when nothing but its end tells whether it works
}

// Health is how the guest finds out whether a service works: by its port. One that fails three times in a row is restarted.
type Health struct {
	Path     string        // what to ask for by HTTP, "/healthz" say; "" to be content with a connection
	Interval time.Duration // between two checks; 0 means DefaultHealthInterval
}

// DefaultHealthInterval is how often a service is checked that does not say how often.
const DefaultHealthInterval = 10 * time.Second

// PlainImage is the nameless template that stands for an image used as it is.
func PlainImage(ref string) Template {
	return Template{Source: Source{Image: ref}, Title: ref, Icon: "box", Profile: Dev, Size: DefaultSize}
}

// DefaultSize is what a sandbox gets when nobody says otherwise.
var DefaultSize = Size{CPUs: 2, Memory: 2 << 30, Pids: 1024}
