package web

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"sandboxd/internal/access"
	"sandboxd/internal/files"
	"sandboxd/internal/text"
)

// chunks are buffers for copying to clients.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// cut ends the connection in the midst of an answer, which therefore does not look whole to the client. It does not return.
func (s *fileHandlers) cut(r *request, err error) {
	s.log.Debug("answer cut off", "request_id", r.id, "path", r.http.URL.Path, "err", err)
	panic(http.ErrAbortHandler)
}

// maxFileName bounds the name under which a file is kept, in bytes.
const maxFileName = 200

// attachment says under which name the client keeps an answer, per RFC 6266: in letters that every client reads, and as it is.
// A sandbox chooses the name: it must not break the header, hide parts, or change the writing direction.
func attachment(name string) string {
	name = strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' {
			return '_'
		}
		return c
	}, text.OneLine(strings.ToValidUTF8(name, "_"), maxFileName))
	if strings.Trim(name, " .") == "" {
		name = "download"
	}
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || strings.ContainsRune(`"\%;`, c) {
			return '_'
		}
		return c
	}, name)
	header := `attachment; filename="` + plain + `"`
	if plain != name {
		header += "; filename*=UTF-8''" + extValue(name)
	}
	return header
}

// extValue encodes a text as RFC 8187 has it.
func extValue(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

var archiveTypes = map[files.Format]string{
	files.Tar: "application/x-tar", files.TarZstd: "application/zstd", files.Zip: "application/zip",
}

// sendArchive answers with a folder, or some things in it, as an archive.
func (s *fileHandlers) sendArchive(ctx context.Context, r *request, h access.Handle, path string) error {
	q := r.http.URL.Query()
	archive, err := s.cfg.Files.Pack(ctx, h, path, q["name"], files.Format(q.Get("archive")))
	if err != nil {
		return err
	}
	defer archive.Close()
	out := &lateHead{to: steady{r.w, http.NewResponseController(r.w), s.move}, begin: func() {
		r.head.Set("Content-Type", archiveTypes[archive.Format])
		r.head.Set("Content-Disposition", attachment(archive.Name))
		r.w.WriteHeader(http.StatusOK)
	}}
	if r.wantsHead() {
		out.start()
		return nil
	}
	err = archive.Copy(out)
	if err != nil && out.begun {
		s.cut(r, err)
	}
	return err
}

// lateHead sends the head of an answer with its first bytes, so that what fails before still has an answer of its own.
type lateHead struct {
	to    steady
	begin func()
	begun bool
}

func (l *lateHead) start() {
	if !l.begun {
		l.begun = true
		l.begin()
	}
}

// Write implements io.Writer.
func (l *lateHead) Write(p []byte) (int, error) {
	l.start()
	return l.to.Write(p)
}
