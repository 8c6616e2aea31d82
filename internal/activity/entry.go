package activity

import "sandboxd/internal/fault"

// Ended gives e with how it ended: by err, or well when that is nil. What a caller may not do, or asks for wrongly, is Refused;
// what sandboxd, the engine or the sandbox could not do has Failed.
func (e Entry) Ended(err error) Entry {
	if err == nil {
		e.Outcome, e.Problem = Done, ""
		return e
	}
	e.Outcome, e.Problem = Refused, fault.Message(err)
	switch fault.KindOf(err) {
	case fault.Internal, fault.Unavailable, fault.Timeout:
		e.Outcome = Failed
	}
	return e
}
