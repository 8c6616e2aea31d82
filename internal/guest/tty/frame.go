package tty

import (
	"encoding/json"
	"fmt"

	"sandboxd/internal/wire"
)

// maxMessage bounds a message from a viewer.
const maxMessage = 1 << 20

// hello is a viewer's first message.
type hello struct {
	wire.TTYSize
	Window int `json:"window"` // how many bytes of output may be unacknowledged; 0 for any number
}

func readSize(p []byte) (wire.TTYSize, error) {
	var s wire.TTYSize
	if err := json.Unmarshal(p, &s); err != nil {
		return wire.TTYSize{}, fmt.Errorf("read size: %w", err)
	}
	return s.Within(), nil
}

func readHello(p []byte) (hello, error) {
	var h hello
	if err := json.Unmarshal(p, &h); err != nil {
		return hello{}, fmt.Errorf("read first message: %w", err)
	}
	h.TTYSize = h.Within()
	if h.Window > 0 {
		h.Window = max(h.Window, outputMessage)
	}
	return h, nil
}
