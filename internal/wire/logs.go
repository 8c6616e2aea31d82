package wire

import (
	"encoding/binary"
	"time"
)

// Bounds of a LogLine.
const (
	MaxLogText    = 16 << 10 // bytes of its text
	MaxLogService = 63       // bytes of its service's name
	logHead       = 8 + 1 + 2
)

// LogLine is a line that a service has written, or that the guest says of one.
type LogLine struct {
	Time    time.Time // when it was written; later than that of the line before. Microseconds.
	Service string    // "" for the guest's own
	Text    []byte    // as it was written, without its end
}

// Size is how many bytes AppendLogLine appends.
func (l LogLine) Size() int {
	return logHead + min(len(l.Service), MaxLogService) + min(len(l.Text), MaxLogText)
}

// AppendLogLine appends a line to the payload of a FrameLines. What is too long is cut.
func AppendLogLine(b []byte, l LogLine) []byte {
	service, text := l.Service[:min(len(l.Service), MaxLogService)], l.Text[:min(len(l.Text), MaxLogText)]
	b = binary.BigEndian.AppendUint64(b, uint64(l.Time.UnixMicro()))
	b = append(b, byte(len(service)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	b = append(b, service...)
	return append(b, text...)
}

// NextLogLine takes the first line off a payload. The text is part of b. ErrFrame says that there is none.
func NextLogLine(b []byte) (l LogLine, rest []byte, err error) {
	if len(b) < logHead {
		return l, nil, ErrFrame
	}
	at, service, text := int64(binary.BigEndian.Uint64(b)), int(b[8]), int(binary.BigEndian.Uint16(b[9:]))
	end := logHead + service + text
	if service > MaxLogService || text > MaxLogText || len(b) < end {
		return l, nil, ErrFrame
	}
	l = LogLine{Time: time.UnixMicro(at), Service: string(b[logHead : logHead+service]), Text: b[logHead+service : end : end]}
	if l.Service != "" && checkLabel("service", l.Service, MaxLogService) != nil {
		return l, nil, ErrFrame
	}
	return l, b[end:], nil
}
