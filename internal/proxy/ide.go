package proxy

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// VS Code's page and its server talk over WebSockets that are open as long as the page. Both send keep-alives all the time, which
// are no use of the sandbox. Other messages of the page count as on any WebSocket when a person causes them (a key, a click, a
// saved file, but no heartbeat); those of the sandbox count as unattended.

// toEditor reports whether the request is for one of VS Code's own WebSockets, and not for one of a page shown in it.
func (q *request) toEditor() bool {
	return q.target.Kind == hostname.IDE && isWebSocket(q.r) && q.r.URL.Query().Has("reconnectionToken")
}

// A message of VS Code's protocol (src/vs/base/parts/ipc/common/ipc.net.ts there) has a head of 13 bytes: its type, two
// numbers, and the length of the body. One message of the WebSocket may have any number of these, or a part of one.
const (
	ideHead    = 13
	ideLength  = 9 // where the length stands
	ideRegular = 1 // the only type with content; the others are about the connection
	ideLast    = 9 // keep-alive
	ideMost    = 1 << 30
)

// ideProtocol follows one direction of it. From the first violation of the protocol on, everything is content.
type ideProtocol struct {
	page    bool // the direction is from the page, which sends some messages by itself
	head    [ideHead]byte
	have    int
	left    int  // of the message's body
	regular bool // the message has content
	broken  bool
	words   ideWords
}

// read gives how many of the next bytes are content. They are masked, beginning with mask[at].
func (p *ideProtocol) read(b []byte, mask [maskLength]byte, at int) (said int) {
	for i := 0; i < len(b); {
		switch {
		case p.broken:
			return said + len(b) - i
		case p.left > 0:
			n := min(p.left, len(b)-i)
			p.left -= n
			switch {
			case p.regular && p.page:
				said += p.words.add(b[i:i+n], mask, at+i, p.left == 0)
			case p.regular:
				said += n
			}
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

// begin reads a complete head.
func (p *ideProtocol) begin() {
	if p.have < ideHead {
		return
	}
	length := binary.BigEndian.Uint32(p.head[ideLength:])
	p.broken = p.head[0] == 0 || p.head[0] > ideLast || length > ideMost
	p.have, p.left, p.regular, p.words = 0, int(length), p.head[0] == ideRegular, ideWords{}
}

// rests reports whether the last message is complete.
func (p *ideProtocol) rests() bool { return p.have == 0 && p.left == 0 && !p.broken }

// ideWords is the beginning of a message of the page, enough to recognise one that it sends by itself.
type ideWords struct {
	first  [48]byte
	have   int
	held   int // bytes of the body that came before it was judged
	judged bool
	own    bool
}

// add takes the next bytes of the body, and gives how many are now known to be a person's.
func (w *ideWords) add(b []byte, mask [maskLength]byte, at int, last bool) int {
	if !w.judged {
		for i := 0; i < len(b) && w.have < len(w.first); i++ {
			w.first[w.have] = b[i] ^ mask[(at+i)%maskLength]
			w.have++
		}
		if w.held += len(b); w.have < len(w.first) && !last {
			return 0
		}
		w.judged, w.own = true, pagesOwn(w.first[:w.have])
		if w.own {
			return 0
		}
		return w.held
	}
	if w.own {
		return 0
	}
	return len(b)
}

// Types of the page's answers to its extensions' host (rpcProtocol.ts).
const (
	ideFirstAnswer = 5
	ideLastAnswer  = 12
)

// idePageWords are in the messages that the page sends by itself: that files changed, its own log included; that the window lost
// the focus; how long an answer took.
var idePageWords = [][]byte{
	[]byte("$onFileEvent\x00"),
	[]byte("$onDidChangeWindowActive\x00\x00\x00\x07[false]"),
	[]byte("\x01\ttelemetry\x01\x04ping"),
}

// pagesOwn reports whether the page sends a message that begins so by itself. Unknown messages are taken for a person's.
func pagesOwn(first []byte) bool {
	if len(first) > 0 && first[0] >= ideFirstAnswer && first[0] <= ideLastAnswer {
		return true
	}
	return slices.ContainsFunc(idePageWords, func(words []byte) bool { return bytes.Contains(first, words) })
}

// errOff says that VS Code is off in a sandbox. Saying so wakes nothing.
var errOff = fault.New(fault.Conflict, "It is not switched on in this sandbox.")

// noIDE explains why VS Code cannot be reached.
func (a *responder) noIDE(err error) notice {
	name := a.target.Name
	n := notice{Status: http.StatusServiceUnavailable, Code: fault.Unavailable.String(), Refresh: true,
		Title: "VS Code is not ready in " + name, Text: fault.Message(err), Links: []link{a.dashboard("Open the workspace", name)}}
	switch fault.KindOf(err) {
	case fault.Conflict:
		n.Status, n.Code, n.Refresh = http.StatusConflict, "ide_off", false
		n.Title, n.Hint = "VS Code is off in "+name, "Switch it on in the sandbox's workspace."
	case fault.Timeout, fault.Unavailable:
	default:
		n.Text = "It could not be started."
		a.log.Warn("VS Code is not reached", "sandbox", name, "err", err)
	}
	return n
}
