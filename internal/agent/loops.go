package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// How often the same call may have the same result in a turn.
const (
	tellAt = 3  // the model is told
	endAt  = 6  // the turn ends
	polled = 10 // times more often for a tool that is used by repeating it
)

// loops counts calls that brought nothing new.
type loops map[[sha256.Size]byte]int

// count adds a call with its result and gives how often that has happened. A call that changes something, and is new itself, makes all
// others worth repeating.
func (l loops) count(call Call, result *ToolResult, changes bool) int {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(call.Name), call.Arguments, []byte(result.Status), []byte(result.Text)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}
	key := [sha256.Size]byte(h.Sum(nil))
	if changes && result.Status == OK && l[key] == 0 {
		clear(l)
	}
	l[key]++
	return l[key]
}

// repeated tells the model that it runs in a circle, and ends the turn when it does not listen.
func (a *acting) repeated(tool Tool, call Call, result *ToolResult) {
	if result.Status == Stopped {
		return
	}
	times := 1
	if tool.Repeats {
		times = polled
	}
	a.mu.Lock()
	often := a.loops.count(call, result, tool.Changes)
	a.mu.Unlock()
	if often >= tellAt*times {
		result.Text = joinLines(result.Text, fmt.Sprintf("(You have made this call %d times with the same arguments and the same result. Do something else, or say what keeps you from it.)", often))
	}
	if often >= endAt*times && !a.ended() {
		a.end(Looped, nil)
		a.notice("The model makes the same call of %s again and again. The turn was ended.", call.Name)
	}
}
