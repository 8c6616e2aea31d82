package acp

import (
	"bytes"
	"io"
)

// chunk is how much is read at once.
const chunk = 64 << 10

// Lines reads messages from what an agent writes. Not safe for concurrent use.
type Lines struct {
	from io.Reader
	rest []byte // of a line that is not complete
	room []byte
}

// NewLines makes Lines.
func NewLines(from io.Reader) *Lines { return &Lines{from: from, room: make([]byte, chunk)} }

// Next blocks for the next complete lines, as many as came at once, and says how many bytes they take with their ends. What an agent
// writes after its last line break is no message. An error follows the lines before it: that of the reader, or that a line is too long.
func (l *Lines) Next() (lines [][]byte, size int, err error) {
	for len(lines) == 0 {
		n, err := l.from.Read(l.room)
		lines, size = l.cut(l.room[:n])
		if len(l.rest) > MaxLine {
			return lines, size, broken("a message is longer than %d MiB", MaxLine>>20)
		}
		if err != nil {
			return lines, size, err
		}
	}
	return lines, size, nil
}

// cut takes what was read in, and gives the lines that are complete. It looks for their ends in that alone: an agent that writes a long line
// in small pieces costs no more than another.
func (l *Lines) cut(fresh []byte) (lines [][]byte, n int) {
	end := bytes.LastIndexByte(fresh, '\n') + 1
	whole := append(l.rest, fresh[:end]...)
	if end == 0 {
		l.rest = append(whole, fresh...)
		return nil, 0
	}
	l.rest = bytes.Clone(fresh[end:])
	for line := range bytes.Lines(whole) {
		lines = append(lines, line)
	}
	return lines, len(whole)
}
