// Package wire is the language of the guest link: paths, messages and frames that sandboxd (internal/link) and the
// guest (internal/guest) say to each other over HTTP/2.
//
// It holds no behaviour beyond encoding and checking, and imports nothing of ours, because the guest is small.
//
// Invariant: both ends treat what they read as hostile. Every message has a bound, and decoding checks it. A change
// that an older guest would misread raises Protocol.
package wire

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
