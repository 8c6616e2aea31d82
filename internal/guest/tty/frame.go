package tty

import (
	"encoding/json"
	"fmt"
)

// The message types of ttyd's protocol: the first byte of every message.
const (
	msgInput  = '0' // viewer: typed bytes
	msgResize = '1' // viewer: {"columns":C,"rows":R}
	msgHello  = '{' // viewer: the first message, JSON as a whole
	msgAck    = '4' // viewer, not ttyd's own: so many bytes of output are on the screen, a decimal number
	msgOutput = '0' // server: bytes of the terminal
	msgTitle  = '1' // server: text
	msgPrefs  = '2' // server: JSON object
)

// maxMessage bounds a message from a viewer.
const maxMessage = 1 << 20

// maxSide bounds columns and rows.
const maxSide = 1000

// size is a terminal's size in characters.
type size struct {
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
}

// hello is a viewer's first message.
type hello struct {
	size
	Window int `json:"window"` // how many bytes of output may be unacknowledged; 0 for any number
}

func readSize(p []byte) (size, error) {
	var s size
	if err := json.Unmarshal(p, &s); err != nil {
		return size{}, fmt.Errorf("read size: %w", err)
	}
	return s.within(), nil
}

func readHello(p []byte) (hello, error) {
	var h hello
	if err := json.Unmarshal(p, &h); err != nil {
		return hello{}, fmt.Errorf("read first message: %w", err)
	}
	h.size = h.within()
	if h.Window > 0 {
		h.Window = max(h.Window, outputMessage)
	}
	return h, nil
}

// within is the size brought into bounds; a viewer that does not know its size gets the traditional one.
func (s size) within() size {
	if s.Columns <= 0 {
		s.Columns = 80
	}
	if s.Rows <= 0 {
		s.Rows = 24
	}
	return size{Columns: min(s.Columns, maxSide), Rows: min(s.Rows, maxSide)}
}
