package proxy

import (
	"encoding/binary"
	"net/http"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// VS Code's page and its server talk over WebSockets that stay open for as long as the page is. They say all the time that
// they are still there, in both directions: that is no use of the sandbox. What is said beside it counts as on any other
// WebSocket when the page says it (a key, a click, a file that is saved; a heartbeat in it does not), and as unattended when
// the sandbox does.

// toEditor reports whether the request is for one of the WebSockets over which VS Code itself talks, and not for one of what
// is shown in it.
func (v visit) toEditor() bool {
	return v.target.Kind == hostname.IDE && isWebSocket(v.r) && v.r.URL.Query().Has("reconnectionToken")
}

// A message of VS Code's protocol (src/vs/base/parts/ipc/common/ipc.net.ts there) has a head of 13 bytes: its type, two
// numbers, and the length of what follows. Any number of messages, or parts of one, may be in one of the WebSocket's.
const (
	ideHead    = 13
	ideLength  = 9 // where the length stands
	ideRegular = 1 // the only type that says anything; the others are about the connection
	ideLast    = 9 // keep-alive
	ideMost    = 1 << 30
)

// ideProtocol follows one direction of it. What is no such protocol is taken for content from there on.
type ideProtocol struct {
	head    [ideHead]byte
	have    int
	left    int  // of the message's body
	regular bool // the message says something
	broken  bool
}

// read gives how many of the next bytes say something. They are masked, beginning with mask[at].
func (p *ideProtocol) read(b []byte, mask [maskLength]byte, at int) (said int) {
	for i := 0; i < len(b); {
		switch {
		case p.broken:
			return said + len(b) - i
		case p.left > 0:
			n := min(p.left, len(b)-i)
			if p.regular {
				said += n
			}
			p.left -= n
			i += n
		default:
			p.head[p.have] = b[i] ^ mask[(at+i)%maskLength]
			p.have++
			i++
			p.begin()
		}
	}
	return said
}

// begin takes in a head that is whole.
func (p *ideProtocol) begin() {
	if p.have < ideHead {
		return
	}
	length := binary.BigEndian.Uint32(p.head[ideLength:])
	p.broken = p.head[0] == 0 || p.head[0] > ideLast || length > ideMost
	p.have, p.left, p.regular = 0, int(length), p.head[0] == ideRegular
}

// errOff says that VS Code is switched off in a sandbox, which is not woken to find that out.
var errOff = fault.New(fault.Conflict, "It is not switched on in this sandbox.")

// noIDE says why there is no VS Code.
func (v visit) noIDE(err error) notice {
	name := v.target.Name
	n := notice{Status: http.StatusServiceUnavailable, Code: fault.Unavailable.String(), Refresh: true,
		Title: "VS Code is not ready in " + name, Text: fault.Message(err), Links: []link{v.dashboard("Open the workspace", name)}}
	switch fault.KindOf(err) {
	case fault.Conflict:
		n.Status, n.Code, n.Refresh = http.StatusConflict, "ide_off", false
		n.Title, n.Hint = "VS Code is off in "+name, "Switch it on in the sandbox's workspace."
	case fault.Timeout, fault.Unavailable:
	default:
		n.Text = "It could not be started."
		v.cfg.Log.Warn("VS Code is not reached", "sandbox", name, "err", err)
	}
	return n
}
