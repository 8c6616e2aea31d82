package wire

// The message types of ttyd's protocol, which viewers, sandboxd and guest speak: the first byte of every message.
const (
	TTYInput  = '0' // viewer: typed bytes
	TTYResize = '1' // viewer: {"columns":C,"rows":R}
	TTYHello  = '{' // viewer: the first message, JSON as a whole
	TTYAck    = '4' // viewer, not ttyd's own, never sent to it: so many bytes of output are on the screen, a decimal number
	TTYOutput = '0' // terminal: bytes
	TTYTitle  = '1' // terminal: text
	TTYPrefs  = '2' // terminal: JSON object
)

// MaxTTYSide bounds a terminal's columns and rows.
const MaxTTYSide = 1000

// TTYSize is a terminal's size in characters.
type TTYSize struct {
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
}

// Within is the size brought into bounds, 1 to MaxTTYSide; a viewer that does not know its size gets the traditional 80 by
// 24.
func (z TTYSize) Within() TTYSize {
	if z.Columns <= 0 {
		z.Columns = 80
	}
	if z.Rows <= 0 {
		z.Rows = 24
	}
	return TTYSize{Columns: min(z.Columns, MaxTTYSide), Rows: min(z.Rows, MaxTTYSide)}
}
