package wire

import "time"

// UnattendedHeader with the value 1 tells the gateway that a request is not to be counted: a probe's, or one that a page
// makes by itself.
const UnattendedHeader = "X-Sandboxd-Unattended"

// maxDirect bounds the requests that a gateway can have in flight.
const maxDirect = 1 << 16

// Activity is the reply to GET PathActivity: what goes on in the sandbox that sandboxd does not see by itself. A guest
// that is older than this knows no such path.
type Activity struct {
	Direct DirectActivity `json:"direct"`
}

// DirectActivity is what went through the gateway, past sandboxd.
type DirectActivity struct {
	InFlight int           `json:"in_flight"` // requests that are not fully answered
	Waiting  int           `json:"waiting"`   // those of them that the program has not taken whole or not begun to answer; 0 from older guests
	Idle     time.Duration `json:"idle"`      // nanoseconds since a byte last flowed, either way; negative: none ever did
}

// Check says whether a is within its bounds.
func (a *Activity) Check() error {
	if a.Direct.InFlight < 0 || a.Direct.InFlight > maxDirect {
		return badField("in_flight")
	}
	if a.Direct.Waiting < 0 || a.Direct.Waiting > a.Direct.InFlight {
		return badField("waiting")
	}
	a.Direct.Idle = max(a.Direct.Idle, -1)
	return nil
}
