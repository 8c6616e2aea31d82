package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/wire"
)

// errNotAsExpected says that a condition of the request does not hold.
var errNotAsExpected = &statusError{http.StatusPreconditionFailed, "precondition_failed",
	"The file is not what it was when you last saw it. The header ETag has what it is now."}

// apiPutFile writes a file, a piece of one, or an archive's entries.
func (s *fileHandlers) apiPutFile(ctx context.Context, r *request, h access.Handle) (reply, error) {
	path, err := r.onePath("")
	if err != nil {
		return reply{}, err
	}
	if r.http.URL.Query().Has("extract") {
		return s.extract(ctx, r, h, path)
	}
	put, body, err := r.filePut(path)
	if err != nil {
		return reply{}, err
	}
	w, err := s.cfg.Files.Write(ctx, h, put, body)
	if errors.Is(err, files.ErrChanged) {
		return reply{}, s.notAsExpected(ctx, r, h, path)
	}
	if err != nil {
		return reply{}, err
	}
	if w.Entry.Name == "" {
		return reply{status: http.StatusAccepted, body: offsetShape{w.Offset}}, nil
	}
	if w.Entry.ETag != "" {
		r.head.Set("ETag", w.Entry.ETag)
	}
	out := reply{body: entryBody(w.Entry)}
	if w.Created {
		out.status = http.StatusCreated
	}
	return out, nil
}

// notAsExpected tells which ETag the file has now, if there is one.
func (s *fileHandlers) notAsExpected(ctx context.Context, r *request, h access.Handle, path string) error {
	if now, err := s.cfg.Files.Read(ctx, h, path, 0, 0); err == nil {
		now.Close()
		if now.Entry.ETag != "" {
			r.head.Set("ETag", now.Entry.ETag)
		}
	}
	return errNotAsExpected
}

// filePut reads the write's terms from the query and the headers, and gives the content.
func (r *request) filePut(path string) (put wire.FilePut, body io.Reader, err error) {
	q := r.http.URL.Query()
	body = r.http.Body
	put = wire.FilePut{Path: path, Size: r.http.ContentLength, Parents: q.Get("parents") == "true"}
	if text := q.Get("mode"); text != "" {
		if put.Mode, err = parseMode(text); err != nil {
			return put, nil, err
		}
	}
	if put.IfMatch, put.IfNone, err = r.conditions(); err != nil {
		return put, nil, err
	}
	if q.Has("upload") {
		put.Upload = q.Get("upload")
		if put.Upload == "" {
			return put, nil, fault.Field("upload", "An upload needs a name of your choice.")
		}
		length, err := r.piece(&put)
		return put, &exactly{r: body, left: length}, err
	}
	if r.http.Header.Get("Content-Range") != "" {
		return put, nil, fault.Field("upload", "A piece of a file needs the name of its upload: upload=NAME, of your choice.")
	}
	return put, body, nil
}

// parseMode reads permissions as chmod has them.
func parseMode(text string) (uint32, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > wire.MaxFileMode {
		return 0, fault.Field("mode", "A mode is an octal number such as 0644.")
	}
	return uint32(mode), nil
}

// conditions reads what must be true of the file that is to be replaced. A weak ETag never is.
func (r *request) conditions() (match string, none bool, err error) {
	match = strings.TrimSpace(r.http.Header.Get("If-Match"))
	switch given := strings.TrimSpace(r.http.Header.Get("If-None-Match")); {
	case given == "*" && match == "":
		return "", true, nil
	case given != "":
		return "", false, fault.New(fault.Invalid, "If-None-Match can only be *, without If-Match.")
	case match == "" || match == "*" || strings.HasPrefix(match, "W/"):
		return match, false, nil
	case strings.Contains(match, ","), len(match) < 2, match[0] != '"', match[len(match)-1] != '"':
		return "", false, fault.New(fault.Invalid, "If-Match must be one ETag, in its quotes, or *.")
	case len(match) > maxETag:
		return `""`, false, nil // no file has such a one
	}
	return match, false, nil
}

// maxETag is how long the ETag of a file can be.
const maxETag = 64

// errPiece says how a piece is announced.
var errPiece = fault.New(fault.Invalid, "A piece needs a header such as Content-Range: bytes 0-1048575/4194304.")

// piece reads which part of the file the body is, as "bytes 0-99/1000", "bytes 100-199/*" while the size is not known, or
// "bytes */1000" when all is there already. It gives how many bytes the body has.
func (r *request) piece(put *wire.FilePut) (length int64, err error) {
	given, ok := strings.CutPrefix(strings.TrimSpace(r.http.Header.Get("Content-Range")), "bytes ")
	part, total, split := strings.Cut(given, "/")
	if !ok || !split {
		return 0, errPiece
	}
	put.Size = -1
	if total != "*" {
		if put.Size, err = parseCount(total); err != nil {
			return 0, err
		}
	}
	if part == "*" {
		put.Offset, put.Last = put.Size, true
		if put.Size < 0 {
			return 0, errPiece
		}
		return 0, nil
	}
	from, to, _ := strings.Cut(part, "-")
	first, err1 := parseCount(from)
	last, err2 := parseCount(to)
	if err1 != nil || err2 != nil || last < first || put.Size >= 0 && last >= put.Size {
		return 0, errPiece
	}
	put.Offset, put.Last, length = first, last+1 == put.Size, last-first+1
	if n := r.http.ContentLength; n >= 0 && n != length {
		return 0, fault.New(fault.Invalid, "The body has %d bytes and Content-Range says %d.", n, length)
	}
	return length, nil
}

// parseCount reads a number of bytes as HTTP has it: digits alone.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 62)
	if err != nil {
		return 0, errPiece
	}
	return int64(n), nil
}

// exactly reads so many bytes, and fails when there are fewer or more.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.left -= int64(n)
	switch {
	case e.left < 0, err == io.EOF && e.left > 0:
		return 0, fault.New(fault.Invalid, "The body has not as many bytes as Content-Range says.")
	}
	return n, err
}

// extractShape is what came of an archive.
type extractShape struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// extract makes what an archive in the body holds.
func (s *fileHandlers) extract(ctx context.Context, r *request, h access.Handle, path string) (reply, error) {
	if kind := r.query("extract"); kind != "tar" {
		return reply{}, fault.Field("extract", "Only tar can be extracted, plain or compressed with gzip or zstd.")
	}
	links := r.query("links")
	if links != "" && links != "keep" {
		return reply{}, fault.Field("links", "links can only be keep.")
	}
	coding := r.http.Header.Get("Content-Encoding")
	if !files.CheckEncoding(coding) {
		return reply{}, &statusError{http.StatusUnsupportedMediaType, "unsupported_media_type",
			"The body's Content-Encoding can be gzip or zstd."}
	}
	made, err := s.cfg.Files.Unpack(ctx, h, files.Unpacking{Folder: path, Coding: coding, KeepLinks: links == "keep"}, r.http.Body)
	if err != nil {
		return reply{}, err
	}
	return reply{body: extractShape{made.Entries, made.Bytes}}, nil
}

// apiDeleteFiles moves files to the trash, deletes them for good, or abandons an upload.
func (s *fileHandlers) apiDeleteFiles(ctx context.Context, r *request, h access.Handle) (reply, error) {
	q := r.http.URL.Query()
	if q.Has("upload") {
		path, err := r.onePath("")
		if err != nil {
			return reply{}, err
		}
		return reply{status: http.StatusNoContent}, s.cfg.Files.Abandon(ctx, h, path, q.Get("upload"))
	}
	permanent := q.Get("permanent") == "true"
	gone, err := s.cfg.Files.Delete(ctx, h, q["path"], permanent)
	if err != nil && len(gone) > 0 {
		return reply{}, &partlyTrashed{err, gone}
	}
	if err != nil || permanent {
		return reply{status: http.StatusNoContent}, err
	}
	return reply{body: trashBody(gone)}, nil
}

// partlyTrashed says why not everything was moved to the trash, and names the files that were: they can be brought back.
type partlyTrashed struct {
	error
	gone []wire.Trashed
}

// Unwrap gives why.
func (e *partlyTrashed) Unwrap() error { return e.error }

// stillTrashed adds the names in the trash to an error that replaces another.
func stillTrashed(told, was error) error {
	var part, already *partlyTrashed
	if !errors.As(was, &part) || errors.As(told, &already) {
		return told
	}
	return &partlyTrashed{told, part.gone}
}
