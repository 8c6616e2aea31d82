// Package wire is the language of the guest link: paths, messages and frames that sandboxd (internal/link) and the
// guest (internal/guest) say to each other over HTTP/2.
//
// It holds no behaviour beyond encoding and checking, and imports nothing of ours, because the guest is small.
//
// Invariant: both ends treat what they read as hostile. Every message has a bound, and decoding checks it. A change
// that an older guest would misread raises Protocol.
package wire

import "time"

// Protocol is the version of this language. sandboxd refuses a guest of another one.
const Protocol = 1

// Where the sandbox sees its end of the link.
const (
	// GuestPath is where the guest binary is mounted, read-only.
	GuestPath = "/.sandboxd/guest"
	// SocketPath is the socket that the guest dials; its folder is mounted read-only.
	SocketPath = "/.sandboxd/link/link.sock"
	// CAPath is the bundle of extra CA certificates, mounted read-only where the host has any.
	CAPath = "/.sandboxd/ca.pem"
	// HomePath is where the sandbox's volume is mounted.
	HomePath = "/home/agent"
)

// ModelsPort is the port on the sandbox's loopback at which programs in it find models. The guest listens there, and hands every
// connection to sandboxd.
const ModelsPort = 7465

// SocketName is the socket's name within its folder, on the host and in the sandbox alike.
const SocketName = "link.sock"

// What the guest serves. A port of the sandbox is reached by CONNECT to 127.0.0.1:<port>.
const (
	PathSetup      = "/v1/setup"       // POST Setup, answers Hello
	PathExec       = "/v1/exec"        // POST frames both ways
	PathExecs      = "/v1/execs/"      // POST <id>/signal?name=, POST <id>/resize?cols=&rows=
	PathTerminals  = "/v1/terminals"   // GET; POST /<tab>/dial; GET /<tab>/text; DELETE /<tab>
	PathServices   = "/v1/services"    // GET; POST /<name>/start, /stop and /restart
	PathLogs       = "/v1/logs"        // GET ?after=<microseconds> FrameLines, as lines are written
	PathPorts      = "/v1/ports"       // GET Ports
	PathPortsWatch = "/v1/ports/watch" // GET FramePorts, whenever they change
	PathModels     = "/v1/models"      // POST /accept waits for a connection to ModelsPort; POST /<number>/dial carries it
)

// ExecHeader is the reply header with the id of the process that PathExec has started.
const ExecHeader = "Sandboxd-Exec"

// DescriptorHeader with the value 1 asks, beside CONNECT, for the descriptor of the connection instead of a stream. A guest that
// passes it answers with the number by which the kernel knows its socket (SO_COOKIE, in decimal); the descriptor travels beside
// bytes of the link (as SCM_RIGHTS), no later than the reply's head. Any other reply is a stream's.
const DescriptorHeader = "Sandboxd-Handover" // the name that guests know

// ModelsHeader is the reply header of PathModels' accept with the number by which the guest knows the connection, in decimal. It can be
// dialled for a few seconds, unless its descriptor was asked for, told of and has come.
const ModelsHeader = "Sandboxd-Connection"

// MaxDescriptors is how many descriptors travel beside one piece of the link's bytes: as many as Linux takes.
const MaxDescriptors = 253

// Bounds of the messages, in bytes. Decoding refuses larger ones.
const (
	MaxSetup  = 1 << 20  // Setup as JSON
	MaxStart  = 1 << 20  // ExecStart as JSON; Linux takes no more than 128 KiB per argument anyway
	MaxReply  = 1 << 20  // every JSON reply of a guest
	MaxText   = 2 << 20  // the end of a terminal's scrollback, with its colours
	MaxPorts  = 64 << 10 // Ports as JSON
	MaxHeader = 16 << 10 // headers of a request or a reply
)

// StopGrace is how long a guest that is asked to end waits for the sandbox's processes before it kills them, unless
// Setup says otherwise.
const StopGrace = 2 * time.Second
