package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/wire"
)

// Bounds of reading.
const (
	listDefault = 1000
	sniffed     = 512
	chunk       = 256 << 10
)

// homePath is listed when no path is given.
const homePath = "~"

// apiFile gives a file's bytes, a folder's list or archive, the entry of either, or an upload's offset.
func (s *fileHandlers) apiFile(ctx context.Context, r *request, h access.Handle) (reply, error) {
	path, err := r.onePath(homePath)
	if err != nil {
		return reply{}, err
	}
	q := r.http.URL.Query()
	switch {
	case q.Has("upload"):
		offset, err := s.cfg.Files.Upload(ctx, h, path, q.Get("upload"))
		return reply{body: offsetShape{offset}}, err
	case q.Has("archive"):
		return reply{}, s.sendArchive(ctx, r, h, path)
	case q.Get("stat") == "true":
		return s.statFile(ctx, r, h, path)
	case q.Has("limit") || q.Has("after"):
		return s.listFolder(ctx, r, h, path)
	}
	err = s.sendFile(ctx, r, h, path)
	if errors.Is(err, files.ErrIsFolder) {
		return s.listFolder(ctx, r, h, path)
	}
	return reply{}, err
}

// offsetShape is how much of an upload has arrived.
type offsetShape struct {
	Offset int64 `json:"offset"`
}

// onePath gives the one path that the query has, or otherwise when it has none.
func (r *request) onePath(otherwise string) (string, error) {
	switch paths := r.http.URL.Query()["path"]; len(paths) {
	case 0:
		return otherwise, nil
	case 1:
		return paths[0], nil
	}
	return "", fault.Field("path", "Give one path.")
}

// refresh says whether a page looks again by itself, which is no use of a sandbox and wakes none.
func (r *request) refresh() bool { return r.query("refresh") == "true" }

func (s *fileHandlers) statFile(ctx context.Context, r *request, h access.Handle, path string) (reply, error) {
	stat := s.cfg.Files.Stat
	if r.refresh() {
		stat = s.cfg.Files.Glance().Stat
	}
	e, err := stat(ctx, h, path)
	if fault.Is(err, fault.NotFound) && r.query("missing") == "empty" {
		return reply{status: http.StatusNoContent}, nil
	}
	if err != nil {
		return reply{}, err
	}
	return reply{body: entryBody(e)}, nil
}

func (s *fileHandlers) listFolder(ctx context.Context, r *request, h access.Handle, path string) (reply, error) {
	limit, err := r.intQuery("limit", listDefault, 1, wire.MaxListing)
	if err != nil {
		return reply{}, err
	}
	list := s.cfg.Files.List
	if r.refresh() {
		list = s.cfg.Files.Glance().List
	}
	l, err := list(ctx, h, path, r.query("after"), limit)
	if err != nil {
		return reply{}, err
	}
	return reply{body: listingBody(l)}, nil
}

// sendFile answers with a file's content, or what the request's conditions and range make of that.
func (s *fileHandlers) sendFile(ctx context.Context, r *request, h access.Handle, path string) error {
	at, length := int64(0), int64(-1)
	if conditional(r) {
		length = sniffed // enough to tell what it is; the part that is wanted follows
	}
	file, err := s.cfg.Files.Read(ctx, h, path, at, length)
	if err != nil {
		return err
	}
	out := &sending{ResponseWriter: r.w, ctl: http.NewResponseController(r.w), move: s.move, size: file.Entry.Size, bare: r.wantsHead(), content: file, whole: length < 0}
	out.again = func(offset, length int64) (*files.Content, error) {
		return s.cfg.Files.Read(ctx, h, path, offset, length)
	}
	defer out.close()
	if err := out.sniff(); err != nil {
		return err
	}
	r.describe(file.Entry, out.head, r.query("preview") == "image")
	asked := r.http
	if out.bare {
		asked = asked.WithContext(asked.Context())
		asked.Method = http.MethodHead
	}
	http.ServeContent(out, asked, "", file.Entry.Modified, out)
	return out.end(s, r)
}

// conditional says whether not simply the whole file is wanted. Several ranges at once, or ranges of anything but bytes, are
// taken for none.
func conditional(r *request) bool {
	h := r.http.Header
	if given := h.Get("Range"); strings.Contains(given, ",") || !strings.HasPrefix(given, "bytes=") {
		h.Del("Range")
	}
	for _, name := range []string{"Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if h.Get(name) != "" {
			return true
		}
	}
	return r.wantsHead()
}

// describe writes the head of a file's content: it is to be kept, not shown, unless it is a picture.
func (r *request) describe(e files.Entry, head []byte, preview bool) {
	kind := pictureType(e.Name, head, preview)
	if kind == svgType {
		r.head.Set("Content-Security-Policy", picturePolicy)
	}
	r.head.Set("Content-Type", kind)
	r.head.Set("Content-Disposition", attachment(e.Name))
	r.head.Set("Cache-Control", "private, no-cache")
	if e.ETag != "" {
		r.head.Set("ETag", e.ETag)
	}
}

// The types that a file's content is answered with.
const (
	bytesType = "application/octet-stream"
	svgType   = "image/svg+xml"
)

var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// pictureType gives the type of a picture made of dots, by its first bytes; that of a drawing, whose markup could hold
// anything, only when a preview is asked for; and else that of mere bytes.
func pictureType(name string, head []byte, preview bool) string {
	kind := http.DetectContentType(head)
	switch {
	case slices.Contains(pictures, kind):
		return kind
	case len(head) >= 12 && (string(head[4:12]) == "ftypavif" || string(head[4:12]) == "ftypavis"):
		return "image/avif"
	case preview && strings.HasSuffix(strings.ToLower(name), ".svg"):
		return svgType
	}
	return bytesType
}

// sending is a file on its way to the client. It is the content that http.ServeContent seeks in, and the writer that it writes
// to: only when it has said what it wants is the part opened, so that what fails then still has an answer of its own.
type sending struct {
	http.ResponseWriter
	ctl     *http.ResponseController
	move    time.Duration
	size    int64
	bare    bool  // only the head is wanted
	at      int64 // where ServeContent wants to begin
	head    []byte
	content *files.Content
	whole   bool // content is the whole file
	again   func(offset, length int64) (*files.Content, error)
	begun   bool  // the head of the answer is out
	err     error // why not all that was promised has come
}

// sniff reads the file's first bytes.
func (o *sending) sniff() error {
	o.head = make([]byte, min(sniffed, o.content.Size))
	_, err := io.ReadFull(o.content, o.head)
	return err
}

// Seek implements io.Seeker for http.ServeContent.
func (o *sending) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		o.at = offset
	case io.SeekEnd:
		o.at = o.size + offset
	default:
		return 0, fmt.Errorf("seek from %d: %w", whence, errors.ErrUnsupported)
	}
	return o.at, nil
}

// Read implements io.Reader for http.ServeContent, which copies through ReadFrom.
func (o *sending) Read(p []byte) (int, error) {
	n, err := o.content.Read(p)
	if err != nil && err != io.EOF {
		o.err = err
	}
	return n, err
}

// WriteHeader opens the requested part before it promises it.
func (o *sending) WriteHeader(status int) {
	switch status {
	case http.StatusOK, http.StatusPartialContent:
		o.err = o.open()
	case http.StatusPreconditionFailed:
		o.err = errNotAsExpected
	case http.StatusRequestedRangeNotSatisfiable:
		o.err = &statusError{status, "range_not_satisfiable", "The file has no such range of bytes."}
	}
	if o.err != nil {
		return
	}
	o.begun = true
	o.ResponseWriter.WriteHeader(status)
}

func (o *sending) open() error {
	if o.bare || o.whole && o.at == 0 {
		return nil
	}
	length, err := strconv.ParseInt(o.Header().Get("Content-Length"), 10, 64)
	if err != nil {
		return fmt.Errorf("tell the length of the answer: %w", err)
	}
	etag := o.content.Entry.ETag
	o.content.Close()
	next, err := o.again(o.at, length)
	if err != nil {
		return err
	}
	o.content, o.head = next, nil
	if next.Entry.ETag != etag || next.Entry.Size != o.size {
		return fault.New(fault.Unavailable, "The file changes while it is read. Try again.")
	}
	return nil
}

// Write writes a small answer, such as an error's.
func (o *sending) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	o.begun = true
	return o.ResponseWriter.Write(p)
}

// ReadFrom copies the part that ServeContent wants: src is a part of o itself.
func (o *sending) ReadFrom(src io.Reader) (int64, error) {
	if o.err != nil {
		return 0, o.err
	}
	left := o.size - o.at
	if limited, ok := src.(*io.LimitedReader); ok {
		left = limited.N
	}
	sent := int64(0)
	out := steady{o.ResponseWriter, o.ctl, o.move}
	if n := min(int64(len(o.head)), left); n > 0 {
		if _, err := out.Write(o.head[:n]); err != nil {
			o.err = err
			return 0, err
		}
		sent = n
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	n, err := io.CopyBuffer(out, io.LimitReader(o, left-sent), buf[:])
	sent += n
	if err == nil && sent < left {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && o.err == nil {
		o.err = err
	}
	return sent, err
}

// end returns an error that can still be sent, or cuts the connection so that nothing looks whole.
func (o *sending) end(s *fileHandlers, r *request) error {
	if o.err == nil {
		return nil
	}
	if o.begun {
		s.cut(r, o.err)
	}
	for _, name := range []string{"Content-Type", "Content-Disposition", "Content-Length", "Accept-Ranges", "Last-Modified"} {
		r.head.Del(name)
	}
	var known *statusError
	if !errors.As(o.err, &known) {
		r.head.Del("ETag")
		r.head.Del("Content-Range")
	}
	r.head.Set("Cache-Control", "no-store")
	return o.err
}

func (o *sending) close() { o.content.Close() }

// steady writes to a client as long as it takes something now and then.
type steady struct {
	w    io.Writer
	ctl  *http.ResponseController
	move time.Duration
}

func (w steady) Write(p []byte) (int, error) {
	if err := w.hurry(); err != nil {
		return 0, err
	}
	n, err := w.w.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotTaken, err)
	}
	return n, err
}

// errNotTaken says that a client does not take its answer: it has left, or is too slow.
var errNotTaken = errors.New("the client does not take the answer")

// hurry sets the deadline for the client to take the next write.
func (w steady) hurry() error {
	err := w.ctl.SetWriteDeadline(time.Now().Add(w.move))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
