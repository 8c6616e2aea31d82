package web

import (
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/wire"
)

// Entries are written by hand: a page of a folder has ten thousand of them, of which each says its path again, and a name or target
// that is no UTF-8 takes six times its bytes. So the answer is never held as a whole.

// elements writes a body of JSON that is mostly a list: what comes before, n elements, what comes after.
func elements(before []byte, n int, each func(b []byte, i int) []byte, after []byte) pieces {
	return func(w io.Writer) error {
		b := append(make([]byte, 0, bodyPiece+8<<10), before...)
		for i := range n {
			if i > 0 {
				b = append(b, ',')
			}
			if b = each(b, i); len(b) < bodyPiece {
				continue
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
		_, err := w.Write(append(append(b, after...), '\n'))
		return err
	}
}

// listingBody is a page of a folder as an answer.
func listingBody(l wire.Listing) pieces {
	below := strings.TrimSuffix(l.Path, "/") + "/"
	before := append(appendBytes([]byte{'{'}, "path", l.Path), `"entries":[`...)
	after := []byte{']'}
	if l.Next != "" {
		after = appendText(append(after, `,"next":`...), l.Next)
	}
	var at []byte
	return elements(before, len(l.Entries), func(b []byte, i int) []byte {
		at = append(append(at[:0], below...), l.Entries[i].Name...)
		return appendEntry(b, at, &l.Entries[i])
	}, append(after, '}'))
}

// trashBody is the list of the trash as an answer.
func trashBody(list []wire.Trashed) pieces {
	return elements([]byte(`{"trashed":[`), len(list), func(b []byte, i int) []byte {
		t := &list[i]
		b = appendBytes(append(b, '{'), "id", t.ID)
		b = appendBytes(b, "path", t.Path)
		b = t.Deleted.UTC().AppendFormat(append(b, `"deleted":"`...), time.RFC3339Nano)
		b = appendText(append(b, `","type":`...), typeName(t.Type))
		return append(strconv.AppendInt(append(b, `,"size":`...), t.Size, 10), '}')
	}, []byte("]}"))
}

// entryBody is one entry as a whole answer.
func entryBody(e files.Entry) json.RawMessage {
	return appendEntry(make([]byte, 0, 512), []byte(e.Path), &e.Entry)
}

// appendEntry writes something that is at path.
func appendEntry(b, at []byte, e *wire.Entry) []byte {
	b = append(b, '{')
	b = appendBytes(b, "name", e.Name)
	b = appendBytes(b, "path", at)
	b = appendText(append(b, `"type":`...), typeName(e.Type))
	b = strconv.AppendInt(append(b, `,"size":`...), e.Size, 10)
	b = e.Modified.UTC().AppendFormat(append(b, `,"modified":"`...), time.RFC3339Nano)
	b = append(appendMode(append(b, `","mode":"`...), e.Mode), '"')
	b = appendText(append(b, `,"owner":`...), e.Owner)
	b = appendText(append(b, `,"group":`...), e.Group)
	if e.Type == wire.TypeLink {
		b = appendBytes(append(b, ','), "target", e.Target)
		b = appendText(append(b, `"target_type":`...), typeName(e.TargetType))
	}
	if e.ETag != "" {
		b = appendText(append(b, `,"etag":`...), e.ETag)
	}
	return append(b, '}')
}

// typeName is a type as the API names it: a file of any other type is of no use through it. "" is a link's that
// leads nowhere.
func typeName(t wire.FileType) string {
	switch t {
	case wire.TypeFile, wire.TypeFolder, wire.TypeLink, "":
		return string(t)
	}
	return "other"
}

func appendMode(b []byte, mode uint32) []byte {
	return append(b, '0'+byte(mode>>9&7), '0'+byte(mode>>6&7), '0'+byte(mode>>3&7), '0'+byte(mode&7))
}

// appendBytes writes a member whose value is bytes, and a comma. When they are no UTF-8, name is what can be shown of them, and
// name_encoded has them.
func appendBytes[T letters](b []byte, name string, value T) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	if out, ok := appendPlain(b, value); ok {
		return append(out, ',')
	}
	shown, encoded := showBytes(string(value))
	if b = appendText(b, shown); encoded != "" {
		b = append(append(append(b, `,"`...), name...), `_encoded":`...)
		b = appendText(b, encoded)
	}
	return append(b, ',')
}

// encodeBytes percent-encodes bytes, but for slashes: it can stand in a query as it is.
func encodeBytes(value string) string {
	return strings.ReplaceAll(url.PathEscape(value), "%2F", "/")
}

// letters are what JSON has between quotes.
type letters interface{ ~string | ~[]byte }

// appendText writes valid UTF-8 as JSON.
func appendText(b []byte, s string) []byte {
	if out, ok := appendPlain(b, s); ok {
		return out
	}
	text, err := json.Marshal(s)
	if err != nil { // a text always can be
		return append(b, `""`...)
	}
	return append(b, text...)
}

// appendPlain is appendText for letters of ASCII that are the same in a page, too; others it leaves alone.
func appendPlain[T letters](b []byte, s T) (out []byte, ok bool) {
	out = append(b, '"')
	from := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~' || c == '<' || c == '>' || c == '&':
			return b, false
		case c == '"' || c == '\\':
			out = append(append(out, s[from:i]...), '\\')
			from = i
		}
	}
	return append(append(out, s[from:]...), '"'), true
}

// pathInput is a path in a JSON body: as text, or percent-encoded where it is no UTF-8.
func pathInput(field, text, encoded string) (string, error) {
	if encoded == "" {
		return text, nil
	}
	if text != "" {
		return "", fault.Field(field, "Give %s or %s_encoded, not both.", field, field)
	}
	value, err := url.PathUnescape(encoded)
	if err != nil {
		return "", fault.Field(field+"_encoded", "%s_encoded is not percent-encoded.", field)
	}
	return value, nil
}

// pathInputs is pathInput for a list: the encoded ones follow the others.
func pathInputs(field string, texts, encoded []string) ([]string, error) {
	list := texts
	for _, e := range encoded {
		value, err := pathInput(field, "", e)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// trashedShape is something in the trash, as a problem tells of it.
type trashedShape struct {
	ID          string    `json:"id"`
	IDEncoded   string    `json:"id_encoded,omitempty"`
	Path        string    `json:"path"`
	PathEncoded string    `json:"path_encoded,omitempty"`
	Deleted     time.Time `json:"deleted"`
	Type        string    `json:"type"`
	Size        int64     `json:"size"`
}

func newTrashedShapes(list []wire.Trashed) []trashedShape {
	out := make([]trashedShape, 0, len(list))
	for _, t := range list {
		shape := trashedShape{Deleted: t.Deleted.UTC(), Type: typeName(t.Type), Size: t.Size}
		shape.ID, shape.IDEncoded = showBytes(t.ID)
		shape.Path, shape.PathEncoded = showBytes(t.Path)
		out = append(out, shape)
	}
	return out
}

// showBytes gives bytes as text, and percent-encoded where they are none.
func showBytes(value string) (text, encoded string) {
	if utf8.ValidString(value) {
		return value, ""
	}
	return strings.ToValidUTF8(value, "\ufffd"), encodeBytes(value)
}
