package proxy

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// VS Code's page and its server talk over WebSockets that stay open for as long as the page is. They say all the time that
// they are still there, in both directions: that is no use of the sandbox. What is said beside it counts as on any other
// WebSocket when the page says it for a person (a key, a click, a file that is saved; a heartbeat in it does not), and as
// unattended when the sandbox does.

// toEditor reports whether the request is for one of the WebSockets over which VS Code itself talks, and not for one of what
// is shown in it.
func (q *request) toEditor() bool {
	return q.target.Kind == hostname.IDE && isWebSocket(q.r) && q.r.URL.Query().Has("reconnectionToken")
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
	page    bool // it is what the page says, of which some it says by itself
	head    [ideHead]byte
	have    int
	left    int  // of the message's body
	regular bool // the message says something
	broken  bool
	words   ideWords
}

// read gives how many of the next bytes say something. They are masked, beginning with mask[at].
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

// begin takes in a head that is whole.
func (p *ideProtocol) begin() {
	if p.have < ideHead {
		return
	}
	length := binary.BigEndian.Uint32(p.head[ideLength:])
	p.broken = p.head[0] == 0 || p.head[0] > ideLast || length > ideMost
	p.have, p.left, p.regular, p.words = 0, int(length), p.head[0] == ideRegular, ideWords{}
}

// rests reports whether no message is under route.
func (p *ideProtocol) rests() bool { return p.have == 0 && p.left == 0 && !p.broken }

// ideWords is what a message of the page begins with, enough to tell what the page says by itself.
type ideWords struct {
	first  [48]byte
	have   int
	held   int // bytes of the body that have come before it could be told
	judged bool
	own    bool
}

// add takes the next bytes of the body and gives how many are somebody's. Those before it can be told come later.
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

// The page's answers to what its extensions' host asks and tells are of these types (rpcProtocol.ts).
const (
	ideFirstAnswer = 5
	ideLastAnswer  = 12
)

// idePageWords are what the page says when nobody does anything: that files have changed, which it was told itself or, of its
// own log, has changed; that the window is not used any more; how long an answer takes.
var idePageWords = [][]byte{
	[]byte("$onFileEvent\x00"),
	[]byte("$onDidChangeWindowActive\x00\x00\x00\x07[false]"),
	[]byte("\x01\ttelemetry\x01\x04ping"),
}

// pagesOwn reports whether a message that begins so is the page's own. Of a VS Code that says it otherwise it counts.
func pagesOwn(first []byte) bool {
	if len(first) > 0 && first[0] >= ideFirstAnswer && first[0] <= ideLastAnswer {
		return true
	}
	return slices.ContainsFunc(idePageWords, func(words []byte) bool { return bytes.Contains(first, words) })
}

// errOff says that VS Code is switched off in a sandbox, which is not woken to find that out.
var errOff = fault.New(fault.Conflict, "It is not switched on in this sandbox.")

// noIDE says why there is no VS Code.
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
