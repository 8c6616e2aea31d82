package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// FuzzMessages: whatever is decoded is within its bounds, can be encoded again, and then means the same.
func FuzzMessages(f *testing.F) {
	for _, m := range samples() {
		b, _ := json.Marshal(m)
		f.Add(b)
	}
	f.Add([]byte(`[{"name":"a","created":"9999-12-31T23:59:59Z","title":"\u0000\ud800"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range samples() {
			m = fresh(m)
			if Decode(bytes.NewReader(b), 64<<10, m) != nil {
				continue
			}
			again, err := Encode(1<<20, m)
			if err != nil {
				t.Fatalf("%T %+v was let in but not out: %v", m, m, err)
			}
			back := fresh(m)
			if err := Decode(bytes.NewReader(again), 1<<20, back); err != nil {
				t.Fatalf("%T does not come back: %v", m, err)
			}
		}
	})
}

// FuzzFrames: the reader never holds more than a type allows, and what it reads can be written again.
func FuzzFrames(f *testing.F) {
	f.Add(AppendExit(AppendFrame(AppendFrame(nil, FrameStdin, []byte("in")), FrameStdout, []byte("out")), 3, 0))
	f.Add([]byte{byte(FrameStart), 0x10, 0, 0})
	f.Add([]byte{byte(FrameData), 0xff, 0xff, 0xff, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewFrameReader(bytes.NewReader(b))
		var written []byte
		for {
			kind, payload, err := r.Next()
			if err != nil {
				if err != io.EOF && !errors.Is(err, ErrFrame) {
					t.Fatalf("unexpected error %v", err)
				}
				break
			}
			if len(payload) > kind.limit() {
				t.Fatalf("type %d with %d bytes", kind, len(payload))
			}
			if x, err := DecodeExec(kind, payload); err == nil && (x.Code < 0 || x.Code > 255) {
				t.Fatalf("exit code %d", x.Code)
			}
			written = AppendFrame(written, kind, payload)
		}
		if !bytes.HasPrefix(b, written) {
			t.Fatal("what was read is not what was there")
		}
	})
}
