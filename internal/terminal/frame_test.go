package terminal

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"sandboxd/internal/wire"
)

// FuzzFromViewer: nothing that a viewer sends reaches a terminal except a first message, input and sizes within bounds.
func FuzzFromViewer(f *testing.F) {
	for _, m := range []string{"", "0ls", "1{}", "2", "3", `{"columns":-1,"rows":1e9}`, `{"window":99999999999}`, "4-1", "5", "5x", "6", "{", "1[", "\xff"} {
		f.Add([]byte(m), true)
		f.Add([]byte(m), false)
	}
	f.Fuzz(func(t *testing.T, m []byte, greeted bool) {
		i := inspector{greeted: greeted}
		in, ok := i.inspect(bytes.Clone(m))
		if !ok && in.message != nil || in.acked < 0 || in.window < 0 || in.window > maxWindow || in.window > 0 && in.window < minWindow {
			t.Fatalf("%+v, %v", in, ok)
		}
		if in.watched && (!greeted || m[0] != viewerWatched) || in.typed && (in.message == nil || in.message[0] != wire.TTYInput) {
			t.Fatalf("%+v of %q", in, m)
		}
		if in.message == nil {
			return
		}
		switch in.message[0] {
		case wire.TTYInput:
			if !greeted || !bytes.Equal(in.message, m) {
				t.Fatalf("input %q of %q", in.message, m)
			}
		case wire.TTYResize:
			within(t, in.message[1:])
		case wire.TTYHello:
			if greeted {
				t.Fatal("a second first message passes")
			}
			within(t, in.message)
		default:
			t.Fatalf("%q passes", in.message)
		}
	})
}

func within(t *testing.T, p []byte) {
	t.Helper()
	var z struct {
		AuthToken     string
		Columns, Rows int
	}
	d := json.NewDecoder(bytes.NewReader(p))
	d.DisallowUnknownFields()
	if err := d.Decode(&z); err != nil || z.AuthToken != "" || z.Columns < 1 || z.Columns > wire.MaxTTYSide || z.Rows < 1 || z.Rows > wire.MaxTTYSide {
		t.Fatalf("size %s: %v", p, err)
	}
}

// FuzzFromTerminal: titles are safe to show, preferences are an object, and nothing else passes as a notice.
func FuzzFromTerminal(f *testing.F) {
	f.Add([]byte("1title\x1b]0;x\x07\u202e"))
	f.Add([]byte(`2{"a":1}`))
	f.Add([]byte("2null"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) == 0 {
			return
		}
		clean, ok := notice(m[0], m[1:])
		if !ok {
			return
		}
		switch m[0] {
		case wire.TTYTitle:
			if !utf8.Valid(clean) || len(clean) > maxTitle || bytes.ContainsAny(clean, "\x00\x07\x1b\x7f\r\n") {
				t.Fatalf("title %q", clean)
			}
		case wire.TTYPrefs:
			if len(clean) > maxPrefs || !json.Valid(clean) || bytes.TrimSpace(clean)[0] != '{' {
				t.Fatalf("preferences %q", clean)
			}
		default:
			t.Fatalf("%q passes", m)
		}
	})
}
