package wire

import (
	"encoding/binary"

	"sandboxd/internal/text"
)

var typeCodes = [...]FileType{"", TypeFile, TypeFolder, TypeLink, TypeFIFO, TypeSocket, TypeDevice}

func appendType(b []byte, t FileType) []byte {
	for code, known := range typeCodes {
		if known == t {
			return append(b, byte(code))
		}
	}
	return append(b, 0)
}

func (f *fields) fileType() FileType { return typeCodes[f.uint(uint64(len(typeCodes)-1))] }

// AppendEntry appends the payload of a RecordEntry.
func AppendEntry(b []byte, e *Entry) []byte {
	b = appendType(b, e.Type)
	b = binary.AppendUvarint(b, uint64(e.Mode))
	b = binary.AppendUvarint(b, uint64(max(e.Size, 0)))
	b = appendTime(b, e.Modified)
	b = binary.AppendUvarint(b, uint64(e.UID))
	b = binary.AppendUvarint(b, uint64(e.GID))
	b = appendText(b, e.Name)
	b = appendText(b, e.Owner)
	b = appendText(b, e.Group)
	b = appendText(b, e.ETag)
	if e.Type == TypeLink {
		b = appendType(appendText(b, e.Target), e.TargetType)
	}
	return b
}

// DecodeEntry reads the payload of a RecordEntry and checks it.
func DecodeEntry(payload []byte) (Entry, error) {
	f := fieldsOf(payload)
	e := f.entry()
	if err := f.end("entry"); err != nil {
		return Entry{}, err
	}
	return e, e.Check()
}

func (f *fields) entry() Entry {
	e := Entry{Type: f.fileType(), Mode: uint32(f.uint(MaxFileMode)), Size: int64(f.uint(1<<63 - 1)), Modified: f.time(),
		UID: uint32(f.uint(1<<32 - 1)), GID: uint32(f.uint(1<<32 - 1)), Name: f.text(MaxFileName),
		Owner: f.text(maxName), Group: f.text(maxName), ETag: f.text(maxETag)}
	if e.Type == TypeLink {
		e.Target, e.TargetType = f.text(MaxPath), f.fileType()
	}
	return e
}

// AppendWritten appends the payload of the RecordEnd of FilesWrite.
func AppendWritten(b []byte, w *Written) []byte {
	b = appendFlag(b, w.Created)
	b = binary.AppendUvarint(b, uint64(max(w.Offset, 0)))
	whole := w.Entry.Name != ""
	if b = appendFlag(b, whole); whole {
		b = AppendEntry(b, &w.Entry)
	}
	return b
}

// DecodeWritten reads the payload of the RecordEnd of FilesWrite and checks it.
func DecodeWritten(payload []byte) (Written, error) {
	f := fieldsOf(payload)
	w := Written{Created: f.flag(), Offset: int64(f.uint(1<<63 - 1))}
	whole := f.flag()
	if whole {
		w.Entry = f.entry()
	}
	if err := f.end("written"); err != nil || !whole {
		return w, err
	}
	return w, w.Entry.Check()
}

// AppendTrashed appends the payload of a RecordTrashed.
func AppendTrashed(b []byte, t *Trashed) []byte {
	b = appendType(appendText(appendText(b, t.ID), t.Path), t.Type)
	return binary.AppendUvarint(appendTime(b, t.Deleted), uint64(max(t.Size, 0)))
}

// DecodeTrashed reads the payload of a RecordTrashed and checks it.
func DecodeTrashed(payload []byte) (Trashed, error) {
	f := fieldsOf(payload)
	t := Trashed{ID: f.text(MaxFileName), Path: f.text(MaxPath), Type: f.fileType(), Deleted: f.time(),
		Size: int64(f.uint(1<<63 - 1))}
	if err := f.end("trashed"); err != nil {
		return Trashed{}, err
	}
	return t, t.Check()
}

// AppendFound appends the payload of a RecordFound.
func AppendFound(b []byte, x *Found) []byte {
	b = appendType(appendText(b, x.Path), x.Type)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.Line)), uint64(x.Column))
	b = appendText(b, x.Text)
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.Start)), uint64(x.End))
}

// DecodeFound reads the payload of a RecordFound and checks it.
func DecodeFound(payload []byte) (Found, error) {
	f := fieldsOf(payload)
	x := Found{Path: f.text(MaxPath), Type: f.fileType(), Line: int(f.uint(1<<62 - 1)), Column: int(f.uint(1<<62 - 1)),
		Text: f.text(MaxFoundText), Start: int(f.uint(MaxFoundText)), End: int(f.uint(MaxFoundText))}
	if err := f.end("found"); err != nil {
		return Found{}, err
	}
	return x, x.Check()
}

// AppendProblem appends the payload of a RecordProblem.
func AppendProblem(b []byte, p *Problem) []byte {
	return appendText(appendText(b, p.Code), text.OneLine(p.Message, 500))
}

// DecodeProblem reads the payload of a RecordProblem and checks it.
func DecodeProblem(payload []byte) (*Problem, error) {
	f := fieldsOf(payload)
	p := &Problem{Code: f.text(maxName), Message: f.text(500)}
	if err := f.end("problem"); err != nil {
		return nil, err
	}
	return p, p.Check()
}

// AppendNumbers appends the payload of a RecordEnd that consists of numbers.
func AppendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// DecodeNumbers reads the payload of a RecordEnd that consists of numbers, none of them negative, into them.
func DecodeNumbers(payload []byte, into ...*int64) error {
	f := fieldsOf(payload)
	for _, n := range into {
		if *n = f.int(); *n < 0 {
			f.fail()
		}
	}
	return f.end("numbers")
}

// AppendListed appends the payload of the RecordEnd of FilesList.
func AppendListed(b []byte, l *Listing) []byte { return appendText(appendText(b, l.Path), l.Next) }

// DecodeListed reads the payload of the RecordEnd of FilesList into l and checks it.
func DecodeListed(payload []byte, l *Listing) error {
	f := fieldsOf(payload)
	l.Path, l.Next = f.text(MaxPath), f.text(MaxCursor)
	if f.bad || l.Path == "" || l.Path[0] != '/' || checkCursor(l.Next) != nil {
		return badField("listing")
	}
	return checkText("listing path", l.Path, MaxPath)
}

func checkCursor(s string) error {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return badField("cursor")
		}
	}
	return nil
}
