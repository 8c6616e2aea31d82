package terminal

import (
	"encoding/json"
	"strconv"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Bounds of messages.
const (
	maxHello      = 4 << 10   // bytes of a first message or a size
	maxTitle      = 1 << 10   // bytes
	maxPrefs      = 16 << 10  // bytes
	outputMessage = 64 << 10  // bytes of output in one message to a viewer
	maxWindow     = 64 << 20  // bytes that a viewer may leave unacknowledged
	minWindow     = 128 << 10 // a smaller window would only slow it down
)

// viewerWatched says that a person looks at the terminal: the page has the focus and is being used. A viewer sends it once
// a minute at most; it is for sandboxd alone, and never reaches a terminal.
const viewerWatched = '5'

// ping asks sandboxd, not the terminal, for the same message back: a viewer cannot tell a dead line from a silent terminal.
const ping = '6'

// incoming is a viewer's message, parsed. Zero fields are not asked for.
type incoming struct {
	message []byte // for the terminal
	typed   bool   // message is what a person has typed or pasted, not what the viewer's terminal says by itself
	watched bool   // a person looks
	ping    bool   // the viewer wants an answer
	acked   int    // bytes
	window  int    // bytes, with the first message
}

// inspector checks the messages of one viewer, in order.
type inspector struct{ greeted bool }

// inspect checks one message. Sizes are read and written anew, within bounds; everything that a terminal does not need to
// know is dropped: unknown messages, a second first message, and PAUSE and RESUME. ok is false for a message
// that no viewer of ours sends; the message it gives may share p's bytes.
func (i *inspector) inspect(p []byte) (in incoming, ok bool) {
	if len(p) == 0 {
		return in, true
	}
	if p[0] == wire.TTYHello {
		return i.hello(p)
	}
	if !i.greeted {
		return in, false
	}
	switch p[0] {
	case wire.TTYInput:
		in.message, in.typed = p, !isReport(p[1:])
	case wire.TTYResize:
		var z wire.TTYSize
		if len(p) > maxHello || json.Unmarshal(p[1:], &z) != nil {
			return in, false
		}
		in.message = append([]byte{wire.TTYResize}, encode(z, "")...)
	case wire.TTYAck:
		n, err := strconv.Atoi(string(p[1:min(len(p), 12)]))
		if err != nil || n < 0 {
			return in, false
		}
		in.acked = n
	case viewerWatched:
		in.watched = true
	case ping:
		in.ping = true
	}
	return in, true
}

func (i *inspector) hello(p []byte) (in incoming, ok bool) {
	var h struct {
		wire.TTYSize
		Window int `json:"window"`
	}
	if len(p) > maxHello || json.Unmarshal(p, &h) != nil {
		return in, false
	}
	if i.greeted {
		return in, true
	}
	i.greeted = true
	in.message = encode(h.TTYSize, `"AuthToken":"",`)
	if h.Window > 0 {
		in.window = min(max(h.Window, minWindow), maxWindow)
	}
	return in, true
}

// encode writes a size within bounds.
func encode(z wire.TTYSize, before string) []byte {
	z = z.Within()
	out := append([]byte("{"), before...)
	out = strconv.AppendInt(append(out, `"columns":`...), int64(z.Columns), 10)
	out = strconv.AppendInt(append(out, `,"rows":`...), int64(z.Rows), 10)
	return append(out, '}')
}

// notice checks a title or preferences, which are hostile input to the page. ok is false for one to drop.
func notice(kind byte, p []byte) (clean []byte, ok bool) {
	switch kind {
	case wire.TTYTitle:
		return []byte(text.OneLine(string(p), maxTitle)), true
	case wire.TTYPrefs:
		var object map[string]json.RawMessage
		return p, len(p) <= maxPrefs && json.Unmarshal(p, &object) == nil && object != nil
	}
	return nil, false
}
