package gatewaytest

import (
	"encoding/json"
	"fmt"
	"iter"
)

// sender sends frames until the client has left.
type sender struct {
	yield func(frame) bool
	over  bool
}

// send reports whether there is more to send.
func (s *sender) send(data []byte, piece bool) bool {
	s.over = s.over || !s.yield(frame{data, piece})
	return !s.over
}

// event is one of a stream of events, with its name.
func event(name string, members any) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encode(members))
}

// data is one of a stream of events, without a name.
func data(members any) []byte { return fmt.Appendf(nil, "data: %s\n\n", encode(members)) }

// words are the words of an answer; of an endless one there are always more.
func (a answer) words() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, word := range pieces(a.text) {
			if !yield(word) {
				return
			}
		}
		for a.endless && yield("more ") {
		}
	}
}

// thought is how many of the tokens that came out were thinking.
func (a answer) thought() int64 {
	if a.usage == nil || a.thinking == "" {
		return 0
	}
	return a.usage.Output / 2
}

// value is what the arguments of a call are where a protocol has them as a value, which cannot be broken.
func (c called) value() any {
	if json.Valid([]byte(c.args)) {
		return json.RawMessage(c.args)
	}
	return object{"raw": c.args}
}
