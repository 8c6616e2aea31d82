package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// RecordKind says what a record holds.
type RecordKind uint8

// The records of which the reply to a verb of PathFiles consists: a byte of kind, the payload's length as a uvarint, and
// the payload.
const (
	RecordKeepAlive RecordKind = 'b' // nothing: it takes longer
	RecordEntry     RecordKind = 'e' // Entry
	RecordTrashed   RecordKind = 't' // Trashed
	RecordFound     RecordKind = 'f' // Found
	RecordFolder    RecordKind = 'c' // the path of a folder that has changed
	RecordProblem   RecordKind = 'p' // code and message; the last one
	RecordEnd       RecordKind = 'z' // the summary; the last one, or bare bytes follow
)

// maxRecord bounds a record's payload: three paths fit.
const maxRecord = 16 << 10

// maxKeepAlives bounds the keep-alives of one reply.
const maxKeepAlives = 1 << 17

// ErrRecord means that the bytes are no record, or not the expected one.
var ErrRecord = errors.New("malformed record")

// AppendRecord appends a record.
func AppendRecord(b []byte, k RecordKind, payload []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(k)), uint64(len(payload)))
	return append(b, payload...)
}

// RecordReader reads records from a stream and holds one at a time. Not safe for concurrent use.
type RecordReader struct {
	r          *bufio.Reader
	buf        []byte
	keepAlives int
}

// NewRecordReader reads from r, ahead.
func NewRecordReader(r io.Reader) *RecordReader {
	return &RecordReader{r: bufio.NewReaderSize(r, 4<<10)}
}

// Next reads a record, past keep-alives, of which there may be enough for days. The payload is valid until the next call. A stream
// that ends before its last record is cut off, which is an error.
func (r *RecordReader) Next() (RecordKind, []byte, error) {
	for ; r.keepAlives < maxKeepAlives; r.keepAlives++ {
		k, payload, err := r.one()
		if err != nil || k != RecordKeepAlive {
			return k, payload, err
		}
	}
	return 0, nil, fmt.Errorf("%w: nothing but keep-alives", ErrRecord)
}

func (r *RecordReader) one() (RecordKind, []byte, error) {
	k, err := r.r.ReadByte()
	if err != nil {
		return 0, nil, cutOff(err)
	}
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return 0, nil, cutOff(err)
	}
	if n > maxRecord {
		return 0, nil, fmt.Errorf("%w: kind %d, %d bytes", ErrRecord, k, n)
	}
	if uint64(cap(r.buf)) < n {
		r.buf = make([]byte, n, max(n, 512))
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return 0, nil, cutOff(err)
	}
	return RecordKind(k), r.buf, nil
}

// Rest gives what follows the records that were read.
func (r *RecordReader) Rest() io.Reader { return r.r }

func cutOff(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut off", ErrRecord)
	}
	return err
}

// fields reads the fields of a payload. After one that is not there or out of bounds, all are zero and bad is set.
type fields struct {
	b   []byte
	s   string // the same once more, from which texts are cut, so that they are one piece of memory
	bad bool
}

func fieldsOf(payload []byte) fields { return fields{b: payload, s: string(payload)} }

func (f *fields) fail() {
	f.b, f.s, f.bad = nil, "", true
}

func (f *fields) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 || v > limit {
		f.fail()
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) int() int64 {
	v, n := binary.Varint(f.b)
	if n <= 0 {
		f.fail()
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) text(limit int) string {
	n := f.uint(uint64(limit))
	if n > uint64(len(f.b)) {
		f.fail()
		return ""
	}
	at := len(f.s) - len(f.b)
	f.b = f.b[n:]
	return f.s[at : at+int(n)]
}

func (f *fields) flag() bool { return f.uint(1) == 1 }

// maxYear keeps times to those that can be written as text.
const (
	minUnix = -62135596800 // year 1
	maxUnix = 253402300799 // year 9999
)

func (f *fields) time() time.Time {
	sec, nsec := f.int(), f.uint(999_999_999)
	if f.bad {
		return time.Time{}
	}
	return time.Unix(min(max(sec, minUnix), maxUnix), int64(nsec)).UTC()
}

// end gives the error of the payload as a whole; newer ends may add more after the known fields.
func (f *fields) end(what string) error {
	if f.bad {
		return fmt.Errorf("%w: %s", ErrRecord, what)
	}
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

func appendFlag(b []byte, on bool) []byte {
	if on {
		return append(b, 1)
	}
	return append(b, 0)
}
