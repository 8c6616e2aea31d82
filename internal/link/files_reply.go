package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// fileReply is the reply to a verb of wire.PathFiles.
type fileReply struct {
	*stream
	records *wire.RecordReader
}

// briefReplies is how many times as long as the head of a reply a whole one may take, of a verb that is not lasting.
const briefReplies = 4

// lasting are the verbs without a time limit, as long as the guest sends signs of life.
var lasting = map[string]bool{wire.FilesRead: true, wire.FilesWrite: true, wire.FilesMove: true, wire.FilesCopy: true,
	wire.FilesDelete: true, wire.FilesEmpty: true, wire.FilesPack: true, wire.FilesUnpack: true, wire.FilesSearch: true,
	wire.FilesWatch: true}

// askFiles asks for a verb, with parameters in the query or in the body.
func (s fileClient) askFiles(ctx context.Context, verb string, query url.Values, body io.Reader) (*fileReply, error) {
	target := "http://guest" + wire.PathFiles + verb
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	if len(target) > wire.MaxHeader-1024 {
		return nil, fault.New(fault.Invalid, "That path is too long.")
	}
	req, err := http.NewRequest(http.MethodPost, target, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r, err := s.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	from, err := s.newStream(ctx, r)
	if err != nil {
		r.close()
		return nil, err
	}
	if !lasting[verb] {
		from.until = time.Now().Add(briefReplies * s.pace.reply)
	}
	return &fileReply{from, wire.NewRecordReader(from)}, nil
}

// formOf is the body of a request with many parameters.
func formOf(v url.Values) (io.Reader, error) {
	for _, list := range v {
		if len(list) > wire.MaxFilePaths {
			return nil, fault.New(fault.Invalid, "That is too much at once: %d at most.", wire.MaxFilePaths)
		}
	}
	b := v.Encode()
	if len(b) > wire.MaxFileForm {
		return nil, fault.New(fault.Invalid, "That is too much at once.")
	}
	return bytes.NewReader([]byte(b)), nil
}

// doFiles is a verb that answers with numbers alone.
func (s fileClient) doFiles(ctx context.Context, verb string, query url.Values, into ...*int64) error {
	return s.do(ctx, verb, query, nil, into...)
}

// doForm is a verb with its parameters in the body that answers nothing.
func (s fileClient) doForm(ctx context.Context, verb string, v url.Values) error {
	form, err := formOf(v)
	if err != nil {
		return err
	}
	return s.do(ctx, verb, nil, form)
}

func (s fileClient) do(ctx context.Context, verb string, query url.Values, body io.Reader, into ...*int64) error {
	r, err := s.askFiles(ctx, verb, query, body)
	if err != nil {
		return err
	}
	defer r.Close()
	end, err := r.end()
	if err != nil {
		return err
	}
	return r.wrong(wire.DecodeNumbers(end, into...))
}

func (s fileClient) trashed(ctx context.Context, verb string, v url.Values) ([]wire.Trashed, error) {
	form, err := formOf(v)
	if err != nil {
		return nil, err
	}
	r, err := s.askFiles(ctx, verb, nil, form)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var list []wire.Trashed
	left := maxListed
	if verb == wire.FilesDelete { // which says again what it was asked
		left += wire.MaxFileForm
	}
	_, err = r.each(wire.RecordTrashed, max(wire.MaxTrash, wire.MaxFilePaths), func(payload []byte) error {
		if left -= len(payload); left < 0 {
			return wire.ErrRecord
		}
		t, err := wire.DecodeTrashed(payload)
		list = append(list, t)
		return err
	})
	return list, err
}

// next reads a record; a problem is an error.
func (r *fileReply) next() (wire.RecordKind, []byte, error) {
	kind, payload, err := r.records.Next()
	if err != nil {
		return 0, nil, r.failed(err)
	}
	if kind != wire.RecordProblem {
		return kind, payload, nil
	}
	p, err := wire.DecodeProblem(payload)
	if err != nil {
		return 0, nil, r.failed(err)
	}
	return 0, nil, judgement(p)
}

// end reads the end, where nothing else may come, and gives its payload.
func (r *fileReply) end() ([]byte, error) { return r.each(0, 0, nil) }

// each reads records of a kind, most of them at most unless that is negative, up to the end, whose payload it gives.
func (r *fileReply) each(kind wire.RecordKind, most int, f func(payload []byte) error) ([]byte, error) {
	for n := 0; ; n++ {
		got, payload, err := r.next()
		if err != nil {
			return nil, err
		}
		if got == wire.RecordEnd {
			return payload, nil
		}
		if got != kind || most >= 0 && n >= most {
			return nil, r.failed(wire.ErrRecord)
		}
		var own callerError
		if err := f(payload); errors.As(err, &own) {
			return nil, own.error
		} else if err != nil {
			return nil, r.failed(err)
		}
	}
}

// callerError is an error that is none of the guest's.
type callerError struct{ error }

// told marks an error of the caller's own function.
func told(err error) error {
	if err == nil {
		return nil
	}
	return callerError{err}
}

// entry reads the one entry that there is.
func (r *fileReply) entry() (wire.Entry, error) {
	var e wire.Entry
	n := 0
	_, err := r.each(wire.RecordEntry, 1, func(payload []byte) (err error) {
		n++
		e, err = wire.DecodeEntry(payload)
		return err
	})
	if err == nil && n == 0 {
		err = r.failed(wire.ErrRecord)
	}
	return e, err
}

// content reads the records before a file's content, and the content's length.
func (r *fileReply) content(offset, length int64) (e wire.Entry, size int64, err error) {
	kind, payload, err := r.next()
	if err != nil {
		return e, 0, err
	}
	if kind != wire.RecordEntry {
		return e, 0, r.failed(wire.ErrRecord)
	}
	if e, err = wire.DecodeEntry(payload); err != nil {
		return e, 0, r.failed(err)
	}
	end, err := r.end()
	if err == nil {
		err = r.wrong(wire.DecodeNumbers(end, &size))
	}
	if err == nil && (e.Type != wire.TypeFile || size != wire.PartOf(e.Size, offset, length)) {
		err = r.failed(wire.ErrRecord)
	}
	return e, size, err
}

// wrong is the error of a reply that makes no sense, if there is one.
func (r *fileReply) wrong(err error) error {
	if err == nil {
		return nil
	}
	return r.failed(err)
}

func (r *fileReply) failed(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return r.session.failed(r.ctx, err)
}

// bad is the error of a payload that makes no sense, if there is one.
func (s fileClient) bad(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return s.failed(ctx, err)
}

// content is bare bytes that follow records.
type content struct {
	reply *fileReply
	left  int64 // that were announced; negative when nothing was
	err   error
}

// Read reads. Bytes that are missing or too many are Unavailable.
func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.reply.records.Rest().Read(p)
	if c.left >= 0 {
		if int64(n) > c.left {
			n, err = int(c.left), c.reply.failed(wire.ErrRecord)
		}
		c.left -= int64(n)
		if err == io.EOF && c.left > 0 {
			err = c.reply.failed(io.ErrUnexpectedEOF)
		}
	}
	if err != nil && err != io.EOF {
		err = c.reply.failed(err)
	}
	c.err = err
	return n, err
}

// Close ends it, read or not. It may be called more than once.
func (c *content) Close() error { return c.reply.Close() }
